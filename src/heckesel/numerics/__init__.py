"""Special functions, quadrature and splines that stay accurate in the tails.

The torch version of a file has its name with `_torch`; a test compares the two.
"""
