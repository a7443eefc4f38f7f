r"""The posterior over rho and the form of the errors, for an outcome linear in given columns.

Every form is optimised at a grid of a = atanh rho, side by side; the grid then closes in on the
posterior mass. The weight of a point is its evidence (`form_optima`) times the prior mass of rho
around it, so that a form pays for its parameters and a flat likelihood keeps every rho it allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.networks.rho.form_held_out import Folds, held_out_evidence
from heckesel.networks.rho.form_likelihood import Units
from heckesel.networks.rho.form_optima import (
    GAMMA_RIDGE,
    SCALE_SD,
    SKEWNESS_SD,
    TAIL_SD,
    Optima,
    Penalty,
    optimise,
)
from heckesel.networks.rho.rho_prior import RhoPrior, bin_edges

# name : (skewness and tails are free, sigma depends on x)
FORMS = {
    "normal": (False, False),
    "shape": (True, False),
    "scale": (False, True),
    "shape and scale": (True, True),
}
COARSE = np.linspace(-3.0, 3.0, 13)  # |rho| up to .995
REFINEMENTS = 3
INSERTED = 8  # points of each refinement, at quantiles of the posterior so far
FINE = np.linspace(-3.0, 3.0, 1201)  # where the posterior is interpolated for that
LOW = -1e6  # stands for no evidence at all
NEGLIGIBLE = 1e-3  # posterior share of a form that is not refined any further
# Tables of all models that are optimised side by side.
BATCH_BYTES = {"cpu": 64 * 2**20, "gpu": 2**30}
HOPELESS = 30.0  # log-units below the best evidence at which a point is given up
FIRST_UPDATES, UPDATES = 12, 5  # of the ridges: at rho = 0, where nothing is known, and elsewhere


@dataclass(frozen=True)
class Design:
    """The columns of one dataset, standardised, as tensors with a leading axis of one.

    membership : (P, ridges), of all coefficients in the order of `form_likelihood.split`
    """

    units: Units
    membership: torch.Tensor

    @property
    def penalty(self) -> Penalty:
        q, width, r = self.units.sizes
        fixed = self.membership.new_zeros(len(self.membership))
        fixed[: q + width - 1] = GAMMA_RIDGE  # straight lines may depend on one another
        fixed[q + width - 1] = 0.0
        fixed[q + width : q + width + r] = SCALE_SD**-2
        fixed[-2], fixed[-1] = SKEWNESS_SD**-2, TAIL_SD**-2
        extra = torch.zeros(len(fixed), dtype=torch.bool, device=fixed.device)
        extra[q + width :] = True
        return Penalty(self.membership, fixed, extra)

    def free(self, forms: np.ndarray) -> torch.Tensor:
        """(k, P) which coefficients the given forms (k,), positions in FORMS, let vary."""
        q, width, r = self.units.sizes
        shape, scale = np.array(list(FORMS.values()))[forms].T
        free = np.ones((len(forms), len(self.membership)), dtype=bool)
        free[:, q + width : q + width + r] = scale[:, None]
        free[:, -2:] = shape[:, None]
        return torch.as_tensor(free, device=self.membership.device)


@dataclass(frozen=True)
class Posterior:
    """j points: form (j,) position in FORMS, a (j,), log_evidence (j,), weight (j,) adding up to
    one, v (j, P), ridge (j, ridges), information (j, P, P)."""

    form: np.ndarray
    a: np.ndarray
    log_evidence: np.ndarray
    weight: np.ndarray
    v: torch.Tensor
    ridge: torch.Tensor
    information: torch.Tensor
    factor: np.ndarray

    @property
    def rho(self) -> np.ndarray:
        return np.tanh(self.a)


def form_posterior(design: Design, prior: RhoPrior, folds: Folds | None = None) -> Posterior:
    """All forms over all of (-1, 1), closer together where the posterior mass is."""
    start = independent_optima(design)
    points = _coarse(design, start, folds)
    for _ in range(REFINEMENTS):
        found = _posterior(points, prior)
        form, a, near = _wanted(found)
        if not len(form):
            break
        more = _solve(design, form, a, found.v[near], found.ridge[near], folds)
        points = _joined(points, more)
    return _posterior(points, prior)


def independent_optima(design: Design) -> Optima:
    """The normal model at rho = 0, from next to nothing: zeros and a unit sigma."""
    size, ridges = design.membership.shape
    q, width, _ = design.units.sizes
    v = design.membership.new_zeros(1, size)
    v[:, q + width - 1] = 1.0
    ridge, a, free = v.new_ones(1, ridges), v.new_zeros(1), design.free(np.zeros(1, dtype=int))
    return optimise(design.units, a, v, ridge, free, design.penalty, updates=FIRST_UPDATES)


def _coarse(design: Design, start: Optima, folds: Folds | None) -> list:
    """Every form at every a of COARSE. The normal form starts at its optimum at rho = 0, the others
    at that of the normal form with the same rho, so that none is worse than the form inside it."""
    count, others = len(COARSE), np.arange(1, len(FORMS))
    same = torch.zeros(count, dtype=torch.int64)
    first = np.zeros(count, dtype=int)
    normal = _solve(design, first, COARSE, start.v[same], start.ridge[same], folds)
    near = torch.arange(count).repeat(len(others))
    form, a = np.repeat(others, count), np.tile(COARSE, len(others))
    return _joined(normal, _solve(design, form, a, normal[3][near], normal[4][near], folds))


def _joined(points: list, more: list) -> list:
    return [
        np.concatenate(pair) if isinstance(pair[0], np.ndarray) else torch.cat(pair)
        for pair in zip(points, more, strict=True)
    ]


def _solve(design: Design, form, a, v, ridge, folds: Folds | None) -> list:
    """form, a, evidence, v, ridge and information of these points, in chunks that memory holds."""
    at_once = _at_once(design)
    found = []
    for first in range(0, len(form), at_once):
        chunk = slice(first, first + at_once)
        units, free = design.units.repeated(len(form[chunk])), design.free(form[chunk])
        at = torch.as_tensor(a[chunk], device=v.device)
        found.append(
            optimise(units, at, v[chunk], ridge[chunk], free, design.penalty, updates=UPDATES)
        )
    evidence, v, ridge, information = (
        torch.cat([getattr(each, name) for each in found])
        for name in ("evidence", "v", "ridge", "information")
    )
    height, factor = evidence.cpu().numpy(), np.ones(len(form))
    if folds is not None:
        height, factor = _held_out(design, folds, form, a, v, ridge, height)
    return [form, a, height, v, ridge, information, factor]


def _held_out(design: Design, folds: Folds, form, a, v, ridge, evidence):
    """Evidence (k,) from held-out units and factors of variance; points whose evidence in all rows
    is hopeless are not looked at."""
    height, factor = np.full(len(form), -np.inf), np.ones(len(form))
    hopeful = np.flatnonzero(evidence > evidence.max() - HOPELESS)
    at_once = max(1, _at_once(design) // folds.count)
    for first in range(0, len(hopeful), at_once):
        own = hopeful[first : first + at_once]
        place = torch.as_tensor(own, device=v.device)
        at = torch.as_tensor(a[own], device=v.device)
        height[own], factor[own] = held_out_evidence(
            design.units, folds, at, v[place], ridge[place], design.free(form[own]), design.penalty
        )
    return height, factor


def _at_once(design: Design) -> int:
    """Models that memory holds side by side."""
    limit = BATCH_BYTES["cpu" if design.membership.device.type == "cpu" else "gpu"]
    return max(1, int(limit // design.units.nbytes))


def _posterior(points, prior: RhoPrior) -> Posterior:
    form, a, evidence, v, ridge, information, factor = points
    log_weight = np.full(len(form), -np.inf)
    for own in (np.flatnonzero(form == one) for one in np.unique(form)):
        order = own[np.argsort(a[own])]
        with np.errstate(divide="ignore"):
            mass = np.log(prior.mass(bin_edges(np.tanh(a[order]))))
        log_weight[order] = evidence[order] + mass
    best = np.nanargmax(evidence)
    log_weight = np.where(np.isfinite(evidence), log_weight, -np.inf)
    # As in QAIC, the log-likelihood is divided by the factor its stated variance falls short by.
    log_weight = (log_weight - log_weight.max()) / factor[best]
    weight = np.exp(log_weight - logsumexp(log_weight))
    return Posterior(form, a, evidence, weight, v, ridge, information, factor)


def _wanted(found: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New points: their form, a, and the position of the nearest one there is."""
    form, at, near = [], [], []
    for one in np.unique(found.form):
        own = np.flatnonzero(found.form == one)
        if found.weight[own].sum() < NEGLIGIBLE:
            continue
        own = own[np.argsort(found.a[own])]
        a = found.a[own]
        finite = np.isfinite(found.log_evidence[own])
        height = np.interp(FINE, a[finite], found.log_evidence[own][finite], left=LOW, right=LOW)
        best = found.factor[np.argmax(found.weight)]
        log_density = height / best - 2 * np.log(np.cosh(FINE))
        below = np.cumsum(np.exp(log_density - log_density.max()))
        new = np.interp((np.arange(INSERTED) + 0.5) / INSERTED, below / below[-1], FINE)
        nearest = np.abs(new[:, None] - a).argmin(axis=1)
        fresh = np.abs(new - a[nearest]) > 1e-3
        form += [one] * int(fresh.sum())
        at += new[fresh].tolist()
        near += own[nearest[fresh]].tolist()
    return np.array(form, dtype=int), np.array(at), np.array(near, dtype=int)
