"""`paper/ours.md`: our own experiments, beginning with the targets and whether they are met.

A chapter consists of a text in `text/` and a module with `targets(results)` and `parts(results)`.
The text refers to the parts by name. A new experiment is a new chapter.
"""

from dataclasses import astuple
from functools import partial
from types import ModuleType

from reproduction import load
from reproduction.pages.beyond_paper import rho_page, x1_page, x4_page, x5_page, x6_page
from reproduction.pages.beyond_paper.main_results import main_results
from reproduction.pages.beyond_paper.markdown import table
from reproduction.pages.beyond_paper.targets import MET, MISSED, NOT_RUN, SHOWN, TargetRow
from reproduction.pages.page_text import filled
from reproduction.pages.rows import Results

TARGET_HEADER = ("target", "method", "measured", "seeds", "verdict")
CHAPTERS: dict[str, ModuleType] = {
    "x1": x1_page,
    "x4": x4_page,
    "x5": x5_page,
    "x6": x6_page,
}


def ours_md(results: Results) -> str:
    every, targets = [], []
    for name in filter(partial(getattr, results), CHAPTERS):
        rows = CHAPTERS[name].targets(results)
        every += rows
        targets.append(f"### {name.capitalize()} against its targets")
        targets.append(table(TARGET_HEADER, map(astuple, rows)))
    if results.rho_intervals:
        every += (rows := rho_page.targets(results))
        targets.append("### Intervals of ρ against their target")
        targets.append(table(TARGET_HEADER, map(astuple, rows)))
    sections = [*(chapter(name, results) for name in CHAPTERS), rho_page.section(results)]
    chapters = "\n\n".join(filter(None, sections))
    tables = {"main_results": main_results(results), "targets": "\n\n".join(targets)}
    return filled("ours", counts=counts(every), chapters=chapters, **tables)


def chapter(name: str, results: Results) -> str:
    """The chapter of an experiment, empty where it has not been run."""
    grid = load(name).cells()
    methods = {getattr(cell, "method", None) for cell in grid}  # frozen rows have others
    rows = sum(row.get("method") in methods for row in getattr(results, name))
    if not rows:
        return ""
    count = len(grid)
    missing = "all run" if rows == count else f"{count - rows} of them without a result"
    return filled(name, cells=f"{count} cells, {missing}.", **CHAPTERS[name].parts(results))


def counts(rows: list[TargetRow]) -> str:
    kinds = [row.kind for row in rows]
    each = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (MET, MISSED, NOT_RUN, SHOWN))
    return f"**{len(rows)} rows: {each}.**"
