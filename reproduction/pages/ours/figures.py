"""Figures of our own experiments: without an instrument, errors of another shape, calibration."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.pages.drawing import (
    NOMINAL,
    STYLES,
    coverage_axis,
    draw_curves,
    legend_below,
    panel_grid,
    panels,
    percent_axis,
)
from reproduction.pages.ours.x2 import ERRORS
from reproduction.pages.ours.x4 import TABLES
from reproduction.pages.verdicts import LABELS

INSTRUMENT = {"0": "no instrument", "1": "instrument"}


def draw_without_instrument(data: dict):
    """X1: coverage and bias against rho on the paper's curve, alpha = 0."""
    figure, (left, right) = panels(2, height=3.4)
    draw_curves(left, data["rho"], data["coverage90"], spread=True)
    coverage_axis(left, low=0.2)
    left.set_title("(a) no instrument, mean ± sd of 8 seeds", loc="left")
    draw_curves(right, data["rho"], data["bias_f0"], spread=True)
    _bias_axis(right, data["rho"])
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
            _bias_axis(bias, data["rho"])
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
                at = {method: methods.index(method) + shift for method in data[dataset][kind]}
                _draw_methods(axis, data[dataset][kind], metric, at, filled=kind == "now")
            axis.grid(axis="x", lw=0.4, color="#DDDDDD")
            axis.set_axisbelow(True)
            if line == 0:
                axis.set_title(title, loc="left")
            if column > 0:
                axis.axvline(NOMINAL, color="black", lw=0.8, ls=":")
                percent_axis(axis.xaxis)
        axes[line, 0].set_yticks(range(len(methods)), [LABELS[method] for method in methods])
        axes[line, 0].set_ylabel(name)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(left=0)
    handles = [
        axes[0, 0].plot([], [], "o", color="#333333", label="members on folds")[0],
        axes[0, 0].plot([], [], "o", color="#333333", mfc="white", label="paper's settings")[0],
        axes[0, 0].plot([], [], ":", color="black", label="nominal 90 %")[0],
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_methods(axis, methods: dict, metric: str, at: dict, *, filled: bool) -> None:
    for method, values in methods.items():
        colour, marker, _ = STYLES[method]
        axis.errorbar(
            values[metric]["mean"],
            at[method],
            xerr=values[metric]["sd"],
            color=colour,
            marker=marker,
            markerfacecolor=colour if filled else "white",
            ms=5,
            lw=1,
            capsize=2,
        )


def _bias_axis(axis, rho) -> None:
    axis.axhline(0, color="black", lw=0.6)
    axis.set(xlabel="true ρ", ylabel="bias, selected against", xticks=rho)


FIGURES: dict[str, Callable] = {
    "x1": draw_without_instrument,
    "x2": draw_honesty_by_errors,
    "x4": draw_calibration,
}
