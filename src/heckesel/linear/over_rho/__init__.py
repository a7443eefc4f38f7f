"""Inference that is valid even if rho is poorly identified."""
