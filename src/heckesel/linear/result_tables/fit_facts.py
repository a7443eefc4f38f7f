"""The contents of a summary other than the coefficients, before layout."""

import math

import numpy as np

from heckesel.display import number_text
from heckesel.linear.forms.error_models import LOG_DF_ENDS
from heckesel.linear.results.error_parameters import prefers_score
from heckesel.linear.results.inference import Test
from heckesel.linear.results.prediction import sigma_of
from heckesel.linear.sample.sample import ALL_ROWS_UP_TO
from heckesel.linear.wald import wald_test

NAMES = {"ml": "maximum likelihood"}  # other methods go by their own names
NO_BREAK = "\N{NO-BREAK SPACE}"  # inside a test, so that no line ends there
INFERENCE = {"wald": "Wald", "profile": "profile likelihood"}
ERRORS = {"normal": "", "t": ", t errors", "shape": ", shape errors"}


def covariance_words(fit) -> str:
    """The kind of covariance, and what clusters compare estimates with."""
    if math.isinf(fit.freedom):
        return fit.covariance
    return f"{fit.freedom + 1:.0f} clusters, t({fit.freedom:.0f})"


def options(fit) -> list[tuple[str, str]]:
    """How the fit was made, and how it ended."""
    return [
        ("Method", f"{NAMES.get(fit.method, fit.method)}{ERRORS[fit.errors]}"),
        ("Covariance", covariance_words(fit)),
        ("Status", fit.status + (", |rho| > .99" if fit.near_boundary else "")),
        ("P-values and intervals", INFERENCE[fit.inference]),
    ]


def numbers(fit) -> list[tuple[str, str]]:
    """Units, the Wald test of all slopes, and the log-likelihood."""
    found = [("Units", f"{fit.n:,}"), ("Selected", f"{fit.n_selected:,}")]
    slopes = [("outcome", name) for name in fit.params["outcome"].index if name != "Intercept"]
    if slopes:
        statistic, _ = wald_test(
            fit.params[slopes].to_numpy(), fit.cov.loc[slopes, slopes].to_numpy()
        )
        if math.isfinite(statistic):  # there is none where slopes have no standard errors
            name, shown = str(Test(statistic, len(slopes), math.nan, fit.freedom)).split(" = ")
            found.append((f"Wald {name}", shown))
    if math.isfinite(fit.loglik):
        found.append(("Log-likelihood", f"{fit.loglik:.4f}"))
    return found


def error_rows(fit, level: float) -> list[tuple[str, float, tuple[float, float] | None]]:
    """Name, value and interval, if there is one, of each parameter of the errors."""
    has_interval = fit.method == "ml" and (fit.status == "converged" or fit.inference == "profile")
    return [
        (name, getattr(fit, name), fit.interval(name, level) if has_interval else None)
        for name in fit.error_parameters
    ]


def error_notes(fit) -> list[str]:
    """Sentences about the parameters of the errors."""
    if not fit.has_selection:
        return []
    notes = []
    if fit.method == "two-step" and abs(fit.rho) > 1:
        notes.append(
            "rho lies outside [-1, 1], because the two-step does not restrict it; try method='ml'"
        )
    if fit.errors == "t" and abs(fit.params["ancillary", "log_df"] - LOG_DF_ENDS[1]) < 1e-3:
        notes.append("df is at its upper limit (nearly normal errors), so it has no standard error")
    if fit.df <= 2:
        notes.append("df is at most 2, so the errors have no finite variance")
    if fit.errors == "shape" and np.isfinite(fit.se["ancillary", "log_sigma"]):
        for name, label in (("skewness", "skewness"), ("tail", "log_tail")):
            if np.isnan(fit.se["ancillary", label]):
                notes.append(f"{name} is at a limit of its range, so it has no standard error")
    if _has_scale(fit) and hasattr(fit.data, "scale"):  # files keep no rows
        notes.append(_sigma_range(fit))
    return notes


def _sigma_range(fit) -> str:
    """sigma(x) over the selected rows: the parameter itself is sigma where the columns are zero."""
    sigma = sigma_of(fit, fit.data.scale[fit.data.s])
    low, middle, high = map(number_text, np.quantile(sigma, [0.05, 0.5, 0.95]))
    return (
        "The sigma above is its value where all columns of log sigma are zero. Among selected "
        f"units, 90% of sigma(x) lie between {low} and {high}; the median is {middle}."
    )


def test_notes(fit) -> list[str]:
    """The tests of rho = 0 and of the error model, with notes on their validity."""
    if not fit.has_selection or fit.status == "separated":
        return []
    by_score = prefers_score(fit)
    kinds = {"score": by_score, "Wald": not by_score, "LR": _has_likelihood_ratio(fit)}
    tests = {name: fit.test_rho_zero(name.lower()) for name, use in kinds.items() if use}
    listed = _listed(tests)
    notes = [f"Test of rho = 0: {listed}"] if listed else []
    if fit.errors == "shape" or _has_scale(fit):
        notes += _tests_of_errors(fit, lr=tests.get("LR") is not None and fit.n <= ALL_ROWS_UP_TO)
    if fit.inference == "profile":
        notes.append(
            "The instruments, if any, are too weak for Wald inference: p-values and intervals "
            "of the outcome equation come from the profile likelihood, not from std err."
        )
    elif fit.method == "ml" and not fit.wald_holds:
        notes.append(
            "The instruments, if any, are too weak for Wald inference: these intervals can be "
            "far too narrow." + " The score test of rho = 0 is valid." * by_score
        )
    return notes


def _has_likelihood_ratio(fit) -> bool:
    """Where rho is hardly identified the likelihood-ratio test of rho = 0 rejects too often."""
    independent = fit.weight_kind == "frequency" and fit.covariance != "cluster"
    return fit.method == "ml" and independent and fit.inference == "wald"


def _has_scale(fit) -> bool:
    return "scale" in fit.params.index.get_level_values(0)


def _tests_of_errors(fit, *, lr: bool) -> list[str]:
    """lr : whether to fit the smaller models, too"""
    tests = {"Wald": fit.test_errors("wald")} | ({"LR": fit.test_errors("lr")} if lr else {})
    return [
        f"Test of {name}: "
        + (_listed({kind: each[name] for kind, each in tests.items()}) or "not possible")
        for name in tests["Wald"]
    ]


def _listed(tests: dict) -> str:
    """Those that exist: a parameter at an end of its range has no Wald test."""
    return "; ".join(
        f"{name} {test}, {_p_of(test)}".replace(" ", NO_BREAK)
        for name, test in tests.items()
        if name != "Wald" or np.isfinite(test.statistic)
    )


def _p_of(test: Test) -> str:
    return "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.4f}"


def mode_lines(fit) -> list[str]:
    """Other local maxima, if the data has any."""
    lines = []
    for mode in fit.modes[: fit.selected] + fit.modes[fit.selected + 1 :]:
        where = f"rho {mode.rho:.4f}"
        if mode.status == "boundary" and mode.near_boundary:
            where = f"rho {'+' if mode.rho > 0 else '-'}1 (at the boundary)"
        lines.append(f"{where}, log-likelihood {mode.loglik:.4f} ({mode.loglik - fit.loglik:+.2f})")
    return lines
