"""The rows of a table with one column per fit, before it is laid out."""

import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import pandas as pd

from heckesel import display as web
from heckesel.display import latex_escaped, markdown_escaped, markdown_table, number_text
from heckesel.errors import printable
from heckesel.linear.result_tables.equation_names import heading_of
from heckesel.linear.result_tables.fit_facts import NAMES

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
WIDEST_WORDS = 18  # characters of a line of words in the text table
NOTE = "Standard errors in parentheses."
STARS_NOTE = ", ".join(rf"\textsuperscript{{{mark}}}\,$p < {p}$" for p, mark in STARS[::-1]) + "."


@dataclass(frozen=True)
class Rows:
    """body : the strings of a row, its name first, or the heading of an equation; the standard
    errors follow their estimates in a row without a name. foot : what describes the fits"""

    body: list[tuple[str, ...] | str]
    foot: list[tuple[str, ...]]


def rows_of(
    frames: list[pd.DataFrame],
    fits: tuple,
    *,
    name: Callable[[str], str] = printable,
    number: Callable[[float], str] = number_text,
    stars: bool = False,
) -> Rows:
    """The rows of a table; name, number : how a name and a number are written"""

    def estimate(row) -> str:
        mark = next((mark for p, mark in STARS if row.p < p), "") if stars else ""
        return number(row.coef) + (rf"\textsuperscript{{{mark}}}" if mark else "")

    outcomes = dict.fromkeys(_outcome(fit) for fit in fits if _outcome(fit))
    outcome = next(iter(outcomes)) if len(outcomes) == 1 else "outcome"
    body: list[tuple[str, ...] | str] = []
    for equation, terms in terms_of(frames).items():
        body.append(name(heading_of(equation, outcome)))
        for term in terms:
            label = (equation, term)
            found = [one.loc[[label]].iloc[0] if label in one.index else None for one in frames]
            body.append((name(term), *("" if row is None else estimate(row) for row in found)))
            body.append(("", *("" if row is None else f"({number(row.se)})" for row in found)))
    foot: list[tuple[str, ...]] = []
    if len(outcomes) > 1:
        foot.append(("Outcome", *(name(_outcome(fit)) for fit in fits)))
    for title, fact in _facts(name, number).items():
        values = tuple(fact(fit) for fit in fits)
        foot += [(title, *values)] if any(values) else []
    return Rows(body, foot)


def terms_of(frames: list[pd.DataFrame]) -> dict[str, dict[str, None]]:
    """equation -> the terms of all fits, both in the order of their first appearance, and the
    parameters of the errors last."""
    found: dict[str, dict[str, None]] = {}
    for frame in frames:
        for equation, term in frame.index:
            found.setdefault(equation, {})[term] = None
    order = ("outcome", "select", "mills", "scale", "ancillary")
    return {equation: found[equation] for equation in order if equation in found}


def _outcome(fit) -> str:
    """The name of the outcome; an empty string for a loaded fit and for a probit."""
    return getattr(getattr(fit, "data", None), "y_name", "")


def _facts(name, number) -> dict[str, Callable]:
    """The rows below the coefficients; an empty string if a fit has no such value."""

    def of(attribute: str, text: Callable):
        def fact(fit) -> str:
            value = getattr(fit, attribute, None)
            missing = value is None or (isinstance(value, float) and math.isnan(value))
            return "" if missing else text(value)

        return fact

    return {
        "Units": of("n", lambda value: f"{value:,}"),
        "Selected": of("n_selected", lambda value: f"{value:,}"),
        "rho": of("rho", number),
        "sigma": of("sigma", number),
        "Log-likelihood": of("loglik", lambda value: number(round(value, 2), 2)),
        "Verdict": of("identification", lambda found: name(found.verdict)),
        "Method": of("method", lambda method: name(NAMES.get(method, method))),
        "Errors": of("errors", name),
    }


def as_text(names: tuple[str, ...], rows: Rows) -> str:
    """Ruled lines; numbers end one place to the left of the parentheses."""
    head = ("", *map(printable, names))
    body = [row if isinstance(row, str) else ("  " + row[0], *row[1:]) for row in rows.body]
    foot = [line for row in rows.foot for line in _wrapped(row)]
    lines = [head, *(row for row in body if not isinstance(row, str)), *foot]
    widths = [max(len(_padded(line[at], at)) for line in lines) for at in range(len(head))]

    def line(row) -> str:
        values = (
            f"{_padded(value, at):{'>' if at else '<'}{widths[at]}}" for at, value in enumerate(row)
        )
        return "  ".join(values).rstrip()

    rule = "-" * (sum(widths) + 2 * len(names))
    shown = [f"{row}:" if isinstance(row, str) else line(row) for row in body]
    return "\n".join([rule, line(head), rule, *shown, rule, *map(line, foot), rule, NOTE])


def _wrapped(row: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A row of the foot as one or more lines, so that a verdict does not widen the table."""
    parts = [textwrap.wrap(each, WIDEST_WORDS, break_long_words=False) for each in row]
    return zip_longest(*parts, fillvalue="")


def _padded(value: str, at: int) -> str:
    return value if at == 0 or value.endswith(")") else f"{value} "


def as_markdown(names: tuple[str, ...], rows: Rows) -> str:
    """A table with the headings of the equations in bold."""
    blank = ("",) * len(names)
    body = [(f"**{row}**", *blank) if isinstance(row, str) else row for row in rows.body]
    head = ("", *map(markdown_escaped, names))
    return f"{markdown_table(head, [*body, *rows.foot])}\n\n{NOTE}"


def as_latex(names: tuple[str, ...], rows: Rows, *, stars: bool) -> str:
    """A booktabs table, one block per equation."""
    wide = len(names) + 1
    head = " & ".join(["", *map(latex_escaped, names)])
    lines = [rf"\begin{{tabular}}{{l{'c' * len(names)}}}", r"\toprule", rf"{head} \\"]
    for row in rows.body:
        if isinstance(row, str):
            lines += [r"\midrule", rf"\multicolumn{{{wide}}}{{l}}{{\textit{{{row}}}}} \\"]
        else:
            lines.append(rf"{' & '.join(row)} \\")
    lines += [r"\midrule", *(rf"{' & '.join(_symbol(row))} \\" for row in rows.foot)]
    note = f"{NOTE} {STARS_NOTE}" if stars else NOTE
    lines += [r"\bottomrule", rf"\multicolumn{{{wide}}}{{l}}{{\footnotesize {note}}} \\"]
    return "\n".join([*lines, r"\end{tabular}"])


def _symbol(row: tuple[str, ...]) -> tuple[str, ...]:
    return (rf"$\{row[0]}$", *row[1:]) if row[0] in ("rho", "sigma") else row


def as_html(names: tuple[str, ...], rows: Rows) -> str:
    """The same for a notebook, each standard error below its estimate."""
    body: list[tuple[str, ...] | str] = []
    for row in rows.body:
        if isinstance(row, tuple) and row[0] == "":
            pairs = zip(body.pop(), row, strict=True)
            row = tuple("\n".join(filter(None, pair)) for pair in pairs)
        body.append(row)
    table = web.html_table(("", *names), [*body, "fit", *rows.foot])
    return web.block(table, f'<p class="soft">{NOTE}</p>')
