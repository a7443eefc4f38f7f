"""A fit as text, HTML, LaTeX and plain dict."""

import math
import textwrap

from heckesel import display as web
from heckesel.display import (
    Summary,
    latex_escaped,
    latex_number,
    latex_p,
    number_text,
    p_text,
    plain,
)
from heckesel.errors import printable
from heckesel.linear.result_tables import fit_facts
from heckesel.linear.result_tables.equation_names import heading_of
from heckesel.linear.result_tables.fit_facts import INFERENCE, NO_BREAK

WIDTH = 78
NOTE_WIDTH = 82  # two tests of rho = 0 stay on one line
NAME_WIDTH = 21  # of a term; a longer one makes the table wider


def summary(fit, level: float) -> Summary:
    """Head, one block per equation, error parameters, tests, modes and the verdict."""
    frame = fit.to_frame(level)
    errors = fit_facts.error_rows(fit, level)
    notes = [*fit_facts.error_notes(fit), *fit_facts.test_notes(fit)]
    modes, why = fit_facts.mode_lines(fit), fit.selected_mode_reason if fit.selected else ""
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
    for detail in fit.identification.details():
        lines += textwrap.wrap(detail, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if end:
        lines += ["", *textwrap.wrap(end, WIDTH)]
    listed = [f"Other maxima of the likelihood: {'; '.join(modes)}. {why}"] if modes else []
    html = web.block(
        web.heading(fit.title),
        web.facts([*fit_facts.options(fit), *fit_facts.numbers(fit)]),
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
    left = [fit.title, *(f"{name}: {value}" for name, value in fit_facts.options(fit))]
    right = fit_facts.numbers(fit)
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
    """The same as an HTML table; errors : `fit_facts.error_rows`"""
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


def latex(fit, level: float) -> str:
    """A booktabs table, one block per equation."""
    frame, letter = fit.to_frame(level), letter_of(fit.freedom)
    lines = [
        r"\begin{tabular}{lrrrrrr}",
        r"\toprule",
        rf" & coef & std err & ${letter}$ & $P>|{letter}|$ & "
        rf"\multicolumn{{2}}{{c}}{{{100 * level:g}\% interval}} \\",
    ]
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        heading = latex_escaped(heading_of(equation, fit.data.y_name))
        lines += [r"\midrule", rf"\multicolumn{{7}}{{l}}{{\textit{{{heading}}}}} \\"]
        for term, row in frame.loc[equation].iterrows():
            shown = [latex_number(row.coef), latex_number(row.se), latex_number(row.z, 2)]
            shown += [latex_p(row.p), latex_number(row.low, 3), latex_number(row.high, 3)]
            lines.append(rf"{latex_escaped(term)} & {' & '.join(shown)} \\")
    lines += [
        r"\midrule",
        rf"\multicolumn{{7}}{{l}}{{$\rho = {fit.rho:.4f}$, $\sigma = {fit.sigma:.4f}$, "
        rf"{fit.n_selected} of {fit.n} selected; {latex_escaped(fit.identification.verdict)}; "
        rf"p-values and intervals: {INFERENCE[fit.inference]}}} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


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
        "identification": {
            name: getattr(fit.identification, name) for name in ("verdict", "sentence", "evidence")
        },
    }
    return plain(found)
