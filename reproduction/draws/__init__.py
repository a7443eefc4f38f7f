"""Data that experiments draw or build: regimes of X5, repeated units and reporting panels."""
