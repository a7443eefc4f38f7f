"""Special functions, quadrature and splines that stay accurate in the tails."""
