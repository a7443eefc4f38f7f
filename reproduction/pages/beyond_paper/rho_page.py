"""The section on intervals of rho from the instrument alone, from `results/rho_intervals.json`."""

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import TargetRow, number_row
from reproduction.pages.page_text import filled
from reproduction.pages.rows import Results

COVERAGE = (0.86, 0.94)
ERRORS = ("estimate", "standard_error", "standard_deviation")


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


def section(results: Results) -> str:
    """Empty where it has not been run."""
    if not results.rho_intervals:
        return ""
    header = ["instrument", "ρ", "coverage", "mean estimate", "mean standard error"]
    lines = []
    for row in results.rho_intervals:
        numbers = [md.NUMBER.value(row[name]) for name in ERRORS]
        covered = md.PERCENT.value(row["covered"])
        lines.append([row["instrument"], md.decimal(row["rho"]), covered, *numbers])
    shown = md.table([*header, "standard deviation of the estimates"], lines)
    return filled("rho_intervals", draws=results.rho_intervals[0]["draws"], table=shown)
