"""The table of main results of the README."""

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper import x1_page, x4_page, x5_page, x6_page
from reproduction.pages.rows import Results

HEADER = ("data", "method", "target", "measured", "result")
# Data -> the module and the targets of a method that are shown, by how they begin.
ROWS = {
    "16 real sources with a known truth": (
        x6_page,
        "auto",
        (
            "coverage of the mean",
            "rms over naive ≤ .88",
            "interval score over that of the constant",
            "CRPS over the same learner",
        ),
    ),
    "simulated regimes": (x5_page, "auto", ("strong instrument: coverage",)),
    "induced selection": (x4_page, "auto", ("California housing", "wine quality")),
    "simulated, normal errors": (
        x1_page,
        "profile",
        ("the paper's curve, α = 0, ρ = .9: coverage",),
    ),
}


def main_results(results: Results) -> str:
    return md.table(HEADER, lines(results))


def lines(results: Results) -> list[list[str]]:
    """Eight of the targets, met or missed."""
    found = []
    for data, (page, method, wanted) in ROWS.items():
        rows = [row for row in page.targets(results) if row.method == method]
        for begins in wanted:
            row = next(row for row in rows if row.target.startswith(begins))
            found.append(
                [data, *(getattr(row, f) for f in ("method", "target", "measured", "verdict"))]
            )
    return found
