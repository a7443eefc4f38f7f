"""Predictive distributions: one unit, mixtures of several, and outcomes fitted on another scale."""
