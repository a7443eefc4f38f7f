r"""Evidence on the rows and on the error model of a linear fit.

Two checks need no error model: exact copies of rows, and nonlinearity of the outcome. Even with an
instrument, maximum likelihood with normal errors is biased if the error distribution is wrong.
Three more checks are cheap enough for every such fit: whether residuals are normal with a constant
sigma, given selection; whether the two-step, which makes weaker assumptions about the errors,
agrees; and whether single rows dominate. Other error models are fitted only if residuals are not
normal, on at most 10,000 rows.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from heckesel.classical.covariance import inverse, meat, wald_test
from heckesel.classical.functional_form import FormResult, fit_forms
from heckesel.classical.likelihood import GAUSSIAN
from heckesel.classical.ml import Point, point_at, polish, standardised_hessian, unit_scores
from heckesel.classical.results import HeckmanFit
from heckesel.classical.rows import Rows, Sample, SampleScale
from heckesel.classical.two_step import lambda_influence, two_steps
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.bivariate import log_conditional_cdf
from heckesel.math.special import probit_of
from heckesel.verdict.strength import MOST_COLUMNS, ROWS_PER_COLUMN
from heckesel.verdict.validity import (
    new_columns,
    second_step,
    selection_columns,
    validity_sample,
)

LINEARITY_SEED = 20_793
MANY_COPIES = 0.05  # share of the selected rows
GLANCE_ROWS = 2048  # which show for most tables that rows differ
CONTINUOUS = 0.9  # values of the outcome for each distinct row, above which ties are copies
FEWEST_VALUES = 3  # of a column whose square contains new information


def repeated_rows(data: SelectionData) -> dict:
    """How many selected rows repeat another one exactly, if they are many and the outcome otherwise
    has a different value in every row."""
    y, n1 = data.y[data.s], int(data.s.sum())
    values = len(np.unique(y))
    if n1 - values < MANY_COPIES * n1:
        return {}
    whole = np.column_stack([data.w[data.s], data.x[data.s], y])
    if values < CONTINUOUS * len(np.unique(whole[:GLANCE_ROWS], axis=0)):  # as for all rows then
        return {}
    rows = len(np.unique(whole, axis=0))
    if n1 - rows < MANY_COPIES * n1 or values < CONTINUOUS * rows:
        return {}
    return {"repeated_rows": n1 - rows}


def linearity_test(data: SelectionData) -> dict:
    r"""Whether squares and products of x add to the mean outcome of the selected.

    If the outcome equation is linear, that mean is :math:`x'\beta + g(w'\gamma, x)` whatever the
    distribution of the errors. A Wald test adds the squares, and products as far as rows allow, to
    a regression on x and the functions of the index that `overidentification` uses.
    """
    try:
        sample = validity_sample(data.take(data.weight > 0), LINEARITY_SEED)
    except DataError:  # a random part may be collinear although all rows are not
        return {}
    varies = np.ptp(data.x[data.s], axis=0) > 0
    names = [name for name, own in zip(data.x_names, varies, strict=True) if own]
    if not names or sample.x.shape[1] != len(names):
        return {}
    x = (sample.x - sample.x.mean(axis=0)) / sample.x.std(axis=0)
    generated, slopes = selection_columns(sample)
    linear = np.column_stack([np.ones(len(x)), x])
    used = new_columns(linear, generated)
    room = min(len(x) // ROWS_PER_COLUMN, MOST_COLUMNS) - linear.shape[1] - len(used)
    terms = _terms(x, names, room)
    labels, columns = list(terms), np.column_stack([linear[:, :0], *terms.values()])
    new = new_columns(np.column_stack([linear, generated[:, used]]), columns)
    if not new:
        return {}
    fixed = np.column_stack([columns[:, new], linear])
    step = second_step(sample, fixed, generated[:, used], slopes[:, used], sample.y[sample.s])
    found, covariance = step.coefficients[: len(new)], step.covariance[: len(new), : len(new)]
    _, p = wald_test(found, covariance)
    if not np.isfinite(p):
        return {}
    t = np.abs(found) / np.sqrt(np.diag(covariance))
    return {
        "linearity_p": float(p),
        "most_curved": labels[new[int(t.argmax())]],
    }


def _terms(x, names, room: int) -> dict[str, np.ndarray]:
    """Squares and products by name; empty if there are too few rows."""
    several = [j for j in range(len(names)) if len(np.unique(x[:, j])) >= FEWEST_VALUES]
    squares = {f"{names[j]} squared": x[:, j] ** 2 for j in several}
    pairs = list(combinations(range(len(names)), 2))
    products = {f"{names[i]} times {names[j]}": x[:, i] * x[:, j] for i, j in pairs}
    if len(squares) + len(products) <= room:
        return squares | products
    return squares if len(squares) <= room else {}


FORM_ROWS = 10_000
SEED = 20_791  # fixed, so that the same data always give the same verdict
REFIT_BELOW = 0.01  # p-value of a test of residuals below which other error models are fitted
SPANNED = 1e-10  # singular values below this share of the largest are rounding


def model_evidence(fit: HeckmanFit, rows: Rows, scalings: SampleScale) -> dict:
    """Evidence that is safe to write as JSON. `fit` is by maximum likelihood with normal errors; if
    it has more than 50,000 rows, a part of them is used."""
    sample, point = rows.part(), fit.scan.modes[fit.selected]
    if sample.n < rows.n:
        point = polish(sample, point_at(sample, point.v, point.a))
    found = residual_tests(sample, point)
    if point.status == "converged":
        found |= _contrast(sample, point, scalings, fit)
    rejected = min(found["residual_normality_p"], found["constant_sigma_p"]) < REFIT_BELOW
    if rejected:
        found |= _other_errors(fit, sample, scalings)
    return found


def residual_tests(sample: Sample, point: Point) -> dict:
    """Skewness, tails and sigma of the selected residuals, as normal scores given selection."""
    e = sample.residual_columns @ point.v[sample.q :]
    index, weight = sample.w_selected @ point.v[: sample.q], sample.weight_selected
    scores = normal_scores(e, index, point.a)
    groups = None if sample.groups is None else sample.groups[0]
    skewness, kurtosis, p = normality(scores, weight, groups)
    return {
        "residual_skewness": skewness,
        "residual_excess_kurtosis": kurtosis,
        "residual_normality_p": p,
        "constant_sigma_p": _constant_sigma(
            scores, sample.residual_columns[:, :-1], weight, groups
        ),
    }


def normal_scores(e, index, atanh_rho: float) -> np.ndarray:
    """(n,) normal scores of P(E <= e | selected), which are standard normal under the model."""
    below = log_conditional_cdf(e, index, -atanh_rho)
    above = log_conditional_cdf(-e, index, atanh_rho)
    return probit_of(below, above)


def normality(z, weight, groups=None):
    """Skewness and excess kurtosis of z, and the p-value of the Jarque-Bera test.

    With groups (n,), codes of rows that depend on one another, the variance of the third and fourth
    Hermite polynomials, whose means the test compares with 0, is that of their sums by group.
    """
    z = z - np.average(z, weights=weight)
    z = z / np.sqrt(np.average(z**2, weights=weight))
    skewness = float(np.average(z**3, weights=weight))
    kurtosis = float(np.average(z**4, weights=weight)) - 3.0
    statistic = weight.sum() / 6 * (skewness**2 + kurtosis**2 / 4)
    if groups is not None:
        hermite = np.column_stack([z**3 - 3 * z, z**4 - 6 * z**2 + 3])
        statistic = _wald_of_sums(hermite, weight, groups)
    return skewness, kurtosis, float(chdtrc(2, statistic))


def _wald_of_sums(values, weight, groups) -> float:
    """The chi-squared statistic of sums (n, k) that should be 0 and vary by group."""
    total = weight @ values
    return float(total @ np.linalg.solve(meat(values, weight, clusters=groups), total))


def _constant_sigma(z, columns, weight, groups=None) -> float:
    """p-value of the studentised Breusch-Pagan test: n R2 of z^2 on the outcome columns. With
    groups, that their covariance is 0, whose variance is that of sums by group."""
    freedom = np.linalg.matrix_rank(columns) - 1
    units = len(z) if groups is None else len(np.unique(groups))
    if freedom < 1 or units < ROWS_PER_COLUMN * freedom:
        return 1.0
    if groups is not None:
        return float(chdtrc(freedom, _covariance_by_group(z, columns, weight, groups)))
    root = np.sqrt(weight)
    centred = z**2 - np.average(z**2, weights=weight)
    design = np.column_stack([np.ones(len(z)), columns]) * root[:, None]
    fitted = design @ np.linalg.lstsq(design, root * centred, rcond=None)[0]
    share = float(fitted @ fitted) / float(weight @ centred**2)
    return float(chdtrc(freedom, weight.sum() * share))


def _covariance_by_group(z, columns, weight, groups) -> float:
    """The statistic for z^2 and the span of the columns, apart from their means."""
    centred = columns - np.average(columns, axis=0, weights=weight)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    basis = left[:, size > SPANNED * size[0]]
    square = z**2 - np.average(z**2, weights=weight)
    return _wald_of_sums(basis * square[:, None], weight, groups)


def _contrast(sample: Sample, point: Point, scalings: SampleScale, fit: HeckmanFit) -> dict:
    """rho sigma by both estimators, the standard error of their difference from the influence of
    each unit, and the unit with the largest influence on rho."""
    covariance = inverse(-standardised_hessian(point, sample.q))
    moved = unit_scores(sample, form=GAUSSIAN, point=point) @ covariance
    rho, sigma = float(np.tanh(point.a)), float(1 / point.v[-1])
    by_ml = moved[:, -2] * rho * sigma + moved[:, -1] * (1 - rho**2) * sigma
    stage = two_steps(sample, scalings)
    try:
        difference = lambda_influence(sample, stage) - by_ml
    except np.linalg.LinAlgError:  # the inverse Mills ratio is a linear function of x
        return {}
    weight = np.concatenate([sample.weight_selected, sample.weight_unselected])
    clusters = fit.clusters if sample.n == fit.n else None
    if clusters is not None and isinstance(fit.data, SelectionData):
        clusters = clusters[np.argsort(~fit.data.s, kind="stable")]
    options = {"weight_kind": fit.weight_kind, "clusters": clusters}
    error = np.sqrt(meat(difference[:, None], weight, **options)[0, 0])
    own = np.abs(weight * moved[:, -1])
    if not (np.isfinite(error) and error > 0):
        return {}
    return {
        "lambda_ml": rho * sigma * scalings.y_scale,
        "lambda_two_step": stage.c * scalings.y_scale,
        "contrast": (rho * sigma - stage.c) / float(error),
        "largest_influence": float(own.max() / np.sqrt(covariance[-1, -1])),
    }


def _other_errors(fit: HeckmanFit, sample: Sample, scalings: SampleScale) -> dict:
    """The error model with the best AIC, and its effect on rho and the coefficients."""
    if sample.n > FORM_ROWS:
        sample = sample.subsample(FORM_ROWS, SEED)
    data = fit.data
    varies = [name != "Intercept" for name in data.x_names]
    columns = sample.residual_columns[:, :-1][:, varies]
    names = tuple(name for name in data.x_names if name != "Intercept")
    try:
        fits = list(fit_forms(sample, scalings, data))
        if names and len(columns) >= ROWS_PER_COLUMN * len(names):
            varying = replace(sample, scale_columns=-columns)
            fits += fit_forms(varying, scalings, replace(data, scale_names=names))
    except np.linalg.LinAlgError:  # a random part may be collinear although all rows are not
        return {}
    normal, best = fits[0], min(fits, key=lambda each: each.aic)
    if best is normal:
        return {}
    gain = float(best.loglik - normal.loglik)
    return {
        "better_errors": best.name,
        "better_errors_gain": gain,
        "better_errors_p": float(chdtrc(best.n_params - normal.n_params, 2 * gain)),
        "better_errors_rho": float(np.tanh(best.params["ancillary", "atanh_rho"])),
        "form_rows": sample.n,
        **_most_moved(fit, normal, best),
    }


def _most_moved(fit: HeckmanFit, normal: FormResult, best: FormResult) -> dict:
    """The largest change under the other errors, in standard errors of the fit: of an outcome
    coefficient, or of rho measured as atanh rho."""
    terms = [*(("outcome", name) for name in fit.data.x_names), ("ancillary", "atanh_rho")]
    before, after, error = (
        values[terms].to_numpy() for values in (normal.params, best.params, fit.se)
    )
    change = np.nan_to_num((after - before) / error)
    furthest = int(np.abs(change).argmax())
    is_rho = furthest == len(terms) - 1
    ends = np.array([before[furthest], after[furthest]])
    first, last = (float(end) for end in (np.tanh(ends) if is_rho else ends))
    return {
        "most_moved_term": "rho" if is_rho else terms[furthest][1],
        "most_moved": float(change[furthest]),
        "most_moved_from": first,
        "most_moved_to": last,
    }
