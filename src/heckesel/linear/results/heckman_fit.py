"""What `hk.heckman` returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from heckesel.data import SelectionData
from heckesel.linear.forms.form_inference import FormScan
from heckesel.linear.results import prediction
from heckesel.linear.results import summary as table
from heckesel.linear.results.error_parameters import (
    EXTRA,
    error_interval,
    error_tests,
    loglik_independent,
    rho_test,
)
from heckesel.linear.results.functional_form import FunctionalForm, compare_forms
from heckesel.linear.results.inference import (
    Test,
    Verdict,
    cluster_freedom,
    coefficient_frame,
    standard_errors,
    verdict_name,
    wald,
)
from heckesel.linear.results.modes import Mode, reason_of
from heckesel.linear.results.resampling import bootstrap_frame
from heckesel.linear.rho_scan import Scan
from heckesel.linear.sample.stream import StreamedData
from heckesel.predictive.distribution import Predictive
from heckesel.tables.array_design import ArrayDesign
from heckesel.tables.formula import FormulaDesign


@dataclass(frozen=True, eq=False, repr=False)
class HeckmanFit:
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
    near_boundary : bool
        Whether \\|rho\\| > .99.
    modes : tuple of Mode
        Every local maximum of the likelihood, best first; empty for two-step.
    identification : Identification
        The verdict on whether the data support the correction.
    method, covariance, weight_kind, errors : str
        Options of the fit.
    data, design, scan, clusters, selected
        The rows, how columns are made from new rows, the profile of the likelihood, the cluster
        codes, and the position in `modes` of the mode that is used.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> fit = hk.heckman("y ~ x", "~ x + z", frame)
    >>> fit.status, fit.identification.verdict
    ('converged', 'identified by an instrument')
    >>> low, high = fit.interval("rho")
    >>> bool(low < fit.rho < high)
    True
    """

    method: str
    covariance: str
    params: pd.Series
    cov: pd.DataFrame
    rho: float
    sigma: float
    loglik: float
    status: str
    near_boundary: bool
    data: SelectionData | StreamedData
    design: FormulaDesign | ArrayDesign
    modes: tuple[Mode, ...] = ()
    scan: Scan | FormScan | None = None
    weight_kind: str = "frequency"
    identification: Verdict | None = None
    clusters: np.ndarray | None = None
    errors: str = "normal"
    selected: int = 0

    @property
    def has_selection(self) -> bool:
        return self.data.has_selection

    @property
    def title(self) -> str:
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

    @property
    def selected_mode_reason(self) -> str:
        """Why that mode is used, in a sentence."""
        return reason_of(self.modes, self.selected)

    @cached_property
    def se(self) -> pd.Series:
        """Standard errors by (equation, term)."""
        return standard_errors(self.cov)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of tests and intervals: G - 1 for G clusters, infinite without."""
        if isinstance(self.data, StreamedData):
            return float("inf")
        return cluster_freedom(self.clusters, self.data.weight)

    @property
    def n(self) -> int:
        """Units; frequency weights count as rows."""
        return self.data.units(self.weight_kind)

    @property
    def n_selected(self) -> int:
        """Selected units; frequency weights count as rows."""
        return self.data.units(self.weight_kind, selected=True)

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return 2 * len(self.params) - 2 * self.loglik

    @property
    def bic(self) -> float:
        """Schwarz's information criterion."""
        return np.log(self.n) * len(self.params) - 2 * self.loglik

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Table of coefficients.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            ``coef``, ``se``, ``z``, ``p``, ``low`` and ``high`` by (equation, term). With G
            clusters, p-values and intervals use t with G - 1 degrees of freedom.
        """
        return coefficient_frame(self.params, self.cov, level, self.freedom)

    def summary(self, level: float = 0.95) -> str:
        """Summary for printing: coefficients, errors, tests, other modes and the verdict.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        return table.summary(self, level)

    def to_latex(self, level: float = 0.95) -> str:
        """Table of coefficients for LaTeX, with booktabs rules.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        return table.latex(self, level)

    def to_dict(self, level: float = 0.95) -> dict:
        """Everything the summary shows, in a form that can be written as JSON.

        Parameters
        ----------
        level : float
            Confidence level.
        """
        return table.as_dict(self, level)

    def __repr__(self) -> str:
        return (
            f"<HeckmanFit {self.method}: rho {self.rho:.4f}, sigma {self.sigma:.4f}, "
            f"{self.n_selected} of {self.n} selected, {self.status}; "
            f"{verdict_name(self.identification)}>"
        )

    def wald_test(self, terms) -> Test:
        """Joint Wald test that coefficients are zero.

        Parameters
        ----------
        terms : list of (equation, term)
            The coefficients, such as ``[("outcome", "age")]``.

        Returns
        -------
        Test
            ``statistic``, ``degrees_of_freedom`` and ``p_value``.
        """
        return wald(self.params, self.cov, terms, self.freedom)

    @cached_property
    def loglik_independent(self) -> float:
        """Log-likelihood at rho = 0: probit plus least squares, if errors are normal."""
        return loglik_independent(self)

    def test_rho_zero(self, kind: str = "wald") -> Test:
        """Test that rho is zero.

        Parameters
        ----------
        kind : {"wald", "lr"}
            Wald test of atanh rho (two-step: of lambda), or likelihood-ratio test, which needs
            maximum likelihood.

        Returns
        -------
        Test
        """
        return rho_test(self, kind)

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
        return error_tests(self, kind)

    def interval(
        self, parameter: str, level: float = 0.95, method: str = "wald", *, client=None
    ) -> tuple[float, float]:
        """Confidence interval of a parameter of the error distribution.

        Parameters
        ----------
        parameter : {"rho", "sigma", "df", "skewness", "tail"}
            One of `error_parameters`.
        level : float
            Confidence level.
        method : {"wald", "profile"}
            ``"wald"`` is symmetric on the atanh scale for rho and on the log scale for sigma, df
            and tail. ``"profile"``, for rho and sigma with normal errors, contains every value that
            a likelihood-ratio test does not reject, near other modes, too.
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
        return error_interval(self, parameter, level, method, client)

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
        return bootstrap_frame(self, replicates, seed, client)

    def predict(self, data=None, *, x=None, w=None, target: str = "population") -> Predictive:
        """Predictive distribution of the outcome.

        Parameters
        ----------
        data : frame, optional
            New rows of a fit from formulas. By default the rows of the fit.
        x, w : array-like, optional
            New rows of a fit from arrays.
        target : {"population", "selected", "unselected"}
            Whether nothing is known about the selection of the unit, or that it was or was not
            selected. The last two need the columns of the selection equation.

        Returns
        -------
        Predictive
            ``mean``, ``std`` and ``interval(level)`` for each row.
        """
        return prediction.predict_rows(self, data, x, w, target)

    def margins(self, target: str = "population") -> pd.DataFrame:
        """Average marginal effects over the rows of the fit.

        Parameters
        ----------
        target : {"population", "selected", "unselected"}
            As in `predict`.

        Returns
        -------
        DataFrame
            ``effect``, ``se`` and ``z`` by variable.
        """
        return prediction.margins(self, target)

    def functional_form(self, terms=None, *, rows: int = 20_000, seed: int = 0) -> FunctionalForm:
        """Fit the same equations under other error models, all with a constant sigma.

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
            Normal, t and shape errors and copulas with normal margins, and which coefficients
            change sign among those that fit about as well as the best.
        """
        return compare_forms(self, terms, rows=rows, seed=seed)
