"""A linear fit as plain fields and arrays, and back: estimates stay, rows do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from heckesel.data import check_complete
from heckesel.diagnostics.verdict import Identification
from heckesel.errors import printable
from heckesel.estimators.heckman_regressor import LinearModel
from heckesel.linear.estimates import Estimates
from heckesel.linear.results import prediction
from heckesel.linear.results.heckman_fit import Mode
from heckesel.linear.results.inference import coefficient_frame, labelled, standard_errors
from heckesel.methods.linear_heckman import LinearHeckmanFit
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields, mode_fields, mode_state
from heckesel.tables.array_design import with_intercept
from heckesel.tables.columns import Columns

METHODS = {
    "ml": [("ancillary", "atanh_rho"), ("ancillary", "log_sigma")],
    "two-step": [("mills", "lambda")],
    "least squares": [],
}
STATUSES = ("converged", "boundary", "max_iterations")
COVARIANCES = ("information", "opg", "robust", "cluster")


@dataclass(frozen=True)
class Names:
    """Of the columns, constants included."""

    x_names: tuple[str, ...]
    w_names: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class SavedFit:
    """A `HeckmanFit` as a file keeps it: estimates, covariance, modes and the table as text.

    Tests and intervals that need the likelihood need the rows, and these are not in the file.
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
    data: Names
    n: int
    n_selected: int
    table: str
    errors: str = "normal"
    df: float = float("inf")

    @property
    def has_selection(self) -> bool:
        return self.method != "least squares"

    @cached_property
    def se(self) -> pd.Series:
        return standard_errors(self.cov)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """coef, se, z, p, low, high for every term."""
        return coefficient_frame(self.params, self.cov, level)

    def summary(self) -> str:
        """The table of the fit, as it was when the model was saved."""
        return printable(self.table)

    def predict(self, *, x, w=None, target: str = "population") -> Predictive:
        """As `HeckmanFit.predict` with columns."""
        check_target(target)
        columns, selection = with_intercept(np.asarray(x, dtype=float)), None
        check_complete(columns, self.data.x_names, np.arange(len(columns)))
        if target != "population":
            selection = with_intercept(np.asarray(w, dtype=float))
            check_complete(selection, self.data.w_names, np.arange(len(selection)))
        return prediction.predict(self, columns, selection, target)

    def __repr__(self) -> str:
        return f"<SavedFit {self.method}: rho {self.rho:.4f}, {self.identification.verdict}>"


def state_of(model) -> dict:
    """What the fit left on `model`, beyond what all models have."""
    result, boundary = model.result_, model.fitted_.at_boundary
    return {
        "method": result.method,
        "covariance": result.covariance,
        "params": result.params.to_numpy(),
        "cov": result.cov.to_numpy(),
        "rho": result.rho,
        "sigma": result.sigma,
        "loglik": result.loglik,
        "status": result.status,
        "near_boundary": bool(result.near_boundary),
        "modes": [mode_state(mode) for mode in result.modes],
        "n": result.n,
        "n_selected": result.n_selected,
        "table": result.summary(),
        "at_boundary": None if boundary is None else _boundary(boundary),
    }


def restore(model, state: Fields, columns: Columns) -> None:
    """Put on `model` what `state_of` took from it."""
    result = _result(state, columns, model.identification_)
    p, q = len(columns.x_names), len(columns.w_names)
    boundary = state.inside("at_boundary") if state.has("at_boundary") else None
    model.result_ = result
    model.fitted_ = LinearModel(result, None if boundary is None else _boundary_of(boundary, p, q))
    outcome = result.params["outcome"]
    model.intercept_ = float(outcome["Intercept"])
    model.coef_ = outcome.drop("Intercept").to_numpy()
    model.coef_names_ = columns.x_names
    model.rho_, model.sigma_ = result.rho, result.sigma


def _result(state: Fields, columns: Columns, identification) -> SavedFit:
    method = state.text("method", tuple(METHODS))
    selects = method != "least squares"
    names = Names(("Intercept", *columns.x_names), ("Intercept", *columns.w_names))
    labels = [("outcome", name) for name in names.x_names]
    labels += [("select", name) for name in names.w_names] if selects else []
    labels += METHODS[method]
    size = len(labels)
    # at rho = +-1, and where two steps put it beyond, some covariances do not exist
    covariance = state.array("cov", (size, size), finite=False)
    params, cov = labelled(labels, state.array("params", (size,)), covariance)
    return SavedFit(
        method=method,
        covariance=state.text("covariance", COVARIANCES),
        params=params,
        cov=cov,
        rho=state.number("rho", finite=selects),
        sigma=state.number("sigma", positive=True),
        loglik=state.number("loglik", finite=False),
        status=state.text("status", STATUSES),
        near_boundary=state.truth("near_boundary"),
        modes=tuple(
            _mode_of(Fields(item, "a mode"), params.index) for item in state.items("modes")
        ),
        identification=identification,
        data=names,
        n=state.integer("n"),
        n_selected=state.integer("n_selected"),
        table=state.text("table"),
    )


def _mode_of(state: Fields, labels: pd.Index) -> Mode:
    return Mode(sigma=state.number("sigma", positive=True), **mode_fields(state, labels, STATUSES))


def _boundary(fit: LinearHeckmanFit) -> dict:
    found = fit.estimates
    return {
        "beta": found.beta,
        "gamma": found.gamma,
        "log_sigma": found.log_sigma,
        "atanh_rho": found.atanh_rho,
        "loglik": found.loglik,
        "status": found.status,
        "beta_covariance": fit.covariance,
        "info": fit.info,
    }


def _boundary_of(state: Fields, p: int, q: int) -> LinearHeckmanFit:
    log_sigma = state.number("log_sigma")
    if abs(log_sigma) > 300:  # exp of it, squared, is no number any more
        raise Damage(f"holds {log_sigma:g} for 'log_sigma' of {state.name}")
    estimates = Estimates(
        beta=state.array("beta", (p + 1,)),
        gamma=state.array("gamma", (q + 1,)),
        log_sigma=log_sigma,
        atanh_rho=state.number("atanh_rho", finite=False),
        loglik=state.number("loglik"),
        status=state.text("status", STATUSES),
    )
    covariance = state.array("beta_covariance", (p + 1, p + 1), finite=False)
    return LinearHeckmanFit(estimates, covariance, state.plain("info"))
