"""`paper/ours.md`: every target of our own experiments in one table, met or missed.

A module has `targets(results)`; one rule decides all of them. A new experiment is a new module.
"""

from dataclasses import astuple

from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.beyond_paper import x1_page, x4_page, x5_page, x6_page
from reproduction.pages.page_text import filled
from reproduction.pages.rows import Results

HEADER = ("experiment", "target", "method", "measured", "verdict")
RHO_COVERAGE = (0.86, 0.94)


def rho_targets(results: Results) -> list[md.TargetRow]:
    """Targets of intervals of rho from the instrument alone, `results/rho_intervals.json`."""
    found = []
    for row in results.rho_intervals:
        where = f"{row['instrument']} instrument, ρ = {md.decimal(row['rho'])}"
        says = f"{where}: coverage of ρ 86–94 %"
        found.append(md.number_row(says, "auto", row["covered"], *RHO_COVERAGE, md.PERCENT))
    return found


TARGETS = {
    **{"X1": x1_page.targets, "X4": x4_page.targets, "X5": x5_page.targets},
    **{"X6": x6_page.targets, "ρ": rho_targets},
}


def all_targets(results: Results) -> list[tuple[str, md.TargetRow]]:
    """Experiment and row of every target."""
    return [(name, row) for name, targets in TARGETS.items() for row in targets(results)]


def ours_md(results: Results) -> str:
    rows = all_targets(results)
    kinds = [row.kind for _, row in rows]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (md.MET, md.MISSED, md.NOT_RUN))
    return filled(
        "ours",
        counts=f"**{len(rows)} targets: {counts}.**",
        targets=md.table(HEADER, [(name, *astuple(row)) for name, row in rows]),
    )
