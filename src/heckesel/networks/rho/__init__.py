"""The evidence for rho: its curve, its prior and the mixture over it."""
