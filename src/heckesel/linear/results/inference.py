"""Coefficient tables and tests that all linear results share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from heckesel.data import SelectionData
from heckesel.errors import DataError, as_list, is_share
from heckesel.linear.wald import wald_test


def labelled(labels, values, covariance) -> tuple[pd.Series, pd.DataFrame]:
    """Series and frame indexed by (equation, term)."""
    index = pd.MultiIndex.from_tuples(labels, names=["equation", "term"])
    return pd.Series(values, index), pd.DataFrame(covariance, index, index)


def standard_errors(cov: pd.DataFrame) -> pd.Series:
    variance = np.diag(cov)
    return pd.Series(np.sqrt(np.where(variance >= 0, variance, np.nan)), cov.index)


def cluster_freedom(clusters, weight) -> float:
    """Degrees of freedom of the t that estimates are compared with: G - 1 for G clusters, whose
    sums are what a cluster covariance averages, and infinitely many (a normal) without."""
    if clusters is None:
        return float("inf")
    return float(len(np.unique(clusters[weight > 0])) - 1)


def critical_value(level: float, freedom: float = float("inf")) -> float:
    """Half the width of a central interval, in standard errors."""
    p = (1 + level) / 2
    return float(ndtri(p) if np.isinf(freedom) else stdtrit(freedom, p))


def coefficient_frame(
    params: pd.Series, cov: pd.DataFrame, level: float, freedom: float = float("inf")
) -> pd.DataFrame:
    """Coefficient, standard error, z, p and an interval for each term: normal, or those of a t
    with `freedom` degrees."""
    check_level(level)
    se = standard_errors(cov)
    z = params / se
    half = critical_value(level, freedom) * se
    return pd.DataFrame(
        {
            "coef": params,
            "se": se,
            "z": z,
            "p": 2 * (ndtr(-np.abs(z)) if np.isinf(freedom) else stdtr(freedom, -np.abs(z))),
            "low": params - half,
            "high": params + half,
        }
    )


def in_given_weights(fit, data: SelectionData):
    """A fit to weights of a unit each on average as one to `data`, over whose weights its
    log-likelihoods are sums; nothing else depends on their scale."""
    unit = data.weight.sum() / np.count_nonzero(data.weight)
    modes = tuple(replace(mode, loglik=unit * mode.loglik) for mode in fit.modes)
    return replace(fit, data=data, loglik=unit * fit.loglik, modes=modes)


class Verdict(Protocol):
    """What results show of the verdict on identification, which is made elsewhere."""

    @property
    def verdict(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def evidence(self) -> dict: ...
    @property
    def rests_on_shape(self) -> bool: ...


def verdict_name(found: Verdict | None) -> str:
    return "no verdict" if found is None else found.verdict


@dataclass(frozen=True)
class Test:
    """One hypothesis test. statistic is chi-squared with `degrees_of_freedom`; where `denominator`
    is finite, statistic/degrees_of_freedom is an F with that many in the denominator."""

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


def wald(params: pd.Series, cov: pd.DataFrame, terms, freedom: float = float("inf")) -> Test:
    """Joint Wald test that the given (equation, term) coefficients are zero."""
    terms = as_list("terms", terms)
    unknown = [term for term in terms if term not in params.index]
    if unknown:
        raise DataError(f"there is no coefficient {unknown[0]!r} in this fit")
    block = cov.loc[terms, terms].to_numpy()
    statistic, p = wald_test(params[terms].to_numpy(), block)
    if np.isfinite(freedom):
        p = float(fdtrc(len(terms), freedom, statistic / len(terms)))
    return Test(statistic, len(terms), p, freedom)


def likelihood_ratio(
    loglik: float, restricted: float, weight_kind: str, restrictions: int = 1
) -> Test:
    """Twice the gain in log-likelihood that the restrictions cost."""
    if weight_kind == "probability":
        raise DataError("weighted by probability there is no likelihood ratio; use 'wald'")
    statistic = max(2 * (loglik - restricted), 0.0)
    return Test(statistic, restrictions, float(chdtrc(restrictions, statistic)))


def check_level(level: float) -> None:
    if not is_share(level):
        raise DataError(f"level must lie between 0 and 1, got {level!r}")
