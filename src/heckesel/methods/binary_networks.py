"""A probit with sample selection whose outcome index is a network.

A correlation that networks fit themselves depends on where it starts, and networks that overfit
find any rho plausible. So rho is not fitted: members are trained at rho = 0, and from there at each
value of a grid, all in the same way and each without a fold of the units. At each rho the
log-likelihood of all units under the members that did not see them is the height of a curve, and
with the prior its weight. Around the best value the grid is halved while one value alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from heckesel.data import SelectionData
from heckesel.errors import HeckeselError
from heckesel.methods.linear_start import probit_start
from heckesel.networks.ensembles.binary_mixture import BinaryMixture
from heckesel.networks.losses.binary import INDEPENDENT_BINARY, JOINT_BINARY
from heckesel.networks.losses.normal import PROBIT, Loss
from heckesel.networks.rho.rho_prior import RhoPrior, bin_edges, rho_prior
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import WAY_OUT, NetworkConfig
from heckesel.networks.training.ensemble_training import (
    Members,
    joint_rows,
    outcome_rows,
    train_datasets,
)
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import DataScale, data_scale_of

# atanh rho of the first grid: |rho| up to .95.
COARSE = np.linspace(-1.8, 1.8, 7)
# On the way to another rho: smaller steps, or the first of them undo what was learned at rho = 0.
MOVING_RATE, MOVING_EPOCHS, MOVING_PATIENCE = 0.3, 200, 30
# No value of rho may stand for more than this share, unless the grid was halved twice already.
LARGEST_SHARE, HALVINGS = 0.5, 2
NEGLIGIBLE = 1e-3  # share of the posterior below which predictions ignore a rho
NETWORK = NetworkConfig(hidden=(32, 32), folds=5, weight_decay=1e-3, patience=60)


@dataclass(frozen=True)
class BinaryConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)"""

    network: NetworkConfig = NETWORK
    rho_prior: object = None


@dataclass(frozen=True)
class RhoPoint:
    """Members at one atanh rho, a; held_out : log-likelihood of all units, each held out."""

    a: float
    members: Members
    held_out: float


def fit(
    data: SelectionData,
    *,
    seed: int,
    config: BinaryConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> BinaryMixture:
    """data.y is 1 for the second class, 0 for the first and missing where not selected."""
    config = config or BinaryConfig()
    prior, network = rho_prior(config.rho_prior), config.network
    scaling = replace(data_scale_of(data, network.standardise), y_centre=0.0, y_scale=1.0)
    signed = replace(data, y=2 * data.y - 1)
    if data.s.all():
        return _without_selection(signed, scaling, seed, network, device, progress)
    batch = with_folds(joint_rows(signed, scaling), signed, network.folds, seed)

    def train(count: int, loss: Loss, config: NetworkConfig, **where) -> list[Members]:
        found = train_datasets(
            [batch] * count,
            loss=loss,
            seeds=[seed] * count,
            config=replace(config, warm_up=config.epochs),  # which keeps rho where it starts
            units=data.n,
            device=device,
            progress=progress,
            **where,
        )
        _check_finite(found)
        return found

    (first,) = train(1, INDEPENDENT_BINARY, network, heads=[np.append(probit_start(batch), 0.0)])

    def at(grid) -> list[RhoPoint]:
        parameters = [_with_rho(first.parameters, a) for a in grid]
        members = train(len(grid), JOINT_BINARY, _moving(network), parameters=parameters)
        return [
            RhoPoint(float(a), each, held_out_loglik(each, batch, data.weight))
            for a, each in zip(grid, members, strict=True)
        ]

    points = at(COARSE)
    for _ in range(HALVINGS):
        share = shares(points, prior)
        best = int(np.argmax(share))
        if share[best] <= LARGEST_SHARE:
            break
        around = [points[i].a for i in (best - 1, best, best + 1) if 0 <= i < len(points)]
        points += at([0.5 * sum(pair) for pair in zip(around[:-1], around[1:], strict=True)])
        points.sort(key=lambda point: point.a)
    fitted = _mixture(points, prior, scaling)
    return replace(fitted, info=fitted.info | _unfinished(first, network))


def _unfinished(members: Members, network: NetworkConfig) -> dict:
    """How many members were best at the last epoch they had. What training did not get to is an
    error that all members share, so the variance between them does not show it."""
    assert members.best_epoch is not None
    return {"unfinished": int((np.asarray(members.best_epoch) >= network.epochs).sum())}


def _check_finite(found: list[Members]) -> None:
    if any(each.diverged for each in found):
        raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")


def _with_rho(parameters, a: float) -> np.ndarray:
    """(k, P) with atanh rho, the last column, at a."""
    return np.column_stack([parameters[:, :-1], np.full(len(parameters), a)])


def _moving(network: NetworkConfig) -> NetworkConfig:
    """The training that brings members from rho = 0 to another rho."""
    rate = JOINT_BINARY.learning_rate if network.learning_rate is None else network.learning_rate
    return replace(
        network,
        learning_rate=MOVING_RATE * rate,
        epochs=min(network.epochs, MOVING_EPOCHS),
        patience=min(network.patience, MOVING_PATIENCE),
    )


def held_out_loglik(members: Members, batch: Batch, weight) -> float:
    """From each member's mean loss on its held-out fold. Whole weights count rows, others do not.

    Folds that no member held out count as those that one did.
    """
    fold = np.concatenate([batch.fold, batch.fold_unselected]).astype(int)
    mass = np.bincount(fold, np.concatenate([batch.weight, batch.weight_unselected]))
    assert members.validation is not None
    own = np.arange(len(members.parameters)) % len(mass)
    count = np.bincount(own, minlength=len(mass))
    share = mass[own] / count[own]
    units = weight.sum() if (weight == np.round(weight)).all() else np.count_nonzero(weight)
    return float(-units * (share @ members.validation) / share.sum())


def shares(points: list[RhoPoint], prior: RhoPrior) -> np.ndarray:
    """(g,) posterior of each rho of the grid."""
    with np.errstate(divide="ignore"):
        mass = np.log(prior.mass(bin_edges(np.tanh([point.a for point in points]))))
    height = mass + np.array([point.held_out for point in points])
    return np.exp(height - logsumexp(height))


def _mixture(points: list[RhoPoint], prior: RhoPrior, scaling: DataScale) -> BinaryMixture:
    share = shares(points, prior)
    kept = np.flatnonzero(share > min(NEGLIGIBLE, 0.5 * share.max()))
    chosen = [points[i].members for i in kept]
    rho = np.tanh([point.a for point in points])
    height = np.array([point.held_out for point in points])
    return BinaryMixture(
        members=_side_by_side(chosen),
        scaling=scaling,
        weight=share[kept] / share[kept].sum(),
        rho=rho[kept],
        info={
            "rho": rho[kept].tolist(),
            "weight": (share[kept] / share[kept].sum()).tolist(),
            "curve": {"rho": rho.tolist(), "held_out": (height - height.max()).tolist()},
            "held_out_loglik": float(height.max()),
            "best_epoch": [np.asarray(each.best_epoch).tolist() for each in chosen],
        },
    )


def _side_by_side(parts: list[Members]) -> Members:
    return Members(
        parts[0].sizes,
        np.concatenate([each.parameters for each in parts]),
        np.concatenate([each.loss for each in parts]),
    )


def _without_selection(data, scaling, seed, network, device, progress) -> BinaryMixture:
    """A plain ensemble of probit networks."""
    batch = with_folds(outcome_rows(data, scaling), data, network.folds, seed)
    (members,) = train_datasets(
        [batch],
        loss=PROBIT,
        seeds=[seed],
        config=network,
        units=data.n,
        device=device,
        progress=progress,
    )
    _check_finite([members])
    info = {"best_epoch": np.asarray(members.best_epoch).tolist()}
    info |= _unfinished(members, network)
    return BinaryMixture(members, scaling, np.ones(1), np.full(1, np.nan), info)
