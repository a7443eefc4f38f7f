"""The table of main results of the README."""

from reproduction.pages.beyond_paper import all_targets
from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.rows import Results

HEADER = ("data", "method", "target", "measured", "result")
# Data, experiment and method, and the targets that are shown, by how they begin.
X6 = ("16 real sources with a known truth", "X6", "auto")
X4 = ("induced selection", "X4", "auto")
ROWS = (
    (*X6, "coverage of the mean"),
    (*X6, "rms over naive ≤ .88"),
    (*X6, "interval score over that of the constant"),
    (*X6, "CRPS over the same learner"),
    ("simulated regimes", "X5", "auto", "strong instrument: coverage"),
    (*X4, "California housing"),
    (*X4, "wine quality"),
    ("simulated, normal errors", "X1", "profile", "the paper's curve, α = 0, ρ = .9: coverage"),
)


def main_results(results: Results) -> str:
    return md.table(HEADER, lines(results))


def lines(results: Results) -> list[list[str]]:
    """Eight of the targets, met or missed."""
    targets, found = all_targets(results), []
    for data, experiment, method, begins in ROWS:
        of_method = [row for name, row in targets if (name, row.method) == (experiment, method)]
        row = next(row for row in of_method if row.target.startswith(begins))
        found.append([data, row.method, row.target, row.measured, row.verdict])
    return found
