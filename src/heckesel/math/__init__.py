"""Special functions, truncated distributions, quadrature, splines and Newton's method."""
