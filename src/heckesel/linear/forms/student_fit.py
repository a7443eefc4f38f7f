"""Maximum likelihood under bivariate t errors: modes over rho at the best df, and covariance.

At fixed rho this likelihood is not concave, so the modes are those that a walk over rho of both
signs leads to; unlike those of `profile` they come without a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimates import back_transform, standardised_hessian
from heckesel.linear.forms.error_models import STUDENT
from heckesel.linear.forms.form_fits import path_of
from heckesel.linear.forms.form_search import FormPoint, at_an_end, climb, distinct, peaks, polish
from heckesel.linear.joint import at_zero
from heckesel.linear.sample.sample import Sample, Scalings


@dataclass(frozen=True)
class StudentScan:
    """modes: best first; loglik_at_zero: the maximum at rho = 0, standardised like the modes."""

    modes: tuple[FormPoint, ...]
    loglik_at_zero: float


def scan_student(sample: Sample) -> StudentScan:
    """The walk uses a part of a long table (`Rows.part`); every mode is polished on all rows."""
    coarse = sample.part()
    path = path_of(STUDENT, coarse, at_zero(coarse))
    modes = distinct([polish(STUDENT, sample, peak) for peak in peaks(path)])
    centre = min(path, key=lambda point: abs(point.a))
    zero = climb(STUDENT, sample, centre.coordinates, fixed=0.0)
    return StudentScan(modes, zero.value)


def student_covariance(
    data: SelectionData,
    point: FormPoint,
    sample: Sample,
    scalings: Scalings,
    kind: str,
    *,
    weight_kind="frequency",
    clusters=None,
) -> np.ndarray:
    """Covariance of (beta, gamma, log sigma, atanh rho, log df); NaN where there is none.

    A df at an end of its range (as good as normal, mostly) is taken as known: it has no standard
    error and the others keep theirs.
    """
    size = sample.p + sample.q + 3
    covariance = np.full((size, size), np.nan)
    rho_at_end, df_at_end = at_an_end(STUDENT, point)
    if rho_at_end or point.status == "max_iterations":
        return covariance
    kept = np.arange(size - 1 if df_at_end else size)
    scores = None if kind == "information" else student_scores(data, point, sample)[:, kept]
    block = np.ix_(kept, kept)
    covariance[block] = covariance_of(
        kind,
        standardised_hessian(point, sample.q)[block],
        scores,
        data.weight,
        weight_kind=weight_kind,
        clusters=clusters,
    )
    back = back_transform(scalings, shared=2)[block]
    covariance[block] = back @ covariance[block] @ back.T
    return covariance


def student_scores(data: SelectionData, point: FormPoint, sample: Sample) -> np.ndarray:
    """(n, p + q + 3) score of each unit in the data's row order, standardised, not weighted."""
    p, q, s = sample.p, sample.q, data.s
    gamma, theta = point.v[:q], point.v[-1]
    e = sample.residual_columns @ point.v[q:]
    d_index, d_e, *shared = STUDENT.selected(sample.w_selected @ gamma, e, point.shared).gradient
    scores = np.zeros((data.n, p + q + 3))
    scores[s, :p] = sample.residual_columns[:, :p] * (theta * d_e)[:, None]
    scores[s, p : p + q] = sample.w_selected * d_index[:, None]
    scores[s, p + q] = -d_e * e - 1.0
    scores[s, p + q + 1 :] = np.transpose(shared)
    d_index, *shared = STUDENT.unselected(sample.w_unselected @ gamma, point.shared).gradient
    scores[~s, p : p + q] = sample.w_unselected * d_index[:, None]
    scores[~s, p + q + 1 :] = np.transpose(shared)
    return scores
