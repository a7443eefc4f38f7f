r"""A fit as text, HTML, LaTeX and plain dict."""

import math
import textwrap

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from heckesel import display as web
from heckesel.classical.covariance import Test, wald_test
from heckesel.classical.likelihood import LOG_DF_ENDS
from heckesel.classical.prediction import sigma_of
from heckesel.classical.rows import ALL_ROWS_UP_TO
from heckesel.data import SelectionData
from heckesel.display import (
    Summary,
    number_text,
    p_text,
    plain,
)
from heckesel.errors import DataError, printable
from heckesel.math.special import inverse_mills
from heckesel.math.truncated import mean_of_selection
from heckesel.tables.formula import FormulaDesign, evaluate_column
from heckesel.tables.frames import as_pandas

WIDTH = 78
NOTE_WIDTH = 82  # two tests of rho = 0 stay on one line
NAME_WIDTH = 21  # of a term; a longer one makes the table wider


def summary(fit, level: float) -> Summary:
    """Head, one block per equation, error parameters, tests, modes and the verdict."""
    frame = fit.to_frame(level)
    errors = error_rows(fit, level)
    notes = [*error_notes(fit), *test_notes(fit)]
    modes, why = mode_lines(fit), fit.selected_mode_reason if fit.selected else ""
    end = fit.separation_note
    extra = name_width(frame) - NAME_WIDTH
    lines = [
        *_head(fit, extra),
        *coefficient_block(frame, level, fit.data.y_name, fit.freedom),
        *_error_lines(errors, extra),
        *(line for note in notes for line in _wrapped(note)),
    ]
    if modes:
        lines += ["  Other maxima of the likelihood:", *(f"    {line}" for line in modes)]
        lines += _wrapped(why)
    lines += ["", *textwrap.wrap(f"Identification: {fit.identification}", WIDTH)]
    for detail in fit.identification.evidence_lines():
        lines += textwrap.wrap(detail, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if end:
        lines += ["", *textwrap.wrap(end, WIDTH)]
    listed = [f"Other maxima of the likelihood: {'; '.join(modes)}. {why}"] if modes else []
    html = web.block(
        web.heading(fit.title),
        web.facts([*options(fit), *numbers(fit)]),
        coefficient_html(frame, level, fit.data.y_name, fit.freedom, errors),
        web.paragraphs([*notes, *listed, *([end] if end else [])]),
        fit.identification.as_box(),
    )
    return Summary(printable("\n".join(lines)), html)


def _wrapped(sentence: str) -> list[str]:
    lines = textwrap.wrap(sentence, NOTE_WIDTH, initial_indent="  ", subsequent_indent="    ")
    return [line.replace(NO_BREAK, " ") for line in lines]


def name_width(frame) -> int:
    """Characters that the longest term of a coefficient frame needs."""
    return max(NAME_WIDTH, *(len(term) for _, term in frame.index))


def coefficient_block(
    frame, level: float, outcome_name: str, freedom: float = math.inf
) -> list[str]:
    """Ruled lines, one block for each equation of a coefficient frame."""
    width = name_width(frame)
    rule, letter = "-" * (WIDTH + width - NAME_WIDTH), letter_of(freedom)
    interval = f"[{100 * level:g}% interval]"
    names = f"{'coef':>11}{'std err':>11}{letter:>8}{f'P>|{letter}|':>7}{interval:>18}"
    lines = [rule, f"{'':<{width + 2}}{names}", rule]
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        lines.append(f"{heading_of(equation, outcome_name)}:")
        lines += [_row(term, row, width) for term, row in frame.loc[equation].iterrows()]
        lines.append(rule)
    return lines


def letter_of(freedom: float) -> str:
    """z, or t where estimates are compared with it."""
    return "z" if math.isinf(freedom) else "t"


def _row(term: str, row, width: int) -> str:
    return (
        f"  {term:<{width}}{number_text(row.coef):>11}{number_text(row.se):>11}{row.z:>8.2f}"
        f"{row.p:>7.3f}{end_text(row.low):>9}{end_text(row.high):>9}"
    )


def end_text(value: float) -> str:
    """An end of an interval in at most eight characters, so that columns do not touch."""
    found = [number_text(value, digits) for digits in (3, 2, 1)]
    return next((text for text in found if len(text) <= 8), found[-1])


def _head(fit, extra: int) -> list[str]:
    """extra : by how many characters the table is wider than `WIDTH`"""
    left = [fit.title, *(f"{name}: {value}" for name, value in options(fit))]
    right = numbers(fit)
    right += [("", "")] * (len(left) - len(right))
    return [
        f"{a:<{44 + extra}}{b:<18}{'=' if b else ' '}{c:>15}"
        for a, (b, c) in zip(left, right, strict=True)
    ]


def _error_lines(errors, extra: int) -> list[str]:
    lines = []
    for name, value, interval in errors:
        text = f"  {name:<{NAME_WIDTH + extra}}{number_text(value):>11}"
        if interval is not None:
            low, high = map(end_text, interval)
            text += f"{'':>26}{low:>9}{high:>9}"
        lines.append(text)
    return lines


def coefficient_html(
    frame, level: float, outcome_name: str, freedom: float = math.inf, errors=()
) -> str:
    """The same as an HTML table; errors : `error_rows`"""
    letter = letter_of(freedom)
    rows: list[str | tuple[str, ...]] = []
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        rows.append(heading_of(equation, outcome_name))
        for term, row in frame.loc[equation].iterrows():
            ends = (number_text(row.low, 3), number_text(row.high, 3))
            estimate = (number_text(row.coef), number_text(row.se))
            rows.append((term, *estimate, f"{row.z:.2f}", p_text(row.p), *ends))
    for at, (name, value, interval) in enumerate(errors):
        if at == 0:
            rows.append(" and ".join(name for name, *_ in errors))
        shown = ["", ""] if interval is None else [number_text(end, 3) for end in interval]
        rows.append((name, number_text(value), "", "", "", *shown))
    share = f"{100 * level:g}%"
    head = ("", "coef", "std err", letter, f"P>|{letter}|", f"{share} low", f"{share} high")
    return web.html_table(head, rows)


def as_dict(fit, level: float) -> dict:
    """Everything in the summary, JSON-safe: numbers that do not exist are None."""
    about = ("errors", "status", "near_boundary", "n", "n_selected", "loglik", "rho", "sigma", "df")
    of_modes = ("rho", "sigma", "loglik", "status", "near_boundary")
    found = {
        "method": fit.method,
        "covariance": fit.covariance,
        "inference": fit.inference,
        "degrees_of_freedom": fit.freedom,
        **{name: getattr(fit, name) for name in (*about, "skewness", "tail")},
        "level": level,
        "terms": fit.to_frame(level).reset_index().to_dict("records"),
        "modes": [{name: getattr(mode, name) for name in of_modes} for mode in fit.modes],
        "selected_mode": fit.selected if fit.modes else None,
        "selected_mode_reason": fit.selected_mode_reason,
        "identification": fit.identification.to_dict(),
    }
    return plain(found)


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
    if fit.has_scale and hasattr(fit.data, "scale"):  # files keep no rows
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
    by_score = fit.prefers_score
    kinds = {"score": by_score, "Wald": not by_score, "LR": _has_likelihood_ratio(fit)}
    tests = {name: fit.test_rho_zero(name.lower()) for name, use in kinds.items() if use}
    listed = _listed(tests)
    notes = [f"Test of rho = 0: {listed}"] if listed else []
    if fit.errors == "shape" or fit.has_scale:
        notes += _tests_of_errors(fit, lr=tests.get("LR") is not None and fit.n <= ALL_ROWS_UP_TO)
    if fit.inference == "profile":
        notes.append(
            "P-values and intervals of the outcome equation come from the profile likelihood, "
            "which holds with any instrument, not from std err."
        )
    elif fit.method == "ml" and not fit.wald_holds:
        notes.append(
            "These intervals assume strong instruments and can be far too narrow without."
            + " The score test of rho = 0 is valid." * by_score
        )
    return notes


def _has_likelihood_ratio(fit) -> bool:
    """Where rho is hardly identified the likelihood-ratio test of rho = 0 rejects too often."""
    independent = fit.weight_kind == "frequency" and fit.covariance != "cluster"
    return fit.method == "ml" and independent and fit.inference == "wald"


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


HEADINGS = {
    "select": "selection",
    "mills": "Mills ratio",
    "ancillary": "errors",
    "scale": "log sigma",
}


def heading_of(equation: str, outcome: str) -> str:
    """The heading of an equation; that of the outcome is the name of the outcome."""
    return HEADINGS.get(equation, outcome)


# What describes a fit in one row; a fit has the entries that it has a value for.
FACTS = (
    "nobs",
    "n_selected",
    "df_model",
    "df_resid",
    "rho",
    "sigma",
    "loglik",
    "loglik_constant",
    "pseudo_r2",
    "aic",
    "bic",
    "method",
    "errors",
    "covariance",
    "inference",
    "status",
)
TIDY = {
    "coef": "estimate",
    "se": "std_error",
    "z": "statistic",
    "p": "p_value",
    "low": "low",
    "high": "high",
}


ADDED = ("selected", "fitted", "fitted_selected", "residual", "p_selected", "inverse_mills")


def augment(fit, data) -> pd.DataFrame:
    """The rows with fitted values; `data` : new rows of a fit from formulas, or None."""
    frame, x, w, scale, y, s = _rows_of_fit(fit) if data is None else _new_rows(fit, data)
    taken = [name for name in ADDED if name in frame.columns]
    if taken:
        raise DataError(f"augment() adds a column {taken[0]!r}, which the data has; rename it")
    return frame.assign(**_added(fit, x, w, scale, y, s))


def augment_probit(fit, data) -> pd.DataFrame:
    """The rows of a probit with the probability; `data` : a frame"""
    frame = as_pandas(data)
    taken = [name for name in ("fitted", "residual") if name in frame.columns]
    if taken:
        raise DataError(f"augment() adds a column {taken[0]!r}, which the data has; rename it")
    fitted = fit.predict(frame)
    return frame.assign(fitted=fitted, residual=_outcome(fit.name, frame) - fitted)


def _rows_of_fit(fit) -> tuple:
    data, design = fit.data, getattr(fit, "design", None)
    if not isinstance(data, SelectionData):
        raise DataError(
            "augment() needs rows, but this fit was loaded or read from files and has none; pass "
            "a frame: augment(frame)"
        )
    if isinstance(design, FormulaDesign) and design.frame is not None:
        frame = design.frame.assign(**{data.y_name: data.y})
    else:
        columns = dict(zip(data.x_names, data.x.T, strict=True))
        columns |= dict(zip(data.w_names, data.w.T, strict=True))  # which is complete
        columns.pop("Intercept", None)
        frame = pd.DataFrame(columns | {data.y_name: data.y})
    return frame, data.x, data.w, data.scale, data.y, data.s


def _new_rows(fit, data) -> tuple:
    design = getattr(fit, "design", None)
    if not isinstance(design, FormulaDesign):
        raise DataError(
            "augment(frame) needs a fit from formulas; omit frame to get the rows of the fit"
        )
    frame = as_pandas(data)
    if getattr(fit, "transform", None) is not None:
        raise DataError(
            f"augment() is on the scale {fit.data.y_name}, and new rows have another; use predict"
        )
    y = _outcome(fit.data.y_name, frame)
    matrices = (part(frame) for part in (design.outcome_matrix, design.selection_matrix))
    return frame, *matrices, design.scale_matrix(frame), y, ~np.isnan(y)


def _outcome(name: str, frame: pd.DataFrame) -> np.ndarray:
    """The outcome in new rows, missing if a column of its formula is missing."""
    try:
        return evaluate_column(name, frame, "outcome")
    except DataError:
        return np.full(len(frame), np.nan)


def _added(fit, x, w, scale, y, s) -> dict[str, np.ndarray]:
    """The columns of `ADDED`. NaN where x is not known, as that of unselected units may be."""
    known = np.isfinite(x).all(axis=1)
    if scale is not None:
        known &= np.isfinite(scale).all(axis=1)

    def fitted(target: str) -> np.ndarray:
        values = np.full(len(x), np.nan)
        part = None if scale is None else scale[known]
        values[known] = fit.means(target).outcome(fit, x[known], w[known], part)[0]
        return values

    everyone = fitted("population")
    chosen = fitted("selected") if fit.has_selection else everyone
    found = {"selected": s, "fitted": everyone, "fitted_selected": chosen}
    found["residual"] = np.where(s, y - chosen, np.nan)
    if fit.has_selection:
        found["p_selected"], found["inverse_mills"] = _selection(fit, w)
    return found


def _selection(fit, w) -> tuple[np.ndarray, np.ndarray]:
    """P(s = 1) and E[u | s = 1], with normal errors the inverse Mills ratio."""
    index = w @ fit.params["select"].to_numpy()
    if np.isinf(fit.df):
        return ndtr(index), inverse_mills(index)
    mean = mean_of_selection(index, fit.df)[0] if fit.df > 1 else np.full(len(index), np.nan)
    return stdtr(fit.df, index), mean
