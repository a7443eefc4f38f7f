"""Maximum likelihood under t or shape errors, or a sigma that varies: modes and covariance.

At fixed rho these likelihoods are not concave, so the modes are those that a walk over rho of both
signs leads to; unlike those of `rho_scan` they come without a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimates import back_transform, standardised_hessian
from heckesel.linear.forms.error_models import Form
from heckesel.linear.forms.form_fits import path_of
from heckesel.linear.forms.form_search import FormPoint, at_an_end, climb, distinct, peaks, polish
from heckesel.linear.joint import at_zero
from heckesel.linear.sample.sample import Sample, SampleScale, standardised_sample


@dataclass(frozen=True)
class FormScan:
    """modes: best first; centre: about the maximum at rho = 0 of the rows that were walked on."""

    form: Form
    modes: tuple[FormPoint, ...]
    centre: FormPoint


def scan_form(form: Form, sample: Sample) -> FormScan:
    """The walk uses a part of a long table (`Rows.part`); every mode is polished on all rows."""
    coarse = sample.part()
    path = path_of(form, coarse, at_zero(coarse))
    modes = distinct([polish(form, sample, peak) for peak in peaks(path)])
    return FormScan(form, modes, min(path, key=lambda point: abs(point.a)))


def restricted(found: FormScan, mode: FormPoint, data: SelectionData, names) -> float:
    """How far the log-likelihood falls from `mode` where these parameters are zero: "atanh_rho",
    "scale" (all of it) or extra ones of the form. The other parameters are fitted again, from
    those at rho = 0, or from normal errors with a constant sigma."""
    sample, _ = standardised_sample(data)
    form, first = found.form, sample.q + sample.p + 1
    if list(names) == ["atanh_rho"]:
        return climb(form, sample, found.centre.coordinates, fixed=0.0).value - mode.value
    start = np.concatenate([at_zero(sample), np.zeros(sample.k), [mode.a], form.extra])
    held = [first + sample.k + 1 + form.extra_labels.index(n) for n in names if n != "scale"]
    held += range(first, first + sample.k) if "scale" in names else []
    return climb(form, sample, start, held=held).value - mode.value


def form_covariance(
    data: SelectionData,
    form: Form,
    point: FormPoint,
    sample: Sample,
    scalings: SampleScale,
    kind: str,
    *,
    weight_kind="frequency",
    clusters=None,
) -> np.ndarray:
    """Covariance of (beta, gamma, log sigma, *scale, atanh rho, *extra); NaN where there is none.

    An extra parameter at an end of its range (a df as good as normal, mostly) is taken as known:
    it has no standard error and the others keep theirs.
    """
    before = sample.p + sample.q + 1
    size = before + sample.k + form.size
    covariance = np.full((size, size), np.nan)
    ended = at_an_end(form, sample, point)
    if ended[: sample.k + 1].any() or point.status == "max_iterations":
        return covariance
    kept = np.flatnonzero(np.append(np.ones(before, bool), ~ended))
    scores = None if kind == "information" else form_scores(data, form, point, sample)[:, kept]
    block = np.ix_(kept, kept)
    covariance[block] = covariance_of(
        kind,
        standardised_hessian(point, sample.q)[block],
        scores,
        data.weight,
        weight_kind=weight_kind,
        clusters=clusters,
    )
    back = back_transform(scalings, shared=form.size)[block]
    covariance[block] = back @ covariance[block] @ back.T
    return covariance


def form_scores(data: SelectionData, form: Form, point: FormPoint, sample: Sample) -> np.ndarray:
    """(n, size) score of each unit in the data's row order, standardised, not weighted."""
    p, q, s = sample.p, sample.q, data.s
    gamma, theta, last = point.v[:q], point.v[-1], p + q + 1
    e, shrink = sample.residual_columns @ point.v[q:], theta
    if sample.scale_columns is not None:
        factor = np.exp(-sample.scale_columns @ point.scale)
        e, shrink = e * factor, theta * factor
    d_index, d_e, *shared = form.selected(sample.w_selected @ gamma, e, point.shared).gradient
    scores = np.zeros((data.n, last + sample.k + form.size))
    scores[s, :p] = sample.residual_columns[:, :p] * (shrink * d_e)[:, None]
    scores[s, p : p + q] = sample.w_selected * d_index[:, None]
    scores[s, p + q] = -d_e * e - 1.0
    if sample.scale_columns is not None:
        scores[s, last : last + sample.k] = -sample.scale_columns * (d_e * e + 1.0)[:, None]
    scores[s, last + sample.k :] = np.transpose(shared)
    d_index, *shared = form.unselected(sample.w_unselected @ gamma, point.shared).gradient
    scores[~s, p : p + q] = sample.w_unselected * d_index[:, None]
    scores[~s, last + sample.k :] = np.transpose(shared)
    return scores
