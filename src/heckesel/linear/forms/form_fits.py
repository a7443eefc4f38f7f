"""The same data under other error models: what changes when the normal curve is given up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.estimates import estimates_at
from heckesel.linear.forms.error_models import FORMS, GAUSSIAN, Form
from heckesel.linear.forms.form_search import FormPoint, peaks, polish, walk
from heckesel.linear.joint import Point, at_zero, evaluate
from heckesel.linear.rho_scan import scan
from heckesel.linear.sample.sample import SCAN_SEED, Sample, SampleScale, standardised_sample

SCAN_ROWS = 6000  # the walk only has to find the neighbourhood; all rows polish


@dataclass(frozen=True)
class FormFit:
    """One form at its maximum, in the user's units.

    status: `converged`; `boundary` (the best is independence, a perfect dependence, or for t the
    normal curve); `max_iterations`. dependence: theta, or atanh rho; extra: log df for t, skewness
    and log tail for shape.
    """

    name: str
    label: str
    loglik: float
    n_params: int
    tau: float
    status: str
    beta: np.ndarray
    gamma: np.ndarray
    log_sigma: float
    dependence: float
    extra: tuple[float, ...]
    extra_labels: tuple[str, ...]


def fit_forms(data: SelectionData, forms: Iterable[Form] = FORMS) -> tuple[FormFit, ...]:
    """Every form by maximum likelihood, in the order given."""
    sample, scalings = standardised_sample(data)
    independent = _independent(sample)
    coarse = sample.subsample(SCAN_ROWS, SCAN_SEED) if sample.n > 2 * SCAN_ROWS else sample
    start = independent.v if coarse is sample else at_zero(coarse)
    return tuple(
        _described(form, best_point(form, sample, coarse, start, independent), sample, scalings)
        for form in forms
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
    if form is GAUSSIAN:
        return scan(sample, far_ends=False).modes[0]
    modes = [polish(form, sample, peak) for peak in peaks(path_of(form, coarse, start))]
    best = max(modes, key=lambda point: point.value)
    return independent if not form.extra and independent.value > best.value else best


def path_of(form: Form, sample: Sample, start: np.ndarray) -> list[FormPoint]:
    """Rough optima along the dependence, ordered by it; start: v at independence."""
    here = np.concatenate([start, np.zeros(sample.k), [0.0], form.extra])
    if not form.two_sided:
        return walk(form, sample, here, form.stops)
    centre, *up = walk(form, sample, here, [0.0, *form.stops])
    _, *down = walk(form, sample, centre.coordinates, [0.0, *-form.stops])
    return [*reversed(down), centre, *up]


def _described(form: Form, point, sample: Sample, scalings: SampleScale) -> FormFit:
    estimates = estimates_at(point, sample, scalings)
    at_independence = point.status == "boundary" and point.a == 0.0
    theta = form.theta_zero if at_independence else form.theta(point.a)
    return FormFit(
        name=form.name,
        label=form.label,
        loglik=estimates.loglik,
        n_params=sample.p + sample.q + 1 + form.size,
        tau=form.tau(theta),
        status=estimates.status,
        beta=estimates.beta,
        gamma=estimates.gamma,
        log_sigma=estimates.log_sigma,
        dependence=theta,
        extra=estimates.extra,
        extra_labels=form.extra_labels,
    )
