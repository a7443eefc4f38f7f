"""Correlated errors of the two equations: normal, Student t and chi-squared."""

import numpy as np
from scipy.special import chdtrc, ndtr, stdtr

from heckesel.errors import DataError, is_one_of

ERRORS = ("normal", "t", "chi2")
DEGREES = 3
# Of the chi-squared errors, and the default of t errors: 3 is the smallest integer with a finite
# variance of the t, and gives chi-squared errors a skewness of 1.6.

CHOLESKY_JITTER = 1e-12
# Part of the published draws: added to the variances, it changes the last digits of u.
HERMITE_NODES = 96


def draw_errors(rng, n: int, *, rho: float, sigma: float, errors: str, df: float = DEGREES):
    r"""(epsilon, u), (n,) each: sd sigma and 1, correlation rho.

    "normal" is bivariate normal. "t" is bivariate t with df > 2 degrees of freedom, scaled to these
    variances. "chi2" has independent :math:`u` and :math:`v`, both :math:`(\chi^2_3 - 3)/\sqrt6`,
    and :math:`\varepsilon = \sigma(\rho u + \sqrt{1-\rho^2}\,v)`.
    """
    if not is_one_of(errors, ERRORS):
        raise DataError(f"errors must be one of {', '.join(ERRORS)}, got {errors!r}")
    if errors == "chi2":
        u, v = (rng.chisquare(DEGREES, size=(2, n)) - DEGREES) / np.sqrt(2 * DEGREES)
        return sigma * (rho * u + np.sqrt(1 - rho**2) * v), u
    covariance = np.array([[sigma**2, rho * sigma], [rho * sigma, 1.0]])
    factor = np.linalg.cholesky(covariance + CHOLESKY_JITTER * np.eye(2))
    epsilon, u = (rng.normal(size=(n, 2)) @ factor.T).T
    if errors == "t":
        shrink = np.sqrt((df - 2) / rng.chisquare(df, size=n))
        epsilon, u = epsilon * shrink, u * shrink
    return epsilon, u


def selection_probability(index, errors: str, df: float = DEGREES):
    """P(u > -index)."""
    if errors == "normal":
        return ndtr(index)
    if errors == "t":
        return stdtr(df, np.asarray(index) * np.sqrt(df / (df - 2)))
    return chdtrc(DEGREES, np.maximum(DEGREES - np.sqrt(2 * DEGREES) * np.asarray(index), 0.0))


def probability_given_x(index, alpha: float, errors: str, df: float = DEGREES):
    """P(alpha z + u > -index) for z standard normal, (n,)."""
    if errors == "normal":
        return ndtr(index / np.sqrt(1 + alpha**2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
    at_nodes = selection_probability(np.asarray(index)[:, None] + alpha * nodes, errors, df)
    return at_nodes @ weights / weights.sum()
