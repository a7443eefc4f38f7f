"""Data that experiments draw or build: regimes of X5 and reporting panels."""
