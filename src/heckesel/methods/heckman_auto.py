"""One call for every regime: splines with errors of any shape, averaged over rho.

The outcome is a sum of smooth curves and of those pairwise surfaces that the data use; the
selection index is a sum of curves, too. The errors are normal or sinh-arcsinh, with a constant
sigma or one that depends on x. All forms at all values of rho are fitted side by side and weighted
by the likelihood of held-out units, so that no single fit, at the boundary rho = +-1 or inside,
decides alone.

A density is the wrong tool for an outcome with few values or a spike: a flexible one singles out
the values. There the two-step, which needs means only, takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.methods import heckman_two_step
from heckesel.methods.spline_joint import SURFACE_KNOTS, SplineBasis, spline_basis
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.form_held_out import Folds
from heckesel.networks.rho.form_mixture import FormMixture, design_of, form_points, form_weights
from heckesel.networks.rho.form_posterior import form_posterior, independent_optima
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.config import NetworkConfig, torch_device
from heckesel.networks.training.folds import assign_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import DataScale, data_scale_of
from heckesel.numerics.splines import spline_width

FOLDS = 5
KNOTS = 8  # of a curve of x, inside its range
INDEX_KNOTS = 4  # of a curve of w in the selection index
FEWEST_KNOTS = 2
# Columns of curves: few enough that rows determine them. Surfaces have ridges that can switch them
# off, so that more are tried than would be kept.
MOST_COLUMNS, ROWS_PER_COLUMN, SHARE_OF_ROWS = 300, 4, 0.75
LEAST_DEGREES = 1.0  # of freedom that a surface must use to be kept
# Outcomes for which a density is the wrong tool: a value this often, or so few of them.
SPIKE, FEW_VALUES = 0.1, 12


@dataclass(frozen=True)
class AutoConfig:
    """rho_prior : None, "positive", "negative", an interval or a density (see `rho_prior`)
    folds : of the held-out units that weight forms and rho
    network : of the two-step, where the outcome has few values or a spike
    """

    rho_prior: object = None
    folds: int = FOLDS
    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(n_members=10, folds=FOLDS))


def options(network: NetworkConfig, model) -> AutoConfig:
    """The options of an estimator whose networks, if any, are to be trained so."""
    if model.target_transform is not None:
        raise DataError(
            "method='auto' models the outcome on its own scale; set target_transform=None or "
            "another method"
        )
    return AutoConfig(model.rho_prior, network.folds or FOLDS, network)


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: AutoConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[FormMixture | SelectionEnsemble]:
    """The models of several datasets; all forms and values of rho of a dataset are one batch. The
    seed splits the folds, and starts the networks of the two-step."""
    config = config or AutoConfig()

    def fit(data: SelectionData, seed: int) -> FormMixture | SelectionEnsemble:
        reason = unsuited_to_density(data.y[data.s], data.weight[data.s])
        if reason is None:
            return fit_splines(data, seed, config, torch_device(device or config.network.device))
        (fitted,) = heckman_two_step.fit_many(
            [data], seeds=[seed], config=config.network, device=device, progress=progress
        )
        explanation = f"The two-step was used, because {reason}."
        return replace(fitted, info=fitted.info | {"explanation": explanation})

    return [fit(data, seed) for data, seed in zip(datas, seeds, strict=True)]


def unsuited_to_density(y: np.ndarray, weight: np.ndarray) -> str | None:
    """Why the outcome has no smooth density, or None."""
    values, place = np.unique(y, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    if len(values) <= FEW_VALUES:
        return f"the outcome has only {len(values)} distinct values"
    if share.max() > SPIKE:
        return f"{share.max():.0%} of the outcomes equal {values[share.argmax()]:g}"
    return None


def fit_splines(data: SelectionData, seed: int, config: AutoConfig, device) -> FormMixture:
    """The mixture over forms and rho with the curves and surfaces that the data support."""
    scaling = data_scale_of(data, standardise=True)
    x, w = scaling.x(data.x[data.s]), scaling.w(data.w)
    index_basis = spline_basis(w, (), affordable_knots(w, INDEX_KNOTS))
    basis = outcome_basis(data, scaling, x, index_basis, device)
    design = design_of(data, scaling, basis, index_basis, device)
    fold = torch.as_tensor(assign_folds(data, config.folds, seed), device=device)
    selected = torch.as_tensor(data.s, device=device)
    folds = Folds(fold[selected], fold[~selected], config.folds)
    posterior = form_posterior(design, rho_prior(config.rho_prior), folds)
    points = form_points(posterior, design)
    forms = form_weights(points)
    best = max(forms, key=forms.__getitem__)
    low, high = _interval(posterior.rho, posterior.weight)
    info = {
        "rho": points.rho.tolist(),
        "sigma": (scaling.y_scale / points.theta).tolist(),
        "weight": points.weight.tolist(),
        "forms": forms,
        "rho_interval": [low, high],
        "member_rho": [low, high],
        "variance_factor": float(posterior.weight @ posterior.factor),
        "surfaces": [list(surface[:2]) for surface in basis.surfaces],
        "explanation": (
            f"Splines with {_names(best)} errors have {forms[best]:.0%} of the weight by "
            f"held-out likelihood; 90 % of the weight lies between rho = {low:.2f} and {high:.2f}."
        ),
    }
    return FormMixture(basis, index_basis, scaling, points, info)


def _names(form: str) -> str:
    return {
        "normal": "normal",
        "shape": "skewed or heavy-tailed",
        "scale": "normal, heteroskedastic",
        "shape and scale": "skewed or heavy-tailed, heteroskedastic",
    }[form]


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
    """Curves of every column, and the pairwise surfaces that use degrees of freedom in a normal
    model at rho = 0, where all of them are tried at once."""
    knots = affordable_knots(x, KNOTS)
    curves = spline_basis(x, (), knots)
    widths = [1 + spline_width(column, SURFACE_KNOTS) for column in x.T]
    pairs = list(combinations(range(x.shape[1]), 2))
    room = min(MOST_COLUMNS, int(SHARE_OF_ROWS * len(x))) - len(curves.membership)
    if not pairs or sum(widths[i] * widths[j] for i, j in pairs) > room:
        return curves
    design = design_of(data, scaling, spline_basis(x, pairs, knots), index_basis, device)
    optimum = independent_optima(design)
    variance = torch.linalg.inv(optimum.information).diagonal(dim1=1, dim2=2)
    degrees = design.membership.sum(dim=0) - optimum.ridge * (variance @ design.membership)
    used = degrees[0, -len(pairs) :].cpu().numpy()
    kept = [pair for pair, own in zip(pairs, used, strict=True) if own > LEAST_DEGREES]
    return spline_basis(x, kept, knots)
