"""Three questions about a unit, population, selected or unselected, and one answer for the last
two that every model with correlated normal errors shares.
"""

from __future__ import annotations

import warnings

import numpy as np

from heckesel.errors import DataError, IdentificationWarning
from heckesel.numerics.normal import inverse_mills, mills_delta
from heckesel.predictive import GivenSelection, Predictive

TARGETS = ("population", "selected", "unselected")
# At a correlation of 1 the distribution given selection has no density.
RHO_LIMIT = 0.999


def check_target(target: str, *, needs_w: bool = False) -> None:
    """Refuse a target that does not exist or, with `needs_w`, one that cannot do without w."""
    if target not in TARGETS:
        raise DataError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    if needs_w and target != "population":
        raise DataError(f"target {target!r} needs w, all selection columns")


def predict_given_selection(mean, epistemic, sigma, covariance, index) -> Predictive:
    r"""y given that the unit was selected, with the doubt :math:`\tau^2` about f carried along.

    With :math:`\sigma'^2 = \sigma^2 + \tau^2` and :math:`\rho' = c/\sigma'`, c the covariance of
    the errors, y is :math:`f + \sigma' e` given selection: its mean is :math:`f + c\lambda(\eta)`,
    its variance :math:`\tau^2` and what selection leaves of the noise,
    :math:`\sigma^2 - c^2\delta(\eta)`.

    mean, epistemic : (m,) of f; sigma, covariance : numbers, |covariance| < sigma; index : (m,).
    For units that were not selected give -covariance and -index.
    """
    scale = np.sqrt(sigma**2 + epistemic)
    mills = inverse_mills(index)
    return Predictive(
        mean=mean + covariance * mills,
        epistemic=epistemic,
        aleatoric=sigma**2 - covariance**2 * mills_delta(index, mills),
        distribution=GivenSelection(mean, scale, index, covariance / scale),
    )


def possible_covariance(covariance, sigma):
    """`covariance`, or with a warning the largest that a distribution given selection can have."""
    if abs(covariance) <= RHO_LIMIT * sigma:
        return covariance
    nearest = np.copysign(RHO_LIMIT, covariance)
    warnings.warn(
        f"the correlation of the errors was estimated as {covariance / sigma:.3f}; "
        f"predictions given selection use {nearest:.3f}",
        IdentificationWarning,
        stacklevel=3,
    )
    return nearest * sigma
