"""Figures of our own experiments: without an instrument, errors of another shape, calibration."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.pages import figure_style as style
from reproduction.pages.beyond_paper.x2_page import ERRORS
from reproduction.pages.beyond_paper.x4_page import TABLES

INSTRUMENT = {"0": "no instrument", "1": "instrument"}


def draw_without_instrument(data: dict):
    """X1: coverage and bias against rho on the paper's curve, alpha = 0."""
    figure, (left, right) = style.panels(2, height=3.4)
    title = "(a) no instrument, mean ± sd of 8 seeds"
    style.draw_coverage(left, data["rho"], data["coverage90"], title, low=0.2)
    style.draw_curves(right, data["rho"], data["bias_f0"], bars=True)
    style.bias_axis(right, data["rho"], title="(b) the same, bias of the mean")
    style.legend_below(figure, left, columns=6)
    return figure


def draw_honesty_by_errors(data: dict):
    """X2: coverage above bias, a column for each shape of the errors."""
    figure, axes = style.panel_grid(4, len(ERRORS), height=8.2, sharex=True, sharey="row")
    rho, curves = data["rho"], data["panels"]
    for column, (errors, name) in enumerate(ERRORS.items()):
        for place, alpha in enumerate(INSTRUMENT):
            coverage, bias = axes[place, column], axes[2 + place, column]
            shown = curves[f"coverage90 {errors} {alpha}"]
            style.draw_coverage(coverage, rho, shown, low=0.25, bars=False)
            style.draw_curves(bias, rho, curves[f"bias_f0 {errors} {alpha}"])
            style.bias_axis(bias, rho)
            bias.set_ylim(-1.3, 1.1)
            for axis, what in ((coverage, "coverage"), (bias, "bias")):
                axis.set_ylabel(f"{what}, {INSTRUMENT[alpha]}" if column == 0 else "")
                axis.set_xlabel("")
        axes[0, column].set_title(f"({'abc'[column]}) {name} errors", loc="left")
        axes[-1, column].set_xlabel("true ρ")
    style.legend_below(figure, axes[0, 0], columns=5)
    return figure


def draw_calibration(data: dict):
    """X4: ECE and two coverages, a row of panels for each table."""
    figure, axes = style.panel_grid(len(TABLES), 3, height=8.2, sharex="col", sharey=True)
    for place, (dataset, name) in enumerate(TABLES.items()):
        paper, now = data[dataset]["paper"], data[dataset]["now"]
        series = [
            (lambda metric, method, paper=paper: paper.get(method, {}).get(metric), 0.2, "", False),
            (lambda metric, method, now=now: now[method][metric], -0.1, "", True),
        ]
        style.draw_dots(axes[place], list(now), series, titles=place == 0)
        axes[place, 0].set_ylabel(name)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(left=0)
    style.key_below(
        figure,
        axes[0, 0],
        ("o", {"color": "#333333", "label": "members on folds"}),
        ("o", {"color": "#333333", "mfc": "white", "label": "paper's settings"}),
        (":", {"color": "black", "label": "nominal 90 %"}),
    )
    return figure


FIGURES: dict[str, Callable] = {
    "x1": draw_without_instrument,
    "x2": draw_honesty_by_errors,
    "x4": draw_calibration,
}
