"""Splines with several error models, and networks, weighted by the likelihood of held-out units.

Splines: the outcome is a sum of smooth curves, which may be straight lines, and of pairwise
surfaces that the data support; the selection index is a sum of curves. The errors are normal,
sinh-arcsinh or t, with a constant sigma or one that depends on x. All error models are fitted on
the same grid of rho. Networks: the deep two-step, which fits nonlinear functions of many columns
and makes weaker assumptions about the errors. All candidates are weighted by the likelihood of
held-out units, with the same folds, so that the result does not depend on a single fit, whether at
rho = +-1 or inside.

For a long table, a random sample is used (see `sampled_units`).

If the outcome has few values or a spike, a flexible density concentrates on these values, and
likelihoods cannot be compared. Only the two-step, which models means, is then used.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import torch

from heckesel.classical.checks import unsuited_to_density
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.fit_info import AutoInfo, Candidate
from heckesel.math.splines import spline_width
from heckesel.methods import heckman_two_step
from heckesel.methods.parts.auto_candidates import candidates_of, network_readings
from heckesel.methods.parts.auto_sample import sampled_units
from heckesel.methods.spline_joint import SplineBasis, spline_basis
from heckesel.networks.ensembles.auto_mixture import AutoMixture
from heckesel.networks.ensembles.convergence import check_finite
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.fitted_points import Design, Fitting, independent_optima
from heckesel.networks.rho.form_held_out import Folds
from heckesel.networks.rho.form_mixture import FormMixture, design_of, form_points
from heckesel.networks.rho.form_optima import Optima
from heckesel.networks.rho.form_posterior import form_posterior
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.batches import (
    DataScale,
    assign_folds,
    data_scale_of,
    groups_with_outcome,
)
from heckesel.networks.training.config import NetworkConfig, torch_device
from heckesel.networks.training.local_workers import over_cores
from heckesel.scales import on_other_scale

FOLDS = 5
# In a simulation of 20,000 rows, 40 epochs of such batches left an error of the mean of .081 (root
# mean square), and 1500 full-batch ones .080, in four times the time.
FULL_BATCH_ROWS, BATCH_ROWS, BATCH_EPOCHS = 10_000, 1024, 40
GROUPS = 200  # of units, for bootstrap samples of held-out rows
KNOTS = 8  # of a curve of x, inside its range
INDEX_KNOTS = 4  # of a curve of w in the selection index
FEWEST_KNOTS = 2
# Columns of curves: few enough that rows determine them. Surfaces have ridges that can switch them
# off, so that more are tried than would be kept.
MOST_COLUMNS, ROWS_PER_COLUMN, SHARE_OF_ROWS = 300, 4, 0.75
SURFACE_KNOTS = (1, 2, 3, 4)  # inside the range, in each direction of a surface
# Effective degrees of freedom above which a surface, or only its product, is kept. A product has
# one degree of freedom; .9 corresponds to a squared t statistic of 10.
LEAST_DEGREES, PRODUCT_DEGREES = 1.0, 0.9
LEAST_GAIN = 2.0  # log-units of evidence that more knots of a surface must gain
SMALLEST_SHARE = 0.02  # of the networks, below which they are dropped
SMALLEST_SHOWN = 0.1  # weight of a candidate that the explanation mentions


@dataclass(frozen=True)
class AutoConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)
    network : of the two-step; all candidates are weighted on its folds
    transformed : the outcome is modelled on another scale, on which the mean of skewed or
        heavy-tailed errors may be infinite, so that only the two-step is used
    """

    rho_prior: object = None
    network: NetworkConfig = field(
        default_factory=lambda: NetworkConfig(
            n_members=2 * FOLDS, folds=FOLDS, noise="auto", tails="auto"
        )
    )
    transformed: bool = False


def options(network: NetworkConfig, model) -> AutoConfig:
    """The config for an estimator with these options of networks."""
    if network.folds is None:
        raise DataError(
            "method='auto' weights models by held-out folds; set folds=5, for example, or use "
            "method='two-step'"
        )
    if network.n_members < network.folds:
        raise DataError(
            f"method='auto' needs at least one network per fold, but n_members is "
            f"{network.n_members} and folds is {network.folds}"
        )
    return AutoConfig(model.rho_prior, network, on_other_scale(model))


def fit_files(config: NetworkConfig) -> Callable[..., AutoMixture]:
    """The fit to rows that are read again for every epoch: the two-step."""
    fit = heckman_two_step.fit_files(config)

    def fit_two_step(*given, **others) -> AutoMixture:
        return _networks_alone(fit(*given, **others), "the rows are in files")

    return fit_two_step


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[AutoMixture]:
    """The mixtures for several datasets. All forms and values of rho of a dataset are fitted
    together, and the networks of all datasets are trained as one batch."""
    config = config or AutoConfig()
    everyone = datas
    datas = [sampled_units(data, seed) for data, seed in zip(everyone, seeds, strict=True)]
    network = schedule_for(config.network, max(data.n for data in datas))
    networks = heckman_two_step.fit_many(
        datas, seeds=seeds, config=network, device=device, progress=progress
    )
    for each in networks:
        check_finite(each)
    given = zip(datas, seeds, networks, strict=True)
    found = [weigh_candidates(*each, config, device) for each in given]
    return [
        fit if some.n == data.n else _of_sample(fit, some.n, data.n)
        for fit, some, data in zip(found, datas, everyone, strict=True)
    ]


def _of_sample(fit: AutoMixture, drawn: int, n: int) -> AutoMixture:
    said = f"A random sample of {drawn:,} of the {n:,} rows was used. {fit.info.explanation}"
    return replace(fit, info=replace(fit.info, explanation=said))


def schedule_for(network: NetworkConfig, rows: int) -> NetworkConfig:
    """Mini-batches for a long table, unless their size is given: fewer epochs with more steps."""
    if rows <= FULL_BATCH_ROWS or network.batch_size is not None:
        return network
    return replace(network, batch_size=BATCH_ROWS, epochs=min(network.epochs, BATCH_EPOCHS))


def weigh_candidates(
    data: SelectionData, seed: int, networks: SelectionEnsemble, config: AutoConfig, device=None
) -> AutoMixture:
    """The mixture of splines and of two-step networks, which were trained with this seed; device :
    as in `fit_many`"""
    reason = unsuited_to_density(data.y[data.s], data.weight[data.s])
    if config.transformed:
        reason = "the outcome is transformed"
    if reason is not None:
        return _networks_alone(networks, reason)
    name, workers = device or config.network.device, config.network.map_over_workers
    device = torch_device(name if workers is None else "cpu")
    scaling = data_scale_of(data, standardise=True)
    x, w = scaling.x(data.x[data.s]), scaling.w(data.w)
    index_basis = spline_basis(w, (), affordable_knots(w, INDEX_KNOTS))
    basis = outcome_basis(data, scaling, x, index_basis, device)
    design = design_of(data, scaling, basis, index_basis, device)
    folds = folds_of(data, config.network.folds or FOLDS, seed, device)
    fitting = Fitting(design, folds, over_cores if device.type == "cpu" else map)
    if workers is not None:
        fitting = Fitting(design, folds, workers, str(name))
    posterior = form_posterior(fitting, rho_prior(config.rho_prior))
    rival = network_readings(networks, data, folds, scaling.y_scale)
    share = posterior.share_of(rival)
    share = share if share > SMALLEST_SHARE else 0.0
    points = form_points(posterior, design)
    splines = FormMixture(basis, index_basis, scaling, points)
    low, high = _interval(posterior.points.rho, posterior.weight)
    candidates = candidates_of(posterior, networks, rival, share)
    info = AutoInfo(
        rho=points.rho.tolist(),
        sigma=(scaling.y_scale / points.theta).tolist(),
        weight=points.weight.tolist(),
        candidates=candidates,
        rho_interval=[low, high],
        member_rho=[low, high],
        variance_factor=float(posterior.weight @ posterior.factor),
        surfaces=[list(surface[:2]) for surface in basis.surfaces],
        explanation=_explanation(candidates, low, high),
    )
    return AutoMixture(splines, networks if share else None, share, info)


def _networks_alone(networks: SelectionEnsemble, reason: str) -> AutoMixture:
    rho, count = networks.info.rho, len(networks.info.rho)
    low, high = (float(end) for end in np.quantile(rho, [0.05, 0.95]))
    only = Candidate("networks", "two-step", "any", float(np.mean(rho)), 1.0, np.nan, 0.0, 0.0)
    info = AutoInfo(
        rho=rho,
        sigma=networks.info.sigma,
        weight=[1 / count] * count,
        candidates=[only],
        rho_interval=[low, high],
        member_rho=rho,
        variance_factor=1.0,
        surfaces=[],
        explanation=f"The two-step was used, because {reason}.",
    )
    return AutoMixture(None, networks, 1.0, info)


def _explanation(candidates: list[Candidate], low: float, high: float) -> str:
    ordered = sorted(candidates, key=lambda each: -each.weight)
    shown = ", ".join(
        f"{_name(each)} {100 * each.weight:.0f} %"
        for place, each in enumerate(ordered[:3])
        if place == 0 or each.weight > SMALLEST_SHOWN
    )
    return (
        f"Weights by the likelihood of held-out rows: {shown}; rho lies between {low:.2f} and "
        f"{high:.2f} with a probability of 90 %."
    )


def _name(candidate: Candidate) -> str:
    if candidate.outcome == "networks":
        return "networks in two steps"
    kind = {
        "normal": "normal",
        "shape": "skewed or heavy-tailed",
        "scale": "normal, heteroskedastic",
        "shape and scale": "skewed or heavy-tailed, heteroskedastic",
        "t": "t(4)",
    }[candidate.errors]
    return f"splines with {kind} errors"


def folds_of(data: SelectionData, count: int, seed: int, device) -> Folds:
    """Small groups of units, in folds."""
    most = groups_with_outcome(data) // (2 if data.groups is None else 1)
    groups = count * max(1, min(GROUPS, most) // count)
    group = torch.as_tensor(assign_folds(data, groups, seed), device=device)
    selected = torch.as_tensor(data.s, device=device)
    return Folds(group[selected], group[~selected], groups, count)


def _interval(rho: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    order = np.argsort(rho)
    below = np.cumsum(weight[order]) - 0.5 * weight[order]
    low, high = np.interp([0.05, 0.95], below, rho[order])
    return float(low), float(high)


def affordable_knots(columns: np.ndarray, most: int) -> int:
    """As many knots of each curve as there are rows for; 0 leaves straight lines."""
    room = min(MOST_COLUMNS, len(columns) // ROWS_PER_COLUMN)
    knots = most
    while knots >= FEWEST_KNOTS:
        curves = sum(spline_width(column, knots) for column in columns.T)
        if 1 + columns.shape[1] + curves <= room:
            return knots
        knots //= 2
    return 0


def outcome_basis(
    data: SelectionData, scaling: DataScale, x: np.ndarray, index_basis: SplineBasis, device
) -> SplineBasis:
    """Curves of every column, and the pairwise surfaces that the data support in a normal model at
    rho = 0. All pairs are tried at once with coarse surfaces. Those that use degrees of freedom are
    kept, with the fewest knots whose evidence is about the highest."""
    knots = affordable_knots(x, KNOTS)
    room = min(MOST_COLUMNS, int(SHARE_OF_ROWS * len(x)))

    def basis_of(pairs, surface_knots: int) -> SplineBasis:
        return _products_apart(spline_basis(x, pairs, knots, surface_knots))

    def optimum_of(basis: SplineBasis) -> tuple[Design, Optima]:
        design = design_of(data, scaling, basis, index_basis, device)
        return design, independent_optima(design)

    pairs = list(combinations(range(x.shape[1]), 2))
    widths = [1 + spline_width(column, SURFACE_KNOTS[0]) for column in x.T]
    curves = basis_of((), 0)
    surfaces = sum(widths[i] * widths[j] for i, j in pairs)
    if not pairs or len(curves.membership) + surfaces > room:
        return curves
    used = _degrees(*optimum_of(basis_of(pairs, SURFACE_KNOTS[0])))
    # Ridges come in the order of pairs: first those of surfaces, then those of products.
    bent, product = used[-2 * len(pairs) : -len(pairs)], used[-len(pairs) :]
    wanted = (bent > LEAST_DEGREES) | (product > PRODUCT_DEGREES)
    kept = [pair for pair, own in zip(pairs, wanted, strict=True) if own]
    if not kept:
        return curves
    candidates = [basis_of(kept, surface_knots) for surface_knots in SURFACE_KNOTS]
    candidates = [each for each in candidates if len(each.membership) <= room]
    run = over_cores if torch.device(device).type == "cpu" else map
    evidence = list(run(lambda each: float(optimum_of(each)[1].evidence[0]), candidates))
    return next(
        each
        for each, own in zip(candidates, evidence, strict=True)
        if own >= max(evidence) - LEAST_GAIN
    )


def _degrees(design: Design, optimum: Optima) -> np.ndarray:
    """(ridges,) effective degrees of freedom of the coefficients that share each ridge."""
    variance = torch.linalg.inv(optimum.information).diagonal(dim1=1, dim2=2)
    degrees = design.membership.sum(dim=0) - optimum.ridge * (variance @ design.membership)
    return degrees[0].cpu().numpy()


def _products_apart(basis: SplineBasis) -> SplineBasis:
    """The basis with a separate ridge for the product of the two columns of each surface, which is
    its first column. A plain interaction can then be shrunk less than the other columns of the
    surface."""
    surfaces = len(basis.surfaces)
    membership, curves = basis.membership, basis.membership.shape[1] - surfaces
    products = np.zeros((len(membership), surfaces))
    first = membership[:, curves:].argmax(axis=0)
    products[first, np.arange(surfaces)] = 1.0
    bent = membership - np.pad(products, ((0, 0), (curves, 0)))
    return replace(basis, membership=np.concatenate([bent, products], axis=1))
