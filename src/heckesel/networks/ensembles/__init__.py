"""Trained networks that predict."""
