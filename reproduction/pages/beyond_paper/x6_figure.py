"""X6 as a figure: the error of every method with its interval, outcome by outcome."""

from reproduction.pages import figure_style as style
from reproduction.pages.beyond_paper.x6_page import outcomes
from reproduction.pages.macros import fixed
from reproduction.pages.rows import Results, only
from reproduction.truth.x6_truth import METHODS

LOOKS = {
    "naive": ("#D55E00", "^"),
    "two-step": ("#0072B2", "o"),
    "likelihood": ("#56B4E9", "s"),
    "linear auto": ("#009E73", "D"),
    "auto": ("#CC79A7", "X"),
}
RANGE, STEP = 2.2, 0.15  # standard deviations shown on either side; between methods


def errors_by_outcome(results: Results) -> dict:
    """Estimate and interval less the truth, in standard deviations of the hidden outcomes."""
    found = []
    for source, outcome in outcomes(results):
        known = only(results.x6, source=source, outcome=outcome, method="evidence")
        methods = {}
        for method in METHODS:
            row = only(results.x6, source=source, outcome=outcome, method=method)
            if "estimate" in row:
                ends = (row[name] for name in ("estimate", "low", "high"))
                methods[method] = [
                    float(fixed((end - known["truth"]) / known["truth_sd"], 4)) for end in ends
                ]
        found.append({"name": f"{source}: {outcome}", "methods": methods})
    return {"outcomes": found}


def draw_errors(data: dict):
    """A row for each outcome; an arrow where an estimate lies outside the figure."""
    rows = data["outcomes"]
    figure, [[axis]] = style.panel_grid(1, 1, height=1.2 + 0.33 * len(rows))
    for place, row in enumerate(rows):
        for number, (method, (value, low, high)) in enumerate(row["methods"].items()):
            at, (colour, marker) = place + STEP * (number - 2), LOOKS[method]
            axis.plot([max(low, -RANGE), min(high, RANGE)], [at, at], color=colour, lw=1)
            if abs(value) > RANGE:
                value, marker = (RANGE, ">") if value > 0 else (-RANGE, "<")
            label = method if place == 0 else None
            axis.plot(value, at, marker, color=colour, ms=4, ls="", label=label, clip_on=False)
    axis.axvline(0, color="black", lw=0.8)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x", lw=0.4, color="#DDDDDD")
    axis.set(
        axisbelow=True,
        xlim=(-RANGE, RANGE),
        xlabel="estimate less known mean of the unselected, in standard deviations",
    )
    style.legend_below(figure, axis, columns=5)
    return figure
