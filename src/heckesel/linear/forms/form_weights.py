"""Weights and comparisons of several error models fitted to the same data."""

import numpy as np

# A form that is ten units of AIC worse than the best one has hardly any weight.
CLOSE_AIC = 10.0


def aic_weights(aic) -> np.ndarray:
    """exp(-AIC/2), normalised to sum to one."""
    relative = np.exp(-0.5 * (np.asarray(aic) - np.min(aic)))
    return relative / relative.sum()


def forms_to_weigh(aic, normal_aic: float) -> np.ndarray:
    """Which error models are considered: those within CLOSE_AIC of the best, and all that fit no
    worse than the normal model, which most fits report."""
    aic = np.asarray(aic)
    return aic <= max(np.min(aic) + CLOSE_AIC, normal_aic)


def ranges(coefficients) -> np.ndarray:
    """(terms, 2) smallest and largest value of each column over the forms, its rows."""
    return np.stack([np.min(coefficients, axis=0), np.max(coefficients, axis=0)], axis=1)


def changes_sign(coefficients) -> np.ndarray:
    """(terms,) whether a column has both signs."""
    low, high = ranges(coefficients).T
    return (low < 0) & (high > 0)
