r"""Bivariate normal errors, in the coordinates (index, e, atanh rho).

The log-likelihood of a unit depends on its index eta = w'gamma, its standardised residual
e = (y - f)/sigma and the common a = atanh rho:

* unselected: log Phi(-eta)
* selected:   log phi(e) + log Phi(B),  B = eta cosh a + e sinh a

(the caller adds the -log sigma of the density of y). B is the usual
(eta + rho e)/sqrt(1 - rho^2), written so that nothing divides by zero as rho approaches +-1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from heckesel.numerics.normal import LOG_2PI, log_ndtr_and_mills, mills_excess


@dataclass(frozen=True)
class SelectedUnits:
    """Log-likelihood of each selected unit and its derivatives in (index, e, atanh_rho).

    Each is computed on access; for the formulas see `selected_units`.
    """

    e: np.ndarray
    cosh: float
    sinh: float
    argument: np.ndarray
    slope: np.ndarray
    log_cdf: np.ndarray
    mills: np.ndarray
    delta: np.ndarray

    @property
    def value(self) -> np.ndarray:
        return self.log_cdf - 0.5 * self.e * self.e - 0.5 * LOG_2PI

    @cached_property
    def gradient(self) -> np.ndarray:
        """(3, n)"""
        by_e = self.mills * self.sinh - self.e
        return np.array([self.mills * self.cosh, by_e, self.mills * self.slope])

    @cached_property
    def hessian(self) -> np.ndarray:
        """(3, 3, n)"""
        mills, delta, cosh, sinh = self.mills, self.delta, self.cosh, self.sinh
        index_e = -delta * cosh * sinh
        index_a = mills * sinh - delta * cosh * self.slope
        e_a = mills * cosh - delta * sinh * self.slope
        a_a = mills * self.argument - delta * self.slope * self.slope
        return np.array(
            [
                [-delta * cosh * cosh, index_e, index_a],
                [index_e, -1.0 - delta * sinh * sinh, e_a],
                [index_a, e_a, a_a],
            ]
        )


class UnselectedUnits(NamedTuple):
    """Log-likelihood of each unselected unit and its derivatives in the index."""

    value: np.ndarray
    d_index: np.ndarray
    d_index_index: np.ndarray


def selected_units(index, e, atanh_rho) -> SelectedUnits:
    r"""Value, score and Hessian of log phi(e) + log Phi(B).

    With C = cosh a, S = sinh a, lambda and delta at B (`argument`) and
    D = dB/da = eta S + e C (`slope`, so that d^2B/da^2 = B again):

    .. math::
        \ell_\eta = \lambda C,\quad \ell_e = \lambda S - e,\quad \ell_a = \lambda D

        \ell_{\eta\eta} = -\delta C^2,\; \ell_{\eta e} = -\delta C S,\;
        \ell_{ee} = -1 - \delta S^2

        \ell_{\eta a} = \lambda S - \delta C D,\; \ell_{ea} = \lambda C - \delta S D,\;
        \ell_{aa} = \lambda B - \delta D^2

    B and D are computed from (eta + e) e^a and (eta - e) e^{-a}: for a = 20 the direct sum
    eta cosh a + e sinh a would lose every digit if eta is close to -e.
    """
    plus = (index + e) * (0.5 * np.exp(atanh_rho))
    minus = (index - e) * (0.5 * np.exp(-atanh_rho))
    argument = plus + minus
    log_cdf, mills = log_ndtr_and_mills(argument)
    return SelectedUnits(
        e=e,
        cosh=np.cosh(atanh_rho),
        sinh=np.sinh(atanh_rho),
        argument=argument,
        slope=plus - minus,
        log_cdf=log_cdf,
        mills=mills,
        delta=mills * mills_excess(argument, mills),
    )


def unselected_units(index) -> UnselectedUnits:
    """Value, score and Hessian of log Phi(-index)."""
    log_cdf, mills = log_ndtr_and_mills(-index)
    return UnselectedUnits(log_cdf, -mills, -mills * mills_excess(-index, mills))
