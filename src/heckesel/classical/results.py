r"""Coefficient tables and tests that all linear results share."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import chdtri, ndtr, stdtr
from threadpoolctl import threadpool_limits

from heckesel.classical import prediction
from heckesel.classical import summary as table
from heckesel.classical.covariance import (
    Test,
    cluster_freedom,
    critical_value,
    f_test,
    fit_least_squares,
    likelihood_ratio,
    wald_test,
)
from heckesel.classical.forms import FormScan, FunctionalForm, Mode, compare_forms, restricted
from heckesel.classical.hypotheses import hypotheses_of, text_of
from heckesel.classical.ml import CLEARLY_BETTER, NEAR_BOUNDARY, Scan
from heckesel.classical.prediction import LinearMeans
from heckesel.classical.probit import fit_probit
from heckesel.classical.profile import (
    LARGEST_LEVEL,
    ConditionalFits,
    atanh_rho_interval,
    conditional_fits,
    highest,
    likelihood_ratio_value,
    theta_interval,
)
from heckesel.classical.rows import ALL_ROWS_UP_TO, Rows, SampleScale, standardised_sample
from heckesel.classical.stream import StreamedData, StreamedRows, loglik_at_zero
from heckesel.classical.summary import augment
from heckesel.classical.two_step import bootstrap_two_step, linear_score_test
from heckesel.data import RowSummary, SelectionData, check_level
from heckesel.display import Summary
from heckesel.errors import DataError, as_list, is_one_of, is_whole, printable
from heckesel.io import cluster_of
from heckesel.predictive import Predictive, transformed
from heckesel.saving import save
from heckesel.scales import TargetTransform
from heckesel.tables.formula import ArrayDesign, FormulaDesign


def in_given_weights(fit, data: SelectionData):
    """A fit whose weights have mean one, as a fit to the weights of `data`. Only the
    log-likelihoods depend on the scale of the weights."""
    unit = data.weight.sum() / np.count_nonzero(data.weight)
    modes = tuple(replace(mode, loglik=unit * mode.loglik) for mode in fit.modes)
    return replace(fit, data=data, loglik=unit * fit.loglik, modes=modes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NamedEstimates:
    """Estimates by (equation, term) with their covariance, and the inference from these alone."""

    params: pd.Series
    cov: pd.DataFrame

    @property
    def freedom(self) -> float:
        """Degrees of freedom of tests and intervals: G - 1 for G clusters, infinite without."""
        return float("inf")

    @cached_property
    def se(self) -> pd.Series:
        """Standard errors by (equation, term)."""
        variance = np.diag(self.cov)
        return pd.Series(np.sqrt(np.where(variance >= 0, variance, np.nan)), self.cov.index)

    def to_frame(self, level: float = 0.95, method: str | None = None) -> pd.DataFrame:
        """Table of coefficients.

        Parameters
        ----------
        level : float
            Confidence level.
        method : {"wald", "profile"}, optional
            How p-values and intervals are computed. ``"wald"`` uses the standard errors.
            ``"profile"`` uses the profile likelihood for all but the selection equation, which
            is valid even if rho is poorly identified. The default is that of the summary
            (`inference`).

        Returns
        -------
        DataFrame
            ``coef``, ``se``, ``z``, ``p``, ``low`` and ``high`` by (equation, term). z is always
            coef / se. With G clusters, p-values and intervals use t with G - 1 degrees of freedom.
        """
        check_level(level)
        over_rho: ConditionalFits | None = getattr(self, "over_rho", None)  # a probit has no rho
        _check_inference(method)
        if method == "profile" and over_rho is None:
            raise DataError("inference of this fit is 'wald'; use method='wald'")
        frame = wald_table(self.params, self.se, level, self.freedom, name="coef")
        if over_rho is not None and method != "wald":
            # the selection equation is a probit, which rho hardly affects
            rows = (frame.index.get_level_values(0) != "select") | frame["se"].isna()
            frame.loc[rows, "p"] = over_rho.p_values_of_params()[rows]
            frame.loc[rows, ["low", "high"]] = over_rho.interval_of_params(level)[rows]
        return frame

    @property
    def zvalues(self) -> pd.Series:
        """Estimates divided by their standard errors, by (equation, term)."""
        return self.params / self.se

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values by (equation, term), as in the summary."""
        return self.to_frame()["p"].rename(None)

    @property
    def nobs(self) -> int:
        """Number of units, selected or not."""
        return self.n  # type: ignore[attr-defined]

    @property
    def df_model(self) -> int:
        """Number of slopes of the outcome equation; in a probit, of its only equation."""
        equation = self.params.index[0][0]
        return int((self.params[equation].index != "Intercept").sum())

    @property
    def df_resid(self) -> int:
        """Number of units minus number of estimated parameters."""
        return self.nobs - len(self.params)

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return 2 * len(self.params) - 2 * self.loglik  # type: ignore[attr-defined]

    @property
    def bic(self) -> float:
        """Schwarz's information criterion."""
        return np.log(self.nobs) * len(self.params) - 2 * self.loglik  # type: ignore[attr-defined]

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Confidence intervals of the coefficients, as in the summary.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            ``low`` and ``high`` by (equation, term).
        """
        return self.to_frame(level)[["low", "high"]]

    def tidy(self, level: float = 0.95) -> pd.DataFrame:
        """Table with one row per term.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            ``equation``, ``term``, ``estimate``, ``std_error``, ``statistic``, ``p_value``, ``low``
            and ``high``. P-values and intervals are those of the summary.
        """
        return self.to_frame(level).rename(columns=table.TIDY).reset_index()

    def glance(self) -> pd.DataFrame:
        """Table with one row that describes the fit.

        Returns
        -------
        DataFrame
            As far as the fit has them: ``nobs``, ``n_selected``, ``df_model``, ``df_resid``,
            ``rho``, ``sigma``, ``loglik``, ``aic``, ``bic``, ``method``, ``errors``,
            ``covariance``, ``inference``, ``status`` and ``verdict``.
        """
        found = {name: getattr(self, name) for name in table.FACTS if hasattr(self, name)}
        if hasattr(self, "identification"):
            found["verdict"] = self.identification.verdict
        return pd.DataFrame([found])

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()  # type: ignore[attr-defined]

    def wald_test(self, terms) -> Test:
        """Wald test of linear hypotheses about the coefficients.

        Parameters
        ----------
        terms : str or list of (equation, term)
            Hypotheses such as ``"educ = 0, exper = expersq"`` or ``"2*educ - exper = 1"``, with
            the names of the summary. A name stands for the first equation that has the term;
            ``"select:age"`` names the equation. A list contains coefficients that are zero, such
            as ``[("outcome", "age")]``, or strings.

        Returns
        -------
        Test
            ``statistic``, ``degrees_of_freedom`` and ``p_value`` of the joint test.

        Raises
        ------
        DataError
            If a coefficient does not exist, or a hypothesis is not linear or follows from others.

        Notes
        -----
        The statistic of :math:`R\\theta = r` with the covariance V is
        :math:`(R\\theta - r)'(RVR')^{-1}(R\\theta - r)`. It uses the standard errors also where
        `inference` is ``"profile"``.
        """
        estimate, covariance = self._combinations(*hypotheses_of(self, as_list("terms", terms)))
        statistic, _ = wald_test(estimate, covariance)
        return f_test(statistic, len(estimate), self.freedom)

    def _combinations(self, r, constants) -> tuple[np.ndarray, np.ndarray]:
        """r params - constants with its covariance; parameters with r = 0 may have none."""
        used = r.any(axis=0)
        estimate = r[:, used] @ self.params.to_numpy()[used] - constants
        return estimate, r[:, used] @ self.cov.to_numpy()[np.ix_(used, used)] @ r[:, used].T

    def lincom(self, terms, level: float = 0.95) -> pd.DataFrame:
        """Linear combinations of coefficients, with intervals.

        Parameters
        ----------
        terms : str or list of (equation, term)
            As in `wald_test`: ``"educ + exper = 0"``, or ``"educ + exper"`` for short.
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            ``estimate``, the left-hand side minus the right-hand side, with ``se``, ``z``, ``p``,
            ``low`` and ``high``; one row per equation. P-values and intervals are as in the
            summary.

        Raises
        ------
        DataError
            If a coefficient does not exist, or a combination is not linear.
        """
        check_level(level)
        r, constants = hypotheses_of(self, as_list("terms", terms))
        estimate, covariance = self._combinations(r, constants)
        variance = np.diag(covariance)
        se = np.sqrt(np.where(variance >= 0, variance, np.nan))
        labels = [text_of(self, *each) for each in zip(r, constants, strict=True)]
        frame = wald_table(pd.Series(estimate, labels), se, level, self.freedom)
        over_rho: ConditionalFits | None = getattr(self, "over_rho", None)
        if over_rho is not None:  # the selection equation is a probit, which rho hardly affects
            apart = self.params.index.get_level_values(0) != "select"
            rows = r[:, apart].any(axis=1) | frame["se"].isna()
            values = over_rho.params @ r[rows].T - constants[rows]
            variances = np.einsum("mi,kij,mj->km", r[rows], over_rho.cov, r[rows])
            frame.loc[rows, "p"] = over_rho.p_values(values, variances)
            frame.loc[rows, ["low", "high"]] = over_rho.interval(values, variances, level)
        return frame

    def lrtest(self, other) -> Test:
        """Likelihood-ratio test of two nested fits of the same rows.

        Parameters
        ----------
        other : fit
            A fit with fewer, or with more, parameters.

        Returns
        -------
        Test
            Of the hypothesis that the parameters which only one fit has are zero.

        Raises
        ------
        DataError
            If the fits are not nested, or have no likelihood ratio.

        Notes
        -----
        Twice the difference of the log-likelihoods is compared with chi-squared. Normal errors are
        t errors with infinite df, the end of its range; the test of one against the other is
        therefore conservative.
        """
        if type(self) is not type(other):
            raise DataError(
                f"lrtest compares a {type(self).__name__} with one like it, not with a "
                f"{type(other).__name__}"
            )
        pair: list[Any] = sorted((self, other), key=lambda fit: len(fit.params))
        for fit in pair:
            if not np.isfinite(fit.loglik):
                raise DataError(f"a {fit.method} fit has no likelihood; fit method='ml'")
            if np.isfinite(fit.freedom) or fit.covariance == "cluster":
                raise DataError("with clustered rows there is no likelihood ratio; use wald_test")
        about = [
            f"a {fit.title[0].lower()}{fit.title[1:]} of {fit.nobs:,} units"
            + " with probability weights" * (fit.weight_kind == "probability")
            for fit in pair
        ]
        small, large = pair
        if about[0] != about[1]:
            raise DataError(
                f"lrtest needs two fits of the same rows and outcome, got {about[0]} and {about[1]}"
            )
        extra = len(large.params) - len(small.params)
        apart = small.params.index.difference(large.params.index)
        if not extra or len(apart):
            only = f"only one of them has {':'.join(apart[0])}" if len(apart) else "they are equal"
            raise DataError(f"the fits are not nested: {only}")
        return likelihood_ratio(large.loglik, small.loglik, large.weight_kind, extra)

    def save(self, path) -> None:
        """Save the fit to one file, which `hk.load` reads.

        Parameters
        ----------
        path : str or path
            File to write, such as "wages.heckesel". It holds no pickle and no rows of the data.
        """
        save(self, path)


def wald_table(estimate: pd.Series, se, level: float, freedom: float, name="estimate"):
    """``se``, ``z``, ``p``, ``low`` and ``high`` beside estimates."""
    z, half = estimate / se, critical_value(level, freedom) * se
    p = 2 * (ndtr(-np.abs(z)) if np.isinf(freedom) else stdtr(freedom, -np.abs(z)))
    ends = {"low": estimate - half, "high": estimate + half}
    return pd.DataFrame({name: estimate, "se": se, "z": z, "p": p} | ends)


def keep_result(model, result) -> None:
    """Set the result of an estimator and the attributes that scikit-learn expects of a linear
    model."""
    outcome = result.params["outcome"].drop("Intercept")
    model.result_, model.rho_ = result, result.rho
    model.intercept_ = float(result.params["outcome", "Intercept"])
    model.coef_, model.coef_names_ = outcome.to_numpy(), tuple(outcome.index)
    if hasattr(result, "sigma"):
        model.sigma_ = result.sigma


def _check_inference(method) -> None:
    if method is not None and not is_one_of(method, ("wald", "profile")):
        raise DataError(f"method must be 'wald' or 'profile', got {method!r}")


def reason_of(modes: tuple, selected: int) -> str:
    """Why a fit uses this one of its modes, as a sentence; empty without a likelihood."""
    if not modes:
        return ""
    used, best = modes[selected], modes[0]
    if len(modes) == 1:
        return "The likelihood has one maximum."
    if selected:
        gain, sign = best.loglik - used.loglik, "+" if best.rho > 0 else "-"
        return (
            f"It is an interior maximum. The maximum at rho = {sign}1 has a log-likelihood that is "
            f"{gain:.2f} higher, but a maximum there is used only if the difference exceeds "
            f"{CLEARLY_BETTER:g}."
        )
    return f"It is the highest of {len(modes)} maxima of the likelihood."


def explain_modes(fit) -> tuple[str, pd.DataFrame]:
    """The maximum that a probit with selection uses, in words, and one row for each maximum."""
    if fit.has_selection:
        used = f"Maximum likelihood was used, with rho = {fit.rho:.2f}."
        sentence = f"{used} {reason_of(fit.modes, fit.selected)}".strip()
    else:
        sentence = "A plain probit was used, because every unit was selected."
    rows = [
        {
            "estimator": fit.method,
            "rho": mode.rho,
            "loglik": mode.loglik,
            "difference": mode.loglik - fit.modes[0].loglik,
            "status": mode.status,
            "chosen": position == fit.selected,
        }
        for position, mode in enumerate(fit.modes)
    ]
    columns = ["estimator", "rho", "loglik", "difference", "status", "chosen"]
    return sentence, pd.DataFrame(rows, columns=columns)


# parameters of the errors besides rho and sigma
EXTRA: dict[str, tuple[str, ...]] = {"normal": (), "t": ("df",), "shape": ("skewness", "tail")}
# each parameter: how it is estimated, and the function from that to the parameter
ESTIMATED_AS: dict[str, tuple[str, Callable]] = {
    "rho": ("atanh_rho", np.tanh),
    "sigma": ("log_sigma", np.exp),
    "df": ("log_df", np.exp),
    "skewness": ("skewness", float),
    "tail": ("log_tail", np.exp),
}

MOST_TERMS = 60  # parameters beyond which the default interval of rho is not searched for

# The Wald statistic per instrument from which Wald tests and intervals of coefficients keep their
# level in simulations (results/inference_coverage.json); the rule of thumb of 10 is not enough.
WALD_HOLDS_FROM = 100.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionFit(NamedEstimates):
    """Estimates of both equations and of the dependence of their errors.

    data : the rows of the fit, or a summary of them; scan : `Scan` or `FormScan`;
    identification : the verdict, which is made elsewhere; selected : the position in `modes` of the
    mode that is used; cov_given_rho : the covariance of the other parameters at rho = +-1
    """

    method: str
    covariance: str
    rho: float
    loglik: float
    status: str
    data: Any
    modes: tuple = ()
    scan: Any = field(default=None, metadata={"saved": False})
    weight_kind: str = "frequency"
    identification: Any = None
    clusters: np.ndarray | None = field(default=None, metadata={"saved": False})
    errors: str = "normal"
    selected: int = 0
    cov_given_rho: pd.DataFrame | None = None

    error_parameters: ClassVar[Any]  # names of the parameters of the error distribution
    loglik_independent: ClassVar[Any]  # log-likelihood at rho = 0
    score_test: ClassVar[Callable]

    # what needs the rows, which the file of a saved model does not hold
    saved_properties: ClassVar = ("freedom", "inference", "over_rho", "shown")

    @property
    def has_selection(self) -> bool:
        """Whether some units are unselected."""
        return self.data.has_selection

    @property
    def near_boundary(self) -> bool:
        """Whether \\|rho\\| > .99."""
        return abs(self.rho) > NEAR_BOUNDARY

    @property
    def has_scale(self) -> bool:
        """Whether sigma depends on columns."""
        return bool(self.data.scale_names)

    @property
    def selected_mode_reason(self) -> str:
        """Why the mode of the estimates is used, in a sentence."""
        return reason_of(self.modes, self.selected)

    @cached_property
    def inference(self) -> str:
        """How p-values and intervals are computed by default: ``"wald"`` or ``"profile"``.

        ``"profile"`` is for maximum likelihood with normal errors, a constant sigma and independent
        rows in memory, if Wald tests and intervals do not hold (`wald_holds`).
        """
        has_likelihood = isinstance(self.scan, Scan) and isinstance(self.data, SelectionData)
        by_model = self.covariance in ("information", "opg") and self.weight_kind != "probability"
        if not has_likelihood or not by_model or self.status == "separated":
            return "wald"
        return "wald" if self.wald_holds else "profile"

    @cached_property
    def wald_holds(self) -> bool:
        """Whether rho is identified well enough for Wald tests and intervals.

        It is if the Wald statistic of the instruments in the selection equation is at least
        100 per instrument and the likelihood has no other maximum of similar height.
        """
        if not self.has_selection:
            return True
        instruments = [("select", name) for name in self.data.instruments]
        if not instruments or self.status != "converged":
            return False
        if self.wald_test(instruments).statistic < WALD_HOLDS_FROM * len(instruments):
            return False
        if not isinstance(self.scan, Scan):
            return True
        lowest = highest(self.scan, self.selected) - 0.5 * likelihood_ratio_value(LARGEST_LEVEL)
        return sum(mode.value >= lowest for mode in self.scan.modes) == 1

    @property
    def has_score_test(self) -> bool:
        """Whether the fit has normal errors with a constant sigma."""
        return self.method == "two-step" or isinstance(self.scan, Scan)

    @property
    def prefers_score(self) -> bool:
        """Whether the score test is the default: not for files, which it reads some six more
        times, unless other tests do not hold."""
        return self.has_score_test and not (isinstance(self.data, StreamedData) and self.wald_holds)

    def means(self, target: str) -> LinearMeans:
        """The expected outcome of rows, with inference.

        Parameters
        ----------
        target : {"population", "selected", "unselected", "selection"}
            The mean outcome, as in `predict`, or the probability of selection itself.

        Returns
        -------
        LinearMeans
            What `average` and `margins` are computed from.
        """
        return prediction.outcome_means(self, target)

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom of tests and intervals: G - 1 for G clusters, infinite without."""
        return np.inf if self.clusters is None else cluster_freedom(self.clusters, self.data.weight)

    @property
    def n(self) -> int:
        """Units; frequency weights count as rows."""
        return self.data.units(self.weight_kind)

    @property
    def n_selected(self) -> int:
        """Selected units; frequency weights count as rows."""
        return self.data.units(self.weight_kind, selected=True)

    @property
    def separation_note(self) -> str:
        """Note at the end of the summary of a fit whose classes are separated."""
        return ""

    def summary(self, level: float = 0.95) -> Summary:
        """Summary for printing: coefficients, errors, tests, other modes and the verdict.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        Summary
            A string, which a notebook shows as HTML.
        """
        check_level(level)
        if level == 0.95 and isinstance(self.data, RowSummary):
            return Summary(printable(self.shown))
        return table.summary(self, level)

    @cached_property
    def shown(self) -> str:
        """The summary as text, which a saved model keeps."""
        return str(self.summary())

    def augment(self, data=None) -> pd.DataFrame:
        """The rows of the fit with fitted values, residuals and probabilities of selection.

        Parameters
        ----------
        data : frame, optional
            New rows of a fit from formulas. A row counts as selected if its outcome is not missing.

        Returns
        -------
        DataFrame
            The columns of the rows, and ``selected``; ``fitted``, the mean of the outcome in the
            population (for two classes the probability of the second); ``fitted_selected``, the
            same given selection; ``residual``, the outcome minus ``fitted_selected``, NaN for
            unselected units; ``p_selected``, the probability of selection; and ``inverse_mills``,
            the mean of the selection error given selection. Values are NaN where a column of the
            outcome equation is missing.

        Raises
        ------
        DataError
            If the fit has kept no rows, or the data has a column of one of these names.
        """
        return augment(self, data)

    def test_rho_zero(self, kind: str | None = None) -> Test:
        """Test that rho is zero.

        Parameters
        ----------
        kind : {"score", "lr", "wald"}, optional
            ``"score"`` tests whether the inverse Mills ratio belongs in the outcome equation. It
            needs normal errors with a constant sigma, keeps its level with weak instruments and
            with none, and follows the kind of covariance. ``"lr"`` is the likelihood-ratio test,
            ``"wald"`` the Wald test of atanh rho (two-step: of lambda). The default is
            ``"score"``, and for other error models ``"lr"`` or, where there is none, ``"wald"``.

        Returns
        -------
        Test
        """
        if not self.has_selection:
            raise DataError("every unit was selected, so there is no rho to test")
        if kind is not None and not is_one_of(kind, ("score", "wald", "lr")):
            raise DataError(f"kind must be 'score', 'wald' or 'lr', got {kind!r}")
        if kind is None:
            independent = self.clusters is None and self.weight_kind != "probability"
            kind = "lr" if independent and self.method == "ml" else "wald"
            kind = "score" if self.prefers_score else kind
        if kind == "score":
            if not self.has_score_test:
                raise DataError(
                    "the score test needs normal errors with a constant sigma; use 'lr' or 'wald'"
                )
            with threadpool_limits(1, user_api="blas"):
                return self.score_test()
        if kind == "wald":
            two_step = self.method == "two-step"
            return self.wald_test([("mills", "lambda") if two_step else ("ancillary", "atanh_rho")])
        if self.method != "ml":
            raise DataError(
                "the likelihood-ratio test needs maximum likelihood, but this fit is "
                f"{self.method}; fit with method='ml'"
            )
        self._need_independent_rows("likelihood ratio")
        return likelihood_ratio(self.loglik, self.loglik_independent, self.weight_kind)

    def interval(
        self,
        parameter: str = "rho",
        level: float = 0.95,
        method: str | None = None,
        *,
        client=None,
    ) -> tuple[float, float]:
        """Confidence interval of a parameter of the error distribution.

        Parameters
        ----------
        parameter : {"rho", "sigma", "df", "skewness", "tail"}
            One of `error_parameters`.
        level : float
            Confidence level.
        method : {"wald", "profile"}, optional
            ``"wald"`` is symmetric on the atanh scale for rho and on the log scale for sigma, df
            and tail. ``"profile"``, for rho and sigma with normal errors, contains every value that
            a likelihood-ratio test does not reject, including those near other modes. If Wald
            inference is not valid, the test statistic is divided by 1.25, its mean in simulations.
            The default is `inference`; its profile interval of sigma, and of rho in large fits,
            is computed from fits with rho held fixed.
        client : dask.distributed.Client, optional
            A cluster for the profile interval.

        Returns
        -------
        low, high : float

        Raises
        ------
        DataError
            If the fit has no such interval.
        """
        check_level(level)
        if self.method != "ml":
            raise DataError(
                f"an interval of {parameter} needs maximum likelihood, but this fit is "
                f"{self.method}; for the two-step, use bootstrap()"
            )
        if not is_one_of(parameter, self.error_parameters):
            *most, last = map(repr, self.error_parameters)
            names = f"{', '.join(most)} or {last}" if most else last
            raise DataError(f"parameter must be {names}, got {parameter!r}")
        _check_inference(method)
        label, back = ESTIMATED_AS[parameter]
        term = ("ancillary", label)
        place = self.params.index.get_loc(term)
        if method is None:
            method = self.inference if parameter in ("rho", "sigma") else "wald"
            # a search for the ends takes hundreds of fits for sigma, a dozen for rho
            slow = parameter == "sigma" or self.n > ALL_ROWS_UP_TO or len(self.params) > MOST_TERMS
            if method == "profile" and slow:
                assert self.over_rho is not None
                ends = self.over_rho.interval_of_params(level)[place]
                return float(back(ends[0])), float(back(ends[1]))
        if method == "wald":
            half = critical_value(level, self.freedom) * self.se[term]
            return float(back(self.params[term] - half)), float(back(self.params[term] + half))
        if self.weight_kind == "probability":
            raise DataError("with probability weights there is no profile likelihood; use 'wald'")
        self._need_independent_rows("profile likelihood")
        if not isinstance(self.scan, Scan):
            raise DataError(
                "profile intervals need normal errors with a constant sigma; use method='wald'"
            )
        rows, scalings, run = self._rows(client)
        c = chdtri(1, 1 - level) if self.inference == "wald" else likelihood_ratio_value(level)
        lowest = highest(self.scan, self.selected) - 0.5 * float(c)
        if parameter == "rho":
            low, high = np.tanh(atanh_rho_interval(rows, self.scan.modes, lowest, run))
            return float(low), float(high)
        low, high = theta_interval(rows, self.scan.modes, lowest, run)
        return float(scalings.y_scale / high), float(scalings.y_scale / low)

    def _rows(self, client) -> tuple[Any, SampleScale, Callable]:
        """Standardised rows, and a `map` for work on them."""
        return rows_of(self.data, client)

    def _need_independent_rows(self, what: str) -> None:
        if self.clusters is not None:
            raise DataError(f"with clustered rows there is no {what}; use 'wald'")

    @cached_property
    def over_rho(self) -> ConditionalFits | None:
        """Fits with rho held at each value the data allow, where `inference` is "profile"."""
        if self.inference == "wald":
            return None
        with threadpool_limits(1, user_api="blas"):
            rows, scalings, _ = self._rows(None)
            return conditional_fits(rows, scalings, self.scan, self.selected)

    def margins(
        self,
        target: str = "population",
        level: float = 0.95,
        *,
        at=None,
        by: str | None = None,
        contrast=None,
        kind: str = "effect",
    ) -> pd.DataFrame:
        """Average marginal effects over the rows of the fit.

        Parameters
        ----------
        target : {"population", "selected", "unselected", "selection"}
            The mean outcome that changes, as in `predict`, or the probability of selection itself.
            For two classes, the mean is the probability of the second class.
        level : float
            Confidence level.
        at : dict, optional
            Values to which columns are set in all rows, such as ``{"educ": 12}``. With lists,
            ``{"educ": [12, 16]}``, there is one set of effects for each combination. Other columns
            keep their values.
        by : str, optional
            Column of the formulas with groups: effects are averaged over the rows of each.
        contrast : dict, optional
            Values or levels to compare, such as ``{"educ": [12, 16], "city": [0, 1]}``: the
            mean outcome at each one minus that at the first, instead of the effects of all columns.
        kind : {"effect", "elasticity"}
            ``"effect"`` is the derivative with respect to a number and, for a category (also a
            number written C(city)), the difference between each level and the first.
            ``"elasticity"`` is the mean of (dy/dx)(x/y), for numeric columns only.

        Returns
        -------
        DataFrame
            ``effect``, ``se``, ``z``, ``p``, ``low`` and ``high``, one row per variable or, with
            `at` and `by`, per held values, group and variable.

        Raises
        ------
        DataError
            If an option cannot be used, or the fit holds no rows.

        Notes
        -----
        se comes from the delta method with the covariance of the fit; z is effect / se. `inference`
        names the method of the p-value and the interval. Rows and their weights are treated as
        fixed. There is no elasticity if predictions have both signs.
        """
        options = {"at": at, "by": by, "contrast": contrast, "kind": kind}
        return prediction.margins(self.means(target), level, **options)

    def average(
        self, target: str = "population", level: float = 0.95, *, at=None, by: str | None = None
    ) -> pd.Series | pd.DataFrame:
        """Average of the expected outcome over the rows of the fit.

        Parameters
        ----------
        target : {"population", "selected", "unselected", "selection"}
            As in `margins`.
        level : float
            Confidence level.
        at : dict, optional
            Values to which columns are set in all rows, as in `margins`.
        by : str, optional
            Column of the formulas with groups.

        Returns
        -------
        Series or DataFrame
            ``mean``, ``se``, ``low`` and ``high``; with `at` or `by`, one row per set of values and
            group, which starts with ``n``, the number of its rows. Intervals are as in `margins`;
            those of probabilities are computed on the probit scale.
        """
        return prediction.average(self.means(target), level, at=at, by=by)

    def __repr__(self) -> str:
        sigma = f"sigma {self.sigma:.4f}, " if hasattr(self, "sigma") else ""
        verdict = self.identification.verdict if self.identification else "no verdict"
        return (
            f"<{type(self).__name__} {self.method}: rho {self.rho:.4f}, {sigma}{self.n_selected} "
            f"of {self.n} selected, {self.status}; {verdict}>"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HeckmanFit(SelectionFit):
    """A fitted selection model, the result of `hk.heckman`.

    Attributes
    ----------
    params, se : Series
        Estimates and standard errors by (equation, term). The equations are ``"outcome"`` and
        ``"select"``, then for two-step ``("mills", "lambda")`` and for maximum likelihood
        ``("ancillary", "atanh_rho")`` and ``("ancillary", "log_sigma")``. t errors add
        ``"log_df"``, shape errors ``"skewness"`` and ``"log_tail"``. With ``scale=``, log sigma(x)
        is ``"log_sigma"`` plus the ``"scale"`` coefficients times their columns.
    cov : DataFrame
        Covariance of `params`; NaN where there is none.
    rho, sigma : float
        Correlation of the errors, and scale of the outcome error: its standard deviation if the
        errors are normal, times sqrt(df / (df - 2)) if they are t. With ``scale=``, sigma where
        those columns are zero. With shape errors, rho is the correlation after the outcome error is
        transformed to normality.
    loglik : float
        Log-likelihood; NaN for two-step.
    status : str
        ``"converged"``, ``"boundary"`` or ``"max_iterations"``.
    modes : tuple of Mode
        Every local maximum of the likelihood, best first; empty for two-step.
    identification : Identification
        The verdict on whether the data support the correction.
    method, covariance, weight_kind, errors : str
        Options of the fit.
    data, design, scan, clusters, selected, cov_given_rho
        The rows; the design, which makes columns from new rows; the profile of the likelihood;
        cluster codes; position in `modes` of the mode in use; covariance of the other parameters
        at rho = +-1.
    transform : TargetTransform or None
        The scale of the fit, if `target_transform` was given.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> fit = hk.heckman("y ~ x", "~ x + z", frame)
    >>> fit.status
    'converged'
    >>> low, high = fit.interval("rho")
    >>> bool(low < fit.rho < high)
    True
    """

    sigma: float
    data: SelectionData | StreamedData | RowSummary
    design: FormulaDesign | ArrayDesign
    transform: TargetTransform | None = None

    @property
    def title(self) -> str:
        """The heading of the summary."""
        if self.has_selection:
            return "Heckman selection model"
        return "Linear model, every unit selected"

    @property
    def error_parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the error distribution."""
        if not self.has_selection:
            return ("sigma",)
        return ("rho", "sigma", *EXTRA[self.errors])

    @property
    def df(self) -> float:
        """Degrees of freedom of t errors; infinite for others."""
        return float(np.exp(self._ancillary("log_df", np.inf)))

    @property
    def skewness(self) -> float:
        """Epsilon of shape errors: positive if the right tail is longer; 0 for other errors."""
        return self._ancillary("skewness", 0.0)

    @property
    def tail(self) -> float:
        """Delta of shape errors: below 1 if tails are heavier than normal; 1 for other errors."""
        return float(np.exp(self._ancillary("log_tail", 0.0)))

    def _ancillary(self, name: str, otherwise: float) -> float:
        return float(self.params.get(("ancillary", name), otherwise))

    @property
    def selected_mode(self) -> Mode | None:
        """The mode that the estimates describe; None for two-step.

        It is the highest one, unless that is at rho = +-1 and an interior one is about as high.
        """
        return self.modes[self.selected] if self.modes else None

    def to_dict(self, level: float = 0.95) -> dict:
        """Everything the summary shows, in a form that can be written as JSON.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        dict
            Numbers that do not exist are None.
        """
        return table.as_dict(self, level)

    @cached_property
    def loglik_independent(self) -> float:
        """Log-likelihood at rho = 0: probit plus least squares, if errors are normal."""
        data = self.data
        if isinstance(self.scan, FormScan):
            return self._restricted_loglik("atanh_rho")
        if isinstance(data, StreamedData):
            return loglik_at_zero(data, self.scan.modes[0].v)
        s = data.s
        outcome = fit_least_squares(data.x[s], data.y[s], data.weight[s]).loglik
        return outcome + fit_probit(data.w, s, data.weight).loglik

    def _restricted_loglik(self, *names: str) -> float:
        """The log-likelihood if these parameters are zero."""
        with threadpool_limits(1, user_api="blas"):
            mode, rows = self.scan.modes[self.selected], self._rows(None)[0]
            return self.loglik + restricted(self.scan, mode, rows, names)

    def test_errors(self, kind: str = "wald") -> dict[str, Test]:
        """Test normal errors and a constant sigma against shape errors and `scale=`.

        Parameters
        ----------
        kind : {"wald", "lr"}
            Wald test, or likelihood-ratio test, for which the smaller models are fitted.

        Returns
        -------
        dict of str to Test
            Tests of ``"no skewness"``, ``"normal tails"``, ``"normal errors"`` (both) and
            ``"constant sigma"``, as far as the fit has these parameters.
        """
        if not is_one_of(kind, ("wald", "lr")):
            raise DataError(f"kind must be 'wald' or 'lr', got {kind!r}")
        tested: dict[str, list] = {}
        if self.errors == "shape":
            skewness, tail = ("ancillary", "skewness"), ("ancillary", "log_tail")
            tested = {"no skewness": [skewness], "normal tails": [tail]}
            tested["normal errors"] = [skewness, tail]
        if self.has_scale:
            tested["constant sigma"] = [term for term in self.params.index if term[0] == "scale"]
        if kind == "wald":
            return {name: self.wald_test(terms) for name, terms in tested.items()}
        self._need_independent_rows("likelihood ratio")
        tests = {}
        for name, terms in tested.items():
            zero = dict.fromkeys("scale" if each[0] == "scale" else each[1] for each in terms)
            smaller = self._restricted_loglik(*zero)
            tests[name] = likelihood_ratio(self.loglik, smaller, self.weight_kind, len(terms))
        return tests

    def score_test(self) -> Test:
        """Test that the inverse Mills ratio has no coefficient in the outcome equation.

        Files are read again.

        Returns
        -------
        Test
        """
        rows, scalings, _ = rows_of(self.data, None)
        clusters, start = self.clusters, None
        if isinstance(rows, StreamedRows) and rows.kept is None:
            start = np.linalg.solve(scalings.w.back, self.params["select"].to_numpy())
        if clusters is not None:
            assert isinstance(self.data, SelectionData)  # files have no clusters
            clusters = clusters[np.argsort(~self.data.s, kind="stable")]
        statistic, freedom = linear_score_test(
            rows,
            scalings,
            self.covariance,
            weight_kind=self.weight_kind,
            clusters=clusters,
            start=start,
        )
        return f_test(statistic, 1, freedom)

    def bootstrap(self, replicates: int = 400, seed: int = 0, *, client=None) -> pd.DataFrame:
        """Bootstrap of a two-step fit with Poisson weights.

        Parameters
        ----------
        replicates : int
            Number of replicates.
        seed : int
            The weight of a row (or cluster) depends only on the seed, the replicate and the
            position of the row, so files and frames with the same rows give the same replicates.
        client : dask.distributed.Client, optional
            A cluster that computes the replicates.

        Returns
        -------
        DataFrame
            One row per replicate with every parameter, rho and sigma; NaN if a replicate has no
            finite estimate.
        """
        if not (is_whole(replicates) and is_whole(seed)) or replicates < 1 or seed < 0:
            raise DataError(
                f"replicates must be positive and seed not negative, got {replicates!r}, {seed!r}"
            )
        if self.method != "two-step":
            raise DataError("bootstrap() is for method='two-step'; ml has standard errors for rho")
        data, clusters, codes = self.data, self.clusters, None
        if clusters is not None and clusters.ndim == 2:
            raise DataError("bootstrap() draws clusters in one way; fit with one of the groups")
        if isinstance(data, SelectionData):  # rows of positive weight, as files are read
            used = data.weight > 0
            data = data if used.all() else data.take(used)
            if clusters is not None:
                labels = np.unique(clusters[used], return_inverse=True)[1]
                codes = labels[data.s], labels[~data.s]
        rows, scalings, run = rows_of(data, client)
        gamma = self.params["select"].to_numpy()
        how = {"frequency": self.weight_kind == "frequency", "clusters": codes, "seed": seed}
        with threadpool_limits(1, user_api="blas"):
            draws = bootstrap_two_step(rows, scalings, gamma, replicates=replicates, run=run, **how)
        p = len(data.x_names)
        order = [*range(p), *range(p + 1, p + 1 + len(gamma)), p, -2, -1]
        extra = pd.MultiIndex.from_tuples([("derived", "rho"), ("derived", "sigma")])
        return pd.DataFrame(draws[:, order], columns=self.params.index.append(extra))

    def predict(self, data=None, *, x=None, w=None, target: str = "population") -> Predictive:
        """Predictive distribution of the outcome.

        Parameters
        ----------
        data : frame, optional
            New rows of a fit from formulas. By default the rows of the fit.
        x, w : array-like, optional
            New rows of a fit from arrays.
        target : {"population", "selected", "unselected"}
            The outcome of any unit, or of a unit given that it was or was not selected. The last
            two need the columns of the selection equation.

        Returns
        -------
        Predictive
            ``mean``, ``std`` and ``interval(level)`` for each row.
        """
        found = prediction.predict_rows(self, data, x, w, target)
        return replace(transformed(found, self.transform), index=found.index)

    def functional_form(self, terms=None, *, rows: int = 20_000, seed: int = 0) -> FunctionalForm:
        """Fit the same equations under other error models.

        Parameters
        ----------
        terms : list of str, optional
            Outcome terms to compare; by default all slopes.
        rows : int
            If there are more rows than this, a random sample of them is used.
        seed : int
            Of that sample.

        Returns
        -------
        FunctionalForm
            Normal, t and shape errors with a constant sigma and with one that varies with x (or
            with the columns of ``scale=``), and which coefficients change sign among the error
            models that fit about as well as the best.
        """
        return compare_forms(self, terms, rows=rows, seed=seed)


def rows_of(data: Any, client) -> tuple[Rows, SampleScale, Callable]:
    """Standardised rows, and a `map` for work on them. Workers read parts
    of files; of rows in memory each worker gets all, and a part of the work."""
    run: Callable = map if client is None else cluster_of(client)
    if not isinstance(data, StreamedData):
        return *standardised_sample(data), run
    rows = data.rows
    if client is not None:
        rows = replace(rows, stream=replace(rows.stream, run=run))
    return rows, data.scalings, map
