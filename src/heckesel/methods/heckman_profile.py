"""Deep joint model that sees the whole likelihood over rho and averages over what it leaves open.

Joint members start on both signs of rho, so that every mode is found by someone. Each member's
last hidden layer is then a set of columns in which, at any fixed rho, the best outcome function
is one concave fit away: a grid of rho, solved for all members side by side, gives the evidence of
each (rho, member). The predictive is the mixture with these weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.data import SelectionData
from heckesel.deep.cells import Members
from heckesel.deep.config import NetworkConfig, torch_device
from heckesel.deep.losses import JOINT
from heckesel.deep.rho_mixture import RhoMixture, average_over_rho
from heckesel.deep.rho_prior import rho_prior
from heckesel.deep.train import Progress
from heckesel.methods.heckman_joint import fit_two_heads

# |atanh rho| at the start: far enough from the ridge at 0 to fall to its own side, near enough
# that no start is at a boundary (tanh 1.2 = .83).
SMALLEST_START, LARGEST_START = 0.2, 1.2
KEPT = {"member_rho": "rho", "training_loss": "training_loss"}


@dataclass(frozen=True)
class ProfileConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)"""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    rho_prior: object = None


@dataclass(frozen=True)
class LastLayer:
    """The last hidden layer of k networks as k column sets."""

    members: Members

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(k, m, h), the constant last."""
        return self.members.last_layer(x)


def fit(
    data: SelectionData,
    *,
    seed: int,
    config: ProfileConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> RhoMixture:
    """The profile model for one cell."""
    return fit_many([data], seeds=[seed], config=config, device=device, progress=progress)[0]


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: ProfileConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[RhoMixture]:
    """The profile model for many cells with the same columns, networks trained as one batch."""
    config = config or ProfileConfig()
    prior = rho_prior(config.rho_prior)
    network = replace(config.network, warm_up=0)
    ensembles = fit_two_heads(
        datas,
        JOINT,
        seeds=seeds,
        config=network,
        starts={"atanh_rho": both_signs(network.n_members)},
        device=device,
        progress=progress,
    )
    bases = [LastLayer(ensemble.members) for ensemble in ensembles]
    free_constant = np.ones((network.hidden[-1] + 1, 1))
    free_constant[-1] = 0.0
    averaged = average_over_rho(
        datas,
        [ensemble.scaling for ensemble in ensembles],
        bases,
        free_constant,
        prior,
        torch_device(device or network.device),
    )
    return [
        replace(fit, info=fit.info | {name: ensemble.info[key] for name, key in KEPT.items()})
        for fit, ensemble in zip(averaged, ensembles, strict=True)
    ]


def both_signs(members: int) -> np.ndarray:
    """(k,) starts of atanh rho, signs in turn."""
    size = np.linspace(SMALLEST_START, LARGEST_START, members)
    return size * np.where(np.arange(members) % 2 == 0, 1.0, -1.0)
