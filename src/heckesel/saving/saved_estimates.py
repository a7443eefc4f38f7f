"""Linear fits as plain fields and arrays, and back: estimates are saved, rows are not."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heckesel.data import check_complete
from heckesel.diagnostics.verdict import Identification
from heckesel.display import Summary
from heckesel.errors import printable
from heckesel.linear.over_rho.conditional_fits import ConditionalFits
from heckesel.linear.results import prediction
from heckesel.linear.results.error_parameters import ESTIMATED_AS, EXTRA
from heckesel.linear.results.heckman_probit_fit import BinaryMode
from heckesel.linear.results.inference import NamedEstimates, labelled
from heckesel.linear.results.modes import Mode
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.saving.codec import (
    SPECIAL,
    Reader,
    Sizes,
    Special,
    array,
    as_fields,
    flag,
    layout_of,
    maybe,
    number,
    several,
    text,
    whole,
)
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.array_design import with_intercept
from heckesel.tables.columns import Columns

# method -> the parameters beside the coefficients of both equations
PARAMETERS = {
    "ml": [("ancillary", "atanh_rho"), ("ancillary", "log_sigma")],
    "two-step": [("mills", "lambda")],
    "least squares": [],
}
NORMAL: tuple[str, tuple[str, ...]] = ("normal", ())
PROBIT_PARAMETERS = {"ml": [ATANH_RHO], "probit": []}
ONE_EQUATION = ("least squares", "probit")
STATUSES = ("converged", "boundary", "max_iterations")
PROBIT_STATUSES = (*STATUSES, "separated")
COVARIANCES = ("information", "opg", "robust", "cluster")


@dataclass(frozen=True)
class Names:
    """Names of the columns, constants included."""

    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    scale_names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedEstimates(NamedEstimates):
    """A linear fit as a file keeps it: estimates, covariance, modes and the table as text.

    Tests and intervals that need the likelihood need the rows, and these are not in the file.
    """

    method: str
    covariance: str
    rho: float
    loglik: float
    status: str
    near_boundary: bool
    modes: tuple
    cov_given_rho: pd.DataFrame | None
    over_rho: ConditionalFits | None
    identification: Identification
    n: int
    n_selected: int
    table: str
    freedom: float = float("inf")

    @property
    def has_selection(self) -> bool:
        return self.method not in ONE_EQUATION

    def summary(self) -> Summary:
        """The table of the fit, as it was when the model was saved."""
        return Summary(printable(self.table))

    def __repr__(self) -> str:
        kind, verdict = type(self).__name__, self.identification.verdict
        return f"<{kind} {self.method}: rho {self.rho:.4f}, {verdict}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedFit(SavedEstimates):
    """A `HeckmanFit` as a file keeps it."""

    sigma: float
    data: Names
    errors: str = "normal"

    @property
    def df(self) -> float:
        return float(np.exp(self.params.get(("ancillary", "log_df"), np.inf)))

    def predict(self, *, x, w=None, target: str = "population") -> Predictive:
        """As `HeckmanFit.predict` with columns."""
        check_target(target)
        columns, selection = with_intercept(np.asarray(x, dtype=float)), None
        check_complete(columns, self.data.x_names, np.arange(len(columns)))
        if target != "population":
            selection = with_intercept(np.asarray(w, dtype=float))
            check_complete(selection, self.data.w_names, np.arange(len(selection)))
        names = self.data.scale_names
        scale = columns[:, [self.data.x_names.index(name) for name in names]] if names else None
        return prediction.predict(self, columns, selection, target, scale)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedProbit(SavedEstimates):
    """A `HeckmanProbitFit` as a file keeps it."""

    separation: str | None


def write_fit(fit, fields: dict[str, Reader]) -> dict:
    """The fields of a `HeckmanFit` or a `HeckmanProbitFit`."""
    found = {name: getattr(fit, name) for name in fields if name != "table"}
    if found["over_rho"] is None:  # older files have neither this nor clusters
        del found["over_rho"]
    if np.isinf(found["freedom"]):
        del found["freedom"]
    return as_fields(found | {"table": str(fit.summary())})


def read_fit(state: Fields, columns: Columns, identification: Identification) -> SavedFit:
    """The `HeckmanFit` that `write_fit` wrote, with its error model."""
    method = state.text("method", tuple(PARAMETERS))
    errors, scale = NORMAL
    if state.has("errors"):  # older files have normal errors and a constant sigma
        errors, scale = state.text("errors", tuple(EXTRA)), state.strings("scale")
    if not set(scale) <= set(columns.x_names) or (method != "ml" and (errors, scale) != NORMAL):
        raise Damage(
            f"has errors {errors!r} and a sigma that depends on {scale!r:.60}, which contradicts "
            "its method or its columns"
        )
    labels = _labels(method, PARAMETERS, columns)
    labels += [("ancillary", ESTIMATED_AS[each][0]) for each in EXTRA[errors]]
    labels += [("scale", name) for name in scale]
    found = _read(state, FIT, labels)
    if found["method"] not in ONE_EQUATION and not np.isfinite(found["rho"]):
        raise Damage(f"has a correlation of {found['rho']}")
    names = Names(("Intercept", *columns.x_names), ("Intercept", *columns.w_names), scale)
    return SavedFit(**found, errors=errors, identification=identification, data=names)


def read_probit(state: Fields, columns: Columns, identification: Identification) -> SavedProbit:
    """The `HeckmanProbitFit` that `write_fit` wrote."""
    method = state.text("method", tuple(PROBIT_PARAMETERS))
    labels = _labels(method, PROBIT_PARAMETERS, columns)
    found = _read(state, PROBIT, labels)
    rho, values = found["rho"], found["params"].to_numpy()
    # rho is missing only if the classes are separated or every unit is selected
    known = method == "ml" and not (found["status"] == "separated" and np.isnan(rho))
    if not np.isfinite(values[: None if known or method != "ml" else -1]).all():
        raise Damage("has values that are not finite in 'params' of the fit")
    if known and not abs(rho) <= 1:
        raise Damage(f"has a correlation of {rho}")
    return SavedProbit(**found, identification=identification)


def _labels(method: str, extra: dict[str, list], columns: Columns) -> list[tuple[str, str]]:
    labels = [("outcome", name) for name in ("Intercept", *columns.x_names)]
    if method not in ONE_EQUATION:
        labels += [("select", name) for name in ("Intercept", *columns.w_names)]
    return labels + extra[method]


def _read(state: Fields, fields: dict[str, Reader], labels: list) -> dict:
    sizes = {"size": len(labels)}
    found = {name: reader(state, name, sizes) for name, reader in fields.items()}
    found["params"], found["cov"] = labelled(labels, found["params"], found["cov"])
    if found["cov_given_rho"] is not None:
        _, found["cov_given_rho"] = labelled(labels, found["params"], found["cov_given_rho"])
    index = found["params"].index
    found["modes"] = tuple(
        replace(mode, params=pd.Series(mode.params, index)) for mode in found["modes"]
    )
    return found


def _over_rho(state: Fields, name: str, sizes: Sizes) -> ConditionalFits | None:
    if not state.has(name):
        return None
    return layout_of(ConditionalFits).read(state.inside(name), dict(sizes))


def _freedom(state: Fields, name: str, sizes: Sizes) -> float:
    return state.number(name, positive=True) if state.has(name) else float("inf")


def _check_over_rho(found: ConditionalFits, sizes: Sizes) -> None:
    variances = np.diagonal(found.cov, axis1=1, axis2=2)
    if found.drop.size == 0 or found.drop.min() != 0 or (np.diff(found.atanh_rho) < 0).any():
        raise Damage("has conditional fits that do not form a profile over rho")
    if (variances < 0).any() or np.count_nonzero(variances[0] == 0) != 1:
        raise Damage("has conditional fits without a covariance")


SPECIAL["ConditionalFits"] = Special(check=_check_over_rho)
SPECIAL["BinaryMode"] = Special({"status": text(*PROBIT_STATUSES), "params": array("size")})
SPECIAL["Mode"] = Special(
    {"status": text(*STATUSES), "params": array("size"), "sigma": number(positive=True)}
)
SHARED: dict[str, Reader] = {
    # at rho = +-1, and if a two-step estimates |rho| > 1, some covariances do not exist
    "cov": array("size", "size", finite=False),
    "rho": number(finite=False),
    "over_rho": _over_rho,
    "near_boundary": flag,
    "n": whole,
    "n_selected": whole,
    "table": text(),
    "freedom": _freedom,
}
FIT = SHARED | {
    "method": text(*PARAMETERS),
    "covariance": text(*COVARIANCES),
    "params": array("size"),
    "sigma": number(positive=True),
    "loglik": number(finite=False),
    "status": text(*STATUSES),
    "modes": several(Mode),
    "cov_given_rho": maybe(array("size", "size", finite=False)),
}
PROBIT = SHARED | {
    "method": text(*PROBIT_PARAMETERS),
    "covariance": text(*COVARIANCES),
    "params": array("size", finite=False),
    "cov_given_rho": maybe(array("size", "size")),
    "loglik": number(),
    "status": text(*PROBIT_STATUSES),
    "modes": several(BinaryMode),
    "separation": maybe(text()),
}
