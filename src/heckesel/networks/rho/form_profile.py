"""The profile over rho of one error model: sinh-arcsinh errors, or a sigma that depends on x.

Each column set, the last layers of networks that held out the same fold, is a linear model of
`form_likelihood`, as in `rho_mixture` for normal errors and one sigma. All its coefficients, those
of the error model among them, are fitted without that fold at every rho, side by side with the
other sets, and evaluated on the fold. A single column set, such as splines, is fitted once without
each fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.fit_info import RhoInfo
from heckesel.networks.losses.normal import Loss, product
from heckesel.networks.losses.shape import joint_with
from heckesel.networks.rho import form_shape
from heckesel.networks.rho.fitted_points import (
    FIRST_UPDATES,
    FORMS,
    Design,
    independent_optima,
)
from heckesel.networks.rho.form_held_out import held_out_values
from heckesel.networks.rho.form_likelihood import Units, split
from heckesel.networks.rho.form_mixture import (
    FormMixture,
    FormPoints,
    covariance_root,
    design_of,
    points_of,
    standard_deviation,
)
from heckesel.networks.rho.form_optima import optimise
from heckesel.networks.rho.linear_joint import Optima
from heckesel.networks.rho.rho_curve import Curve, Evidence, curve_summary, rho_curves
from heckesel.networks.rho.rho_held_out import VARIANCE_FACTORS, evidence_of_folds
from heckesel.networks.rho.rho_mixture import UPDATES, Basis, pairs_that_matter
from heckesel.networks.rho.rho_prior import RhoPrior
from heckesel.networks.training.batches import Batch, DataScale


@dataclass(frozen=True)
class ErrorModel:
    """shape : skewness and tails are estimated; scale : positions of the columns of x on which
    log sigma depends linearly"""

    shape: bool = False
    scale: tuple[int, ...] = ()

    @property
    def form(self) -> int:
        """Its position in FORMS."""
        wanted = self.shape, bool(self.scale)
        named = [(each.shape, each.scale) for each in FORMS.values()]
        return named.index(wanted)

    @property
    def loss(self) -> Loss:
        """For networks."""
        return joint_with(self.scale, self.shape)


@dataclass(frozen=True)
class FormModels:
    """k models with one error model, for `rho_curves`; free : (k, P)"""

    design: Design
    free: torch.Tensor

    def __len__(self) -> int:
        return len(self.free)

    @property
    def device(self) -> torch.device:
        return self.free.device

    def start(self) -> tuple[torch.Tensor, torch.Tensor]:
        found = independent_optima(self.design)
        return found.v, found.ridge

    def optima(self, a, v, ridge, *, updates: int = 2) -> Optima:
        given = self.design.units, a, v, ridge, self.free, self.design.penalty
        return optimise(form_shape, *given, updates=min(updates, FIRST_UPDATES))

    def covariance_factor(self, information: torch.Tensor) -> torch.Tensor:
        return covariance_root(information, self.free, self.design.units.sizes[0])


@dataclass(frozen=True)
class FormHeldOut:
    """Held-out likelihood as evidence; held : the rows of each model, with weight if held out"""

    held: Units
    free: torch.Tensor

    def readings(self, optima: Optima) -> np.ndarray:
        """(k, c) log-likelihood of the held-out rows at each of `VARIANCE_FACTORS`."""
        held = self.held
        gamma = split(optima.v, held.sizes)[0]
        log_cdf, _, _ = form_shape.unselected(product(held.w_unselected, gamma))
        unselected = (held.weight_unselected * log_cdf).sum(dim=1)
        found = [
            (held.weight * each).sum(dim=1) + unselected
            for each in held_out_values(
                form_shape, held, optima.a, optima, self.free, VARIANCE_FACTORS
            )
        ]
        return torch.stack(found, dim=1).cpu().numpy()

    def evidence(self, readings: np.ndarray) -> Evidence:
        return evidence_of_folds(readings)


@dataclass(frozen=True)
class FormProfile:
    """The mixture over rho, and the log-likelihood of held-out units, for the scaled y."""

    mixture: FormMixture
    info: RhoInfo
    held_out: float


def profile_of_form(
    data: SelectionData,
    rows: Batch,
    scaling: DataScale,
    basis: Basis,
    index_basis: Basis,
    errors: ErrorModel,
    prior: RhoPrior,
    device: torch.device,
    folds: int,
) -> FormProfile:
    """rows : of `data`, with their folds; basis : one column set for each fold, or a single one"""
    design = design_of(data, scaling, basis, index_basis, device)
    free = free_coefficients(design, errors)
    kept, held = _split(design, rows, folds, device)
    models = FormModels(kept, free.expand(folds, -1))
    criterion = FormHeldOut(held.units, models.free)
    (curve,) = rho_curves(models, folds, prior, criterion)
    everything = FormModels(design, free.expand(len(design.units.residual), -1))
    points = _points(everything, _by_set(curve, len(everything)), errors)
    q, width, _ = design.units.sizes
    theta, scale, shape = np.split(curve.v[..., q + width - 1 :], [1, -2], axis=-1)
    sd = standard_deviation(theta[..., 0], scale, shape, scaling.x(data.x), data.weight)
    # `curve_summary` takes the last coefficient of a model for 1/sd.
    info = curve_summary(replace(curve, v=1 / sd[..., None]), scaling.y_scale)
    mixture = FormMixture(basis, index_basis, scaling, points)
    info = replace(info, error_model=mixture.error_model(errors.scale))
    return FormProfile(mixture, info, float(curve.log_evidence.max()))


def free_coefficients(design: Design, errors: ErrorModel) -> torch.Tensor:
    """(1, P) which coefficients are free in the error model."""
    q, width, r = design.units.sizes
    free = design.free(np.array([errors.form])).clone()
    chosen = torch.zeros(r, dtype=torch.bool, device=free.device)
    chosen[list(errors.scale)] = True
    free[:, q + width : q + width + r] = chosen
    return free


def _split(design: Design, rows: Batch, folds: int, device) -> tuple[Design, Design]:
    """A model for each fold, with weight on the other folds and on that fold."""
    units = design.units if len(design.units.residual) > 1 else design.units.repeated(folds)
    own = torch.arange(folds, device=device)[:, None]
    inside, outside = (
        torch.as_tensor(fold, device=device) == own for fold in (rows.fold, rows.fold_unselected)
    )

    def weighted(selected, unselected) -> Design:
        weight, weight_unselected = units.weight * selected, units.weight_unselected * unselected
        here = replace(units, weight=weight, weight_unselected=weight_unselected)
        return replace(design, units=here)

    return weighted(~inside, ~outside), weighted(inside, outside)


def _by_set(curve: Curve, sets: int) -> Curve:
    """The curve with one model per column set, a single model if all folds have the same
    columns."""
    if curve.weight.shape[1] == sets:
        return curve
    together = curve.weight.sum(axis=1, keepdims=True)
    return replace(curve, weight=together, v=curve.v[:, :1], ridge=curve.ridge[:, :1])


def _points(models: FormModels, curve: Curve, errors: ErrorModel) -> FormPoints:
    (found,) = pairs_that_matter(models, [curve], UPDATES)
    model, weight, rho, v, root = (np.array(column) for column in zip(*found, strict=True))
    form = np.full(len(rho), errors.form)
    return points_of(model, weight, form, rho, v, root, models.design.units.sizes)
