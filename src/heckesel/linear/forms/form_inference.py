"""Maximum likelihood under t or shape errors, or a sigma that varies: modes and covariance.

At fixed rho these likelihoods are not concave. The modes found are those that a search along both
signs of rho reaches. Unlike in `rho_scan`, there may be others.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from heckesel.linear.covariance import covariance_of_rows
from heckesel.linear.estimates import back_transform, standardised_hessian, unit_scores
from heckesel.linear.forms.error_models import Form
from heckesel.linear.forms.form_fits import path_of
from heckesel.linear.forms.form_search import FormPoint, at_an_end, climb, distinct, peaks, polish
from heckesel.linear.joint import at_zero, solve_at
from heckesel.linear.sample.sample import Rows, Sample, SampleScale


@dataclass(frozen=True)
class FormScan:
    """modes: best first; centre: approximately the maximum at rho = 0, on the rows used for the
    walk."""

    form: Form
    modes: tuple[FormPoint, ...]
    centre: FormPoint


def scan_form(form: Form, rows: Rows) -> FormScan:
    """The walk uses a part of a long table (`Rows.part`); every mode is polished on all rows."""
    coarse = rows.part()
    path = path_of(form, coarse, at_zero(coarse))
    modes = distinct([polish(form, rows, peak) for peak in peaks(path)])
    return FormScan(form, modes, min(path, key=lambda point: abs(point.a)))


def restricted(found: FormScan, mode: FormPoint, rows: Rows, names) -> float:
    """The drop of the log-likelihood from `mode` if these parameters are fixed at zero:
    "atanh_rho", "scale" (all of it) or extra ones of the form. The other parameters are fitted
    again, from those at rho = 0, or from normal errors with a constant sigma."""
    form, first = found.form, rows.q + rows.p + 1
    if list(names) == ["atanh_rho"]:
        return climb(form, rows, found.centre.coordinates, fixed=0.0).value - mode.value
    normal = solve_at(rows, 0.0, mode.v).v
    start = np.concatenate([normal, np.zeros(rows.k), [mode.a], form.extra])
    held = [first + rows.k + 1 + form.extra_labels.index(n) for n in names if n != "scale"]
    held += range(first, first + rows.k) if "scale" in names else []
    return climb(form, rows, start, held=held).value - mode.value


def form_covariance(
    form: Form,
    point: FormPoint,
    rows: Rows,
    scalings: SampleScale,
    kind: str,
    *,
    given_ends: bool = False,
    **meat,
) -> np.ndarray:
    """Covariance of (beta, gamma, log sigma, *scale, atanh rho, *extra); NaN where there is none.

    An extra parameter at an end of its range (mostly a df that is practically normal) is treated as
    known: it has no standard error and the others keep theirs.

    given_ends : whether rho = +-1 and an end of log sigma(x) are treated as known, too, with
        variance zero
    meat : options of `covariance_of_rows`
    """
    before = rows.p + rows.q + 1
    size = before + rows.k + form.size
    ended = at_an_end(form, rows, point)
    no_interior = ended[: rows.k + 1].any() and not given_ends
    if no_interior or point.status == "max_iterations":
        return np.full((size, size), np.nan)
    covariance = np.full((size, size), 0.0 if given_ends else np.nan)
    kept = np.flatnonzero(np.append(np.ones(before, bool), ~ended))
    block = np.ix_(kept, kept)
    hessian = standardised_hessian(point, rows.q)[block]
    scores = partial(_kept_scores, form=form, point=point, kept=kept)
    back = back_transform(scalings, shared=form.size)[block]
    covariance[block] = back @ covariance_of_rows(kind, hessian, rows, scores, **meat) @ back.T
    return covariance


def _kept_scores(sample: Sample, *, form: Form, point: FormPoint, kept) -> np.ndarray:
    return unit_scores(sample, form=form, point=point)[:, kept]
