"""Averaging over rho: its prior, its evidence on a grid, and the mixture of fits."""
