"""A probit with sample selection and its inference: what `HeckmanClassifier` keeps."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import chdtri, ndtri

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import Identification
from heckesel.errors import DataError, is_one_of, printable
from heckesel.linear.heckman_probit import binary_rho_interval, binary_sample
from heckesel.linear.probit import fit_probit
from heckesel.linear.results import summary as table
from heckesel.linear.results.inference import (
    Test,
    check_level,
    coefficient_frame,
    likelihood_ratio,
    standard_errors,
    wald,
)
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.linear.rho_scan import Scan

SEPARATED = (
    "the likelihood has no maximum: classes are predicted, probabilities near 0 and 1 are an "
    "extrapolation, and there are no standard errors"
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


@dataclass(frozen=True, eq=False, repr=False)
class HeckmanProbitFit:
    """A fitted probit with sample selection.

    params, se : Series by (equation, term): `outcome`, `select`, ("ancillary", "atanh_rho").
    cov : their covariance, NaN where there is none; cov_given_rho : that of the others at
    rho = +-1, where the likelihood has no interior maximum. `modes` lists every local maximum, best
    first. separation : what tells classes apart, where something does (status `separated`, see
    `heckesel.linear.separated`); where it does so for every row rho is NaN, as any fits.
    """

    method: str
    covariance: str
    params: pd.Series
    cov: pd.DataFrame
    rho: float
    loglik: float
    status: str
    near_boundary: bool
    modes: tuple[BinaryMode, ...]
    identification: Identification
    data: SelectionData
    classes: np.ndarray
    cov_given_rho: pd.DataFrame | None = None
    scan: Scan | None = None
    weight_kind: str = "frequency"
    errors: str = "normal"
    df: float = float("inf")
    separation: str | None = None

    @property
    def has_selection(self) -> bool:
        return not self.data.s.all()

    @property
    def title(self) -> str:
        name = "Probit with selection" if self.has_selection else "Probit, every unit selected"
        return f"{name}: {self.data.y_name} = {self.classes[1]}"

    @property
    def error_parameters(self) -> tuple[str, ...]:
        return ("rho",) if self.has_selection else ()

    @cached_property
    def se(self) -> pd.Series:
        return standard_errors(self.cov)

    @property
    def n(self) -> int:
        """Units; frequency weights count as rows."""
        return self.data.units(self.weight_kind)

    @property
    def n_selected(self) -> int:
        return self.data.units(self.weight_kind, selected=True)

    @property
    def aic(self) -> float:
        return 2 * len(self.params) - 2 * self.loglik

    @property
    def bic(self) -> float:
        return np.log(self.n) * len(self.params) - 2 * self.loglik

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """coef, se, z, p, low, high for every term."""
        return coefficient_frame(self.params, self.cov, level)

    def summary(self, level: float = 0.95) -> str:
        text = table.summary(self, level)
        if self.separation is None:
            return text
        lines = textwrap.wrap(f"Separated: {self.separation} ({SEPARATED}).", table.WIDTH)
        return printable("\n".join([text, "", *lines]))

    def __repr__(self) -> str:
        return (
            f"<HeckmanProbitFit {self.method}: rho {self.rho:.4f}, {self.n_selected} of {self.n} "
            f"selected, {self.status}; {self.identification.verdict}>"
        )

    def wald_test(self, terms) -> Test:
        """Joint test that coefficients, given as (equation, term), are zero."""
        return wald(self.params, self.cov, terms)

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

    def test_rho_zero(self, kind: str = "wald") -> Test:
        """`wald`: of atanh rho; `lr`: likelihood ratio."""
        if not self.has_selection:
            raise DataError("every unit was selected, so there is no rho to test")
        if not is_one_of(kind, ("wald", "lr")):
            raise DataError(f"kind must be 'wald' or 'lr', got {kind!r}")
        if kind == "wald":
            return self.wald_test([ATANH_RHO])
        return likelihood_ratio(self.loglik, self.loglik_independent, self.weight_kind)

    def interval(
        self, parameter: str = "rho", level: float = 0.95, method: str = "wald"
    ) -> tuple[float, float]:
        """Interval of rho: `wald` on the atanh scale, or `profile`, which holds every value the
        likelihood cannot reject, other modes included."""
        check_level(level)
        if parameter != "rho" or not self.has_selection:
            raise DataError(
                f"there is an interval of 'rho' alone, after a selection; not of {parameter!r}"
            )
        if method == "wald":
            half = ndtri((1 + level) / 2) * self.se[ATANH_RHO]
            low, high = self.params[ATANH_RHO] - half, self.params[ATANH_RHO] + half
        elif method != "profile":
            raise DataError(f"method must be 'wald' or 'profile', got {method!r}")
        elif self.weight_kind == "probability" or self.scan is None:
            raise DataError("weighted by probability there is no profile likelihood; use 'wald'")
        else:
            self._need_a_maximum()
            sample, _ = binary_sample(self.data)
            low, high = binary_rho_interval(
                sample, self.scan.modes, 0.5 * float(chdtri(1, 1 - level))
            )
        return float(np.tanh(low)), float(np.tanh(high))
