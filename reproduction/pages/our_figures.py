"""Figures of our own experiments: without an instrument, errors of another shape, calibration."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.pages.beyond_paper.x2_page import ERRORS
from reproduction.pages.beyond_paper.x4_page import TABLES
from reproduction.pages.figure_style import (
    STYLES,
    bias_axis,
    coverage_axis,
    dot_axis,
    draw_curves,
    draw_dot,
    key_below,
    legend_below,
    panel_grid,
    panels,
)
from reproduction.pages.method_labels import LABELS

BIAS = "bias, selected against"
INSTRUMENT = {"0": "no instrument", "1": "instrument"}


def draw_without_instrument(data: dict):
    """X1: coverage and bias against rho on the paper's curve, alpha = 0."""
    figure, (left, right) = panels(2, height=3.4)
    draw_curves(left, data["rho"], data["coverage90"], bars=True)
    coverage_axis(left, low=0.2)
    left.set_title("(a) no instrument, mean ± sd of 8 seeds", loc="left")
    draw_curves(right, data["rho"], data["bias_f0"], bars=True)
    bias_axis(right, data["rho"], BIAS)
    right.set_title("(b) the same, bias of the mean", loc="left")
    legend_below(figure, left, columns=6)
    return figure


def draw_honesty_by_errors(data: dict):
    """X2: coverage above bias, a column for each shape of the errors."""
    figure, axes = panel_grid(4, len(ERRORS), height=8.2, sharex=True, sharey="row")
    for column, (errors, name) in enumerate(ERRORS.items()):
        for place, alpha in enumerate(INSTRUMENT):
            coverage, bias = axes[place, column], axes[2 + place, column]
            draw_curves(coverage, data["rho"], data["panels"][f"coverage90 {errors} {alpha}"])
            coverage_axis(coverage, low=0.25)
            draw_curves(bias, data["rho"], data["panels"][f"bias_f0 {errors} {alpha}"])
            bias_axis(bias, data["rho"], BIAS)
            bias.set_ylim(-1.3, 1.1)
            for axis, what in ((coverage, "coverage"), (bias, "bias")):
                axis.set_ylabel(f"{what}, {INSTRUMENT[alpha]}" if column == 0 else "")
                axis.set_xlabel("")
        axes[0, column].set_title(f"({'abc'[column]}) {name} errors", loc="left")
        axes[-1, column].set_xlabel("true ρ")
    legend_below(figure, axes[0, 0], columns=5)
    return figure


def draw_calibration(data: dict):
    """X4: ECE and two coverages, a row of panels for each table."""
    figure, axes = panel_grid(len(TABLES), 3, height=8.2, sharex="col", sharey=True)
    metrics = {
        "ece_against": "(a) ECE, selected against",
        "coverage90_against": "(b) coverage, selected against",
        "coverage90_well": "(c) coverage, well sampled",
    }
    for line, (dataset, name) in enumerate(TABLES.items()):
        methods = list(data[dataset]["now"])
        for column, (metric, title) in enumerate(metrics.items()):
            axis = axes[line, column]
            for kind, shift in (("paper", 0.2), ("now", -0.1)):
                for method, values in data[dataset][kind].items():
                    style = {"marker": STYLES[method][1], "filled": kind == "now"}
                    draw_dot(axis, method, values[metric], methods.index(method) + shift, **style)
            dot_axis(axis, nominal=column > 0)
            if line == 0:
                axis.set_title(title, loc="left")
        axes[line, 0].set_yticks(range(len(methods)), [LABELS[method] for method in methods])
        axes[line, 0].set_ylabel(name)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(left=0)
    key_below(
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
