"""`HeckmanFit`, the result of `hk.heckman`."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.data import RowSummary, SelectionData
from heckesel.linear.over_rho.conditional_fits import ConditionalFits, linear_fits
from heckesel.linear.over_rho.score_test import linear_score_test
from heckesel.linear.results import prediction
from heckesel.linear.results import summary as table
from heckesel.linear.results.error_parameters import (
    EXTRA,
    error_interval,
    error_tests,
    loglik_independent,
)
from heckesel.linear.results.functional_form import FunctionalForm, compare_forms
from heckesel.linear.results.inference import Test, f_test
from heckesel.linear.results.modes import Mode
from heckesel.linear.results.resampling import bootstrap_frame, profile_interval, rows_of
from heckesel.linear.results.selection_fit import SelectionFit
from heckesel.linear.sample.sample import standardised_sample
from heckesel.linear.sample.stream import StreamedData, StreamedRows
from heckesel.predictive import Predictive, transformed
from heckesel.scales import TargetTransform
from heckesel.tables.array_design import ArrayDesign
from heckesel.tables.formula import FormulaDesign


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
    near_boundary : bool
        Whether \\|rho\\| > .99.
    modes : tuple of Mode
        Every local maximum of the likelihood, best first; empty for two-step.
    identification : Identification
        The verdict on whether the data support the correction.
    method, covariance, weight_kind, errors : str
        Options of the fit.
    data, design, scan, clusters, selected, cov_given_rho
        The rows; the design, which makes columns from new rows; the profile of the likelihood;
        cluster codes; position in `modes` of the mode in use; covariance of the other parameters
        at rho = +-1, unless errors are normal with a constant sigma.
    transform : TargetTransform or None
        The scale of the fit, if `target_transform` was given.

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

    def to_latex(self, level: float = 0.95) -> str:
        """Table of coefficients for LaTeX, with booktabs rules.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        str
        """
        return table.latex(self, level)

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
        return loglik_independent(self)

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
        self, parameter: str, level: float = 0.95, method: str | None = None, *, client=None
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
        profile = partial(profile_interval, self, client=client)
        return error_interval(self, parameter, level, method, profile)

    @cached_property
    def over_rho(self) -> ConditionalFits | None:
        """Fits with rho held at each value the data allow, where `inference` is "profile"."""
        if self.inference == "wald":
            return None
        assert isinstance(self.data, SelectionData)
        with threadpool_limits(1, user_api="blas"):
            return linear_fits(*standardised_sample(self.data), self.scan, self.selected)

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
            with the columns of ``scale=``), copulas with normal margins, and which coefficients
            change sign among the error models that fit about as well as the best.
        """
        return compare_forms(self, terms, rows=rows, seed=seed)
