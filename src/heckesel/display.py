"""How results are shown: numbers as text, and tables in HTML, LaTeX and Markdown."""

import html
import math
import re
from collections.abc import Iterable, Sequence

from heckesel.errors import printable

# Colours with an alpha channel suit light and dark notebooks alike.
STYLE = """<style>
.heckesel { font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  max-width: 52rem; overflow-x: auto; }
.heckesel h4 { font-size: 1.1em; font-weight: 600; margin: .3em 0; }
.heckesel p { margin: .4em 0; max-width: 46rem; overflow-wrap: anywhere; }
.heckesel p.facts span { display: inline-block; margin-right: 1.6em; }
.heckesel p.facts b, .heckesel .soft { font-weight: 400; opacity: .7; }
.heckesel table { border-collapse: collapse; margin: .6em 0; border: 0;
  font-variant-numeric: tabular-nums; font-size: 1em; }
.heckesel caption { text-align: left; opacity: .7; padding-bottom: .3em; }
.heckesel tr, .heckesel tr:nth-child(even) { background: none; }
.heckesel th, .heckesel td { padding: .2em .8em .2em 0; text-align: right; vertical-align: top;
  white-space: nowrap; border: 0; border-bottom: 1px solid rgba(128, 128, 128, .28);
  background: none; }
.heckesel th { font-weight: 500; }
.heckesel th:first-child, .heckesel .left { text-align: left; }
.heckesel .left { white-space: normal; min-width: 8em; }
.heckesel thead th { font-weight: 600; border-bottom: 2px solid rgba(128, 128, 128, .55); }
.heckesel tr.group th { font-weight: 600; padding-top: .7em; }
.heckesel ul { margin: .3em 0 .3em 1.2em; padding: 0; }
.heckesel .box { border-left: .35em solid; border-radius: .3em; padding: .4em .9em;
  margin: .6em 0; max-width: 46rem; }
.heckesel .good { border-color: #2e8b4a; background: rgba(46, 139, 74, .1); }
.heckesel .caution { border-color: #c98a16; background: rgba(201, 138, 22, .12); }
.heckesel .bad { border-color: #cc3b3b; background: rgba(204, 59, 59, .11); }
.heckesel .plain { border-color: #4a80c9; background: rgba(74, 128, 201, .11); }
</style>"""
NEGATIVE = re.compile(r"(?<![\w.])-(?=[\d.]|inf)|(?<=\de)-(?=\d)")
IN_LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\n": " ",
    }
)


def number_text(value: float, digits: int = 4) -> str:
    """With `digits` decimals, or in scientific notation where these would show nothing."""
    if not math.isfinite(value):
        return f"{value}"
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e5):
        return f"{value:.{max(digits - 2, 1)}e}"
    return f"{value:.{digits}f}"


def p_text(p: float) -> str:
    """With three decimals, and "< 0.001" below that."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equation(p: float) -> str:
    """As a part of a sentence, such as "p = 0.012" or "p < 0.001"."""
    return f"p {p_text(p)}" if p < 0.001 else f"p = {p_text(p)}"


def plain(value):
    """`value` for JSON: lists in place of tuples, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def number(text: str) -> str:
    """A number, or a text with one, with minus signs in place of hyphens."""
    return NEGATIVE.sub("−", text)


def html_escaped(text: object) -> str:
    """`text` for HTML, inside and outside attributes."""
    return html.escape(printable(str(text)))


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str] | str],
    *,
    caption: str | None = None,
    left: Sequence[str] = (),
) -> str:
    """A table whose first column holds the names of its rows; everything passed is escaped.

    rows : the strings of one row, which may have several lines; or a string, the heading of the
        rows that follow it
    left : columns that hold text, which are left-aligned
    """
    kinds = [' class="left"' if name in left else "" for name in head]
    names = "".join(
        f'<th scope="col"{kind}>{html_escaped(name)}</th>'
        for name, kind in zip(head, kinds, strict=True)
    )
    above = "" if caption is None else f"<caption>{html_escaped(caption)}</caption>"
    parts = [f"<table>{above}<thead><tr>{names}</tr></thead><tbody>"]
    for row in rows:
        if isinstance(row, str):
            group = f'<th colspan="{len(head)}" scope="rowgroup">{html_escaped(row)}</th>'
            parts.append(f'<tr class="group">{group}</tr>')
            continue
        values = "".join(
            f"<td{kind}>{'<br>'.join(map(html_escaped, shown.split(chr(10))))}</td>"
            for value, kind in zip(row[1:], kinds[1:], strict=True)
            for shown in [value if kind else number(value)]
        )
        parts.append(f'<tr><th scope="row">{html_escaped(row[0])}</th>{values}</tr>')
    return "".join([*parts, "</tbody></table>"])


def heading(text: str) -> str:
    """The title of a result."""
    return f"<h4>{html_escaped(text)}</h4>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels with their values, on one line where there is room."""
    spans = (f"<span><b>{html_escaped(a)}</b> {html_escaped(number(b))}</span>" for a, b in pairs)
    return f'<p class="facts">{" ".join(spans)}</p>'


def paragraphs(sentences: Iterable[str]) -> str:
    """One paragraph for each."""
    return "".join(f"<p>{html_escaped(sentence)}</p>" for sentence in sentences)


def box(tone: str, title: str, sentence: str, details: Sequence[str] = ()) -> str:
    """A coloured box. tone : "good", "caution", "bad" or "plain"."""
    items = "".join(f"<li>{html_escaped(each)}</li>" for each in details)
    listed = f'<ul class="soft">{items}</ul>' if items else ""
    text = f"<p><strong>{html_escaped(title)}</strong></p>{paragraphs([sentence])}{listed}"
    return f'<div class="box {tone}">{text}</div>'


def block(*parts: str) -> str:
    """The HTML for `_repr_html_`: the parts, which are already HTML, with their style."""
    return f'<div class="heckesel">{STYLE}{"".join(parts)}</div>'


class Summary(str):
    """A string that can be printed, written and compared, and that a notebook shows as HTML."""

    _html: str

    def __new__(cls, text: str, html: str | None = None):
        """html : the same as HTML; by default the text as it is"""
        made = super().__new__(cls, text)
        made._html = block(f"<pre>{html_escaped(text)}</pre>") if html is None else html
        return made

    def __repr__(self) -> str:
        return str(self)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self._html

    def _repr_html_(self) -> str:
        return self._html


def latex_escaped(text: str) -> str:
    """`text` with the characters that are commands in LaTeX escaped."""
    found = printable(text).translate(IN_LATEX)
    # after the end of a row, \\, these would be an option of it
    return "{}" + found if found.startswith(("[", "*")) else found


def latex_number(value: float, digits: int = 4) -> str:
    r"""As `number_text`, with a minus sign and powers of ten, such as $1.2 \times 10^{-5}$."""
    if math.isinf(value):
        return r"$-\infty$" if value < 0 else r"$\infty$"
    mantissa, e, exponent = number_text(value, digits).partition("e")
    if e:
        return rf"${mantissa} \times 10^{{{int(exponent)}}}$"
    return f"${mantissa}$" if mantissa.startswith("-") else mantissa


def markdown_escaped(text: str) -> str:
    """`text` with the characters that Markdown interprets escaped."""
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", printable(text).replace("\n", " "))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is left-aligned, the others right-aligned."""
    rule = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])
