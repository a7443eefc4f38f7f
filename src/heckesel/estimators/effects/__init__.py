"""Averages and marginal effects of fitted estimators."""
