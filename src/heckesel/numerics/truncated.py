r"""The distribution of an outcome error given selection (extended skew-normal).

(u, e) is standard bivariate normal with correlation rho, and the unit was selected: u > -index.
"""

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from heckesel.numerics.bivariate import log_conditional_cdf
from heckesel.numerics.normal import LOG_2PI, inverse_mills, mills_delta

# Where Newton's method leaves the bracket it is halved, and 80 halvings bring any bracket below one
# ulp.
QUANTILE_STEPS = 80
# Steps so small end the search: after one of Newton's method the error is about its square.
LAST_STEP, LAST_HALVING = 1e-6, 1e-13


def cdf_given_selection(e, index, rho):
    r"""P(E <= e | U > -index), with an error of about 1e-14 however unlikely selection is.

    .. math:: \Phi_2(\text{index}, e; -\rho) / \Phi(\text{index})
    """
    with np.errstate(divide="ignore"):  # rho = +-1 is at infinity
        atanh_rho = np.arctanh(rho)
    return np.exp(log_conditional_cdf(e, index, -atanh_rho))


def log_density_given_selection(e, index, rho):
    """log of phi(e) Phi((index + rho e)/sqrt(1 - rho^2)) / Phi(index)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho))
    return -0.5 * e**2 - 0.5 * LOG_2PI + log_ndtr(argument) - log_ndtr(index)


def moments_given_selection(index, rho):
    """Mean and variance of E given U > -index: rho lambda and 1 - rho^2 delta."""
    mills = inverse_mills(index)
    return rho * mills, 1.0 - rho**2 * mills_delta(index, mills)


def quantile_given_selection(p, index, rho):
    """The e with P(E <= e | U > -index) = p, by Newton's method inside a shrinking bracket."""
    p, index, rho = (
        part.ravel()
        for part in np.broadcast_arrays(*(np.asarray(v, float) for v in (p, index, rho)))
    )
    mean, variance = moments_given_selection(index, rho)
    sd = np.sqrt(variance)
    # A log-concave density falls at least exponentially: all but 1e-17 of it lies within 40 sd.
    low, high = mean - 40 * sd, mean + 40 * sd
    return invert_cdf(
        p,
        lambda e, at: (
            cdf_given_selection(e, index[at], rho[at]),
            np.exp(log_density_given_selection(e, index[at], rho[at])),
        ),
        np.clip(mean + sd * ndtri(p), low, high),
        (low, high),
    )


def invert_cdf(p, cdf_and_density, start, bracket):
    r"""The e with F(e, at) = p[at], by Newton's method inside a shrinking bracket.

    The steps are those for :math:`\Phi^{-1}(F(e)) = \Phi^{-1}(p)`, which is nearly straight where
    F is nearly normal, so that three of them are enough.

    cdf_and_density : function of e and of the positions it belongs to
    """
    e, (low, high) = start, bracket
    active, target = np.arange(len(e)), ndtri(p)
    for _ in range(QUANTILE_STEPS):
        here = e[active]
        cdf, density = cdf_and_density(here, active)
        low[active] = np.where(cdf < p[active], here, low[active])
        high[active] = np.where(cdf > p[active], here, high[active])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            probit = ndtri(cdf)
            slope = density * np.exp(0.5 * probit**2) * np.sqrt(2 * np.pi)
            newton = here + (target[active] - probit) / slope
        # a step that rounds to zero stays at an end of the bracket and has not left it
        inside = (newton >= low[active]) & (newton <= high[active])
        moved = np.where(inside, newton, 0.5 * (low[active] + high[active]))
        moved = np.where(cdf == p[active], here, moved)
        e[active] = moved
        near = np.where(inside, LAST_STEP, LAST_HALVING) * (1 + np.abs(here))
        active = active[np.abs(moved - here) > near]
        if not len(active):
            break
    return e


def sample_given_selection(size, index, rho, rng):
    """(size, m) draws of E: a truncated U by inversion, then E given U."""
    index, rho = np.asarray(index, float), np.asarray(rho, float)
    share = rng.random((size, len(index)))
    u = -ndtri_exp(np.log1p(-share) + log_ndtr(index))
    noise = rng.standard_normal((size, len(index)))
    return rho * u + np.sqrt((1 - rho) * (1 + rho)) * noise
