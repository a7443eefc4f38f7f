"""Linear fits as plain fields and arrays, and back: estimates stay, rows do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from heckesel.data import check_complete
from heckesel.diagnostics.verdict import Identification
from heckesel.errors import printable
from heckesel.linear.results import prediction
from heckesel.linear.results.inference import coefficient_frame, labelled, standard_errors
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.saving.codec import (
    Layout,
    Reader,
    array,
    as_fields,
    flag,
    maybe,
    number,
    text,
    whole,
)
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.array_design import with_intercept
from heckesel.tables.columns import Columns

RESULTS = "heckesel.linear.results"
# method -> the parameters beside the coefficients of both equations
METHODS = {
    "ml": [("ancillary", "atanh_rho"), ("ancillary", "log_sigma")],
    "two-step": [("mills", "lambda")],
    "least squares": [],
}
PROBIT_METHODS = {"ml": [ATANH_RHO], "probit": []}
ONE_EQUATION = ("least squares", "probit")
STATUSES = ("converged", "boundary", "max_iterations")
PROBIT_STATUSES = (*STATUSES, "separated")
COVARIANCES = ("information", "opg", "robust", "cluster")


@dataclass(frozen=True)
class Names:
    """Of the columns, constants included."""

    x_names: tuple[str, ...]
    w_names: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedEstimates:
    """A linear fit as a file keeps it: estimates, covariance, modes and the table as text.

    Tests and intervals that need the likelihood need the rows, and these are not in the file.
    """

    method: str
    covariance: str
    params: pd.Series
    cov: pd.DataFrame
    rho: float
    loglik: float
    status: str
    near_boundary: bool
    modes: tuple
    identification: Identification
    n: int
    n_selected: int
    table: str

    @property
    def has_selection(self) -> bool:
        return self.method not in ONE_EQUATION

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
        kind, verdict = type(self).__name__, self.identification.verdict
        return f"<{kind} {self.method}: rho {self.rho:.4f}, {verdict}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedFit(SavedEstimates):
    """A `HeckmanFit` as a file keeps it."""

    sigma: float
    data: Names
    errors: str = "normal"
    df: float = float("inf")

    def predict(self, *, x, w=None, target: str = "population") -> Predictive:
        """As `HeckmanFit.predict` with columns."""
        check_target(target)
        columns, selection = with_intercept(np.asarray(x, dtype=float)), None
        check_complete(columns, self.data.x_names, np.arange(len(columns)))
        if target != "population":
            selection = with_intercept(np.asarray(w, dtype=float))
            check_complete(selection, self.data.w_names, np.arange(len(selection)))
        return prediction.predict(self, columns, selection, target)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedProbit(SavedEstimates):
    """A `HeckmanProbitFit` as a file keeps it."""

    cov_given_rho: pd.DataFrame | None
    separation: str | None


def write_fit(fit, fields: dict[str, Reader]) -> dict:
    """The fields of a `HeckmanFit` or a `HeckmanProbitFit`."""
    found = {name: getattr(fit, name) for name in fields if name != "table"}
    layouts = {layout.name: layout for layout in MODES}
    return as_fields(found | {"table": fit.summary()}, lambda kind: layouts.get(kind.__name__))


def read_fit(state: Fields, columns: Columns, identification: Identification) -> SavedFit:
    """What `write_fit` wrote of a `HeckmanFit`."""
    labels = _labels(state.text("method", tuple(METHODS)), METHODS, columns)
    found = _read(state, FIT, labels)
    if found["method"] not in ONE_EQUATION and not np.isfinite(found["rho"]):
        raise Damage(f"has a correlation of {found['rho']}")
    names = Names(("Intercept", *columns.x_names), ("Intercept", *columns.w_names))
    return SavedFit(**found, identification=identification, data=names)


def read_probit(state: Fields, columns: Columns, identification: Identification) -> SavedProbit:
    """What `write_fit` wrote of a `HeckmanProbitFit`."""
    method = state.text("method", tuple(PROBIT_METHODS))
    labels = _labels(method, PROBIT_METHODS, columns)
    found = _read(state, PROBIT, labels)
    rho, values = found["rho"], found["params"].to_numpy()
    # only where the classes are separated, or every unit is selected, is there no rho
    known = method == "ml" and not (found["status"] == "separated" and np.isnan(rho))
    if not np.isfinite(values[: None if known or method != "ml" else -1]).all():
        raise Damage("has values that are not finite in 'params' of the fit")
    if known and not abs(rho) <= 1:
        raise Damage(f"has a correlation of {rho}")
    if found["cov_given_rho"] is not None:
        _, found["cov_given_rho"] = labelled(labels, values, found["cov_given_rho"])
    return SavedProbit(**found, identification=identification)


def keep_coefficients(model, result: SavedEstimates, columns: Columns) -> None:
    """What scikit-learn expects of a fitted linear model."""
    outcome = result.params["outcome"]
    model.result_, model.rho_ = result, result.rho
    model.intercept_ = float(outcome["Intercept"])
    model.coef_ = outcome.drop("Intercept").to_numpy()
    model.coef_names_ = columns.x_names


def _labels(method: str, extra: dict[str, list], columns: Columns) -> list[tuple[str, str]]:
    labels = [("outcome", name) for name in ("Intercept", *columns.x_names)]
    if method not in ONE_EQUATION:
        labels += [("select", name) for name in ("Intercept", *columns.w_names)]
    return labels + extra[method]


def _read(state: Fields, fields: dict[str, Reader], labels: list) -> dict:
    sizes = {"size": len(labels)}
    found = {name: reader(state, name, sizes) for name, reader in fields.items()}
    found["params"], found["cov"] = labelled(labels, found["params"], found["cov"])
    index = found["params"].index
    found["modes"] = tuple(
        replace(mode, params=pd.Series(mode.params, index)) for mode in found["modes"]
    )
    return found


def _modes(layout: Layout) -> Reader:
    return lambda state, name, sizes: tuple(
        layout.read(Fields(each, "a mode"), sizes) for each in state.items(name)
    )


def _mode_fields(statuses: tuple[str, ...]) -> dict[str, Reader]:
    return {
        "rho": number(),
        "loglik": number(),
        "status": text(*statuses),
        "params": array("size"),
        "near_boundary": flag,
    }


MODES = (
    Layout(
        f"{RESULTS}.modes",
        "Mode",
        _mode_fields(STATUSES) | {"sigma": number(positive=True)},
    ),
    Layout(f"{RESULTS}.heckman_probit_fit", "BinaryMode", _mode_fields(PROBIT_STATUSES)),
)
SHARED: dict[str, Reader] = {
    # at rho = +-1, and where two steps put it beyond, some covariances do not exist
    "cov": array("size", "size", finite=False),
    "rho": number(finite=False),
    "near_boundary": flag,
    "n": whole,
    "n_selected": whole,
    "table": text(),
}
FIT = SHARED | {
    "method": text(*METHODS),
    "covariance": text(*COVARIANCES),
    "params": array("size"),
    "sigma": number(positive=True),
    "loglik": number(finite=False),
    "status": text(*STATUSES),
    "modes": _modes(MODES[0]),
}
PROBIT = SHARED | {
    "method": text(*PROBIT_METHODS),
    "covariance": text(*COVARIANCES[:3]),
    "params": array("size", finite=False),
    "cov_given_rho": maybe(array("size", "size")),
    "loglik": number(),
    "status": text(*PROBIT_STATUSES),
    "modes": _modes(MODES[1]),
    "separation": maybe(text()),
}
