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
from heckesel.networks.rho.rho_prior import RhoPrior, cell_edges, rho_prior
from heckesel.networks.training.batches import Rows
from heckesel.networks.training.config import WAY_OUT, NetworkConfig
from heckesel.networks.training.ensemble_training import (
    Members,
    all_rows,
    selected_rows,
    train_cells,
)
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import Scaling, scaling_of

# atanh rho of the first grid: |rho| up to .95.
COARSE = np.linspace(-1.8, 1.8, 7)
# On the way to another rho: smaller steps, or the first of them undo what was learned at rho = 0.
MOVING_RATE, MOVING_EPOCHS, MOVING_PATIENCE = 0.3, 200, 30
# No value of rho may stand for more than this share, unless the grid was halved twice already.
LARGEST_SHARE, HALVINGS = 0.5, 2
NEGLIGIBLE = 1e-3  # share of the posterior below which a rho is left out of predictions
NETWORK = NetworkConfig(hidden=(32, 32), folds=5, weight_decay=1e-3, patience=60)


@dataclass(frozen=True)
class BinaryConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)"""

    network: NetworkConfig = NETWORK
    rho_prior: object = None


@dataclass(frozen=True)
class RhoPoint:
    """Members at one atanh rho, a; held_out : log-likelihood of all units, each left out."""

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
    scaling = replace(scaling_of(data, network.standardise), y_centre=0.0, y_scale=1.0)
    signed = replace(data, y=2 * data.y - 1)
    if data.s.all():
        return _without_selection(signed, scaling, seed, network, device, progress)
    cell = with_folds(all_rows(signed, scaling), signed, network.folds, seed)

    def train(count: int, loss: Loss, config: NetworkConfig, **where) -> list[Members]:
        found = train_cells(
            [cell] * count,
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

    (first,) = train(1, INDEPENDENT_BINARY, network, heads=[np.append(probit_start(cell), 0.0)])

    def at(grid) -> list[RhoPoint]:
        thetas = [_with_rho(first.theta, a) for a in grid]
        members = train(len(grid), JOINT_BINARY, _moving(network), thetas=thetas)
        return [
            RhoPoint(float(a), each, held_out_loglik(each, cell, data.weight))
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
    error that all members share, so their spread does not show it."""
    assert members.best_epoch is not None
    return {"unfinished": int((np.asarray(members.best_epoch) >= network.epochs).sum())}


def _check_finite(found: list[Members]) -> None:
    if any(each.diverged for each in found):
        raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")


def _with_rho(theta, a: float) -> np.ndarray:
    """(k, P) with atanh rho, the last column, at a."""
    return np.column_stack([theta[:, :-1], np.full(len(theta), a)])


def _moving(network: NetworkConfig) -> NetworkConfig:
    """The training that brings members from rho = 0 to another rho."""
    rate = JOINT_BINARY.learning_rate if network.learning_rate is None else network.learning_rate
    return replace(
        network,
        learning_rate=MOVING_RATE * rate,
        epochs=min(network.epochs, MOVING_EPOCHS),
        patience=min(network.patience, MOVING_PATIENCE),
    )


def held_out_loglik(members: Members, cell: Rows, weight) -> float:
    """From each member's mean loss on its own fold. Whole weights count rows, others do not.

    Folds that no member left out count as those that one did.
    """
    fold = np.concatenate([cell.fold, cell.fold_unselected]).astype(int)
    mass = np.bincount(fold, np.concatenate([cell.weight, cell.weight_unselected]))
    assert members.validation is not None
    own = np.arange(len(members.theta)) % len(mass)
    count = np.bincount(own, minlength=len(mass))
    share = mass[own] / count[own]
    units = weight.sum() if (weight == np.round(weight)).all() else np.count_nonzero(weight)
    return float(-units * (share @ members.validation) / share.sum())


def shares(points: list[RhoPoint], prior: RhoPrior) -> np.ndarray:
    """(g,) posterior of each rho of the grid."""
    with np.errstate(divide="ignore"):
        mass = np.log(prior.mass(cell_edges(np.tanh([point.a for point in points]))))
    height = mass + np.array([point.held_out for point in points])
    return np.exp(height - logsumexp(height))


def _mixture(points: list[RhoPoint], prior: RhoPrior, scaling: Scaling) -> BinaryMixture:
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
    first = parts[0]
    theta, loss = (np.concatenate([getattr(m, name) for m in parts]) for name in ("theta", "loss"))
    return Members(first.sizes, theta, loss)


def _without_selection(data, scaling, seed, network, device, progress) -> BinaryMixture:
    """A plain ensemble of probit networks."""
    cell = with_folds(selected_rows(data, scaling), data, network.folds, seed)
    (members,) = train_cells(
        [cell],
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
