"""Inference that stays valid where the data hardly identify rho."""
