"""Fits of the same data under other error models."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heckesel.data import SelectionData
from heckesel.linear.estimates import Estimates, estimates_at
from heckesel.linear.forms.error_models import FORMS, GAUSSIAN, Form
from heckesel.linear.forms.form_search import FormPoint, peaks, polish, walk
from heckesel.linear.forms.form_weights import aic_weights
from heckesel.linear.joint import Point, at_zero, evaluate
from heckesel.linear.rho_scan import scan
from heckesel.linear.sample.sample import (
    SCAN_SEED,
    Sample,
    SampleScale,
    standardised_sample,
)

SCAN_ROWS = 6000  # for the walk, which only locates the modes; all rows refine them


@dataclass(frozen=True, eq=False)
class FormResult:
    """A form at its maximum; if its name contains "sigma(x)", sigma varies with columns of x.
    params: Series by (equation, term), as in `hk.heckman`; the dependence is ("ancillary",
    "atanh_rho") or, for a copula, ("ancillary", "theta").

    status: `converged`; `boundary` (independence, perfect dependence, or a t that is normal is
    best); `max_iterations`. tau: Kendall's, of the two errors.
    """

    name: str
    loglik: float
    n_params: int
    tau: float
    status: str
    params: pd.Series
    aic_weight: float = float("nan")

    @property
    def aic(self) -> float:
        return 2 * self.n_params - 2 * self.loglik


def varying_name(form: str) -> str:
    """The name of a form in which sigma varies with columns of x."""
    return f"{form}, sigma(x)"


def fit_forms(data: SelectionData, forms: Iterable[Form] = FORMS) -> tuple[FormResult, ...]:
    """Every form by maximum likelihood, in the order given. If the data have columns of log
    sigma(x), sigma varies with them."""
    return fit_forms_to(*standardised_sample(data), data, forms)


def fit_forms_to(
    sample: Sample,
    scalings: SampleScale,
    names,
    forms: Iterable[Form],
) -> tuple[FormResult, ...]:
    """The same with standardised rows; names : what has x_names, w_names and scale_names"""
    independent = _independent(sample)
    coarse = sample.subsample(SCAN_ROWS, SCAN_SEED) if sample.n > 2 * SCAN_ROWS else sample
    start = independent.v if coarse is sample else at_zero(coarse)
    fits = []
    for form in forms:
        point = best_point(form, sample, coarse, start, independent)
        fits.append(_described(form, point, estimates_at(point, sample, scalings), names))
    return with_weights(fits)


def with_weights(fits: Sequence[FormResult]) -> tuple[FormResult, ...]:
    """The same with their Akaike weights among each other."""
    weights = aic_weights([fit.aic for fit in fits])
    return tuple(
        replace(fit, aic_weight=float(weight)) for fit, weight in zip(fits, weights, strict=True)
    )


def _independent(sample: Sample) -> Point:
    v = at_zero(sample)
    value, score, hessian = evaluate(sample, np.append(v, 0.0))
    return Point(v, 0.0, value, score, hessian, "boundary")


def best_point(
    form: Form, sample: Sample, coarse: Sample, start, independent: Point
) -> FormPoint | Point:
    """The best of all modes that the walk leads to, or independence if none is better (t errors
    have no independence, but contain it next to their upper end)."""
    if form is GAUSSIAN and not sample.k:
        return scan(sample, far_ends=False).modes[0]
    modes = [polish(form, sample, peak) for peak in peaks(path_of(form, coarse, start))]
    best = max(modes, key=lambda point: point.value)
    nested = not (form.extra or sample.k)
    return independent if nested and independent.value > best.value else best


def path_of(form: Form, sample: Sample, start: np.ndarray) -> list[FormPoint]:
    """Rough optima along the dependence, ordered by it; start: v at independence."""
    here = np.concatenate([start, np.zeros(sample.k), [0.0], form.extra])
    if not form.two_sided:
        return walk(form, sample, here, form.stops)
    centre, *up = walk(form, sample, here, [0.0, *form.stops])
    _, *down = walk(form, sample, centre.coordinates, [0.0, *-form.stops])
    return [*reversed(down), centre, *up]


def _described(form: Form, point, found: Estimates, data) -> FormResult:
    at_independence = point.status == "boundary" and point.a == 0.0
    theta = form.theta_zero if at_independence else form.theta(point.a)
    labels = [
        *(("outcome", name) for name in data.x_names),
        *(("select", name) for name in data.w_names),
        *(("ancillary", name) for name in (form.label, "log_sigma", *form.extra_labels)),
        *(("scale", name) for name in data.scale_names),
    ]
    shared = [theta, found.log_sigma, *found.extra, *found.scale]
    values = np.concatenate([found.beta, found.gamma, shared])
    index = pd.MultiIndex.from_tuples(labels, names=["equation", "term"])
    tau, params = form.tau(theta), pd.Series(values, index)
    name = varying_name(form.name) if data.scale_names else form.name
    return FormResult(name, found.loglik, len(values), tau, found.status, params)
