r"""The verdict on linear fits: what the instruments say about rho, and checks of the error model.

rho is estimated among the selected, by the part of the inverse Mills ratio that no smooth function
of x can replace: an instrument that moves only units of which none is selected, or that is a
function of x, has a large Wald statistic in the selection equation and is useless all the same. The
error of rho from the instruments alone is

.. math:: \sqrt{\frac{d\,q_m^2}{\sum m^2} + \Big(\frac{k}{c W}\Big)^2},
          \qquad q_m = \frac{t_{.975}(u)}{t_{.975}(\infty)},
          \quad u = \frac{(\sum m^2)^2}{\sum m^4}.

m is the unexplained part of the inverse Mills ratio of the selected units, d a design effect of
dependent rows, u the effective number of units behind the estimate (a few units of an arm that is
hardly ever selected support little), k the number of instruments, W their Wald statistic, and c the
share of their effect that functions of x cannot replace. The second term is the relative bias by
noise in the first stage.

Even with an instrument, maximum likelihood with normal errors is biased if the error distribution
is wrong. So every such fit is checked: whether the outcome is linear, whether residuals are normal
with a constant sigma, given selection; whether the two-step, which makes weaker assumptions about
the errors, agrees; and whether single rows dominate. Other error models are fitted only if
residuals are not normal, on at most 10,000 rows.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import chdtrc, chdtri, log_ndtr, ndtri, stdtrit
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import residual, unexplained_share
from heckesel.classical.covariance import inverse, meat, wald_test
from heckesel.classical.forms import FormResult, fit_forms
from heckesel.classical.likelihood import GAUSSIAN
from heckesel.classical.ml import (
    NEAR_BOUNDARY,
    Point,
    Scan,
    point_at,
    polish,
    selected_mode,
    standardised_hessian,
    unit_scores,
)
from heckesel.classical.probit import fit_probit, in_units, maximise_probit
from heckesel.classical.probit_results import HeckmanProbitFit
from heckesel.classical.results import HeckmanFit, rows_of
from heckesel.classical.rows import Rows, Sample, SampleScale, do_all
from heckesel.classical.stream import StreamedData
from heckesel.classical.two_step import lambda_influence, two_steps
from heckesel.data import SelectionData, scaled_weight
from heckesel.errors import DataError
from heckesel.math.bivariate import log_conditional_cdf
from heckesel.math.special import inverse_mills, probit_of
from heckesel.verdict.identify import (
    RIVAL,
    Identification,
    conclude,
    leaking_column,
    nothing_to_correct,
    repeated_rows,
    wald_evidence,
)
from heckesel.verdict.validity import (
    MOST_COLUMNS,
    MOST_ROWS,
    ROWS_PER_SMOOTH,
    agreement,
    new_columns,
    random_rows,
    second_step,
    selection_columns,
    smooth_columns,
    validity_sample,
)

LINEARITY_SEED = 20_793
FEWEST_VALUES = 3  # of a column whose square contains new information
FORM_ROWS = 10_000
SEED = 20_791  # fixed, so that the same data always give the same verdict
REFIT_BELOW = 0.01  # p-value of a test of residuals below which other error models are fitted
SPANNED = 1e-10  # singular values below this share of the largest are rounding
STEPS, STEP_ROWS = 4, 200  # steps in x that could replace instruments, if there are STEP_ROWS rows
HIGH = 0.975
LARGEST_ERROR = 1e6  # replaces an infinite error, which JSON cannot represent
LEVEL = 0.9
CURVE_STEPS = 4001  # of the interpolated curve, over |atanh rho| up to 7
SHOWN_EVERY = 20  # every twentieth is kept for plots


def identify_fit(fit: HeckmanFit, sample: tuple[Rows, SampleScale] | None = None) -> Identification:
    """The verdict on a fit of `hk.heckman`.

    Probability weights of `fit` have an average of one; a fit from files still has its rows.

    sample : the standardised rows of the fit, if the caller has them
    """
    data: Any = fit.data  # that of a loaded fit explains that it has no rows
    probability = fit.weight_kind == "probability"
    if not fit.has_selection:
        return nothing_to_correct(data)
    with threadpool_limits(1, user_api="blas"):
        rows, scalings = sample or rows_of(data, None)[:2]
        gamma, covariance = _selection_equation(fit)
        if data.instruments and not np.isfinite(covariance).all():
            probit = in_units(maximise_probit(rows), scalings.w.back)
            gamma, covariance = probit.gamma, inverse(-probit.hessian)
            if probability:  # whose scale is arbitrary
                covariance = covariance * rows.mass / rows.nonzero
        is_normal, some = isinstance(fit.scan, Scan), _standardised(data, rows)
        tasks: list = [
            partial(_instruments, data, some, rows, scalings, gamma, covariance),
            partial(linearity_test, some),
            partial(repeated_rows, some) if fit.clusters is None else dict,
            partial(leaking_column, some),
            partial(model_evidence, fit, rows, scalings) if is_normal else dict,
        ]
        evidence = {name: value for found in do_all(tasks, rows.n) for name, value in found.items()}
        if is_normal:
            unit = _rows_per_weight(data) if probability else 1.0
            evidence |= profile_curve(fit.scan, unit=unit).as_evidence()
            if fit.clusters is not None:
                evidence["independent_rows"] = False
        elif fit.method == "two-step":
            evidence["rho"] = fit.rho
        return conclude(evidence)


def identify_classes(fit: HeckmanProbitFit) -> Identification:
    """The verdict on a probit with sample selection."""
    data = fit.data
    if not fit.has_selection:
        return nothing_to_correct(None)
    gamma, covariance = _selection_equation(fit)
    with threadpool_limits(1, user_api="blas"):
        if not np.isfinite(covariance).all():
            probit = fit_probit(data.w, data.s, scaled_weight(data.weight, fit.weight_kind))
            gamma, covariance = probit.gamma, inverse(-probit.hessian)
        rows, scalings, _ = rows_of(data, None)
        some = _standardised(data, rows)
        evidence = _instruments(data, some, rows, scalings, gamma, covariance)
        if evidence.get("rho_error", LARGEST_ERROR) < LARGEST_ERROR:
            evidence["rho_error"] /= np.sqrt(_information_of_classes(fit))
        if fit.scan is None:
            evidence["reason"] = (
                f"the columns separate the classes of all {int(data.s.sum())} observed rows, so "
                "every rho fits equally well"
            )
            evidence["action"] = "Use more rows or fewer columns."
            return conclude(evidence)
        return conclude(evidence | profile_curve(fit.scan).as_evidence())


def _information_of_classes(fit: HeckmanProbitFit) -> float:
    r"""What a class tells of rho, as a share of what a number with errors of unit variance would:
    the mean of :math:`\phi(f)^2/(\Phi(f)\,\Phi(-f))` over the selected. It is 2/\pi if both
    classes are equally likely, and small if one is rare."""
    data, beta = fit.data, fit.params["outcome"].to_numpy()
    f = data.x[data.s] @ beta
    unit = np.exp(-f * f - np.log(2 * np.pi) - log_ndtr(f) - log_ndtr(-f))
    return float(np.average(unit, weights=data.weight[data.s]))


def _instruments(data, standardised, rows: Rows, scalings: SampleScale, gamma, covariance) -> dict:
    """Strength of the instruments, and whether they agree."""
    evidence = wald_evidence(data.instruments, tuple(data.w_names), gamma, covariance)
    slopes = np.linalg.solve(scalings.w.back, gamma)
    evidence = error_of_rho(evidence, standardised, slopes, 0.0, mass=rows.mass_selected)
    return evidence | agreement(standardised)


def _standardised(data: SelectionData | StreamedData, rows: Rows) -> SelectionData:
    """The rows of a fit, or a part of them, without constants in x."""
    some = rows.part()
    n1, unknown = len(some.w_selected), np.full((len(some.w_unselected), some.p), np.nan)
    varies = [name != "Intercept" for name in data.x_names]
    return SelectionData(
        x=np.concatenate([-some.residual_columns[:, :-1], unknown])[:, varies],
        w=np.concatenate([some.w_selected, some.w_unselected]),
        s=np.arange(some.n) < n1,
        y=np.append(some.residual_columns[:, -1], np.full(some.n - n1, np.nan)),
        weight=np.append(some.weight_selected, some.weight_unselected),
        x_names=tuple(name for name in data.x_names if name != "Intercept"),
        w_names=data.w_names,
        y_name=data.y_name,
        excluded=data.instruments,
        groups=some.group_codes,
    )


def _selection_equation(fit) -> tuple[np.ndarray, np.ndarray]:
    return fit.params["select"].to_numpy(), fit.cov["select"].loc["select"].to_numpy()


def _rows_per_weight(data: SelectionData | StreamedData) -> float:
    """The factor that turns the weights into a number of rows."""
    if isinstance(data, StreamedData):
        return data.rows.nonzero / data.rows.mass
    selected, others = data.weight[data.s], data.weight[~data.s]
    rows = np.count_nonzero(selected) + np.count_nonzero(others)
    return int(rows) / (float(selected.sum()) + float(others.sum()))


def error_of_rho(
    evidence: dict, data: SelectionData, slopes, constant: float, *, mass: float | None = None
) -> dict:
    """`wald_evidence` with the error of rho, computed on at most 10,000 rows of `data`.

    slopes : (q,) of w; mass : of all selected rows, if `data` is a part of the rows
    """
    if "wald" not in evidence:
        return evidence
    known = np.flatnonzero(~np.isnan(data.x).any(axis=1) & (data.weight > 0))
    known = known[random_rows(len(known), MOST_ROWS)]
    selected = np.flatnonzero(data.s)
    selected = selected[random_rows(len(selected), MOST_ROWS)]
    smooth = smooth_columns(data.x[selected])
    same = np.array_equal(known, selected)  # often: x may be missing for the unselected
    of_known = smooth if same else smooth_columns(data.x[known])
    share = _share_beyond_smooth(data, known, of_known, slopes)

    mills, weight = inverse_mills(constant + data.w[selected] @ slopes), data.weight[selected]
    own, repeated = residual(smooth, mills, weight), 1.0
    if data.groups is not None:
        e = residual(np.column_stack([smooth, mills]), data.y[selected], weight)
        moments = (own * e)[:, None]
        independent = meat(moments, weight, weight_kind="probability")[0, 0]
        grouped = meat(moments, weight, clusters=data.groups[selected])[0, 0]
        repeated = max(grouped / independent, 1.0)
    mass = (data.weight[data.s].sum() if mass is None else mass) / weight.sum()
    squares = weight @ own**2
    usable = share * evidence["wald"] / len(evidence["instruments"])
    error = LARGEST_ERROR
    if squares > 0 and usable > 0:
        units = mass * squares**2 / (weight @ own**4)
        few = stdtrit(units, HIGH) / ndtri(HIGH)
        error = np.hypot(few * np.sqrt(repeated / (mass * squares)), 1 / usable)
    return evidence | {
        "mills_share": unexplained_share(smooth, mills, weight),
        "share_beyond_smooth": share,
        "rho_error": float(min(error, LARGEST_ERROR)),
    }


def _share_beyond_smooth(data: SelectionData, some, smooth, slopes) -> float:
    """Share of the instruments' effect, given x, that functions of x do not explain: curves,
    products of two columns, and steps.

    some : rows with x, whose smooth columns are `smooth`
    """
    chosen = [j for j, name in enumerate(data.w_names) if name in data.instruments]
    part, x, weight = data.w[some][:, chosen] @ slopes[chosen], data.x[some], data.weight[some]
    curved = _with_steps(_with_products(smooth, x), x, part, weight)
    freedom = [max(len(some) - 1 - columns.shape[1], 1) for columns in (curved, x)]
    left = [unexplained_share(columns, part, weight) for columns in (curved, x)]
    if left[1] == 0:
        return 0.0
    return min(left[0] / left[1] * freedom[1] / freedom[0], 1.0)


def _with_products(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The columns, and the products of all pairs of x as far as rows allow."""
    pairs = list(combinations(range(x.shape[1]), 2))
    if columns.shape[1] + len(pairs) > min(len(x) / ROWS_PER_SMOOTH, MOST_COLUMNS):
        return columns
    centred = x - x.mean(axis=0)
    return np.column_stack([columns, *(centred[:, i] * centred[:, j] for i, j in pairs)])


def _with_steps(columns: np.ndarray, x: np.ndarray, values, weight) -> np.ndarray:
    """The columns, a few steps of single columns of x, and the products of these steps. Each step
    is the one that explains most of the residual of `values` on the columns before it."""
    steps: list[np.ndarray] = []
    if len(x) >= STEP_ROWS:
        orders = [np.argsort(column, kind="stable") for column in x.T]
        for _ in range(STEPS):
            left = residual(np.column_stack([columns, *steps]), values, weight)
            found = [_best_step(*one, left, weight) for one in zip(x.T, orders, strict=True)]
            _, column, cut = max(found, key=lambda step: step[0])
            steps.append((column > cut).astype(float))
    products = [a * b for a, b in combinations(steps, 2)]
    return np.column_stack([columns, *steps, *products])


def _best_step(column: np.ndarray, order, left, weight) -> tuple[float, np.ndarray, float]:
    """The reduction of the sum of squares by the best split of a column, the column, and the value
    at which it is split; order : the one that sorts the column."""
    ordered, below = column[order], np.cumsum((weight * left)[order])[:-1]
    mass = np.cumsum(weight[order])
    gain = below**2 * (1 / mass[:-1] + 1 / (mass[-1] - mass[:-1]))  # all residuals add up to 0
    gain[ordered[1:] == ordered[:-1]] = -1.0  # equal values cannot be split
    best = int(gain.argmax())
    return float(gain[best]), column, float(ordered[best])


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
    room = min(len(x) // ROWS_PER_SMOOTH, MOST_COLUMNS) - linear.shape[1] - len(used)
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
    if freedom < 1 or units < ROWS_PER_SMOOTH * freedom:
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
        if names and len(columns) >= ROWS_PER_SMOOTH * len(names):
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
        "form_columns": [name for name in fit.data.x_names if name != "Intercept"],
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


@dataclass(frozen=True)
class ProfileCurve:
    """Profile log-likelihood over rho, relative to its maximum.

    At each rho all other parameters are at their best values.

    Attributes
    ----------
    rho : ndarray of shape (j,)
        Increasing values of rho.
    loglik : ndarray of shape (j,)
        Log-likelihood at each rho minus its maximum.
    modes : tuple of (rho, loglik)
        Every local maximum, best first.
    interval : tuple of float
        The smallest interval that contains every rho that a likelihood-ratio test at `level` does
        not reject.
    level : float
        Confidence level of `interval`.
    rows : int
        Number of rows the likelihood was computed on.
    selected : int
        Position in `modes` of the mode that the fit uses.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> from heckesel.verdict.linear import profile_curve
    >>> profile = profile_curve(hk.heckman("y ~ x", "~ x + z", frame).scan)
    >>> low, high = profile.interval
    >>> bool(low < profile.modes[0][0] < high)
    True
    """

    rho: np.ndarray
    loglik: np.ndarray
    modes: tuple[tuple[float, float], ...]
    interval: tuple[float, float]
    level: float
    rows: int
    selected: int = 0

    @property
    def at_boundary(self) -> bool:
        """Whether the best rho is close to 1 or -1, even if the fit uses an interior one."""
        return abs(self.modes[0][0]) > NEAR_BOUNDARY

    def as_evidence(self) -> dict:
        """Return what a verdict needs to know of the curve."""
        rho, height = self.modes[self.selected]
        return {
            "rho": rho,
            "rho_low": self.interval[0],
            "rho_high": self.interval[1],
            "rho_level": self.level,
            "modes": [{"rho": at, "loglik": value} for at, value in self.modes],
            "near_modes": sum(value > height - RIVAL for _, value in self.modes),
            "at_boundary": self.at_boundary,
            "rows_profiled": self.rows,
        }


def profile_curve(found: Scan, level: float = LEVEL, *, unit: float = 1.0) -> ProfileCurve:
    """The curve of a scan. A scan of some of the rows is scaled up to all of them.

    Between grid values the curve is the cubic with their values and slopes.

    unit : the factor that turns the weights into a number of rows
    """
    stretch = unit * found.stretch
    a, height = found.atanh_rho, found.loglik
    slope = np.array([point.slope for point in found.points])
    fine = np.linspace(a[0], a[-1], CURVE_STEPS)
    curve = stretch * CubicHermiteSpline(a, height, slope)(fine)
    best = max(curve.max(), stretch * height.max())
    ends = _not_rejected(fine, curve, best - _allowed_drop(level))
    # With many rows the modes were refined on all of them, so their heights need no scaling.
    modes = tuple(
        (float(np.tanh(mode.a)), unit * float(mode.value - found.modes[0].value))
        for mode in found.modes
    )
    shown = slice(None, None, SHOWN_EVERY)
    selected = selected_mode(found.modes, unit)
    return ProfileCurve(
        np.tanh(fine[shown]), curve[shown] - best, modes, ends, level, found.rows, selected
    )


def _allowed_drop(level: float) -> float:
    """The largest drop of the log-likelihood that a test at `level` does not reject."""
    return 0.5 * float(chdtri(1, 1 - level))


def _not_rejected(atanh_rho, height, lowest: float) -> tuple[float, float]:
    """The first and the last rho with a height of at least `lowest`.

    If that is an end of the grid, the interval extends to rho = +-1.
    """
    kept = atanh_rho[height >= lowest]
    low, high = (kept[0], kept[-1]) if len(kept) else (atanh_rho[np.argmax(height)],) * 2
    return (
        -1.0 if low == atanh_rho[0] else float(np.tanh(low)),
        1.0 if high == atanh_rho[-1] else float(np.tanh(high)),
    )
