"""A classifier as plain fields and arrays, and back: estimates or networks stay, rows do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from heckesel.diagnostics.verdict import Identification
from heckesel.errors import DataError, printable
from heckesel.linear.results.heckman_probit_fit import BinaryMode
from heckesel.linear.results.inference import coefficient_frame, labelled, standard_errors
from heckesel.linear.results.probit_prediction import ATANH_RHO, LinearProbit
from heckesel.saving.model_file import Damage, imported
from heckesel.saving.saved_fields import Fields, mode_fields, mode_state
from heckesel.tables.columns import Columns

NETWORKS = "heckesel.saving.saved_networks"
METHODS = ("ml", "probit")
STATUSES = ("converged", "boundary", "max_iterations", "separated")
COVARIANCES = ("information", "opg", "robust")
LABELS = (str, bool, int, float)


@dataclass(frozen=True, eq=False, repr=False)
class SavedProbit:
    """A `HeckmanProbitFit` as a file keeps it: estimates, covariance, modes and the table as text.

    Tests and intervals that need the likelihood need the rows, and these are not in the file.
    """

    method: str
    covariance: str
    params: pd.Series
    cov: pd.DataFrame
    cov_given_rho: pd.DataFrame | None
    rho: float
    loglik: float
    status: str
    near_boundary: bool
    modes: tuple[BinaryMode, ...]
    identification: Identification
    separation: str | None
    n: int
    n_selected: int
    table: str

    @property
    def has_selection(self) -> bool:
        return self.method == "ml"

    @cached_property
    def se(self) -> pd.Series:
        return standard_errors(self.cov)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """coef, se, z, p, low, high for every term."""
        return coefficient_frame(self.params, self.cov, level)

    def summary(self) -> str:
        """The table of the fit, as it was when the model was saved."""
        return printable(self.table)

    def __repr__(self) -> str:
        return f"<SavedProbit {self.method}: rho {self.rho:.4f}, {self.identification.verdict}>"


def state_of(model) -> dict:
    """What the fit left on `model`, beyond what all models have."""
    classes = model.classes_.tolist()
    if not all(isinstance(label, LABELS) for label in classes):
        raise DataError(
            f"the classes are of type {type(classes[0]).__name__}, which a saved model cannot "
            "hold; make them text before the fit"
        )
    if model.outcome == "network":
        fitted = imported(NETWORKS).fitted_state(model.fitted_)
        return {"classes": classes, "rho_": model.rho_, "fitted": fitted}
    return {"classes": classes, "result": _result(model.result_)}


def restore(model, state: Fields, columns: Columns) -> None:
    """Put on `model` what `state_of` took from it."""
    model.classes_ = _classes_of(state)
    if model.outcome == "network":
        networks = imported(NETWORKS)
        inner = state.inside("fitted")
        inner.text("kind", ("BinaryMixture",))
        model.fitted_ = networks.restored(inner, columns)
        model.info_ = model.fitted_.info
        model.rho_ = state.array("rho_", (None,), finite=False)
        return
    result = _result_of(state.inside("result"), columns, model.identification_)
    model.result_, model.fitted_ = result, LinearProbit(result)
    outcome = result.params["outcome"]
    model.intercept_ = float(outcome["Intercept"])
    model.coef_ = outcome.drop("Intercept").to_numpy()
    model.coef_names_ = columns.x_names
    model.rho_ = result.rho


def _classes_of(state: Fields) -> np.ndarray:
    found = state.items("classes")
    good = len(found) == 2 and all(isinstance(label, LABELS) for label in found)
    if not good or type(found[0]) is not type(found[1]) or not found[0] < found[1]:
        raise Damage(f"has classes {found!r:.60}, which are no two in order")
    return np.array(found)


def _result(fit) -> dict:
    given = fit.cov_given_rho
    return {
        "method": fit.method,
        "covariance": fit.covariance,
        "params": fit.params.to_numpy(),
        "cov": fit.cov.to_numpy(),
        "cov_given_rho": None if given is None else given.to_numpy(),
        "rho": fit.rho,
        "loglik": fit.loglik,
        "status": fit.status,
        "near_boundary": bool(fit.near_boundary),
        "modes": [mode_state(mode) for mode in fit.modes],
        "separation": fit.separation,
        "n": fit.n,
        "n_selected": fit.n_selected,
        "table": fit.summary(),
    }


def _result_of(state: Fields, columns: Columns, identification) -> SavedProbit:
    method = state.text("method", METHODS)
    labels = [("outcome", name) for name in ("Intercept", *columns.x_names)]
    if method == "ml":
        labels += [("select", name) for name in ("Intercept", *columns.w_names)] + [ATANH_RHO]
    size = len(labels)
    status = state.text("status", STATUSES)
    rho = state.number("rho", finite=False)
    # only where every class is told apart, or every unit selected, is there no rho
    known = method == "ml" and not (status == "separated" and np.isnan(rho))
    values = state.array("params", (size,), finite=False)
    if not np.isfinite(values[: None if known or method != "ml" else -1]).all():
        raise Damage("has values that are not finite in 'params' of the fit")
    if known and not abs(rho) <= 1:
        raise Damage(f"has a correlation of {rho}")
    params, cov = labelled(labels, values, state.array("cov", (size, size), finite=False))
    given = None
    if state.has("cov_given_rho"):
        _, given = labelled(labels, values, state.array("cov_given_rho", (size, size)))
    return SavedProbit(
        method=method,
        covariance=state.text("covariance", COVARIANCES),
        params=params,
        cov=cov,
        cov_given_rho=given,
        rho=rho,
        loglik=state.number("loglik"),
        status=status,
        near_boundary=state.truth("near_boundary"),
        modes=tuple(
            BinaryMode(**mode_fields(Fields(each, "a mode"), params.index, STATUSES))
            for each in state.items("modes")
        ),
        identification=identification,
        separation=state.text("separation") if state.has("separation") else None,
        n=state.integer("n"),
        n_selected=state.integer("n_selected"),
        table=state.text("table"),
    )
