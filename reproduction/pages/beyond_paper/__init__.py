"""`paper/ours.md`: our own experiments, first what they were to show and whether they do.

A chapter is a module with EXPERIMENT (its name in `EXPERIMENTS`), TITLE, FIGURE (or None),
`targets(results)` and `text(results)`; a further experiment is a further chapter.
"""

from __future__ import annotations

from types import ModuleType

from reproduction import load
from reproduction.pages.beyond_paper import x1_page, x2_page, x3_page, x4_page, x5_page
from reproduction.pages.beyond_paper.main_results import main_results
from reproduction.pages.beyond_paper.markdown import table
from reproduction.pages.beyond_paper.targets import MET, MISSED, NOT_RUN, SHOWN, TargetRow
from reproduction.pages.rows import Results

CHAPTERS: tuple[ModuleType, ...] = (x1_page, x2_page, x3_page, x4_page, x5_page)
INTRODUCTION = """\
This page is computed from `results/*.json`; do not edit it. Numbers are means ± standard \
deviations over seeds (divisor n). The selected-against region holds the test points with \
P(s = 1 | x) below .3. ECE is the one-sided region-ECE unless it is called central. A target is \
met if the mean over seeds meets it, without allowance for noise, unless it says otherwise; |bias| \
is the absolute value of the mean over seeds. Numbers without a threshold are marked *shown*."""


def ours_md(results: Results) -> str:
    chapters = [chapter for chapter in CHAPTERS if getattr(results, chapter.EXPERIMENT)]
    targets = {chapter: chapter.targets(results) for chapter in chapters}
    parts = ["# Beyond the paper", INTRODUCTION, main_results(results), "## Targets"]
    parts.append(counts([row for rows in targets.values() for row in rows]))
    for chapter, rows in targets.items():
        title = chapter.TITLE.partition(":")[0]
        parts += [f"### {title} against its targets", _target_table(rows)]
    for chapter in chapters:
        parts += [f"## {chapter.TITLE}", _cells_run(chapter.EXPERIMENT, results)]
        if chapter.FIGURE:
            stem, caption = chapter.FIGURE
            parts.append(f"![{caption}](figures/{stem}.png)")
        parts.append(chapter.text(results))
    return "\n\n".join(parts) + "\n"


def counts(rows: list[TargetRow]) -> str:
    kinds = [row.kind for row in rows]
    each = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (MET, MISSED, NOT_RUN, SHOWN))
    return f"**{len(rows)} rows: {each}.**"


def _target_table(rows: list[TargetRow]) -> str:
    header = ("target", "method", "measured", "seeds", "verdict")
    return table(header, [(r.target, r.method, r.measured, r.n_seeds, r.verdict) for r in rows])


def _cells_run(experiment: str, results: Results) -> str:
    """How many cells the grid has, and how many of them have no result."""
    cells, rows = len(load(experiment).cells()), len(getattr(results, experiment))
    if rows == cells:
        return f"{cells} cells, all run."
    return f"{cells} cells, {cells - rows} of them without a result."
