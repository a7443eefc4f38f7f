"""A probit with sample selection whose outcome index is a network.

If rho is trained with the networks, it depends on its start, and networks that overfit make any rho
plausible. So rho is not trained. Members are trained at rho = 0 and then, from there, at each value
of a grid, and each member holds out one fold. The weight of a rho is its prior times the likelihood
of all units under the members that held them out. The grid is refined around the best value as long
as that value has most of the weight.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from heckesel.data import SelectionData
from heckesel.errors import HeckeselError
from heckesel.fit_info import BinaryInfo
from heckesel.methods.heckman_two_step import probit_start
from heckesel.networks.ensembles.binary_mixture import BinaryMixture
from heckesel.networks.losses.binary import INDEPENDENT_BINARY, JOINT_BINARY
from heckesel.networks.losses.normal import PROBIT, Loss
from heckesel.networks.rho.rho_prior import RhoPrior, bin_edges, rho_prior
from heckesel.networks.training.batches import (
    Batch,
    DataScale,
    data_scale_of,
    joint_rows,
    outcome_rows,
    with_folds,
)
from heckesel.networks.training.config import WAY_OUT, NetworkConfig
from heckesel.networks.training.ensemble_training import Members, train_datasets
from heckesel.networks.training.loop import Progress

# atanh rho of the first grid: |rho| up to .95.
COARSE = np.linspace(-1.8, 1.8, 7)
# From rho = 0 to another rho: larger steps would undo what was learned at rho = 0.
MOVING_RATE, MOVING_EPOCHS, MOVING_PATIENCE = 0.3, 200, 30
# The grid is refined, at most twice, while one value has more than this share of the posterior.
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
    rows = outcome_rows if data.s.all() else joint_rows
    batch = with_folds(rows(signed, scaling), signed, network.folds, seed)

    def train(count: int, loss: Loss, config: NetworkConfig, **where) -> list[Members]:
        # a warm-up of all epochs keeps rho where it starts
        where |= {"config": replace(config, warm_up=config.epochs), "seeds": [seed] * count}
        where |= {"device": device, "units": data.n, "progress": progress}
        found = train_datasets([batch] * count, loss=loss, **where)
        if any(each.diverged for each in found):
            raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")
        return found

    if data.s.all():  # a plain ensemble of probit networks
        (members,) = train(1, PROBIT, network)
        epochs = np.asarray(members.best_epoch).tolist()
        info = BinaryInfo(epochs, _unfinished(members, network))
        return BinaryMixture(members, scaling, np.ones(1), np.full(1, np.nan), info)
    (first,) = train(1, INDEPENDENT_BINARY, network, heads=[np.append(probit_start(batch), 0.0)])

    def at(grid) -> list[RhoPoint]:
        k, others = len(first.parameters), first.parameters[:, :-1]  # atanh rho is the last column
        parameters = [np.column_stack([others, np.full(k, a)]) for a in grid]
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
    return _mixture(points, prior, scaling, _unfinished(first, network))


def _unfinished(members: Members, network: NetworkConfig) -> int:
    """How many members had their lowest held-out loss at the last epoch. Too few epochs cause an
    error that all members share, so the variance between them does not include it."""
    assert members.best_epoch is not None
    return int((np.asarray(members.best_epoch) >= network.epochs).sum())


def _moving(network: NetworkConfig) -> NetworkConfig:
    """The schedule with which members move from rho = 0 to another rho."""
    rate = JOINT_BINARY.learning_rate if network.learning_rate is None else network.learning_rate
    return replace(
        network,
        learning_rate=MOVING_RATE * rate,
        epochs=min(network.epochs, MOVING_EPOCHS),
        patience=min(network.patience, MOVING_PATIENCE),
    )


def held_out_loglik(members: Members, batch: Batch, weight) -> float:
    """The log-likelihood of all units, from each member's mean loss on its held-out fold.

    If all weights are whole numbers, a unit counts as that many rows. Folds that no member held out
    have the mean loss of the others.
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


def _mixture(
    points: list[RhoPoint], prior: RhoPrior, scaling: DataScale, unfinished: int
) -> BinaryMixture:
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
        info=BinaryInfo(
            best_epoch=[np.asarray(each.best_epoch).tolist() for each in chosen],
            unfinished=unfinished,
            rho=rho[kept].tolist(),
            weight=(share[kept] / share[kept].sum()).tolist(),
            curve={"rho": rho.tolist(), "held_out": (height - height.max()).tolist()},
            held_out_loglik=float(height.max()),
        ),
    )


def _side_by_side(parts: list[Members]) -> Members:
    return Members(
        parts[0].sizes,
        np.concatenate([each.parameters for each in parts]),
        np.concatenate([each.loss for each in parts]),
    )
