"""Predictive distributions: `Predictive`, its families, mixtures and transformed outcomes."""
