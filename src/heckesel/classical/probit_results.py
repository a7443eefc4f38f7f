r"""Probabilities of a linear probit with selection, and how well the data determine them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
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
    separates_all_rows,
    separation,
)
from heckesel.classical.covariance import (
    Test,
    cluster_freedom,
    covariance_of,
    critical_value,
    f_test,
    labelled,
)
from heckesel.classical.forms import Mode, equation_labels
from heckesel.classical.heckprobit import (
    BinarySample,
    binary_covariance,
    binary_sample,
    covariance_given_rho,
    separated_covariance,
)
from heckesel.classical.likelihood import binary_units
from heckesel.classical.ml import Point, scan, selected_mode
from heckesel.classical.prediction import LinearMeans, density, given_rho, matrices, variance_along
from heckesel.classical.probit import fit_probit, probit_scores
from heckesel.classical.results import (
    NamedEstimates,
    SelectionFit,
    in_given_weights,
)
from heckesel.classical.rows import SampleScale
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


def probit_means(fit, target: str) -> LinearMeans:
    """The probability of the second class as the mean outcome."""

    def outcome(fit, x, w, _):
        z, gradient = probit_index(fit, x, w, target)
        return ndtr(z), density(z)[:, None] * gradient

    return LinearMeans(fit, target, outcome, is_binary=True)


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

    def mean_of(self, x, w, scale, target: str) -> np.ndarray:
        """Probability of the second class.

        Parameters
        ----------
        x, w, scale : ndarray or None
            Columns of the outcome, of selection, and of log sigma, constants included.
        target : {"population", "selected", "unselected"}
            As in `predict`.

        Returns
        -------
        ndarray of shape (m,)
        """
        return ndtr(probit_index(self, x, w, target)[0])

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
        return probit_means(self, target)

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
    used = data.s & (data.weight > 0)
    x, happened = data.x[used], data.y[used] == 1.0
    return separates_all_rows(x, happened, fit_separated(x, happened, data.weight[used]).gamma)


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
    modes = tuple(_mode(point, scalings, labels, ridge) for point in found.modes)
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
        known = covariance_given_rho(best, sample, scalings)
        _, given_rho = labelled(labels, modes[selected].params, known)
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


def _mode(point: Point, scalings: SampleScale, labels, ridge: float) -> Mode:
    """A mode in the user's units; with a ridge, which its value has paid for, it is separated."""
    q = len(scalings.w.scale)
    paid = 0.5 * ridge * float(point.v[q:] @ point.v[q:])
    values = [scalings.x.back @ point.v[q:], scalings.w.back @ point.v[:q], [point.a]]
    params, _ = labelled(labels, np.concatenate(values), np.zeros((len(labels),) * 2))
    rho, status = float(np.tanh(point.a)), "separated" if ridge else point.status
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
