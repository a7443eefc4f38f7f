"""A fit as text, LaTeX and plain dict."""

import math
import textwrap

import numpy as np

from heckesel.errors import printable
from heckesel.linear.forms.error_models import LOG_DF_ENDS
from heckesel.linear.results.error_parameters import prefers_score
from heckesel.linear.results.inference import Test
from heckesel.linear.results.prediction import sigma_of
from heckesel.linear.sample.sample import ALL_ROWS_UP_TO
from heckesel.linear.wald import wald_test

WIDTH = 78
NAMES = {"ml": "maximum likelihood"}  # other methods go by their own names
LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
    }
)
HEADINGS = {
    "select": "selection",
    "mills": "Mills ratio",
    "ancillary": "errors",
    "scale": "log sigma",
}
INFERENCE = {"wald": "Wald", "profile": "profile likelihood"}
ERRORS = {"normal": "", "t": ", t errors", "shape": ", shape errors"}


def summary(fit, level: float) -> str:
    """Head, one block per equation, error parameters, tests, modes and the verdict."""
    frame = fit.to_frame(level)
    lines = [*_head(fit), *coefficient_block(frame, level, fit.data.y_name, fit.freedom)]
    lines += [*_errors(fit, level), *_tests(fit), *_modes(fit)]
    lines.append("")
    lines += textwrap.wrap(f"Identification: {fit.identification}", WIDTH)
    for detail in fit.identification.details():
        lines += textwrap.wrap(detail, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return printable("\n".join(lines))


def covariance_words(fit) -> str:
    """The kind of covariance, and what clusters compare estimates with."""
    if math.isinf(fit.freedom):
        return fit.covariance
    return f"{fit.freedom + 1:.0f} clusters, t({fit.freedom:.0f})"


def coefficient_block(
    frame, level: float, outcome_name: str, freedom: float = math.inf
) -> list[str]:
    """Ruled lines, one block for each equation of a coefficient frame."""
    lines = ["-" * WIDTH, _columns(level, "z" if math.isinf(freedom) else "t"), "-" * WIDTH]
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        lines.append(f"{HEADINGS.get(equation, outcome_name)}:")
        lines += [_row(term, row) for term, row in frame.loc[equation].iterrows()]
        lines.append("-" * WIDTH)
    return lines


def _head(fit) -> list[str]:
    left = [
        fit.title,
        f"Method: {NAMES.get(fit.method, fit.method)}{ERRORS[fit.errors]}",
        f"Covariance: {covariance_words(fit)}",
        f"Status: {fit.status}" + (", |rho| > .99" if fit.near_boundary else ""),
        f"P-values and intervals: {INFERENCE[fit.inference]}",
    ]
    right = [("Units", f"{fit.n:,}"), ("Selected", f"{fit.n_selected:,}")]
    slopes = [("outcome", name) for name in fit.params["outcome"].index if name != "Intercept"]
    if slopes:
        statistic, _ = wald_test(
            fit.params[slopes].to_numpy(), fit.cov.loc[slopes, slopes].to_numpy()
        )
        name, shown = str(Test(statistic, len(slopes), math.nan, fit.freedom)).split(" = ")
        right.append((f"Wald {name}", shown))
    if math.isfinite(fit.loglik):
        right.append(("Log-likelihood", f"{fit.loglik:.4f}"))
    right += [("", "")] * (len(left) - len(right))
    return [
        f"{a:<44}{b:<18}{'=' if b else ' '}{c:>15}" for a, (b, c) in zip(left, right, strict=True)
    ]


def _columns(level: float, letter: str) -> str:
    interval = f"[{100 * level:g}% interval]"
    return f"{'':<23}{'coef':>11}{'std err':>11}{letter:>8}{f'P>|{letter}|':>7}{interval:>18}"


def _row(term, row) -> str:
    name = term if len(term) <= 21 else term[:20] + "…"
    return (
        f"  {name:<21}{_number(row.coef):>11}{_number(row.se):>11}{row.z:>8.2f}{row.p:>7.3f}"
        f"{_number(row.low, 3):>9}{_number(row.high, 3):>9}"
    )


def _number(value: float, digits: int = 4) -> str:
    if not math.isfinite(value):
        return f"{value}"
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e5):
        return f"{value:.{max(digits - 2, 1)}e}"
    return f"{value:.{digits}f}"


def _errors(fit, level: float) -> list[str]:
    if not fit.has_selection:
        return [f"  {name:<21}{getattr(fit, name):>11.4f}" for name in fit.error_parameters]
    lines = []
    for name in fit.error_parameters:
        text = f"  {name:<21}{_number(getattr(fit, name)):>11}"
        if fit.method == "ml" and (fit.status == "converged" or fit.inference == "profile"):
            low, high = fit.interval(name, level)
            text += f"{'':>26}{_number(low, 3):>9}{_number(high, 3):>9}"
        lines.append(text)
    if fit.method == "two-step" and abs(fit.rho) > 1:
        lines.append(
            "  rho lies outside [-1, 1]: the two steps do not restrict it; try method='ml'"
        )
    if fit.errors == "t" and abs(fit.params["ancillary", "log_df"] - LOG_DF_ENDS[1]) < 1e-3:
        lines.append("  df is at its upper end: as good as normal, so it has no standard error")
    if fit.df <= 2:
        lines.append("  df is at most 2: the errors have no finite variance")
    if fit.errors == "shape" and np.isfinite(fit.se["ancillary", "log_sigma"]):
        for name, label in (("skewness", "skewness"), ("tail", "log_tail")):
            if np.isnan(fit.se["ancillary", label]):
                lines.append(f"  {name} is at an end of its range, so it has no standard error")
    if _has_scale(fit) and hasattr(fit.data, "scale"):  # files keep no rows
        lines += _sigma_range(fit)
    return lines


def _sigma_range(fit) -> list[str]:
    """sigma(x) over the selected rows: the parameter itself is sigma where the columns are zero."""
    low, middle, high = np.quantile(sigma_of(fit, fit.data.scale[fit.data.s]), [0.05, 0.5, 0.95])
    return [
        "  sigma above is that where the columns of log sigma are zero. Among the selected",
        f"  90% of sigma(x) lie from {_number(low)} to {_number(high)}, the median is "
        f"{_number(middle)}.",
    ]


def _tests(fit) -> list[str]:
    if not fit.has_selection or fit.status == "separated":
        return []
    by_score = prefers_score(fit)
    kinds = {"score": by_score, "Wald": not by_score, "LR": _has_likelihood_ratio(fit)}
    tests = {name: fit.test_rho_zero(name.lower()) for name, use in kinds.items() if use}
    listed = _listed(tests)
    lines = [f"  Test of rho = 0: {listed}"] if listed else []
    if fit.errors == "shape" or _has_scale(fit):
        lines += _tests_of_errors(fit, lr=tests.get("LR") is not None and fit.n <= ALL_ROWS_UP_TO)
    if fit.inference == "profile":
        lines += [
            "  The instruments, if any, identify rho too weakly for Wald inference: intervals",
            "  and p-values of the outcome equation use the profile likelihood, not std err.",
        ]
    elif fit.method == "ml" and not fit.wald_holds:
        lines += [
            "  The instruments, if any, are too weak for Wald tests and intervals, which can be",
            "  far too narrow; the score test of rho = 0 is valid.",
        ]
    return lines


def _has_likelihood_ratio(fit) -> bool:
    """Where rho is hardly identified the likelihood-ratio test of rho = 0 rejects too often."""
    independent = fit.weight_kind == "frequency" and fit.covariance != "cluster"
    return fit.method == "ml" and independent and fit.inference == "wald"


def _has_scale(fit) -> bool:
    return "scale" in fit.params.index.get_level_values(0)


def _tests_of_errors(fit, *, lr: bool) -> list[str]:
    """lr : whether to fit the smaller models, too"""
    tests = {"Wald": fit.test_errors("wald")} | ({"LR": fit.test_errors("lr")} if lr else {})
    lines = []
    for name in tests["Wald"]:
        shown = _listed({kind: each[name] for kind, each in tests.items()}) or "not possible"
        lines += textwrap.wrap(
            f"Test of {name}: {shown}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )
    return lines


def _listed(tests: dict) -> str:
    """Those that exist: a parameter at an end of its range has no Wald test."""
    return "; ".join(
        f"{name} {test}, p = {test.p_value:.4f}"
        for name, test in tests.items()
        if name != "Wald" or np.isfinite(test.statistic)
    )


def _modes(fit) -> list[str]:
    """Other local maxima, if the data has any, and why they are not used."""
    if len(fit.modes) < 2:
        return []
    lines = ["  Other maxima of the likelihood:"]
    for mode in fit.modes[: fit.selected] + fit.modes[fit.selected + 1 :]:
        where = f"rho {mode.rho:.4f}"
        if mode.status == "boundary" and mode.near_boundary:
            where = f"rho {'+' if mode.rho > 0 else '-'}1 (at the boundary)"
        lines.append(
            f"    {where}, log-likelihood {mode.loglik:.4f} ({mode.loglik - fit.loglik:+.2f})"
        )
    if fit.selected:
        lines += textwrap.wrap(
            fit.selected_mode_reason, WIDTH, initial_indent="  ", subsequent_indent="  "
        )
    return lines


def latex(fit, level: float) -> str:
    """A booktabs table, one block per equation."""
    frame, letter = fit.to_frame(level), "z" if math.isinf(fit.freedom) else "t"
    lines = [
        r"\begin{tabular}{lrrrrrr}",
        r"\toprule",
        rf" & coef & std err & ${letter}$ & $P>|{letter}|$ & "
        rf"\multicolumn{{2}}{{c}}{{{100 * level:g}\% interval}} \\",
    ]
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        heading = HEADINGS.get(equation, fit.data.y_name)
        lines += [r"\midrule", rf"\multicolumn{{7}}{{l}}{{\textit{{{_escape(heading)}}}}} \\"]
        for term, row in frame.loc[equation].iterrows():
            numbers = [row.coef, row.se, row.z, row.p, row.low, row.high]
            digits = [4, 4, 2, 3, 3, 3]
            shown = [_math(_number(value, d)) for value, d in zip(numbers, digits, strict=True)]
            lines.append(rf"{_escape(term)} & {' & '.join(shown)} \\")
    lines += [
        r"\midrule",
        rf"\multicolumn{{7}}{{l}}{{$\rho = {fit.rho:.4f}$, $\sigma = {fit.sigma:.4f}$, "
        rf"{fit.n_selected} of {fit.n} selected; {_escape(fit.identification.verdict)}; "
        rf"p-values and intervals: {INFERENCE[fit.inference]}}} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.translate(LATEX)


def _math(number: str) -> str:
    return f"${number}$" if number.startswith("-") or "e" in number else number


def as_dict(fit, level: float) -> dict:
    """Everything in the summary, JSON-safe: numbers that do not exist are None."""
    about = ("errors", "status", "near_boundary", "n", "n_selected", "loglik", "rho", "sigma", "df")
    of_modes = ("rho", "sigma", "loglik", "status", "near_boundary")
    return {
        "method": fit.method,
        "covariance": fit.covariance,
        "inference": fit.inference,
        "degrees_of_freedom": _plain(fit.freedom),
        **{name: _plain(getattr(fit, name)) for name in (*about, "skewness", "tail")},
        "level": level,
        "terms": [
            {"equation": equation, "term": term}
            | {column: _plain(value) for column, value in row.items()}
            for (equation, term), row in fit.to_frame(level).iterrows()
        ],
        "modes": [{name: getattr(mode, name) for name in of_modes} for mode in fit.modes],
        "selected_mode": fit.selected if fit.modes else None,
        "selected_mode_reason": fit.selected_mode_reason,
        "identification": {
            name: getattr(fit.identification, name) for name in ("verdict", "sentence", "evidence")
        },
    }


def _plain(value):
    if not isinstance(value, float):
        return value
    return float(value) if math.isfinite(value) else None
