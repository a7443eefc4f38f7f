r"""Probits with and without sample selection: maximum likelihood and probabilities.

At fixed a = atanh rho the log-likelihood is concave in v = (gamma, beta), as that of the linear
model is in Olsen's coordinates, so `ml.scan` shows every mode here too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.linalg import block_diag
from scipy.special import log_ndtr, ndtr, ndtri_exp
from threadpoolctl import threadpool_limits

from heckesel import display as web
from heckesel.classical.checks import (
    RIDGE,
    Event,
    Overlap,
    checked_probit,
    fit_separated,
    overlap_of,
    refuse,
    separation,
)
from heckesel.classical.covariance import (
    Test,
    cluster_freedom,
    covariance_of,
    covariance_of_rows,
    critical_value,
    f_test,
    inverse,
    labelled,
)
from heckesel.classical.forms import Mode, equation_labels
from heckesel.classical.likelihood import binary_units, unselected_units
from heckesel.classical.ml import Point, scan, selected_mode
from heckesel.classical.prediction import LinearMeans, density, given_rho, matrices, variance_along
from heckesel.classical.probit import fit_probit, penalised, probit_scores, probit_terms
from heckesel.classical.results import (
    NamedEstimates,
    SelectionFit,
    in_given_weights,
)
from heckesel.classical.rows import SCAN_SEED, Sample, SampleScale, column_scale, weighted_sums
from heckesel.classical.summary import (
    augment_probit,
    coefficient_block,
    coefficient_html,
    covariance_words,
)
from heckesel.classical.two_step import binary_score_test
from heckesel.data import (
    SelectionData,
    check_complete,
    check_level,
    check_not_tiny,
    check_weights,
    ones_of,
    scaled_weight,
)
from heckesel.display import Summary
from heckesel.errors import DataError, printable, warn_user
from heckesel.math.bivariate import log_conditional_cdf
from heckesel.math.special import inverse_mills
from heckesel.tables.formula import (
    ArrayDesign,
    Equation,
    FormulaDesign,
    build_equation,
    covariance_kind,
    evaluate_column,
    side_column,
    split_formula,
)
from heckesel.tables.frames import as_pandas

# A unit costs a quadrature, tens of times the price of one in the linear model: longer
# tables are scanned on this many rows, and every mode is polished on all of them.
MOST_SCANNED = 5000


@dataclass(frozen=True)
class BinarySample(Sample):
    """Rows of a binary outcome; `residuals` are x (n1, p).

    sign : (n1,) +1 where y = 1 and -1 where 0; ridge : on beta, where the outcome is separated
    """

    sign: np.ndarray = field(default_factory=lambda: np.empty(0))
    ridge: float = 0.0

    def take(self, selected, unselected) -> Self:
        return replace(super().take(selected, unselected), sign=self.sign[selected])

    def evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Log-likelihood, score and Hessian in (gamma, beta, a), summed over row blocks."""
        value, score, hessian = self.sum(partial(_block_terms, point=point))
        return penalised((float(value), score, hessian), point, self.ridge, slice(self.q, -1))

    def at_zero(self) -> np.ndarray:
        """The conditional optimum at rho = 0: two probits."""
        w = np.concatenate([self.w_selected, self.w_unselected])
        gamma = fit_probit(w, np.arange(len(w)) < len(self.w_selected), self.weight).gamma
        outcome = fit_separated if self.ridge else fit_probit
        beta = outcome(self.residuals, self.sign > 0, self.weight_selected).gamma
        return np.concatenate([gamma, beta])

    def part(self) -> Sample:
        """All rows while they are few, else a fixed-seed subsample of MOST_SCANNED."""
        return self if self.n <= MOST_SCANNED else self.subsample(MOST_SCANNED, SCAN_SEED)

    def in_user_units(self, point: Point, scalings: SampleScale) -> np.ndarray:
        """(beta, gamma, a) of a point."""
        beta, gamma = scalings.x.back @ point.v[self.q :], scalings.w.back @ point.v[: self.q]
        return np.concatenate([beta, gamma, [point.a]])

    def given_rho(self, point: Point, scalings: SampleScale) -> tuple[np.ndarray, np.ndarray]:
        """The same with its covariance as if rho were known, which it is at the boundary."""
        covariance = np.zeros_like(point.hessian)
        covariance[:-1, :-1] = inverse(-_in_order(point.hessian, self)[:-1, :-1])
        return self.in_user_units(point, scalings), _in_user_units(covariance, scalings)


def _block_terms(block: BinarySample, *, point) -> tuple:
    q, size = block.q, len(point)
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if len(block.w_selected):
        w, x = block.w_selected, block.residuals
        units = binary_units(w @ point[:q], x @ point[q:-1], point[-1], block.sign)
        value, score, hessian = weighted_sums(units, (w, x), block.weight_selected)
    if len(block.w_unselected):
        parts = probit_terms(block.w_unselected, block.weight_unselected, point[:q], -1.0)
        value, score[:q] = value + parts[0], score[:q] + parts[1]
        hessian[:q, :q] += parts[2]
    return value, score, hessian


def binary_sample(data: SelectionData, *, ridge: float = 0.0) -> tuple[BinarySample, SampleScale]:
    """x standardised over the selected, w over all; data.y is 0 or 1 where observed."""
    s, weight = data.s, data.weight
    scalings = SampleScale(column_scale(data.w), column_scale(data.x[s]), 0.0, 1.0)
    w = scalings.w.apply(data.w)
    sign = np.where(data.y[s] == 1.0, 1.0, -1.0)
    x = scalings.x.apply(data.x[s])
    rows = w[s], x, weight[s], w[~s], weight[~s]
    return BinarySample(*rows, sign=sign, ridge=ridge), scalings


def binary_covariance(
    data: SelectionData, point: Point, sample: BinarySample, scalings, kind: str, **options
) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho); all NaN unless the mode converged.

    options : `weight_kind`, and `clusters` in the order of `data`
    """
    if point.status != "converged":
        return np.full_like(point.hessian, np.nan)
    if options["clusters"] is not None:
        options["clusters"] = options["clusters"][np.argsort(~data.s, kind="stable")]
    scores = partial(binary_scores, point=np.append(point.v, point.a))
    hessian = _in_order(point.hessian, sample)
    return _in_user_units(covariance_of_rows(kind, hessian, sample, scores, **options), scalings)


def _in_user_units(covariance, scalings: SampleScale) -> np.ndarray:
    back = block_diag(scalings.x.back, scalings.w.back, 1.0)
    return back @ covariance @ back.T


def separated_covariance(
    data: SelectionData, params, overlap: Overlap, kind: str, *, weight_kind: str, clusters=None
) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho) where columns separate part of the observed classes.

    A separated row contributes the probability of its selection, log Phi(w'gamma), as an unselected
    row with the columns -w does. NaN for coefficients that the overlap does not determine, and for
    all if there is no interior optimum.

    params : in the same order
    """
    p, q = data.x.shape[1], data.w.shape[1]
    sample, scalings = _overlap_sample(data, overlap)
    f = data.x[data.s][overlap.rows] @ params[:p]
    x = data.x[data.s][overlap.rows][:, overlap.columns]
    beta = np.linalg.solve(scalings.x.back, np.linalg.lstsq(x, f)[0])
    gamma = np.linalg.solve(scalings.w.back, params[p : p + q])
    point = np.concatenate([gamma, beta, params[-1:]])
    hessian = _in_order(sample.evaluate(point)[2], sample)
    if clusters is not None:
        inside = clusters[data.s]
        others = clusters[~data.s], inside[~overlap.rows]
        clusters = np.concatenate([inside[overlap.rows], *others])
    options = {"weight_kind": weight_kind, "clusters": clusters}
    scores = partial(binary_scores, point=point)
    small = covariance_of_rows(kind, hessian, sample, scores, **options)
    places = np.concatenate([overlap.columns, np.arange(p, p + q + 1)])
    covariance = np.full((p + q + 1,) * 2, np.nan)
    covariance[np.ix_(places, places)] = _in_user_units(small, scalings)
    unknown = np.flatnonzero(~overlap.determined)
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance


def _overlap_sample(data: SelectionData, overlap: Overlap) -> tuple[BinarySample, SampleScale]:
    s, rows = data.s, overlap.rows
    x = data.x[s][rows][:, overlap.columns]
    scalings = SampleScale(column_scale(data.w), column_scale(x), 0.0, 1.0)
    w, weight = scalings.w.apply(data.w), data.weight
    sign = np.where(data.y[s][rows] == 1.0, 1.0, -1.0)
    others = np.concatenate([w[~s], -w[s][~rows]])
    mass = np.concatenate([weight[~s], weight[s][~rows]])
    x = scalings.x.apply(x)
    inside = w[s][rows], x, weight[s][rows]
    return BinarySample(*inside, others, mass, sign=sign), scalings


def binary_scores(sample: BinarySample, *, point: np.ndarray) -> np.ndarray:
    """(n, p + q + 1) score of each unit in (beta, gamma, a), selected units first, standardised,
    not weighted; point : (gamma, beta, a)"""
    x, w, q = sample.residuals, sample.w_selected, sample.q
    p, n1 = x.shape[1], len(x)
    units = binary_units(w @ point[:q], x @ point[q:-1], point[-1], sample.sign)
    d_index, d_f, d_a = units.gradient
    scores = np.zeros((sample.n, p + q + 1))
    scores[:n1] = np.column_stack([x * d_f[:, None], w * d_index[:, None], d_a])
    slope = unselected_units(sample.w_unselected @ point[:q])[1]
    scores[n1:, p:-1] = sample.w_unselected * slope[:, None]
    return scores


def _in_order(hessian, sample: BinarySample) -> np.ndarray:
    """From (gamma, beta, a) to (beta, gamma, a)."""
    p, q = sample.residuals.shape[1], sample.q
    order = [*range(q, q + p), *range(q), p + q]
    return hessian[np.ix_(order, order)]


ATANH_RHO = ("ancillary", "atanh_rho")


def probit_index(fit, x, w, target: str) -> tuple[np.ndarray, np.ndarray]:
    r"""(m,) z with P(y = 1) = Phi(z), and its (m, k) gradient in the order of `fit.params`.

    * population: z = f = x'beta
    * selected:   P = Phi_2(eta, f; rho) / Phi(eta)
    * unselected: P = Phi_2(-eta, f; -rho) / Phi(-eta)

    x : (m, p) and w : (m, q) with their constants. z is computed from the rarer class, whose
    probability has more digits: dz = d log P / lambda(z). If all classes are separated, the three
    have the same limit for any rho, and z = f is used.
    """
    p, gradient = x.shape[1], np.zeros((len(x), len(fit.params)))
    f = x @ fit.params.to_numpy()[:p]
    if target == "population" or not fit.has_selection or np.isnan(fit.rho):
        gradient[:, :p] = x
        return f, gradient
    way = 1.0 if target == "selected" else -1.0
    h, a = way * (w @ fit.params["select"].to_numpy()), way * fit.params[ATANH_RHO]
    sign = np.where(log_conditional_cdf(f, h, a) < np.log(0.5), 1.0, -1.0)
    units = binary_units(h, f, a, sign)
    z = ndtri_exp(units.value - log_ndtr(h))
    slope = sign / inverse_mills(z)
    d_index, d_f, d_a = units.gradient
    gradient[:, :p] = (slope * d_f)[:, None] * x
    gradient[:, p:-1] = (slope * way * (d_index - inverse_mills(h)))[:, None] * w
    gradient[:, -1] = slope * way * d_a
    return sign * z, gradient


def probit_index_interval(fit, x, w, target: str, level: float) -> np.ndarray:
    """(m, 2) interval of z, over all rho the data allow where these are given, otherwise by the
    delta method; NaN where it depends on a coefficient without standard error."""
    check_level(level)
    if fit.over_rho is not None:
        return _interval_over_rho(fit, x, w, target, level)
    z, gradient = probit_index(fit, x, w, target)
    cov = fit.cov if fit.cov_given_rho is None else fit.cov_given_rho
    variance = variance_along(gradient, cov.to_numpy())
    half = critical_value(level, fit.freedom) * np.sqrt(variance)
    return np.column_stack([z - half, z + half])


def _interval_over_rho(fit, x, w, target: str, level: float) -> np.ndarray:
    over, values, variances = fit.over_rho, [], []
    for at, covariance in enumerate(over.cov):
        z, gradient = probit_index(given_rho(fit, at), x, w, target)
        values.append(z)
        variances.append(variance_along(gradient, covariance))
    return over.interval(np.array(values), np.array(variances), level)


SEPARATED = (
    "the likelihood has no maximum: probabilities near 0 and 1 of these rows are extrapolations, "
    "and coefficients that depend on these rows alone have no standard errors"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HeckmanProbitFit(SelectionFit):
    """A fitted probit with sample selection, the `result_` of a linear `HeckmanClassifier`.

    Attributes
    ----------
    params, se : Series
        Estimates and standard errors by (equation, term): ``"outcome"``, ``"select"`` and
        ``("ancillary", "atanh_rho")``.
    cov : DataFrame
        Covariance of `params`; NaN where there is none.
    cov_given_rho : DataFrame or None
        At rho = +-1, where the likelihood has no interior maximum: the covariance of the other
        parameters.
    rho, loglik, status
        Correlation of the errors, log-likelihood, and how the fit ended.
    modes : tuple of Mode
        Every local maximum of the likelihood, best first.
    separation : str or None
        Which columns separate the classes, if any do. The status is then ``"separated"``.
        Coefficients that the other rows determine have standard errors. If every row is separated,
        no coefficient has one, and rho is NaN, because every rho fits equally well.
    classes : ndarray of shape (2,)
        The two classes.
    design : object
        Makes columns from new rows.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(2000, seed=0).frame
    >>> X, y = loans.drop(columns="default"), loans["default"]
    >>> fit = hk.HeckmanClassifier(["leniency"], method="ml").fit(X, y).result_
    >>> fit.status, len(fit.modes)  # the second maximum is far below the first
    ('converged', 2)
    """

    classes: np.ndarray
    design: FormulaDesign | ArrayDesign
    df: float = float("inf")
    separation: str | None = None

    @property
    def title(self) -> str:
        """The heading of the summary."""
        name = "Probit with selection" if self.has_selection else "Probit, every unit selected"
        return f"{name}: {self.data.y_name} = {self.classes[1]}"

    def predict(self, data=None, *, x=None, w=None, target: str = "population") -> np.ndarray:
        """Probability of the second class.

        Parameters
        ----------
        data : frame, optional
            New rows of a fit from formulas. By default the rows of the fit.
        x, w : array-like, optional
            New rows of a fit from arrays.
        target : {"population", "selected", "unselected"}
            The class of any unit, or of a unit given that it was or was not selected.

        Returns
        -------
        ndarray of shape (m,)
        """
        columns, selection, _ = matrices(self, data, x, w, target)
        return ndtr(probit_index(self, columns, selection, target)[0])

    def means(self, target: str) -> LinearMeans:
        """The probability of the second class of rows, with inference.

        Parameters
        ----------
        target : {"population", "selected", "unselected", "selection"}
            As in `margins`.

        Returns
        -------
        LinearMeans
            What `average` and `margins` are computed from.
        """

        def outcome(fit, x, w, _):
            z, gradient = probit_index(fit, x, w, target)
            return ndtr(z), density(z)[:, None] * gradient

        return LinearMeans(self, target, outcome, is_binary=True)

    @property
    def error_parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the error distribution."""
        return ("rho",) if self.has_selection else ()

    @property
    def separation_note(self) -> str:
        """Note at the end of the summary if columns separate the classes."""
        return f"Separated: {self.separation} ({SEPARATED})." if self.separation else ""

    @cached_property
    def loglik_independent(self) -> float:
        """Log-likelihood at rho = 0: two probits."""
        self._need_a_maximum()
        data, s = self.data, self.data.s
        outcome = fit_probit(data.x[s], data.y[s] == 1.0, data.weight[s]).loglik
        return outcome + fit_probit(data.w, s, data.weight).loglik

    def _need_a_maximum(self) -> None:
        if self.separation is not None:
            raise DataError(f"{self.separation}: the likelihood has no maximum to compare with")

    def _rows(self, client) -> tuple[BinarySample, SampleScale, Callable]:
        self._need_a_maximum()
        return *binary_sample(self.data), map

    def score_test(self) -> Test:
        """Test that the inverse Mills ratio has no coefficient in the outcome equation.

        Returns
        -------
        Test
        """
        self._need_a_maximum()
        statistic = binary_score_test(self.data, self.covariance, self.weight_kind, self.clusters)
        return f_test(statistic, 1, self.freedom)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProbitResult(NamedEstimates):
    """A fitted probit, the result of `hk.probit`.

    Attributes
    ----------
    params, se : Series
        Estimates and standard errors by ``("select", term)``.
    cov : DataFrame
        Covariance of `params`.
    loglik, loglik_constant : float
        Log-likelihood, and that of a probit with a constant only.
    status : str
        ``"converged"`` or ``"max_iterations"``.
    n : int
        Number of units; frequency weights count as rows.
    covariance, name, equation, freedom, weight_kind
        The covariance estimator, the outcome, how columns are made from new rows, the degrees of
        freedom of tests and intervals, and the kind of weights.

    Examples
    --------
    >>> import heckesel as hk
    >>> fit = hk.probit("inlf ~ educ + kidslt6", hk.datasets.load_mroz())
    >>> fit.to_frame().shape
    (3, 6)
    """

    loglik: float
    loglik_constant: float
    status: str
    covariance: str
    n: int
    name: str
    equation: Equation
    freedom: float = float("inf")
    weight_kind: str = "frequency"

    @property
    def title(self) -> str:
        """The heading of the summary."""
        return f"Probit of {self.name}"

    def predict(self, data) -> np.ndarray:
        """Probability of selection.

        Parameters
        ----------
        data : frame
            New rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        return ndtr(self.equation.matrix(as_pandas(data)) @ self.params.to_numpy())

    def augment(self, data) -> pd.DataFrame:
        """Rows with their probability of selection.

        Parameters
        ----------
        data : frame
            Rows with the columns of the formula.

        Returns
        -------
        DataFrame
            The columns of the rows, ``fitted``, the probability, and ``residual``, the outcome
            minus that.
        """
        return augment_probit(self, data)

    @property
    def pseudo_r2(self) -> float:
        """McFadden's: 1 - loglik / loglik_constant."""
        return 1 - self.loglik / self.loglik_constant

    def summary(self, level: float = 0.95) -> Summary:
        """Summary for printing.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        Summary
            A string, which a notebook shows as HTML.
        """
        head = [
            f"{self.title}, {self.n:,} units, covariance: {covariance_words(self)}",
            f"Log-likelihood {self.loglik:.4f}, pseudo R2 {self.pseudo_r2:.4f}, "
            f"status: {self.status}",
        ]
        table = (self.to_frame(level), level, self.name, self.freedom)
        html = web.block(
            web.heading(self.title),
            web.paragraphs([f"{self.n:,} units, covariance: {covariance_words(self)}", head[1]]),
            coefficient_html(*table),
        )
        return Summary(printable("\n".join([*head, *coefficient_block(*table)])), html)

    def __repr__(self) -> str:
        return (
            f"<ProbitResult {self.name}: {len(self.params)} terms, {self.n} units, {self.status}>"
        )


def probit(
    formula: str,
    data,
    *,
    covariance: str | None = None,
    groups=None,
    weights=None,
    weight_kind: str = "frequency",
) -> ProbitResult:
    """Fit a probit to a 0/1 column.

    Parameters
    ----------
    formula : str
        Formula with a left-hand side, such as ``"s ~ a + b"``.
    data : frame or dict
        The columns that the formula names.
    covariance, groups, weights, weight_kind
        As in `heckesel.heckman`.

    Returns
    -------
    ProbitResult

    Raises
    ------
    DataError
        If the data or the options cannot be used.

    Examples
    --------
    >>> import heckesel as hk
    >>> fit = hk.probit("inlf ~ educ + kidslt6", hk.datasets.load_mroz())
    >>> fit
    <ProbitResult inlf: 3 terms, 753 units, converged>
    >>> print(fit.params["select", "kidslt6"].round(3))
    -0.621
    """
    frame = as_pandas(data)
    name, right = split_formula(formula, "probit")
    if name is None:
        raise DataError(f"the formula {formula!r} needs a left-hand side: 's ~ a + b'")
    s = ones_of(evaluate_column(name, frame, "outcome"), f"column {name!r}")
    if s.all() or not s.any():
        raise DataError(
            f"column {name!r} is {float(s[0]):g} in every row; there is nothing to explain"
        )
    equation, w = build_equation(right, frame, np.ones(len(frame), bool), "probit")
    rows = np.arange(len(w))
    check_complete(w, equation.names, rows)
    check_not_tiny(w, equation.names, rows)
    weight = check_weights(side_column(weights, frame), len(frame), s)
    kind, clusters = covariance_kind(
        covariance, side_column(groups, frame), weight, weight_kind, has_likelihood=True
    )
    counted = scaled_weight(weight, weight_kind)
    fit = checked_probit(w, s, equation.names, counted)
    scores = probit_scores(w, s, fit.gamma)
    options = {"weight_kind": weight_kind, "clusters": clusters}
    cov = covariance_of(kind, fit.hessian, scores, counted, **options)
    params, cov = labelled([("select", term) for term in equation.names], fit.gamma, cov)
    constant = fit_probit(np.ones((len(s), 1)), s, counted)
    unit = weight.sum() / counted.sum() if weight_kind == "probability" else 1.0
    loglik, loglik_constant = (one.loglik * unit for one in (fit, constant))
    return ProbitResult(
        params=params,
        cov=cov,
        loglik=loglik,
        loglik_constant=loglik_constant,
        status=fit.status,
        covariance=kind,
        n=round(weight.sum()) if weight_kind == "frequency" else int(np.count_nonzero(weight)),
        name=name,
        equation=equation,
        freedom=cluster_freedom(clusters, weight),
        weight_kind=weight_kind,
    )


def fit_binary(
    data: SelectionData,
    classes,
    *,
    covariance=None,
    weight_kind: str = "frequency",
    prefer_interior: bool = False,
    design: FormulaDesign | ArrayDesign | None = None,
) -> HeckmanProbitFit:
    """Maximum likelihood; data.y is 1 for the second class, 0 for the first, NaN where missing,
    and x and w have their constants.

    design : by default that of the columns after the constants
    prefer_interior : whether a maximum at rho = +-1 must be clearly higher than an interior one to
        be used, see `selected_mode`

    An outcome that its columns separate gives a fit with status `separated` and a warning.
    """
    kind, codes = covariance_kind(
        covariance, data.groups, data.weight, weight_kind, has_likelihood=True
    )
    if not data.s.all() and data.weight[~data.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    sentence = _check_estimable(data, classes)
    if sentence is not None:
        warn_user(f"{sentence} ({SEPARATED})")
    design = design or ArrayDesign(data.x[:, 1:], data.w[:, 1:], data.x_names[1:], data.w_names[1:])
    rest = {"classes": classes, "design": design, "separation": sentence, "covariance": kind}
    options = {"weight_kind": weight_kind, "clusters": codes}
    counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
    with threadpool_limits(1, user_api="blas"):
        if data.s.all():
            fit = _without_selection(counted, rest, options)
        elif sentence is not None and _all_apart(counted):
            fit = _without_doubt(counted, rest | options)
        else:
            fit = _ml(counted, rest, options, prefer_interior)
    return in_given_weights(fit, data) if weight_kind == "probability" else fit


def _check_estimable(data: SelectionData, classes) -> str | None:
    """Refuse what no fit can use; what separates the outcome comes back as a sentence."""
    used = data.weight > 0
    rows = used & data.s
    x, happened = data.x[rows], data.y[rows] == 1.0
    if happened.all() or not happened.any():
        raise DataError(
            f"only one class of {data.y_name!r} has rows of positive weight, so there is nothing "
            "to distinguish; two classes are needed"
        )
    if len(x) <= x.shape[1]:
        raise DataError(
            f"{len(x)} selected rows cannot determine {x.shape[1]} outcome coefficients; use fewer "
            "columns or more rows"
        )
    if not data.s.all():
        where = f"over all {int(used.sum())} rows"
        refuse(separation(data.w[used], data.s[used], data.w_names, where)[1])
    yes, no = (f"{data.y_name} = {label}" for label in (classes[1], classes[0]))
    where = f"among the {len(x)} selected rows"
    event = Event(f"the outcome {data.y_name!r}", yes, no)
    error = separation(x, happened, data.x_names, where, event)[1]
    return None if error is None else str(error)


def _all_apart(data: SelectionData) -> bool:
    """Whether the columns separate every observed row."""
    used = data.s & (data.weight > 0)
    x, happened = data.x[used], data.y[used] == 1.0
    fitted = x @ fit_separated(x, happened, data.weight[used]).gamma
    return bool(((fitted > 0) == happened).all())


def _without_doubt(data: SelectionData, rest) -> HeckmanProbitFit:
    r"""A fit in which every observed class is separated, so that :math:`\Phi_2(\eta, \pm f;
    \pm\rho)` goes to :math:`\Phi(\eta)` whatever rho is: selection is a separate probit, and there
    is no rho."""
    s, weight = data.s, data.weight
    outcome = fit_separated(data.x[s], data.y[s] == 1.0, weight[s])
    select = fit_probit(data.w, s, weight)
    labels = [*equation_labels(data), ATANH_RHO]
    values = np.concatenate([outcome.gamma, select.gamma, [np.nan]])
    params, cov = labelled(labels, values, np.full((len(labels),) * 2, np.nan))
    mode = Mode(
        rho=np.nan, loglik=outcome.loglik + select.loglik, status="separated", params=params
    )
    return HeckmanProbitFit(**vars(mode), method="ml", cov=cov, data=data, **rest)


def _ml(data: SelectionData, rest, options, prefer_interior: bool) -> HeckmanProbitFit:
    ridge, kind = 0.0 if rest["separation"] is None else RIDGE, rest["covariance"]
    sample, scalings = binary_sample(data, ridge=ridge)
    found = scan(sample)
    selected = selected_mode(found.modes) if prefer_interior else 0
    best = found.modes[selected]
    labels = [*equation_labels(data), ATANH_RHO]
    modes = tuple(_mode(point, sample, scalings, labels) for point in found.modes)
    if not ridge:
        covariance = binary_covariance(data, best, sample, scalings, kind, **options)
    else:
        overlap, values = _overlap(data), modes[selected].params.to_numpy()
        covariance = np.full((len(values),) * 2, np.nan)
        if overlap is not None and best.status == "converged":
            covariance = separated_covariance(data, values, overlap, kind, **options)
    _, cov = labelled(labels, modes[selected].params.to_numpy(), covariance)
    given_rho = None
    if best.status == "boundary" and not ridge:
        _, given_rho = labelled(labels, *sample.given_rho(best, scalings))
    more: dict = {"modes": modes, "selected": selected, "scan": found, "cov_given_rho": given_rho}
    return HeckmanProbitFit(
        **vars(modes[selected]), method="ml", cov=cov, data=data, **more, **rest, **options
    )


def _overlap(data: SelectionData) -> Overlap | None:
    """Rows of weight zero count as separated, because they have no effect."""
    used = data.weight[data.s] > 0
    x, happened = data.x[data.s], data.y[data.s] == 1.0
    found = overlap_of(x[used], happened[used])
    if found is None:
        return None
    rows = np.zeros(len(x), dtype=bool)
    rows[used] = found.rows
    return replace(found, rows=rows)


def _mode(point: Point, sample: BinarySample, scalings: SampleScale, labels) -> Mode:
    """A mode in the user's units; with a ridge, which its value has paid for, it is separated."""
    beta, values = point.v[sample.q :], sample.in_user_units(point, scalings)
    paid = 0.5 * sample.ridge * float(beta @ beta)
    params, _ = labelled(labels, values, np.zeros((len(labels),) * 2))
    rho, status = float(np.tanh(point.a)), "separated" if sample.ridge else point.status
    return Mode(rho=rho, loglik=point.value + paid, status=status, params=params)


def _without_selection(data: SelectionData, rest, options) -> HeckmanProbitFit:
    happened, separated = data.y == 1.0, rest["separation"] is not None
    fit = (fit_separated if separated else fit_probit)(data.x, happened, data.weight)
    covariance = np.full_like(fit.hessian, np.nan)
    overlap = _overlap(data) if separated else None
    if overlap is not None or not separated:
        rows: Any = slice(None)
        columns = np.arange(data.x.shape[1])
        if overlap is not None:
            rows, columns = overlap.rows, overlap.columns
        x, event, weight = data.x[rows][:, columns], happened[rows], data.weight[rows]
        codes = None if options["clusters"] is None else options["clusters"][rows]
        part = fit if overlap is None else fit_probit(x, event, weight)
        scores = probit_scores(x, event, part.gamma)
        how = rest["covariance"], part.hessian, scores, weight
        covariance[np.ix_(columns, columns)] = covariance_of(*how, **options | {"clusters": codes})
    if overlap is not None:
        unknown = ~overlap.determined
        covariance[unknown] = covariance[:, unknown] = np.nan
    params, cov = labelled([("outcome", name) for name in data.x_names], fit.gamma, covariance)
    mode = Mode(rho=np.nan, loglik=fit.loglik, status=fit.status, params=params)
    return HeckmanProbitFit(**vars(mode), method="probit", cov=cov, data=data, **rest, **options)
