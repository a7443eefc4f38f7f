"""Predictive distributions: `Predictive`, its families, mixtures and transformed outcomes."""

from heckesel.predictive.distribution import Predictive, check_target

__all__ = ["Predictive", "check_target"]
