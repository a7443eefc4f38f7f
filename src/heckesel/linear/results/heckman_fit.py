"""What `hk.heckman` returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, check_complete
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.linear.forms.form_inference import FormScan, restricted
from heckesel.linear.ols import fit_least_squares
from heckesel.linear.probit import fit_probit
from heckesel.linear.results import prediction
from heckesel.linear.results import summary as table
from heckesel.linear.results.functional_form import FunctionalForm, compare_forms
from heckesel.linear.results.inference import (
    Test,
    Verdict,
    check_level,
    cluster_freedom,
    coefficient_frame,
    critical_value,
    likelihood_ratio,
    standard_errors,
    verdict_name,
    wald,
)
from heckesel.linear.results.resampling import bootstrap_frame, profile_interval
from heckesel.linear.rho_scan import CLEARLY_BETTER, Scan
from heckesel.linear.sample.stream import StreamedData, loglik_at_zero
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.tables.array_design import ArrayDesign
from heckesel.tables.formula import FormulaDesign

# parameters of the errors besides rho and sigma, and the scale on which each is estimated
EXTRA = {"normal": (), "t": ("df",), "shape": ("skewness", "tail")}
INTERVAL_SCALES: dict[str, tuple[str, Callable]] = {
    "rho": ("atanh_rho", np.tanh),
    "sigma": ("log_sigma", np.exp),
    "df": ("log_df", np.exp),
    "skewness": ("skewness", float),
    "tail": ("log_tail", np.exp),
}


@dataclass(frozen=True)
class Mode:
    """A local maximum of the likelihood. status: `converged`, `boundary`, `max_iterations`."""

    rho: float
    sigma: float
    loglik: float
    status: str
    params: pd.Series
    near_boundary: bool


def reason_of(modes: tuple[Mode, ...], selected: int) -> str:
    """Why a fit uses this mode, as a sentence; empty without a likelihood."""
    if not modes:
        return ""
    used, best = modes[selected], modes[0]
    if len(modes) == 1:
        return "The likelihood has one maximum."
    if selected:
        gain, sign = best.loglik - used.loglik, "+" if best.rho > 0 else "-"
        return (
            f"It is an interior maximum. The maximum at rho = {sign}1 has a log-likelihood that is "
            f"{gain:.2f} higher, and {CLEARLY_BETTER:g} is needed to prefer it."
        )
    return f"It is the highest of {len(modes)} maxima of the likelihood."


@dataclass(frozen=True, eq=False, repr=False)
class HeckmanFit:
    """A fitted selection model.

    params, se : Series by (equation, term); cov : their covariance. Equations: `outcome`,
    `select`, then ("mills", "lambda") for two-step or ("ancillary", "atanh_rho" | "log_sigma"),
    with t errors also "log_df", and sigma is then a scale: the sd is sigma sqrt(df/(df - 2)).
    Shape errors have "skewness" and "log_tail", and rho is then the correlation after the errors
    are transformed to normal ones. With `scale=`, log sigma(x) is ("ancillary", "log_sigma") plus
    the ("scale", term) coefficients times their columns, and sigma is that where these are zero.
    `modes` lists every local maximum, best first; the other attributes describe `selected_mode`,
    which is the best unless that lies at rho = +-1 and an interior one is about as good;
    `selected_mode_reason` says why.
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
    data: SelectionData | StreamedData
    design: FormulaDesign | ArrayDesign
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
        """What the summary shows of the errors."""
        if not self.has_selection:
            return ("sigma",)
        return ("rho", "sigma", *EXTRA[self.errors])

    @property
    def df(self) -> float:
        """Degrees of freedom of t errors; infinite for others."""
        return float(np.exp(self._ancillary("log_df", np.inf)))

    @property
    def skewness(self) -> float:
        """Epsilon of shape errors: positive where the right tail is the longer one."""
        return self._ancillary("skewness", 0.0)

    @property
    def tail(self) -> float:
        """Delta of shape errors: below 1 where tails are heavier than normal."""
        return float(np.exp(self._ancillary("log_tail", 0.0)))

    def _ancillary(self, name: str, otherwise: float) -> float:
        return float(self.params.get(("ancillary", name), otherwise))

    @property
    def selected_mode(self) -> Mode | None:
        """The mode that the estimates are of; None without a likelihood."""
        return self.modes[self.selected] if self.modes else None

    @property
    def selected_mode_reason(self) -> str:
        return reason_of(self.modes, self.selected)

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
            f"{verdict_name(self.identification)}>"
        )

    def wald_test(self, terms) -> Test:
        """Joint test that coefficients, given as (equation, term), are zero."""
        return wald(self.params, self.cov, terms, self.freedom)

    @cached_property
    def loglik_independent(self) -> float:
        """Log-likelihood at rho = 0: probit plus least squares, if errors are normal."""
        data = self.data
        if isinstance(self.scan, FormScan):
            return self._restricted("atanh_rho")
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

    def _restricted(self, *names: str) -> float:
        """The log-likelihood where these parameters are zero."""
        assert isinstance(self.scan, FormScan)
        assert isinstance(self.data, SelectionData)
        with threadpool_limits(1, user_api="blas"):
            mode = self.scan.modes[self.selected]
            return self.loglik + restricted(self.scan, mode, self.data, names)

    def test_errors(self, kind: str = "wald") -> dict[str, Test]:
        """Tests of what shape errors and `scale=` add to normal errors with a constant sigma.

        Returns a test for each of "no skewness", "normal tails", "normal errors" (both) and
        "constant sigma" that the fit has parameters for. `wald`, or `lr`: likelihood ratio, for
        which the smaller models are fitted.
        """
        if not is_one_of(kind, ("wald", "lr")):
            raise DataError(f"kind must be 'wald' or 'lr', got {kind!r}")
        tested: dict[str, list] = {}
        if self.errors == "shape":
            skewness, tail = ("ancillary", "skewness"), ("ancillary", "log_tail")
            tested = {"no skewness": [skewness], "normal tails": [tail]}
            tested["normal errors"] = [skewness, tail]
        if "scale" in self.params.index.get_level_values(0):
            tested["constant sigma"] = [term for term in self.params.index if term[0] == "scale"]
        if kind == "wald":
            return {name: self.wald_test(terms) for name, terms in tested.items()}
        self._needs_independent_rows("likelihood ratio")
        tests = {}
        for name, terms in tested.items():
            zero = dict.fromkeys("scale" if term[0] == "scale" else term[1] for term in terms)
            smaller = self._restricted(*zero)
            tests[name] = likelihood_ratio(self.loglik, smaller, self.weight_kind, len(terms))
        return tests

    def interval(
        self, parameter: str, level: float = 0.95, method: str = "wald", *, client=None
    ) -> tuple[float, float]:
        """Interval of `rho`, `sigma`, `df`, `skewness` or `tail`: `wald` (on the atanh scale for
        rho, on the log scale for sigma, df and tail) or `profile`.

        A profile interval holds every value the likelihood cannot reject, other modes included;
        it needs normal errors. With `client`, a `dask.distributed.Client`, the workers follow the
        curve, each to another end; of a fit to files they read the rows.
        """
        check_level(level)
        self._needs_ml(f"an interval of {parameter}", "bootstrap() gives one for two-step")
        if not is_one_of(parameter, self.error_parameters):
            *most, last = map(repr, self.error_parameters)
            raise DataError(f"parameter must be {', '.join(most)} or {last}, got {parameter!r}")
        if not is_one_of(method, ("wald", "profile")):
            raise DataError(f"method must be 'wald' or 'profile', got {method!r}")
        label, back = INTERVAL_SCALES[parameter]
        if method == "wald":
            term = ("ancillary", label)
            half = critical_value(level, self.freedom) * self.se[term]
            return float(back(self.params[term] - half)), float(back(self.params[term] + half))
        if self.weight_kind == "probability":
            raise DataError("weighted by probability there is no profile likelihood; use 'wald'")
        self._needs_independent_rows("profile likelihood")
        if not isinstance(self.scan, Scan):
            raise DataError(
                "profile intervals are for normal errors with a constant sigma; use method='wald'"
            )
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
        scale = self.design.scale_matrix(given)
        if scale is not None:
            check_complete(scale, self.data.scale_names, np.arange(len(scale)))
        return prediction.predict(self, columns, selection, target, scale)

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
        """The same equations under other error models: normal, t, shape, and copulas of normal
        errors, all with a constant sigma.

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
            raise DataError(f"rows in clusters have no {what}; use 'wald'")

    def _needs_ml(self, what: str, way_out: str = "fit with method='ml'") -> None:
        if self.method != "ml":
            raise DataError(f"{what} needs a likelihood, and this fit is {self.method}; {way_out}")
