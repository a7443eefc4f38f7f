"""A-E0, the faithfulness gate: no experiment runs until the classic estimators are right.

RAND HIE as in Cameron & Trivedi (2005), section 16.6: R's full-precision coefficients and standard
errors within 1e-6, and the digits that their Stata log prints. Wooldridge's and Greene's Mroz
examples. Synthetic data with a known truth.

A computed value should be within 0.6 units of the last printed place. The rows count how many are
not. There are two reasons:

* the shipped RAND HIE table has seven significant digits, which changes coefficients by up to
  INPUT_ROUNDING and the log-likelihood by 4e-5 (with all digits of R's copy of the data both agree
  with R to 1e-11);
* Stata's optimizer stops up to one unit from the optimum that R and we find.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.classical.probit_results import probit
from heckesel.datasets import load_mroz, load_rand_hie
from heckesel.datasets.shipped import FILES, REGRESSORS
from heckesel.selection_model import heckman
from reproduction.result_files import read_reference
from reproduction.runner import attempt

PRINTED_UNITS = 0.6
INPUT_ROUNDING = 2e-7
FULL_PRECISION = 1e-6
LOGLIK_TOLERANCE = 1e-4
RIGHT = " + ".join(REGRESSORS)
GREENE_PRINTED_LOGLIK, GREENE_PRINTED_RHO = -1581.2577, -0.132
DATA_HASHES = {name: FILES[name] for name in ("rand_hie.csv.gz", "mroz.csv.gz")}
chunk_of = "all".format


@dataclass(frozen=True)
class Cell:
    data: str
    method: str


def cells(quick: bool = False) -> list[Cell]:
    """The gate takes seconds, so it has no small version."""
    both = ("two-step", "ml")
    grid = {
        "rand_hie": ("probit", *both),
        "mroz_wooldridge": both,
        "mroz_greene": ("ml",),
        "synthetic_rho_0.6": both,
        "synthetic_rho_0.0": both,
    }
    return [Cell(data, method) for data, methods in grid.items() for method in methods]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return [attempt(run_cell, cell) for cell in cells]


def run_cell(cell: Cell) -> dict[str, float]:
    """Estimates and deviations; `passed` is 1.0 if the cell passes the gate."""
    if cell.data == "rand_hie":
        return _rand_hie_probit() if cell.method == "probit" else _rand_hie(cell.method)
    if cell.data == "mroz_wooldridge":
        return _mroz_wooldridge(cell.method)
    if cell.data == "mroz_greene":
        return _mroz_greene()
    return _synthetic(float(cell.data.rpartition("_")[2]), cell.method)


def fit_rand_hie(method: str):
    """The published specification: 17 regressors in both equations, no instrument."""
    frame = load_rand_hie("cameron_trivedi")
    return heckman(f"lnmeddol ~ {RIGHT}", f"~ {RIGHT}", frame, method=method)


def fit_mroz_greene():
    """Greene's example: the wage itself, with columns that hardly determine rho."""
    frame = load_mroz()
    frame["kids"] = (frame.kidslt6 + frame.kidsge6 > 0).astype(float)
    select = "~ age + I(age**2) + faminc + kids + educ"
    return heckman("wage ~ exper + I(exper**2) + educ + city", select, frame)


def last_place(printed: str) -> float:
    """One unit of the last printed place: 1e-7 for .0269005."""
    mantissa, _, exponent = printed.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _rand_hie_probit() -> dict[str, float]:
    known = read_reference("rand_hie")
    fit = probit(f"binexp ~ {RIGHT}", load_rand_hie("cameron_trivedi"))
    row = _against_print(fit, {"select": known["probit"]["coefficients"]}, known)
    return {"loglik": fit.loglik} | row


def _rand_hie(method: str) -> dict[str, float]:
    known = read_reference("rand_hie")
    key = "two_step" if method == "two-step" else "mle"
    printed, full = known[key], known["full_precision"][key]
    fit = fit_rand_hie(method)
    row = {"n": float(fit.n), "n_selected": float(fit.n_selected), "rho": fit.rho}
    row |= {"sigma": fit.sigma, "largest_full_deviation": _largest_full(fit, full)}
    equations = {"outcome": printed["outcome"], "select": printed["selection"]}
    row |= _against_print(fit, equations, known)
    if method == "ml":
        row |= {
            "loglik": fit.loglik,
            "loglik_deviation": abs(fit.loglik - full["loglik"]),
            "loglik_printed_deviation": abs(fit.loglik - float(printed["loglik_3dp"])),
            "lr_rho_zero": fit.test_rho_zero("lr").statistic,
        }
        pairs = [(fit.rho, printed["rho"]["coef"]), (fit.sigma, printed["sigma"]["coef"])]
    else:
        row["lambda"] = float(fit.params["mills", "lambda"])
        pairs = [(fit.rho, printed["rho"]), (fit.sigma, printed["sigma"])]
        pairs.append((row["lambda"], printed["lambda"]["coef"]))
    row["macro_deviation"] = max(abs(value - float(text)) for value, text in pairs)
    row["passed"] *= row["largest_full_deviation"] <= FULL_PRECISION
    row["passed"] *= row.get("loglik_deviation", 0.0) <= LOGLIK_TOLERANCE
    return row


def _against_print(fit, equations: dict, known: dict) -> dict[str, float]:
    """How far the printed coefficients and standard errors are, in units of their last place."""
    found = []
    for equation, rows in equations.items():
        for stata, figures in rows.items():
            term = (equation, known["column_of"][stata].replace("_cons", "Intercept"))
            for value, text in ((fit.params[term], figures["coef"]), (fit.se[term], figures["se"])):
                unit = last_place(text)
                found.append((abs(value - float(text)) / unit, unit))
    off, units = np.array(found).T
    return {
        "printed_figures": float(len(off)),
        "printed_beyond_0.6_unit": float(np.sum(off > PRINTED_UNITS)),
        "largest_printed_deviation": float(max(off)),
        "passed": float(np.all(off <= PRINTED_UNITS + INPUT_ROUNDING / units)),
    }


def _largest_full(fit, full: dict) -> float:
    """The coefficients of R are in the order of the formula, as ours are."""
    off = [abs(fit.rho - full["rho"]), abs(fit.sigma - full["sigma"])]
    for theirs, ours in (("outcome", "outcome"), ("selection", "select")):
        coefficients = np.array(list(full[theirs].values()))
        errors = np.array(list(full[f"{theirs}_se"].values()))
        off.append(np.abs(fit.params[ours].to_numpy() - coefficients).max())
        off.append(np.abs(fit.se[ours].to_numpy() - errors).max())
    return float(max(off))


def _mroz_wooldridge(method: str) -> dict[str, float]:
    full = read_reference("mroz")["full_precision"]["two_step" if method == "two-step" else "mle"]
    fit = heckman(
        "lwage ~ educ + exper + expersq",
        "~ nwifeinc + educ + exper + expersq + age + kidslt6 + kidsge6",
        load_mroz(),
        method=method,
    )
    exact = _largest_full(fit, full)
    row = {"rho": fit.rho, "sigma": fit.sigma, "largest_full_deviation": exact}
    return row | {"passed": float(exact <= FULL_PRECISION)}


def _mroz_greene() -> dict[str, float]:
    """The printed optimum is a local one; the global one is a hundred log-units above it."""
    fit = fit_mroz_greene()
    interior = [mode for mode in fit.modes if mode.status == "converged"]
    printed = min(interior, key=lambda mode: abs(mode.loglik - GREENE_PRINTED_LOGLIK))
    passed = (
        abs(printed.loglik - GREENE_PRINTED_LOGLIK) <= 0.6e-4
        and abs(printed.rho - GREENE_PRINTED_RHO) <= 0.6e-3
        and fit.loglik > printed.loglik
        and fit.near_boundary
    )
    return {
        "rho": fit.rho,
        "loglik": fit.loglik,
        "near_boundary": float(fit.near_boundary),
        "modes": float(len(fit.modes)),
        "printed_mode_rho": printed.rho,
        "printed_mode_loglik": printed.loglik,
        "passed": float(passed),
    }


def draw_linear(n: int, *, rho: float, seed: int) -> pd.DataFrame:
    """y = 1 + 2 x + e with sd 1.5; s = [0.3 - 0.5 x + z + u > 0]; corr(u, e) = rho."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    y = 1 + 2 * x + 1.5 * (rho * u + np.sqrt(1 - rho**2) * v)
    return pd.DataFrame({"x": x, "z": z, "y": np.where(0.3 - 0.5 * x + z + u > 0, y, np.nan)})


def _synthetic(rho: float, method: str) -> dict[str, float]:
    """The truth is within four standard errors; least squares on the selected is biased unless rho
    = 0."""
    frame = draw_linear(100_000, rho=rho, seed=7)
    fit = heckman("y ~ x", "~ x + z", frame, method=method)
    truth = {("outcome", "Intercept"): 1, ("outcome", "x"): 2}
    if method == "ml":
        truth |= {("ancillary", "atanh_rho"): np.arctanh(rho)}
        truth |= {("ancillary", "log_sigma"): np.log(1.5)}
    z_scores = [(fit.params[term] - value) / fit.se[term] for term, value in truth.items()]
    observed = frame.dropna()
    naive = np.polyfit(observed.x, observed.y, 1)
    naive_bias = float(np.abs(naive[::-1] - [1.0, 2.0]).max())
    largest = float(np.abs(z_scores).max())
    passed = largest < 4 and (naive_bias > 0.1 if rho else naive_bias < 0.03)
    row = {"rho": fit.rho, "sigma": fit.sigma, "largest_z": largest}
    return row | {"least_squares_bias": naive_bias, "passed": float(passed)}
