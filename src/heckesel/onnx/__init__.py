"""Fitted models as ONNX graphs: `graph` builds them, and each fit draws its own part.

A new kind of fit is exported once it has a method `graph`.
"""
