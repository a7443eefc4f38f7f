r"""`hk.compare_fits`: fits side by side."""

import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import pandas as pd

from heckesel import display as web
from heckesel.classical.results import NamedEstimates
from heckesel.classical.summary import NAMES, TIDY, heading_of
from heckesel.display import (
    latex_escaped,
    latex_number,
    markdown_escaped,
    markdown_table,
    number_text,
)
from heckesel.errors import DataError, as_list, printable


@dataclass(frozen=True, repr=False)
class FitComparison:
    """Fits side by side, the result of `hk.compare_fits`.

    Attributes
    ----------
    names : tuple of str
        One name per fit.
    fits : tuple
        The fits.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> compared = hk.compare_fits([hk.heckman("y ~ x", "~ x + z", frame)], names=["ML"])
    >>> int(compared.glance().loc["ML", "nobs"])
    1000
    """

    names: tuple[str, ...]
    fits: tuple[NamedEstimates, ...]

    def to_text(self) -> str:
        """Text table: one block per equation, standard errors in parentheses.

        Returns
        -------
        str
        """
        rows = self._rows()
        head = ("", *map(printable, self.names))
        body = [row if isinstance(row, str) else ("  " + row[0], *row[1:]) for row in rows.body]
        foot = [line for row in rows.foot for line in _wrapped(row)]
        lines = [head, *(row for row in body if not isinstance(row, str)), *foot]
        widths = [max(len(_padded(line[at], at)) for line in lines) for at in range(len(head))]

        def line(row) -> str:
            values = (
                f"{_padded(value, at):{'>' if at else '<'}{widths[at]}}"
                for at, value in enumerate(row)
            )
            return "  ".join(values).rstrip()

        rule = "-" * (sum(widths) + 2 * len(self.names))
        shown = [f"{row}:" if isinstance(row, str) else line(row) for row in body]
        return "\n".join([rule, line(head), rule, *shown, rule, *map(line, foot), rule, NOTE])

    def to_markdown(self) -> str:
        """The same table in Markdown.

        Returns
        -------
        str
        """
        rows = self._rows(name=markdown_escaped)
        blank = ("",) * len(self.names)
        body = [(f"**{row}**", *blank) if isinstance(row, str) else row for row in rows.body]
        head = ("", *map(markdown_escaped, self.names))
        return f"{markdown_table(head, [*body, *rows.foot])}\n\n{NOTE}"

    def to_latex(self, stars: bool = False) -> str:
        """The same table in LaTeX, which needs the package booktabs.

        Parameters
        ----------
        stars : bool, default=False
            Whether to mark p-values below 0.05, 0.01 and 0.001 with one, two and three stars.
            They are the p-values of the summary.

        Returns
        -------
        str
        """
        text = {"name": latex_escaped, "number": latex_number}
        rows = self._rows(**text, stars=stars)
        wide = len(self.names) + 1
        head = " & ".join(["", *map(latex_escaped, self.names)])
        lines = [rf"\begin{{tabular}}{{l{'c' * len(self.names)}}}", r"\toprule", rf"{head} \\"]
        for row in rows.body:
            if isinstance(row, str):
                lines += [r"\midrule", rf"\multicolumn{{{wide}}}{{l}}{{\textit{{{row}}}}} \\"]
            else:
                lines.append(rf"{' & '.join(row)} \\")
        lines += [r"\midrule", *(rf"{' & '.join(_symbol(row))} \\" for row in rows.foot)]
        note = f"{NOTE} {STARS_NOTE}" if stars else NOTE
        lines += [r"\bottomrule", rf"\multicolumn{{{wide}}}{{l}}{{\footnotesize {note}}} \\"]
        return "\n".join([*lines, r"\end{tabular}"])

    def to_html(self) -> str:
        """The same table in HTML, which notebooks show.

        Returns
        -------
        str
        """
        rows = self._rows()
        body: list[tuple[str, ...] | str] = []
        for row in rows.body:
            if isinstance(row, tuple) and row[0] == "":
                pairs = zip(body.pop(), row, strict=True)
                row = tuple("\n".join(filter(None, pair)) for pair in pairs)
            body.append(row)
        table = web.html_table(("", *self.names), [*body, "fit", *rows.foot])
        return web.block(table, f'<p class="soft">{NOTE}</p>')

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """The coefficients as numbers.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        DataFrame
            One row per (equation, term). The columns are (name, statistic): ``estimate``,
            ``std_error``, ``statistic``, ``p_value``, ``low`` and ``high`` of each fit.
        """
        frames = [fit.to_frame(level).rename(columns=TIDY) for fit in self.fits]
        labels = [
            (equation, term) for equation, terms in terms_of(frames).items() for term in terms
        ]
        together = pd.concat(frames, axis=1, keys=self.names, names=["fit", None], sort=False)
        return together.loc[labels]

    def glance(self) -> pd.DataFrame:
        """Table with one row that describes each fit.

        Returns
        -------
        DataFrame
            The columns of ``fit.glance()``.
        """
        return pd.concat([fit.glance() for fit in self.fits]).set_axis(list(self.names))

    def _rows(self, **options) -> "Rows":
        frames = [fit.to_frame() for fit in self.fits]
        return rows_of(frames, self.fits, **options)

    __str__ = __repr__ = to_text
    _repr_html_ = to_html


def compare_fits(fits, names=None) -> FitComparison:
    """Put fits side by side, with one column per fit.

    Parameters
    ----------
    fits : list of fits
        Results of `heckesel.heckman` and `heckesel.probit`, and fitted `HeckmanRegressor` and
        `HeckmanClassifier` with a linear outcome.
    names : list of str, optional
        One name per fit. By default "(1)", "(2)" and so on.

    Returns
    -------
    FitComparison
        A printable table, which converts to Markdown, LaTeX, HTML and a frame.

    Raises
    ------
    DataError
        If a model has no coefficients, or there is not one distinct name per fit.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> fits = [hk.heckman("y ~ x", "~ x + z", frame, method=m) for m in ("ml", "two-step")]
    >>> compared = hk.compare_fits(fits, names=["ML", "two-step"])
    >>> print(compared.to_frame().loc[("outcome", "x"), ("ML", "estimate")].round(3))
    0.511
    """
    if not isinstance(fits, list | tuple) or not fits:
        raise DataError("compare_fits needs a list of fits, such as compare_fits([a, b])")
    results: tuple[Any, ...] = tuple(getattr(each, "result_", each) for each in fits)
    for each in results:
        if not isinstance(each, NamedEstimates):
            raise DataError(
                "compare_fits is for fitted linear models, and a "
                f"{type(each).__name__} has no table of coefficients"
            )
    if names is None:
        names = [f"({k})" for k in range(1, len(results) + 1)]
    names = tuple(map(str, as_list("names", names)))
    if len(names) != len(results):
        raise DataError(f"there are {len(results)} fits but {len(names)} names")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the name {repeated!r} appears twice; give each fit a different name")
    return FitComparison(names, results)


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


def _wrapped(row: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A row of the foot as one or more lines, so that a verdict does not widen the table."""
    parts = [textwrap.wrap(each, WIDEST_WORDS, break_long_words=False) for each in row]
    return zip_longest(*parts, fillvalue="")


def _padded(value: str, at: int) -> str:
    return value if at == 0 or value.endswith(")") else f"{value} "


def _symbol(row: tuple[str, ...]) -> tuple[str, ...]:
    return (rf"$\{row[0]}$", *row[1:]) if row[0] in ("rho", "sigma") else row
