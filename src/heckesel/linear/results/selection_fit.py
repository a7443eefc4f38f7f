"""Properties and methods that the results for linear and binary outcomes share."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from heckesel.data import RowSummary, SelectionData
from heckesel.display import Summary
from heckesel.errors import printable
from heckesel.linear.over_rho.conditional_fits import LARGEST_LEVEL, highest
from heckesel.linear.over_rho.conditional_fits import critical_value as profile_critical_value
from heckesel.linear.result_tables.augment import augment
from heckesel.linear.results import averages
from heckesel.linear.results import summary as table
from heckesel.linear.results.error_parameters import rho_test
from heckesel.linear.results.inference import NamedEstimates, Test, cluster_freedom
from heckesel.linear.results.modes import reason_of
from heckesel.linear.rho_scan import Scan

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
    near_boundary: bool
    data: Any
    modes: tuple = ()
    scan: Any = field(default=None, metadata={"saved": False})
    weight_kind: str = "frequency"
    identification: Any = None
    clusters: np.ndarray | None = field(default=None, metadata={"saved": False})
    errors: str = "normal"
    selected: int = 0
    cov_given_rho: pd.DataFrame | None = None

    # what needs the rows, which the file of a saved model does not hold
    saved_properties: ClassVar = ("freedom", "inference", "over_rho", "shown")

    @property
    def has_selection(self) -> bool:
        """Whether some units are unselected."""
        return self.data.has_selection

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
        by_model = self.covariance in ("information", "opg") and self.weight_kind == "frequency"
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
        lowest = highest(self.scan, self.selected) - 0.5 * profile_critical_value(LARGEST_LEVEL)
        return sum(mode.value >= lowest for mode in self.scan.modes) == 1

    def means(self, target: str) -> averages.LinearMeans:
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
        return averages.outcome_means(self, target, getattr(self, "transform", None))

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
        return rho_test(self, kind)

    def margins(
        self,
        target: str = "population",
        level: float = 0.95,
        *,
        at=None,
        by: str | None = None,
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
        kind : {"effect", "elasticity"}
            ``"effect"`` is the derivative with respect to a number and, for a category, the
            difference between each level and the first. ``"elasticity"`` is the mean of
            (dy/dx)(x/y), for numeric columns only.

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
        return averages.margins(self.means(target), level, at=at, by=by, kind=kind)

    def average(
        self, target: str = "population", level: float = 0.95, *, by: str | None = None
    ) -> pd.Series | pd.DataFrame:
        """Average of the expected outcome over the rows of the fit.

        Parameters
        ----------
        target : {"population", "selected", "unselected", "selection"}
            As in `margins`.
        level : float
            Confidence level.
        by : str, optional
            Column of the formulas with groups.

        Returns
        -------
        Series or DataFrame
            ``mean``, ``se``, ``low`` and ``high``; with `by`, one row per group, which starts with
            ``n``, the number of its rows. Intervals are as in `margins`; those of probabilities are
            computed on the probit scale.
        """
        return averages.average(self.means(target), level, by)

    def __repr__(self) -> str:
        sigma = f"sigma {self.sigma:.4f}, " if hasattr(self, "sigma") else ""
        verdict = self.identification.verdict if self.identification else "no verdict"
        return (
            f"<{type(self).__name__} {self.method}: rho {self.rho:.4f}, {sigma}{self.n_selected} "
            f"of {self.n} selected, {self.status}; {verdict}>"
        )
