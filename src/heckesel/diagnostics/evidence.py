"""Evidence on whether the data support a correction, whatever model is fitted afterwards.

The outcome is modelled as a sum of smooth functions of its columns, because the misfit of a
straight line would look like selection. The instruments are tested on all rows. The profile
likelihood, the residuals and other error models use at most 10,000 random rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import qr
from scipy.special import chdtrc
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.diagnostics.instrument_strength import probit_verdict
from heckesel.diagnostics.profile_curve import ProfileCurve, profile_curve
from heckesel.diagnostics.verdict import (
    NOT_IDENTIFIED,
    Identification,
    beyond_smooth,
    with_profile,
)
from heckesel.errors import DataError
from heckesel.linear.estimable import check_estimable
from heckesel.linear.forms.error_models import GAUSSIAN
from heckesel.linear.forms.form_fits import fit_forms
from heckesel.linear.forms.form_weights import aic_weights, forms_to_weigh
from heckesel.linear.probit import fit_probit
from heckesel.linear.rho_scan import Scan, scan
from heckesel.linear.sample.sample import Sample, standardised_sample
from heckesel.numerics.bivariate import log_conditional_cdf
from heckesel.numerics.normal import inverse_mills, probit_of
from heckesel.numerics.splines import spline_of, spline_width

MOST_ROWS = 10_000
FORM_ROWS = 2500  # enough for the range of ten other error models
SEED = 20_790  # fixed, so that the same data always give the same verdict
SMOOTH_KNOTS = (6, 4, 2, 1)  # interior knots; the first that rows and columns allow is used
ROWS_PER_COLUMN = 20  # selected rows needed for each column of the smooth outcome
MOST_COLUMNS = 40  # of the smooth outcome: the cost grows with their square
FEWEST_ROWS = 20


def identify(data: SelectionData, *, forms: bool = False) -> Identification:
    """The verdict with its evidence; x and w of `data` have no constant column.

    forms : whether to fit the other error models too
    """
    if not data.weight.all():  # a row of weight zero must not place a knot
        data = data.take(data.weight > 0)
    found = probit_verdict(data)
    if found.verdict == NOT_IDENTIFIED:
        return found
    evidence = found.evidence | {"rows": data.n, "selected": int(data.s.sum())}
    with threadpool_limits(1, user_api="blas"):
        evidence |= _instrument_strength(data)
    return identify_shape(replace(found, evidence=evidence), data, forms=forms)


def identify_shape(
    found: Identification, data: SelectionData, *, forms: bool = False
) -> Identification:
    """A verdict on the instruments with the evidence of the profile likelihood added.

    `data` may be a sample of the rows that `found` is about.
    """
    found = beyond_smooth(found)
    evidence = found.evidence
    with threadpool_limits(1, user_api="blas"):
        shape = _shape(data)
        if shape is None:
            return replace(found, evidence=evidence | {"rows_profiled": 0})
        evidence |= _residual_evidence(shape)
        if forms:
            evidence |= _form_evidence(shape.design)
    evidence |= {"smooth_outcome": True}
    return with_profile(replace(found, evidence=evidence), shape.curve)


@dataclass(frozen=True)
class _Shape:
    """The profile likelihood of at most 10,000 rows, and the fit behind it."""

    design: SelectionData
    sample: Sample
    found: Scan
    curve: ProfileCurve


def _instrument_strength(data: SelectionData) -> dict:
    """Likelihood ratio test of the instruments, and `smooth_shares`."""
    if not data.instruments:
        return {}
    kept = [j for j, name in enumerate(data.w_names) if name not in data.instruments]
    constant = np.ones((data.n, 1))
    full = fit_probit(np.hstack([constant, data.w]), data.s, data.weight)
    reduced = fit_probit(np.hstack([constant, data.w[:, kept]]), data.s, data.weight)
    ratio = max(2 * (full.loglik - reduced.loglik), 0.0)
    return {
        "likelihood_ratio": ratio,
        "likelihood_ratio_p": float(chdtrc(len(data.instruments), ratio)),
        **smooth_shares(data, full.gamma[1:], full.gamma[0]),
    }


def smooth_shares(data: SelectionData, slopes, constant: float) -> dict:
    """How much of the instruments' effect smooth functions of x cannot replace.

    slopes, constant : coefficients of the probit
    """
    return {
        "mills_share": _mills_share(data, slopes, constant),
        "share_beyond_smooth": _share_beyond_smooth(data, slopes),
    }


def _share_beyond_smooth(data: SelectionData, slopes) -> float:
    """Share of the instruments' effect, given x, that smooth functions of x do not explain.

    Near 0 the instruments are themselves functions of x.
    """
    known = np.flatnonzero(~np.isnan(data.x).any(axis=1))
    some = known[_random_rows(len(known), MOST_ROWS)]
    chosen = [j for j, name in enumerate(data.w_names) if name in data.instruments]
    part, x, weight = data.w[some][:, chosen] @ slopes[chosen], data.x[some], data.weight[some]
    curved = smooth_columns(x)
    freedom = [max(len(some) - 1 - columns.shape[1], 1) for columns in (curved, x)]
    left = [_unexplained(columns, part, weight) for columns in (curved, x)]
    if left[1] == 0:
        return 0.0
    return min(left[0] / left[1] * freedom[1] / freedom[0], 1.0)


def _mills_share(data: SelectionData, slopes, constant: float) -> float:
    """Share of the variance of the inverse Mills ratio that smooth functions of x do not explain.

    It is computed on at most 10,000 selected rows.
    """
    some = np.flatnonzero(data.s)[_random_rows(int(data.s.sum()), MOST_ROWS)]
    mills = inverse_mills(constant + data.w[some] @ slopes)
    return _unexplained(smooth_columns(data.x[some]), mills, data.weight[some])


def _random_rows(count: int, most: int) -> np.ndarray:
    """All of `count` rows, or a fixed random sample of `most`, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))


def _unexplained(columns, values, weight) -> float:
    """1 - R2 of a weighted regression on a constant and the columns."""
    root = np.sqrt(weight)[:, None]
    design = root * np.column_stack([np.ones(len(values)), columns])
    target = root[:, 0] * (values - np.average(values, weights=weight))
    total = float(target @ target)
    if total == 0:
        return 0.0
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(residual @ residual) / total


def smooth_columns(x: np.ndarray) -> np.ndarray:
    """x and cubic splines of its columns, with as many knots as rows and columns allow."""
    for knots in SMOOTH_KNOTS:
        width = x.shape[1] + sum(spline_width(column, knots) for column in x.T)
        if width <= min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
            splines = [(spline_of(column, knots), column) for column in x.T]
            return np.column_stack(
                [x, *(b.columns(column) for b, column in splines if b is not None)]
            )
    return x


def _shape(data: SelectionData) -> _Shape | None:
    """None if there are too few rows, or if x explains the outcome exactly."""
    design = _design(data, _random_rows(data.n, MOST_ROWS))
    if design.s.sum() < max(FEWEST_ROWS, 2 * design.x.shape[1]) or design.s.all():
        return None
    try:
        check_estimable(design)
    except DataError:
        return None
    sample, _ = standardised_sample(design)
    found = scan(sample, far_ends=False)
    return _Shape(design, sample, found, profile_curve(found))


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
    return SelectionData(
        x=x,
        w=w,
        s=s,
        y=data.y[rows],
        weight=data.weight[rows],
        x_names=tuple(f"x{j}" if j else "Intercept" for j in kept),
        w_names=("Intercept", *data.w_names),
        y_name=data.y_name,
        excluded=data.instruments,
    )


def _residual_evidence(shape: _Shape) -> dict:
    best = shape.found.modes[0]
    e = shape.sample.residual_columns @ best.v[shape.sample.q :]
    index = shape.sample.w_selected @ best.v[: shape.sample.q]
    skewness, kurtosis, p = _normality(
        _normal_scores(e, index, best.a), shape.sample.weight_selected
    )
    return {
        "residual_skewness": skewness,
        "residual_excess_kurtosis": kurtosis,
        "residual_normality_p": p,
    }


def _normal_scores(e, index, atanh_rho: float) -> np.ndarray:
    """(n,) normal scores of P(E <= e | selected), which are standard normal under the model."""
    below = log_conditional_cdf(e, index, -atanh_rho)
    above = log_conditional_cdf(-e, index, atanh_rho)
    return probit_of(below, above)


def _normality(z, weight):
    """Skewness and excess kurtosis of z, and the p-value of the Jarque-Bera test."""
    z = z - np.average(z, weights=weight)
    z = z / np.sqrt(np.average(z**2, weights=weight))
    skewness = float(np.average(z**3, weights=weight))
    kurtosis = float(np.average(z**4, weights=weight)) - 3.0
    statistic = weight.sum() / 6 * (skewness**2 + kurtosis**2 / 4)
    return skewness, kurtosis, float(chdtrc(2, statistic))


def _form_evidence(design: SelectionData) -> dict:
    """Other error models on at most 2,500 rows, and the range of Kendall's tau of those weighed."""
    few = design.take(_random_rows(design.n, FORM_ROWS))
    try:
        check_estimable(few)
    except DataError:
        return {}
    fits = fit_forms(few)
    aic = np.array([2 * fit.n_params - 2 * fit.loglik for fit in fits])
    normal = aic[[fit.name for fit in fits].index(GAUSSIAN.name)]
    weights = aic_weights(aic)
    weighed = [fit for fit, say in zip(fits, forms_to_weigh(aic, normal), strict=True) if say]
    return {
        "form_rows": few.n,
        "forms": [
            {"name": fit.name, "weight": float(weight), "tau": float(fit.tau)}
            for fit, weight in sorted(zip(fits, weights, strict=True), key=lambda pair: -pair[1])
        ],
        "tau_low": float(min(fit.tau for fit in weighed)),
        "tau_high": float(max(fit.tau for fit in weighed)),
    }
