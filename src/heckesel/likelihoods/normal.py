r"""Bivariate normal errors, in the coordinates where the model is simple.

A unit enters only through its index eta = w'gamma, its standardised residual
e = (y - f)/sigma and the shared a = atanh rho:

* unselected: log Phi(-eta)
* selected:   log phi(e) + log Phi(B),  B = eta cosh a + e sinh a

(the -log sigma of the density of y is added where sigma is known). B is the usual
(eta + rho e)/sqrt(1 - rho^2), written so that nothing divides by zero as rho nears +-1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heckesel.numerics.normal import LOG_2PI, log_ndtr_and_mills, mills_excess


class SelectedUnits(NamedTuple):
    """Log-likelihood of each selected unit and its derivatives in (index, e, atanh_rho)."""

    value: np.ndarray
    d_index: np.ndarray
    d_e: np.ndarray
    d_a: np.ndarray
    d_index_index: np.ndarray
    d_index_e: np.ndarray
    d_e_e: np.ndarray
    d_index_a: np.ndarray
    d_e_a: np.ndarray
    d_a_a: np.ndarray


class UnselectedUnits(NamedTuple):
    """Log-likelihood of each unselected unit and its derivatives in the index."""

    value: np.ndarray
    d_index: np.ndarray
    d_index_index: np.ndarray


def selected_units(index, e, atanh_rho) -> SelectedUnits:
    r"""Value, score and Hessian of log phi(e) + log Phi(B).

    With lambda and delta at B, C = cosh a, S = sinh a and
    D = dB/da = eta S + e C (so that d^2B/da^2 = B again):

    .. math::
        \ell_\eta = \lambda C,\quad \ell_e = \lambda S - e,\quad \ell_a = \lambda D

        \ell_{\eta\eta} = -\delta C^2,\; \ell_{\eta e} = -\delta C S,\;
        \ell_{ee} = -1 - \delta S^2

        \ell_{\eta a} = \lambda S - \delta C D,\; \ell_{ea} = \lambda C - \delta S D,\;
        \ell_{aa} = \lambda B - \delta D^2

    B and D come from (eta + e) e^a and (eta - e) e^{-a}: for a = 20 the plain sum
    eta cosh a + e sinh a would lose every digit where eta is close to -e.
    """
    plus, minus = 0.5 * (index + e) * np.exp(atanh_rho), 0.5 * (index - e) * np.exp(-atanh_rho)
    argument, slope = plus + minus, plus - minus
    cosh, sinh = np.cosh(atanh_rho), np.sinh(atanh_rho)
    log_cdf, mills = log_ndtr_and_mills(argument)
    delta = mills * mills_excess(argument, mills)
    delta_cosh, delta_sinh = delta * cosh, delta * sinh
    return SelectedUnits(
        value=log_cdf - 0.5 * e * e - 0.5 * LOG_2PI,
        d_index=mills * cosh,
        d_e=mills * sinh - e,
        d_a=mills * slope,
        d_index_index=-delta_cosh * cosh,
        d_index_e=-delta_cosh * sinh,
        d_e_e=-1.0 - delta_sinh * sinh,
        d_index_a=mills * sinh - delta_cosh * slope,
        d_e_a=mills * cosh - delta_sinh * slope,
        d_a_a=mills * argument - delta * slope * slope,
    )


def unselected_units(index) -> UnselectedUnits:
    """Value, score and Hessian of log Phi(-index)."""
    log_cdf, mills = log_ndtr_and_mills(-index)
    return UnselectedUnits(log_cdf, -mills, -mills * mills_excess(-index, mills))
