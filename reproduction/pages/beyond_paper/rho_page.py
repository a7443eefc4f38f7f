"""Targets of intervals of rho from the instrument alone, `results/rho_intervals.json`."""

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import TargetRow, number_row
from reproduction.pages.rows import Results

COVERAGE = (0.86, 0.94)


def targets(results: Results) -> list[TargetRow]:
    return [
        number_row(
            f"{row['instrument']} instrument, ρ = {md.decimal(row['rho'])}: coverage of ρ 86–94 %",
            "auto",
            row["covered"],
            *COVERAGE,
            form=md.PERCENT,
        )
        for row in results.rho_intervals
    ]
