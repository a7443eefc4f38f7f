"""Special functions, quadrature and splines that stay accurate in the tails.

The torch version of `name.py` is `name_torch.py`; a test compares the two.
"""
