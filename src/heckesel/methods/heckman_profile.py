"""Deep joint model that sees the whole likelihood over rho and averages over what it leaves open.

Joint members start on both signs of rho, so that every mode is found by someone; each holds out
a fold of the units and ends where its likelihood there was best. The last hidden layers of those
that held out the same fold are then a set of columns in which, at any fixed rho, the best
outcome function is one concave fit away: a grid of rho is solved for all folds side by side, and
evaluated on the held-out units, since a layer that was trained on a row favours its rho there. The
predictive is the mixture with these weights.

Where splines (`spline_joint`) make the held-out units likelier than the networks do, they take the
networks' place: of a smooth function they know more than networks that have to find it, and so
they know more about rho.

Members of one fold share their columns because a layer separate for each makes a race of it: one
sign of rho wins by whose layer happened to come out better. On five interacting columns (16 draws
that no experiment uses, rho 0, .3, .6 and .9, no instrument) 90 % intervals of rho held the truth
in 72 % with ten members apart, 81 % with ten and 88 % with twenty that share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.methods import spline_joint
from heckesel.networks.losses.normal import JOINT
from heckesel.networks.rho.last_layer import last_layers
from heckesel.networks.rho.rho_mixture import RhoMixture, average_over_rho
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.config import NetworkConfig, torch_device
from heckesel.networks.training.ensemble_training import joint_rows, train_datasets
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import data_scale_of

# |atanh rho| at the start: far enough from the ridge at 0 to fall to its own side, near enough
# that no start is at a boundary (tanh 1.2 = .83).
SMALLEST_START, LARGEST_START = 0.2, 1.2
# Chosen by the loss on left-out folds of draws that no experiment uses: of 1e-5, 3e-4, 1e-3 and
# 3e-3 the third is within .003 of the best on five interacting columns and on one curve.
# Twenty members: each of five folds is held out by two that started on either sign.
NETWORK = NetworkConfig(n_members=20, folds=5, weight_decay=1e-3, warm_up=0)


@dataclass(frozen=True)
class ProfileConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)"""

    network: NetworkConfig = NETWORK
    rho_prior: object = None


def options(network: NetworkConfig, model) -> ProfileConfig:
    """The options of an estimator whose networks are to be trained so."""
    return ProfileConfig(network, model.rho_prior)


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: ProfileConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[RhoMixture]:
    """The profile model for many datasets with the same columns, networks trained as one batch."""
    config = config or ProfileConfig()
    folds, place = _checked_folds(config.network), device or config.network.device
    networks = _networks(datas, seeds, config, folds, place, progress)
    splines = spline_joint.fit_affordable(
        datas, seeds=seeds, rho_prior=config.rho_prior, folds=folds, device=place
    )
    return [_preferred(*each) for each in zip(networks, splines, datas, strict=True)]


def _networks(datas, seeds, config, folds, device, progress) -> list[RhoMixture]:
    network = config.network
    scalings = [data_scale_of(data, network.standardise) for data in datas]
    batches = [
        with_folds(joint_rows(data, scaling), data, folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    trained = train_datasets(
        batches,
        loss=JOINT,
        seeds=seeds,
        config=network,
        units=max(data.n for data in datas),
        starts={"atanh_rho": both_signs(network.n_members, folds).tolist()},
        device=device,
        progress=progress,
    )
    totals, prior = [data.weight.sum() for data in datas], rho_prior(config.rho_prior)
    bases = last_layers(trained, batches, totals, folds)
    averaged = average_over_rho(
        batches, totals, scalings, bases, prior, torch_device(device), folds
    )
    return [
        replace(fit, info=fit.info | {"member_rho": np.tanh(members.head[:, -1]).tolist()})
        for fit, members in zip(averaged, trained, strict=True)
    ]


def _preferred(network: RhoMixture, spline: RhoMixture | None, data: SelectionData) -> RhoMixture:
    """The one that makes the held-out units likelier; it reports both, per unit of y."""
    mass = data.weight[data.s].sum()
    best = network.curve.log_evidence.max() - mass * np.log(network.scaling.y_scale)
    told, chosen = {"network": float(best)}, network
    if spline is not None:
        value = spline.info["held_out_evidence"] - mass * np.log(spline.scaling.y_scale)
        told["spline"] = float(value)
        chosen = spline if value > best else network
    about = {
        "outcome": "network" if chosen is network else "spline",
        "held_out_evidence": told,
        "member_rho": network.info["member_rho"],
    }
    return replace(chosen, info=chosen.info | about)


def _checked_folds(network: NetworkConfig) -> int:
    """The folds; what the linear joint likelihood of the last layer does not have is refused."""
    if network.tails != "normal":
        raise DataError('the profile method has normal errors; take tails="normal"')
    if network.errors != "normal":
        raise DataError('the profile has normal errors; take method "joint" for errors="t"')
    if network.noise != "constant":
        raise DataError(f'the profile has one sigma; take noise="constant", not {network.noise!r}')
    if network.selection != "linear":
        raise DataError('the profile has a linear index; take the two-step for "network"')
    if network.folds is None or network.folds > network.n_members:
        raise DataError(
            "the profile evaluates rho on held-out folds and needs a member for each: "
            f"folds is {network.folds}, n_members {network.n_members}"
        )
    return network.folds


def both_signs(members: int, folds: int) -> np.ndarray:
    """(k,) starts of atanh rho: signs in turn within a fold, and from fold to fold."""
    member = np.arange(members)
    size = np.linspace(SMALLEST_START, LARGEST_START, folds)[member % folds]
    return size * np.where((member % folds + member // folds) % 2 == 0, 1.0, -1.0)
