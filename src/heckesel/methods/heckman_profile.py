"""Deep joint model that evaluates the likelihood at all values of rho and averages over them.

Joint members start at both signs of rho, so that every mode is found; each holds out one fold and
keeps the parameters with the highest likelihood there. The last hidden layers of the members that
held out the same fold are the columns of a linear model, whose likelihood at a fixed rho is
concave. It is maximised on a grid of rho for all folds together and evaluated on the held-out
units, because a layer favours the rho it was trained at on its training rows. Predictions are
mixtures over rho with these likelihoods as weights.

If splines (`spline_joint`) have a higher held-out likelihood than the networks, they are used
instead: they estimate smooth functions better, and therefore rho.

The members of a fold share their columns. With separate columns the sign of rho would depend on
which member happens to have the better layer. On five interacting columns (16 draws that no
experiment uses, rho 0, .3, .6 and .9, no instrument), 90 % intervals of rho contained the truth in
72 % with ten separate members, and in 81 % with ten and 88 % with twenty that share.
"""

from dataclasses import dataclass, replace

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.methods import spline_joint
from heckesel.networks.ensembles.form_ensemble import FormEnsemble
from heckesel.networks.losses.normal import JOINT, Loss
from heckesel.networks.rho.form_profile import ErrorModel, FormProfile, profile_of_form
from heckesel.networks.rho.last_layer import last_layers
from heckesel.networks.rho.rho_mixture import RhoMixture, average_over_rho
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.config import SHAPE, NetworkConfig, torch_device
from heckesel.networks.training.ensemble_training import FitRequest, train_datasets

# |atanh rho| at the start: far enough from 0 that members keep their sign, near enough that none
# starts at a boundary (tanh 1.2 = .83).
SMALLEST_START, LARGEST_START = 0.2, 1.2
# Chosen by the held-out loss on draws that no experiment uses: of 1e-5, 3e-4, 1e-3 and 3e-3, 1e-3
# is within .003 of the best on five interacting columns and on one curve. Twenty members: each of
# five folds is held out by two members that start at each sign.
NETWORK = NetworkConfig(n_members=20, folds=5, weight_decay=1e-3, warm_up=0)


@dataclass(frozen=True)
class ProfileConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)"""

    network: NetworkConfig = NETWORK
    rho_prior: object = None


def options(network: NetworkConfig, model) -> ProfileConfig:
    """The config from the options of an estimator; rho has fixed start values, which need no
    warm-up."""
    return ProfileConfig(replace(network, warm_up=0), model.rho_prior)


def fit_many(
    datas, *, seeds, config=None, device=None, progress=None
) -> list[RhoMixture] | list[FormEnsemble]:
    """The profile model for many datasets with the same columns, networks trained as one batch."""
    config = config or ProfileConfig()
    folds, place = _checked_folds(config.network), device or config.network.device
    if config.network.has_form:
        return _with_form(datas, seeds, config, folds, place, progress)
    networks = _networks(datas, seeds, config, folds, place, progress)
    splines = spline_joint.fit_affordable(
        datas, seeds=seeds, rho_prior=config.rho_prior, folds=folds, device=place
    )
    return [_preferred(*each) for each in zip(networks, splines, datas, strict=True)]


def _networks(datas, seeds, config, folds, device, progress) -> list[RhoMixture]:
    request = FitRequest(datas, seeds, config.network, device, progress)
    batches, scalings = request.batches(), request.scalings
    trained, bases = _trained(request, batches, JOINT, folds)
    totals, prior = [data.weight.sum() for data in datas], rho_prior(config.rho_prior)
    averaged = average_over_rho(
        batches, totals, scalings, bases, prior, torch_device(device), folds
    )
    return [
        replace(fit, info=replace(fit.info, member_rho=np.tanh(members.head[:, -1]).tolist()))
        for fit, members in zip(averaged, trained, strict=True)
    ]


def _trained(request: FitRequest, batches, loss: Loss, folds: int):
    """The members of each dataset, and their last layers as columns."""
    starts = both_signs(request.config.n_members, folds).tolist()
    trained = train_datasets(batches, loss=loss, starts={"atanh_rho": starts}, **request.training)
    totals = [data.weight.sum() for data in request.datas]
    return trained, last_layers(trained, batches, totals, folds)


def _with_form(datas, seeds, config, folds, device, progress) -> list[FormEnsemble]:
    """The same with sinh-arcsinh errors, or a sigma that depends on x."""
    network = config.network
    errors = ErrorModel(network.errors == SHAPE, network.scale)
    request = FitRequest(datas, seeds, network, device, progress)
    batches, place = request.batches(), torch_device(device)
    trained, bases = _trained(request, batches, errors.loss, folds)
    prior, fits = rho_prior(config.rho_prior), []
    for data, rows, scaling, basis, members in zip(
        datas, batches, request.scalings, bases, trained, strict=True
    ):
        index_basis = spline_joint.straight_lines(data.w.shape[1])
        options = {"network": basis, "spline": spline_joint.affordable_basis(data, scaling)}
        found = {
            name: profile_of_form(
                data, rows, scaling, each, index_basis, errors, prior, place, folds
            )
            for name, each in options.items()
            if each is not None
        }
        fits.append(_preferred_form(found, members, data))
    return fits


def _preferred_form(found: dict[str, FormProfile], members, data: SelectionData) -> FormEnsemble:
    told = {name: (each.held_out, each.mixture.scaling) for name, each in found.items()}
    best, more = _compared(told, data)
    info = replace(found[best].info, member_rho=np.tanh(members.head[:, -1]).tolist(), **more)
    return FormEnsemble(found[best].mixture, info)


def _preferred(network: RhoMixture, spline: RhoMixture | None, data: SelectionData) -> RhoMixture:
    told = {"network": (network.curve.log_evidence.max(), network.scaling)}
    if spline is not None:
        told["spline"] = spline.info.held_out_evidence, spline.scaling
    best, more = _compared(told, data)
    chosen = network if spline is None or best == "network" else spline
    info = replace(chosen.info, member_rho=network.info.member_rho, **more)
    return replace(chosen, info=info)


def _compared(held_out: dict[str, tuple], data: SelectionData) -> tuple[str, dict]:
    """The name with the highest held-out likelihood, and the entries of `info` on this comparison,
    in units of y.

    held_out : by name, the log-likelihood for the scaled y and the scale
    """
    mass = data.weight[data.s].sum()
    told = {
        name: float(value - mass * np.log(scaling.y_scale))
        for name, (value, scaling) in held_out.items()
    }
    best = max(told, key=told.__getitem__)
    return best, {"outcome": best, "held_out_evidence": told}


def _checked_folds(network: NetworkConfig) -> int:
    """The number of folds; raises if the network has options that the profile does not support."""
    if network.tails != "normal":
        raise DataError('method="profile" needs normal tails; set tails="normal"')
    if network.errors not in ("normal", SHAPE):
        raise DataError(
            'method="profile" supports normal and shape errors; errors="t" needs method="joint"'
        )
    if network.noise != "constant":
        raise DataError(
            f'method="profile" does not support noise="{network.noise}"; set noise="constant", '
            "and scale= for a sigma that depends on x"
        )
    if network.selection != "linear":
        raise DataError(f'selection="{network.selection}" needs method="two-step"')
    if network.folds is None or network.folds > network.n_members:
        raise DataError(
            'method="profile" evaluates rho on held-out folds and needs at least one member per '
            f"fold, but n_members is {network.n_members} and folds is {network.folds}"
        )
    return network.folds


def both_signs(members: int, folds: int) -> np.ndarray:
    """(k,) starts of atanh rho; signs alternate within a fold and between folds."""
    member = np.arange(members)
    size = np.linspace(SMALLEST_START, LARGEST_START, folds)[member % folds]
    return size * np.where((member % folds + member // folds) % 2 == 0, 1.0, -1.0)
