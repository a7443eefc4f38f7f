"""A fit as text, LaTeX and plain dict."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from heckesel.diagnostics.verdict import FUNCTIONAL_FORM, NOT_IDENTIFIED
from heckesel.errors import printable
from heckesel.linear.forms.error_models import LOG_DF_ENDS
from heckesel.linear.results.inference import Test
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
HEADINGS = {"select": "selection", "mills": "Mills ratio", "ancillary": "errors"}


def summary(fit, level: float) -> str:
    """Head, one block per equation, error parameters, tests, modes and the verdict."""
    frame = fit.to_frame(level)
    lines = [*_head(fit), *coefficient_block(frame, level, fit.data.y_name, _freedom(fit))]
    lines += [*_errors(fit, level), *_tests(fit), *_modes(fit)]
    lines.append("")
    lines += textwrap.wrap(f"Identification: {fit.identification}", WIDTH)
    for detail in fit.identification.details():
        lines += textwrap.wrap(detail, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return printable("\n".join(lines))


def _freedom(fit) -> float:
    return getattr(fit, "freedom", math.inf)  # binary and saved fits have no clusters


def covariance_words(fit) -> str:
    """The kind of covariance, and what clusters compare estimates with."""
    freedom = _freedom(fit)
    if math.isinf(freedom):
        return fit.covariance
    return f"{freedom + 1:.0f} clusters, t({freedom:.0f})"


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
        f"Method: {NAMES.get(fit.method, fit.method)}"
        + (", t errors" if fit.errors == "t" else ""),
        f"Covariance: {covariance_words(fit)}",
        f"Status: {fit.status}" + (", |rho| > .99" if fit.near_boundary else ""),
    ]
    right = [("Units", f"{fit.n:,}"), ("Selected", f"{fit.n_selected:,}")]
    slopes = [("outcome", name) for name in fit.params["outcome"].index if name != "Intercept"]
    if slopes:
        statistic, _ = wald_test(
            fit.params[slopes].to_numpy(), fit.cov.loc[slopes, slopes].to_numpy()
        )
        name, shown = str(Test(statistic, len(slopes), math.nan, _freedom(fit))).split(" = ")
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
        return "nan"
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e5):
        return f"{value:.{max(digits - 2, 1)}e}"
    return f"{value:.{digits}f}"


def _errors(fit, level: float) -> list[str]:
    if not fit.has_selection:
        return [f"  {name:<21}{getattr(fit, name):>11.4f}" for name in fit.error_parameters]
    lines = []
    for name in fit.error_parameters:
        text = f"  {name:<21}{_number(getattr(fit, name)):>11}"
        if fit.method == "ml" and fit.status == "converged":
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
    return lines


def _tests(fit) -> list[str]:
    tested = fit.se.drop(("ancillary", "log_df"), errors="ignore").iloc[-1]
    if not fit.has_selection or not np.isfinite(tested):
        return []
    tests = {"Wald": fit.test_rho_zero("wald")}
    if fit.method == "ml" and fit.weight_kind == "frequency" and fit.covariance != "cluster":
        tests["LR"] = fit.test_rho_zero("lr")
    shown = "; ".join(f"{name} {test}, p = {test.p_value:.4f}" for name, test in tests.items())
    lines = [f"  Test of rho = 0: {shown}"]
    if "LR" in tests and fit.identification.verdict in (FUNCTIONAL_FORM, NOT_IDENTIFIED):
        lines += [
            "  Without an instrument standard errors, z and Wald tests can be far too",
            "  sure; trust the LR test and interval('rho', method='profile').",
        ]
    return lines


def _modes(fit) -> list[str]:
    """Other local maxima, if the data has any: the likelihood alone chose between them."""
    if len(fit.modes) < 2:
        return []
    lines = ["  Other maxima of the likelihood:"]
    for mode in fit.modes[1:]:
        where = f"rho {mode.rho:.4f}"
        if mode.status == "boundary" and mode.near_boundary:
            where = f"rho {'+' if mode.rho > 0 else '-'}1 (at the boundary)"
        lines.append(
            f"    {where}, log-likelihood {mode.loglik:.4f} ({mode.loglik - fit.loglik:+.2f})"
        )
    return lines


def latex(fit, level: float) -> str:
    """A booktabs table, one block per equation."""
    frame, letter = fit.to_frame(level), "z" if math.isinf(_freedom(fit)) else "t"
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
            cells = [row.coef, row.se, row.z, row.p, row.low, row.high]
            digits = [4, 4, 2, 3, 3, 3]
            shown = [_math(_number(value, d)) for value, d in zip(cells, digits, strict=True)]
            lines.append(rf"{_escape(term)} & {' & '.join(shown)} \\")
    lines += [
        r"\midrule",
        rf"\multicolumn{{7}}{{l}}{{$\rho = {fit.rho:.4f}$, $\sigma = {fit.sigma:.4f}$, "
        rf"{fit.n_selected} of {fit.n} selected; {_escape(fit.identification.verdict)}}} \\",
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
    frame = fit.to_frame(level)
    return {
        "method": fit.method,
        "covariance": fit.covariance,
        "degrees_of_freedom": _plain(_freedom(fit)),
        "errors": fit.errors,
        "status": fit.status,
        "near_boundary": fit.near_boundary,
        "n": fit.n,
        "n_selected": fit.n_selected,
        "loglik": _plain(fit.loglik),
        "rho": _plain(fit.rho),
        "sigma": _plain(fit.sigma),
        "df": _plain(fit.df),
        "level": level,
        "terms": [
            {"equation": equation, "term": term}
            | {column: _plain(value) for column, value in row.items()}
            for (equation, term), row in frame.iterrows()
        ],
        "modes": [
            {
                "rho": mode.rho,
                "sigma": mode.sigma,
                "loglik": mode.loglik,
                "status": mode.status,
                "near_boundary": mode.near_boundary,
            }
            for mode in fit.modes
        ],
        "identification": {
            "verdict": fit.identification.verdict,
            "sentence": fit.identification.sentence,
            "evidence": fit.identification.evidence,
        },
    }


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
