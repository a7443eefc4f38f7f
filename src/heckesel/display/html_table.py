"""Tables and boxes in HTML, for notebooks; everything that is passed is escaped."""

import html
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


def escaped(text: object) -> str:
    """`text` for HTML, inside and outside attributes."""
    return html.escape(printable(str(text)))


def number(text: str) -> str:
    """A number, or a text with one, with minus signs in place of hyphens."""
    return NEGATIVE.sub("−", text)


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str] | str],
    *,
    caption: str | None = None,
    left: Sequence[str] = (),
) -> str:
    """A table whose first column holds the names of its rows.

    rows : the strings of one row, which may have several lines; or a string, the heading of the
        rows that follow it
    left : columns that hold text, which are left-aligned
    """
    kinds = [' class="left"' if name in left else "" for name in head]
    parts = ["<table>"]
    if caption is not None:
        parts.append(f"<caption>{escaped(caption)}</caption>")
    names = (
        f'<th scope="col"{kind}>{escaped(name)}</th>'
        for name, kind in zip(head, kinds, strict=True)
    )
    parts.append(f"<thead><tr>{''.join(names)}</tr></thead><tbody>")
    for row in rows:
        if isinstance(row, str):
            group = f'<th colspan="{len(head)}" scope="rowgroup">{escaped(row)}</th>'
            parts.append(f'<tr class="group">{group}</tr>')
            continue
        first, *rest = row
        values = "".join(
            f"<td{kind}>{_lines(value if kind else number(value))}</td>"
            for value, kind in zip(rest, kinds[1:], strict=True)
        )
        parts.append(f'<tr><th scope="row">{escaped(first)}</th>{values}</tr>')
    return "".join([*parts, "</tbody></table>"])


def _lines(value: str) -> str:
    return "<br>".join(map(escaped, value.split("\n")))


def heading(text: str) -> str:
    """The title of a result."""
    return f"<h4>{escaped(text)}</h4>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels with their values, on one line where there is room."""
    spans = (f"<span><b>{escaped(a)}</b> {escaped(number(b))}</span>" for a, b in pairs)
    return f'<p class="facts">{" ".join(spans)}</p>'


def paragraphs(sentences: Iterable[str]) -> str:
    """One paragraph for each."""
    return "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)


def box(tone: str, title: str, sentence: str, details: Sequence[str] = ()) -> str:
    """A coloured box. tone : "good", "caution", "bad" or "plain"."""
    items = "".join(f"<li>{escaped(each)}</li>" for each in details)
    listed = f'<ul class="soft">{items}</ul>' if items else ""
    text = f"<p><strong>{escaped(title)}</strong></p>{paragraphs([sentence])}{listed}"
    return f'<div class="box {tone}">{text}</div>'


def block(*parts: str) -> str:
    """The HTML for `_repr_html_`: the parts, which are already HTML, with their style."""
    return f'<div class="heckesel">{STYLE}{"".join(parts)}</div>'
