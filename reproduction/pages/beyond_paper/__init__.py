"""`paper/ours.md`: every target of our own experiments in one table, met or missed.

A module has `targets(results)`; one rule decides all of them. A new experiment is a new module.
"""

from dataclasses import astuple

from reproduction.pages.beyond_paper import rho_page, x1_page, x4_page, x5_page, x6_page
from reproduction.pages.beyond_paper.markdown import table
from reproduction.pages.beyond_paper.targets import MET, MISSED, NOT_RUN, TargetRow
from reproduction.pages.page_text import filled
from reproduction.pages.rows import Results

HEADER = ("experiment", "target", "method", "measured", "verdict")
TARGETS = {"X1": x1_page, "X4": x4_page, "X5": x5_page, "X6": x6_page, "ρ": rho_page}


def all_targets(results: Results) -> list[tuple[str, TargetRow]]:
    """Experiment and row of every target."""
    return [(name, row) for name, page in TARGETS.items() for row in page.targets(results)]


def ours_md(results: Results) -> str:
    rows = all_targets(results)
    kinds = [row.kind for _, row in rows]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (MET, MISSED, NOT_RUN))
    return filled(
        "ours",
        counts=f"**{len(rows)} targets: {counts}.**",
        targets=table(HEADER, [(name, *astuple(row)) for name, row in rows]),
    )
