"""`HeckmanProbitFit`, a probit with sample selection: the result of `HeckmanClassifier`."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.errors import DataError, is_one_of
from heckesel.linear.heckman_probit import binary_sample
from heckesel.linear.over_rho.conditional_fits import ConditionalFits, binary_fits
from heckesel.linear.over_rho.score_test import binary_score_test
from heckesel.linear.probit import fit_probit
from heckesel.linear.profile_intervals import atanh_rho_interval
from heckesel.linear.results.averages import LinearMeans
from heckesel.linear.results.error_parameters import error_interval
from heckesel.linear.results.inference import Test, f_test
from heckesel.linear.results.probit_prediction import probit_means
from heckesel.linear.results.resampling import profile_level
from heckesel.linear.results.selection_fit import SelectionFit
from heckesel.tables.array_design import ArrayDesign

SEPARATED = (
    "the likelihood has no maximum: probabilities near 0 and 1 of these rows are extrapolations, "
    "and coefficients that depend on these rows alone have no standard errors"
)


@dataclass(frozen=True)
class BinaryMode:
    """A local maximum of the likelihood. status: `converged`, `boundary`, `max_iterations` or
    `separated`."""

    rho: float
    loglik: float
    status: str
    params: pd.Series
    near_boundary: bool


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
    rho, loglik, status, near_boundary
        Correlation of the errors, log-likelihood, how the fit ended, and whether \\|rho\\| > .99.
    modes : tuple of BinaryMode
        Every local maximum of the likelihood, best first.
    separation : str or None
        Which columns separate the classes, if any do. The status is then ``"separated"``.
        Coefficients that the other rows determine have standard errors. If every row is separated,
        no coefficient has one, and rho is NaN, because every rho fits equally well.
    classes : ndarray of shape (2,)
        The two classes.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(2000, seed=0).frame
    >>> X, y = loans.drop(columns="default"), loans["default"]
    >>> fit = hk.HeckmanClassifier(["leniency"]).fit(X, y).result_
    >>> fit.status, len(fit.modes)  # the second maximum is far below the first
    ('converged', 2)
    """

    classes: np.ndarray
    df: float = float("inf")
    separation: str | None = None

    @property
    def title(self) -> str:
        """The heading of the summary."""
        name = "Probit with selection" if self.has_selection else "Probit, every unit selected"
        return f"{name}: {self.data.y_name} = {self.classes[1]}"

    @property
    def design(self) -> ArrayDesign:
        """The columns of both equations without their constants."""
        x, w = self.data.x[:, 1:], self.data.w[:, 1:]
        return ArrayDesign(x, w, self.data.x_names[1:], self.data.w_names[1:])

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

    def interval(
        self, parameter: str = "rho", level: float = 0.95, method: str | None = None
    ) -> tuple[float, float]:
        """Confidence interval of rho.

        Parameters
        ----------
        parameter : {"rho"}
            The only parameter of the error distribution.
        level : float
            Confidence level.
        method : {"wald", "profile"}, optional
            ``"wald"`` is symmetric on the atanh scale. ``"profile"`` contains every value that a
            likelihood-ratio test does not reject, including those near other modes. The default
            is `inference`.

        Returns
        -------
        low, high : float

        Raises
        ------
        DataError
            If the fit has no such interval.
        """
        if not self.has_selection:
            raise DataError("every unit was selected, so there is no rho")
        if parameter != "rho":
            raise DataError(f"a probit has an interval of 'rho' only, not of {parameter!r}")
        if is_one_of(method, ("profile",)):
            self._need_a_maximum()
        return error_interval(self, parameter, level, method, self._profile_interval)

    def _profile_interval(self, _, level: float) -> tuple[float, float]:
        rows, lowest = binary_sample(self.data)[0], profile_level(self, level)
        low, high = atanh_rho_interval(rows, self.scan.modes, lowest)
        return float(np.tanh(low)), float(np.tanh(high))

    @cached_property
    def over_rho(self) -> ConditionalFits | None:
        """Fits with rho held at each value the data allow, where `inference` is "profile"."""
        if self.inference == "wald":
            return None
        with threadpool_limits(1, user_api="blas"):
            return binary_fits(*binary_sample(self.data), self.scan, self.selected)

    def score_test(self) -> Test:
        """Test that the inverse Mills ratio has no coefficient in the outcome equation.

        Returns
        -------
        Test
        """
        self._need_a_maximum()
        statistic = binary_score_test(self.data, self.covariance, self.weight_kind, self.clusters)
        return f_test(statistic, 1, self.freedom)
