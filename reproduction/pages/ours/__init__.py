"""`paper/ours.md`: our own experiments, first what they were to show and whether they do.

A chapter is a module with TITLE, FIGURE (or None), `cells()`, `rows(results)`, `targets(results)`
and `text(results)`; a further experiment is a further chapter.
"""

from __future__ import annotations

from types import ModuleType

from reproduction.pages.ours import x1, x2, x3, x4
from reproduction.pages.ours.headline import headline
from reproduction.pages.ours.targets import MET, MISSED, NOT_RUN, SHOWN, Judged, table
from reproduction.pages.rows import Results

CHAPTERS: tuple[ModuleType, ...] = (x1, x2, x3, x4)
INTRODUCTION = """\
Computed from `results/*.json`; do not edit. Numbers are means over seeds ± standard deviations \
over seeds (divisor n). Selected-against are test points with P(s = 1 | x) below .3; ECE is the \
one-sided region-ECE unless it is called central. A target is judged on the mean over seeds as it \
stands, without allowance for noise, unless it says otherwise; |bias| is the size of the mean over \
seeds. *Shown* are numbers that no threshold was set for."""
HEADER = ("target", "method", "measured", "seeds", "verdict")


def ours_md(results: Results) -> str:
    judged = {chapter.TITLE: chapter.targets(results) for chapter in CHAPTERS}
    parts = ["# Beyond the paper", INTRODUCTION, headline(results), "## Targets"]
    parts.append(counts([entry for entries in judged.values() for entry in entries]))
    for title, entries in judged.items():
        parts += [f"### {title.partition(':')[0]} against its targets", _targets(entries)]
    for chapter in CHAPTERS:
        parts += [f"## {chapter.TITLE}", _counted(chapter, results)]
        if chapter.FIGURE:
            stem, caption = chapter.FIGURE
            parts.append(f"![{caption}](figures/{stem}.png)")
        parts.append(chapter.text(results))
    return "\n\n".join(parts) + "\n"


def counts(entries: list[Judged]) -> str:
    kinds = [entry.kind for entry in entries]
    each = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (MET, MISSED, NOT_RUN, SHOWN))
    return f"**{len(entries)} rows: {each}.**"


def _targets(entries: list[Judged]) -> str:
    return table(
        HEADER,
        [
            (entry.target, entry.method, entry.measured, entry.n_seeds, entry.verdict)
            for entry in entries
        ],
    )


def _counted(chapter: ModuleType, results: Results) -> str:
    """How many cells the grid has, and how many of them have a result."""
    cells, rows = len(chapter.cells()), len(chapter.rows(results))
    if rows == cells:
        return f"{cells} cells, all run."
    return f"{cells} cells, {cells - rows} of them without a result."
