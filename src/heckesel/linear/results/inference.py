"""Coefficient tables and tests that all linear results share."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from heckesel.data import SelectionData
from heckesel.errors import DataError, as_list, is_one_of
from heckesel.linear.over_rho.conditional_fits import ConditionalFits
from heckesel.linear.result_tables.hypotheses import hypotheses_of
from heckesel.linear.result_tables.tidy import glance, slopes, tidy
from heckesel.linear.wald import wald_test
from heckesel.numeric_input import check_level


def labelled(labels, values, covariance) -> tuple[pd.Series, pd.DataFrame]:
    """Series and frame indexed by (equation, term)."""
    index = pd.MultiIndex.from_tuples(labels, names=["equation", "term"])
    return pd.Series(values, index), pd.DataFrame(covariance, index, index)


def cluster_freedom(clusters, weight) -> float:
    """Degrees of freedom of the t that estimates are compared with: G - 1 for G clusters, over
    whose sums a cluster covariance averages, and infinity (a normal) without clusters."""
    if clusters is None:
        return float("inf")
    return float(len(np.unique(clusters[weight > 0])) - 1)


def critical_value(level: float, freedom: float = float("inf")) -> float:
    """Half the width of a central interval, in standard errors."""
    p = (1 + level) / 2
    return float(ndtri(p) if np.isinf(freedom) else stdtrit(freedom, p))


def in_given_weights(fit, data: SelectionData):
    """A fit whose weights have mean one, as a fit to the weights of `data`. Only the
    log-likelihoods depend on the scale of the weights."""
    unit = data.weight.sum() / np.count_nonzero(data.weight)
    modes = tuple(replace(mode, loglik=unit * mode.loglik) for mode in fit.modes)
    return replace(fit, data=data, loglik=unit * fit.loglik, modes=modes)


@dataclass(frozen=True)
class Test:
    """One hypothesis test.

    Attributes
    ----------
    statistic : float
        Chi-squared with `degrees_of_freedom`. If `denominator` is finite,
        statistic / degrees_of_freedom is F with that many degrees of freedom in the denominator.
    degrees_of_freedom : int
    p_value : float
    denominator : float
        Infinite unless the covariance is clustered.
    """

    __test__ = False  # not a test class for pytest

    statistic: float
    degrees_of_freedom: int
    p_value: float
    denominator: float = float("inf")

    def __str__(self) -> str:
        k = self.degrees_of_freedom
        if np.isinf(self.denominator):
            return f"chi2({k}) = {self.statistic:.2f}"
        return f"F({k}, {self.denominator:.0f}) = {self.statistic / k:.2f}"


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
        _check_inference(method, over_rho)
        freedom, z = self.freedom, self.params / self.se
        half = critical_value(level, freedom) * self.se
        frame = pd.DataFrame(
            {
                "coef": self.params,
                "se": self.se,
                "z": z,
                "p": 2 * (ndtr(-np.abs(z)) if np.isinf(freedom) else stdtr(freedom, -np.abs(z))),
                "low": self.params - half,
                "high": self.params + half,
            }
        )
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
        return slopes(self)

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
        return tidy(self, level)

    def glance(self) -> pd.DataFrame:
        """Table with one row that describes the fit.

        Returns
        -------
        DataFrame
            As far as the fit has them: ``nobs``, ``n_selected``, ``df_model``, ``df_resid``,
            ``rho``, ``sigma``, ``loglik``, ``aic``, ``bic``, ``method``, ``errors``,
            ``covariance``, ``inference``, ``status`` and ``verdict``.
        """
        return glance(self)

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
        restrictions, constants = hypotheses_of(self, as_list("terms", terms))
        used = restrictions.any(axis=0)  # others may have no variance
        r = restrictions[:, used]
        estimate = r @ self.params.to_numpy()[used] - constants
        covariance = r @ self.cov.to_numpy()[np.ix_(used, used)] @ r.T
        statistic, _ = wald_test(estimate, covariance)
        return f_test(statistic, len(estimate), self.freedom)


def keep_result(model, result) -> None:
    """Set the result of an estimator and the attributes that scikit-learn expects of a linear
    model."""
    outcome = result.params["outcome"].drop("Intercept")
    model.result_, model.rho_ = result, result.rho
    model.intercept_ = float(result.params["outcome", "Intercept"])
    model.coef_, model.coef_names_ = outcome.to_numpy(), tuple(outcome.index)
    if hasattr(result, "sigma"):
        model.sigma_ = result.sigma


def f_test(statistic: float, restrictions: int, freedom: float) -> Test:
    """A quadratic form in estimates, chi-squared or with `freedom` degrees in the denominator."""
    if np.isinf(freedom):
        return Test(statistic, restrictions, float(chdtrc(restrictions, statistic)))
    p = float(fdtrc(restrictions, freedom, statistic / restrictions))
    return Test(statistic, restrictions, p, freedom)


def likelihood_ratio(
    loglik: float, restricted: float, weight_kind: str, restrictions: int = 1
) -> Test:
    """The likelihood-ratio test of restrictions."""
    if weight_kind == "probability":
        raise DataError("with probability weights there is no likelihood ratio; use 'wald'")
    statistic = max(2 * (loglik - restricted), 0.0)
    return Test(statistic, restrictions, float(chdtrc(restrictions, statistic)))


def _check_inference(method, over_rho: ConditionalFits | None) -> None:
    if method is not None and not is_one_of(method, ("wald", "profile")):
        raise DataError(f"method must be 'wald' or 'profile', got {method!r}")
    if method == "profile" and over_rho is None:
        raise DataError("inference of this fit is 'wald'; use method='wald'")
