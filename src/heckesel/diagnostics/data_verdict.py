"""The verdict on data: whether they support a correction, whatever model is fitted afterwards.

The outcome is modelled as a sum of smooth functions of its columns, because the misfit of a
straight line could be mistaken for selection. The instruments are tested on all rows. The profile
likelihood, the residuals and other error models use at most 10,000 random rows.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import qr
from scipy.special import chdtrc
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import check_estimable
from heckesel.classical.covariance import meat
from heckesel.classical.functional_form import fit_forms, forms_to_weigh
from heckesel.classical.likelihood import GAUSSIAN
from heckesel.classical.ml import Scan, scan
from heckesel.classical.probit import ProbitFit, fit_probit
from heckesel.classical.rows import Sample, standardised_sample
from heckesel.data import SelectionData
from heckesel.diagnostics.caveats import with_copies
from heckesel.diagnostics.instrument_strength import probit_and_verdict
from heckesel.diagnostics.model_evidence import residual_tests
from heckesel.diagnostics.profile_curve import ProfileCurve, profile_curve
from heckesel.diagnostics.row_evidence import repeated_rows
from heckesel.diagnostics.smooth_columns import (
    residual,
    smooth_columns,
    unexplained_share,
    with_products,
    with_steps,
)
from heckesel.diagnostics.validity.overidentification import with_agreement
from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification, beyond_smooth, with_profile
from heckesel.errors import ColumnError, DataError
from heckesel.math.special import inverse_mills

MOST_ROWS = 10_000
FORM_ROWS = 2500  # enough for the range of ten other error models
SEED = 20_790  # fixed, so that the same data always give the same verdict
FEWEST_ROWS = 20
LARGEST_ERROR = 1e6  # replaces an infinite standard error, which JSON cannot represent


def identify(data: SelectionData, *, forms: bool = False) -> Identification:
    """The verdict with its evidence; x and w of `data` have no constant column.

    forms : whether to fit the other error models too
    """
    if not data.weight.all():  # a row of weight zero must not affect the knots
        data = data.take(data.weight > 0)
    probit, found = probit_and_verdict(data)
    if found.verdict == NOT_IDENTIFIED:
        return found
    evidence = found.evidence | {"rows": data.n, "selected": int(data.s.sum())}
    with threadpool_limits(1, user_api="blas"):
        evidence |= _instrument_strength(data, probit)
    found = identify_shape(replace(found, evidence=evidence), data, forms=forms)
    return with_copies(found, repeated_rows(data))


def identify_shape(
    found: Identification, data: SelectionData, *, forms: bool = False
) -> Identification:
    """A verdict on the instruments with the evidence of the profile likelihood added.

    `data` may be a sample of the rows that `found` is about.
    """
    found = with_agreement(beyond_smooth(found), data)
    evidence = found.evidence
    with threadpool_limits(1, user_api="blas"):
        shape = _shape(data)
        if shape is None:
            return replace(found, evidence=evidence | {"rows_profiled": 0})
        evidence |= residual_tests(shape.sample, shape.found.modes[0])
        if forms:
            evidence |= _form_evidence(shape.design)
    evidence |= {"smooth_outcome": True}
    return with_profile(
        replace(found, evidence=evidence), shape.curve, independent=data.groups is None
    )


@dataclass(frozen=True)
class _Shape:
    """The profile likelihood of at most 10,000 rows, and the fit behind it."""

    design: SelectionData
    sample: Sample
    found: Scan
    curve: ProfileCurve


def _instrument_strength(data: SelectionData, full: ProbitFit) -> dict:
    """Likelihood ratio test of the instruments, and `smooth_shares`; full : with the constant."""
    if not data.instruments:
        return {}
    kept = [j for j, name in enumerate(data.w_names) if name not in data.instruments]
    others = np.column_stack([np.ones(data.n), data.w[:, kept]])
    reduced = fit_probit(others, data.s, data.weight)
    ratio = max(2 * (full.loglik - reduced.loglik), 0.0)
    return {
        "likelihood_ratio": ratio,
        "likelihood_ratio_p": float(chdtrc(len(data.instruments), ratio)),
        **smooth_shares(data, full.gamma[1:], full.gamma[0]),
    }


def smooth_shares(data: SelectionData, slopes, constant: float) -> dict:
    """How much of the instruments' effect smooth functions of x cannot replace, computed on at most
    10,000 rows.

    slopes, constant : coefficients of the probit
    """
    known = np.flatnonzero(~np.isnan(data.x).any(axis=1) & (data.weight > 0))
    known = known[_random_rows(len(known), MOST_ROWS)]
    selected = np.flatnonzero(data.s)
    selected = selected[_random_rows(len(selected), MOST_ROWS)]
    smooth = smooth_columns(data.x[selected])
    same = np.array_equal(known, selected)  # often: x may be missing for the unselected
    of_known = smooth if same else smooth_columns(data.x[known])
    share, variance, repeated = _mills_share(data, selected, smooth, slopes, constant)
    left = share * variance * data.weight[data.s].sum() / repeated
    return {
        "mills_share": share,
        "share_beyond_smooth": _share_beyond_smooth(data, known, of_known, slopes),
        # of a regression on the inverse Mills ratio with errors of variance one
        "rho_error": float(1 / np.sqrt(left)) if left > 0 else LARGEST_ERROR,
    }


def _share_beyond_smooth(data: SelectionData, some, smooth, slopes) -> float:
    """Share of the instruments' effect, given x, that smooth functions of x do not explain.

    Near 0 the instruments are themselves functions of x.

    some : rows with x, whose smooth columns are `smooth`
    """
    chosen = [j for j, name in enumerate(data.w_names) if name in data.instruments]
    part, x, weight = data.w[some][:, chosen] @ slopes[chosen], data.x[some], data.weight[some]
    curved = with_steps(with_products(smooth, x), x, part, weight)
    freedom = [max(len(some) - 1 - columns.shape[1], 1) for columns in (curved, x)]
    left = [unexplained_share(columns, part, weight) for columns in (curved, x)]
    if left[1] == 0:
        return 0.0
    return min(left[0] / left[1] * freedom[1] / freedom[0], 1.0)


def _mills_share(data: SelectionData, some, smooth, slopes, constant: float) -> tuple:
    """Share of the variance of the inverse Mills ratio that smooth functions of x do not explain,
    that variance, and by how much groups multiply the variance of its coefficient.

    some : selected rows, whose smooth columns are `smooth`
    """
    mills, weight = inverse_mills(constant + data.w[some] @ slopes), data.weight[some]
    variance = np.average((mills - np.average(mills, weights=weight)) ** 2, weights=weight)
    repeated = 1.0
    if data.groups is not None:
        repeated = _design_effect(smooth, mills, data.y[some], weight, data.groups[some])
    return unexplained_share(smooth, mills, weight), float(variance), repeated


def _design_effect(smooth, mills, y, weight, groups) -> float:
    """The variance of the coefficient of the inverse Mills ratio with dependent rows in groups,
    divided by that with independent rows; at least 1."""
    e = residual(np.column_stack([smooth, mills]), y, weight)
    moments = (residual(smooth, mills, weight) * e)[:, None]
    independent = meat(moments, weight, weight_kind="probability")[0, 0]
    return float(max(meat(moments, weight, clusters=groups)[0, 0] / independent, 1.0))


def _random_rows(count: int, most: int) -> np.ndarray:
    """All of `count` rows, or a fixed random sample of `most`, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))


def _shape(data: SelectionData) -> _Shape | None:
    """None if there are too few rows, or if x explains the outcome exactly."""
    design = _design(data, _random_rows(data.n, MOST_ROWS))
    if design.s.sum() < max(FEWEST_ROWS, 2 * design.x.shape[1]) or design.s.all():
        return None
    while True:
        try:
            check_estimable(design)
        except ColumnError as error:
            rest = _without(design, error.terms[-1])
            if rest is None:
                return None
            design = rest
        except DataError:
            return None
        else:
            break
    sample, _ = standardised_sample(design)
    found = scan(sample, far_ends=False)
    return _Shape(design, sample, found, profile_curve(found))


def _without(design: SelectionData, term: str) -> SelectionData | None:
    """Without a column of the selection equation that these rows do not determine, such as a level
    of which all are selected. None if no column has this name, or if it is the only instrument."""
    kept = [j for j, name in enumerate(design.w_names) if name != term]
    excluded = tuple(name for name in design.excluded or () if name != term)
    if len(kept) == len(design.w_names) or bool(design.excluded) != bool(excluded):
        return None
    names = tuple(design.w_names[j] for j in kept)
    return replace(design, w=design.w[:, kept], w_names=names, excluded=excluded)


def _design(data: SelectionData, rows) -> SelectionData:
    """These rows with constants and smooth outcome columns, without collinear ones."""
    s = data.s[rows]
    wide = smooth_columns(data.x[rows][s])
    scaled = np.column_stack([np.ones(len(wide)), (wide - wide.mean(axis=0))])
    scaled = scaled / np.maximum(np.linalg.norm(scaled, axis=0), 1e-300)
    _, size, order = qr(scaled, mode="economic", pivoting=True)
    kept = np.sort(order[np.abs(np.diag(size)) > 1e-7])
    x = np.full((len(rows), len(kept)), np.nan)
    x[s] = np.column_stack([np.ones(len(wide)), wide])[:, kept]
    w = np.column_stack([np.ones(len(rows)), data.w[rows]])
    names = tuple(f"x{j}" if j else "Intercept" for j in kept)
    w_names = ("Intercept", *data.w_names)
    some = replace(data.take(rows), excluded=data.instruments)
    return replace(some, x=x, w=w, x_names=names, w_names=w_names)


def _form_evidence(design: SelectionData) -> dict:
    """Fits of other error models to at most 2,500 rows, and the range of Kendall's tau over those
    that fit well."""
    few = design.take(_random_rows(design.n, FORM_ROWS))
    try:
        check_estimable(few)
    except DataError:
        return {}
    fits = fit_forms(few)
    normal = next(fit.aic for fit in fits if fit.name == GAUSSIAN.name)
    has_say = forms_to_weigh([fit.aic for fit in fits], normal)
    weighed = [fit for fit, say in zip(fits, has_say, strict=True) if say]
    return {
        "form_rows": few.n,
        "forms": [
            {"name": fit.name, "weight": fit.aic_weight, "tau": float(fit.tau)}
            for fit in sorted(fits, key=lambda fit: -fit.aic_weight)
        ],
        "tau_low": float(min(fit.tau for fit in weighed)),
        "tau_high": float(max(fit.tau for fit in weighed)),
    }
