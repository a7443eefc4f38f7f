"""What `hk.heckman` returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, check_complete
from heckesel.diagnostics.verdict import Identification
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.linear.forms.student_fit import StudentScan
from heckesel.linear.ols import fit_least_squares
from heckesel.linear.probit import fit_probit
from heckesel.linear.results import prediction
from heckesel.linear.results import summary as table
from heckesel.linear.results.functional_form import FunctionalForm, compare_forms
from heckesel.linear.results.inference import (
    Test,
    check_level,
    cluster_freedom,
    coefficient_frame,
    critical_value,
    likelihood_ratio,
    standard_errors,
    wald,
)
from heckesel.linear.results.resampling import bootstrap_frame, profile_interval
from heckesel.linear.rho_scan import Scan
from heckesel.linear.sample.stream import StreamedData, loglik_at_zero
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.tables.array_design import ArrayDesign
from heckesel.tables.formula import FormulaDesign


@dataclass(frozen=True)
class Mode:
    """A local maximum of the likelihood. status: `converged`, `boundary`, `max_iterations`."""

    rho: float
    sigma: float
    loglik: float
    status: str
    params: pd.Series
    near_boundary: bool


@dataclass(frozen=True, eq=False, repr=False)
class HeckmanFit:
    """A fitted selection model.

    params, se : Series by (equation, term); cov : their covariance. Equations: `outcome`,
    `select`, then ("mills", "lambda") for two-step or ("ancillary", "atanh_rho" | "log_sigma"),
    with t errors also "log_df", and sigma is then a scale: the sd is sigma sqrt(df/(df - 2)).
    `modes` lists every local maximum, best first; the other attributes describe the first.
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
    modes: tuple[Mode, ...]
    identification: Identification
    data: SelectionData | StreamedData
    design: FormulaDesign | ArrayDesign
    scan: Scan | StudentScan | None = None
    weight_kind: str = "frequency"
    clusters: np.ndarray | None = None
    errors: str = "normal"

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
        """What the summary shows of the errors."""
        if not self.has_selection:
            return ("sigma",)
        return ("rho", "sigma", "df") if self.errors == "t" else ("rho", "sigma")

    @property
    def df(self) -> float:
        """Degrees of freedom of t errors; infinite for normal ones."""
        if self.errors == "normal":
            return float("inf")
        return float(np.exp(self.params["ancillary", "log_df"]))

    @cached_property
    def se(self) -> pd.Series:
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
        return self.data.units(self.weight_kind, selected=True)

    @property
    def aic(self) -> float:
        return 2 * len(self.params) - 2 * self.loglik

    @property
    def bic(self) -> float:
        return np.log(self.n) * len(self.params) - 2 * self.loglik

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """coef, se, z, p, low, high for every term; with clusters z, p and the interval are those
        of a t with one degree of freedom fewer than clusters."""
        return coefficient_frame(self.params, self.cov, level, self.freedom)

    def summary(self, level: float = 0.95) -> str:
        return table.summary(self, level)

    def to_latex(self, level: float = 0.95) -> str:
        return table.latex(self, level)

    def to_dict(self, level: float = 0.95) -> dict:
        """JSON-safe."""
        return table.as_dict(self, level)

    def __repr__(self) -> str:
        return (
            f"<HeckmanFit {self.method}: rho {self.rho:.4f}, sigma {self.sigma:.4f}, "
            f"{self.n_selected} of {self.n} selected, {self.status}; "
            f"{self.identification.verdict}>"
        )

    def wald_test(self, terms) -> Test:
        """Joint test that coefficients, given as (equation, term), are zero."""
        return wald(self.params, self.cov, terms, self.freedom)

    @cached_property
    def loglik_independent(self) -> float:
        """Log-likelihood at rho = 0: probit plus least squares, if errors are normal."""
        data = self.data
        if isinstance(self.scan, StudentScan):
            return self.loglik + self.scan.loglik_at_zero - self.scan.modes[0].value
        if isinstance(data, StreamedData):
            assert self.scan is not None  # every ml fit has one
            return loglik_at_zero(data, self.scan.modes[0].v)
        s = data.s
        outcome = fit_least_squares(data.x[s], data.y[s], data.weight[s]).loglik
        return outcome + fit_probit(data.w, s, data.weight).loglik

    def test_rho_zero(self, kind: str = "wald") -> Test:
        """`wald`: of atanh rho (two-step: of lambda); `lr`: likelihood ratio, ml only."""
        if not self.has_selection:
            raise DataError("every unit was selected, so there is no rho to test")
        if not is_one_of(kind, ("wald", "lr")):
            raise DataError(f"kind must be 'wald' or 'lr', got {kind!r}")
        if kind == "wald":
            term = ("mills", "lambda") if self.method == "two-step" else ("ancillary", "atanh_rho")
            return self.wald_test([term])
        self._needs_ml("the likelihood-ratio test")
        self._needs_independent_rows("likelihood ratio")
        return likelihood_ratio(self.loglik, self.loglik_independent, self.weight_kind)

    def interval(
        self, parameter: str, level: float = 0.95, method: str = "wald", *, client=None
    ) -> tuple[float, float]:
        """Interval of `rho`, `sigma` or `df`: `wald` on the atanh and log scale, or `profile`.

        A profile interval holds every value the likelihood cannot reject, other modes included;
        it needs normal errors. With `client`, a `dask.distributed.Client`, the workers follow the
        curve, each to another end; of a fit to files they read the rows.
        """
        check_level(level)
        self._needs_ml(f"an interval of {parameter}", "bootstrap() gives one for two-step")
        terms = {"rho": "atanh_rho", "sigma": "log_sigma", "df": "log_df"}
        if (
            not is_one_of(parameter, terms)
            or ("ancillary", terms[parameter]) not in self.params.index
        ):
            known = "'rho', 'sigma' or 'df'" if self.errors == "t" else "'rho' or 'sigma'"
            raise DataError(f"parameter must be {known}, got {parameter!r}")
        back = np.tanh if parameter == "rho" else np.exp
        if not is_one_of(method, ("wald", "profile")):
            raise DataError(f"method must be 'wald' or 'profile', got {method!r}")
        if method == "wald":
            term = ("ancillary", terms[parameter])
            half = critical_value(level, self.freedom) * self.se[term]
            return float(back(self.params[term] - half)), float(back(self.params[term] + half))
        if self.weight_kind == "probability":
            raise DataError("weighted by probability there is no profile likelihood; use 'wald'")
        self._needs_independent_rows("profile likelihood")
        if not isinstance(self.scan, Scan):
            raise DataError("profile intervals are for normal errors; use 'wald' with errors='t'")
        return profile_interval(self, parameter, level, client)

    def bootstrap(self, replicates: int = 400, seed: int = 0, *, client=None) -> pd.DataFrame:
        """Two-step draws of every parameter, rho and sigma: one row a replicate.

        Each row (cluster, if the fit has them) counts a Poisson number of times with mean one, a
        function of the seed, the replicate and the place of the row: files in the order of a frame
        give the frame's draws, and so do the workers of `client`, a `dask.distributed.Client`. A
        replicate that has no finite estimate is a row of NaN.
        """
        if not (is_whole(replicates) and is_whole(seed)) or replicates < 1 or seed < 0:
            raise DataError(
                f"replicates must be positive and seed not negative, got {replicates!r}, {seed!r}"
            )
        if self.method != "two-step":
            raise DataError("bootstrap() is for method='two-step'; ml has standard errors for rho")
        return bootstrap_frame(self, replicates, seed, client)

    def predict(self, data=None, *, x=None, w=None, target: str = "population") -> Predictive:
        """Predictions for new rows (or, without data, for the rows of the fit).

        population: y of any unit with this x; selected, unselected: y given that the unit was
        or was not selected, which needs the selection columns too.
        """
        self._check_target(target)
        given = self.design.given(data, x, w)
        columns = self.design.outcome_matrix(given)
        check_complete(columns, self.data.x_names, np.arange(len(columns)))
        selection = None
        if target != "population":
            selection = self.design.selection_matrix(given)
            check_complete(selection, self.data.w_names, np.arange(len(selection)))
        return prediction.predict(self, columns, selection, target)

    def margins(self, target: str = "population") -> pd.DataFrame:
        """Average marginal effects over the rows of the fit: effect, se, z by variable."""
        self._check_target(target)
        moves, rows_of = self.design.moves(target)
        return prediction.margins(self, target, moves, rows_of)

    def _check_target(self, target: str) -> None:
        check_target(target)
        if target != "population" and not self.has_selection:
            raise DataError(f"every unit was selected, so target={target!r} has no meaning")

    def functional_form(self, terms=None, *, rows: int = 20_000, seed: int = 0) -> FunctionalForm:
        """The same equations under other error models: normal, t, and copulas of normal errors.

        terms: outcome terms to compare, all slopes by default. A longer table is judged by `rows`
        of its rows, drawn at random; `seed` says which.
        """
        if isinstance(self.data, StreamedData):
            raise DataError(
                "functional_form() needs rows, and this fit read its rows from files and kept "
                "none; fit a frame with a sample of the rows"
            )
        return compare_forms(self, terms, rows=rows, seed=seed)

    def _needs_independent_rows(self, what: str) -> None:
        if self.clusters is not None:
            raise DataError(f"rows in clusters have no {what} of their own; use 'wald'")

    def _needs_ml(self, what: str, way_out: str = "fit with method='ml'") -> None:
        if self.method != "ml":
            raise DataError(f"{what} needs a likelihood, and this fit is {self.method}; {way_out}")
