r"""The prior of rho, calibrated on real outcomes whose truth is known.

Real outcomes hardly depend on selection given the covariates: the rho that makes the normal
correction exact has a median of .1 in size. So the prior has a spike and a slab,

.. math:: \pi(\rho) = (1 - \omega)\, t_3(\rho/s)/s + \omega\, t_3(\rho/S)/S .

All constants below were chosen by `python -m reproduction.truth.calibrate`, which prints how each
choice did on the sources that it was not made on; the documentation has the figure.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from heckesel.errors import DataError

SPIKE = 0.071  # s
SLAB, SLAB_SHARE = 0.352, 0.056  # S and omega
EXTRAPOLATION = 0.075  # sd of rho among the unselected around that at the margin of the instrument
NORMAL_SHARE = 0.461  # prior probability of the normal reading against the flat one
RHO = np.linspace(-0.985, 0.985, 395)


@dataclass(frozen=True)
class RhoPrior:
    """weight : (395,) probabilities on the grid RHO

    extrapolation : sd by which rho of the unselected differs from what the instrument shows
    normal_share : probability of the normal reading
    """

    weight: np.ndarray
    extrapolation: float
    normal_share: float
    label: str

    def density(self, rho):
        """The density at any rho, up to a constant."""
        return np.interp(rho, RHO, self.weight)


def spike_and_slab(
    spike: float = SPIKE, slab: float = SLAB, share: float = SLAB_SHARE
) -> np.ndarray:
    density = (1 - share) * _t3(spike) + share * _t3(slab)
    return density / density.sum()


def _t3(scale: float) -> np.ndarray:
    density = student.pdf(RHO / scale, 3)
    return density / density.sum()


def rho_prior(given=None) -> RhoPrior:
    """The default, or one from a scale, "uniform" or a density."""
    if isinstance(given, RhoPrior):
        return given
    if given is None:
        return RhoPrior(spike_and_slab(), EXTRAPOLATION, NORMAL_SHARE, "calibrated on real data")
    if isinstance(given, str) and given == "uniform":
        density, label = np.ones(len(RHO)), "uniform"
    elif callable(given):
        density, label = np.array([given(rho) for rho in RHO], dtype=float), "given density"
    elif isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < np.inf:
        density, label = _t3(float(given)), f"t with 3 degrees of freedom and scale {given:g}"
    else:
        raise DataError(
            f"rho_prior must be a positive scale, 'uniform' or a density of rho, got {given!r}"
        )
    if (
        density.shape != RHO.shape
        or not np.isfinite(density).all()
        or (density < 0).any()
        or not density.any()
    ):
        raise DataError(
            "rho_prior must be a density that is finite, not negative and not zero everywhere"
        )
    return RhoPrior(density / density.sum(), EXTRAPOLATION, NORMAL_SHARE, label)
