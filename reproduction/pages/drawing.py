"""How every figure looks: sizes, a colour, marker and line for each method, panels and curves.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; each method also has its
own marker and line, so that a grey print does too.
"""

from __future__ import annotations

from reproduction.pages.verdicts import LABELS

WIDTH = 7.0  # inches
POINTS = 8
STYLES = {
    # colour, marker, line
    "heckman_two_step": ("#0072B2", "o", "-"),
    "heckman_joint": ("#56B4E9", "s", "-"),
    "blind_two_head": ("#7F7F7F", "D", (0, (1, 1))),
    "deep_ensemble": ("#D55E00", "^", "--"),
    "mc_dropout": ("#E69F00", "v", "-."),
    "gp": ("#009E73", "P", (0, (5, 1, 1, 1, 1, 1))),
    "weighted_ensemble": ("#CC79A7", "X", (0, (8, 2))),
    "oracle": ("#000000", "*", ":"),
    "skyline": ("#000000", "*", ":"),
    # never drawn beside the GP and MC dropout, whose colours they share
    "heckman_profile": ("#009E73", "D", "-"),
    "spline_joint": ("#E69F00", "v", (0, (5, 1))),
    "heckman_averaged": ("#009E73", "P", "-"),
    "heckman_outcome": ("#E69F00", "v", "-"),
}
NOMINAL = 0.9


def panels(count: int, *, height: float, width: float = WIDTH, sharey: bool = False):
    """A figure and its panels in one row: (count,)"""
    figure, axes = panel_grid(1, count, height=height, width=width, sharey=sharey)
    return figure, axes[0]


def panel_grid(rows: int, columns: int, *, height: float, width: float = WIDTH, **shared):
    """A figure and its panels: (rows, columns)"""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_curves(
    axis, rho, curves: dict, *, spread: bool = False, line=None, filled: bool = True
) -> None:
    """Methods side by side at each rho, so that their bars do not cover each other."""
    for position, (method, curve) in enumerate(curves.items()):
        colour, marker, own_line = STYLES[method]
        shift = 0.007 * (position - (len(curves) - 1) / 2)
        axis.errorbar(
            [value + shift for value in rho],
            curve["mean"],
            yerr=curve["sd"] if spread else None,
            color=colour,
            marker=marker,
            markerfacecolor=colour if filled else "white",
            ls=own_line if line is None else line,
            ms=4.5,
            lw=1.2,
            elinewidth=0.8,
            label=LABELS[method],
        )


def coverage_axis(axis, low: float) -> None:
    axis.axhline(NOMINAL, color="black", lw=0.6)
    axis.set(xlabel="true ρ", ylabel="coverage, selected against", ylim=(low, 1.0))
    axis.set_xticks([0, 0.3, 0.6, 0.9])
    percent_axis(axis.yaxis)


def percent_axis(axis) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def legend_below(figure, axis, *, columns: int = 4) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def settings() -> dict:
    return {
        "font.size": POINTS,
        "axes.titlesize": POINTS,
        "axes.labelsize": POINTS,
        "xtick.labelsize": POINTS,
        "ytick.labelsize": POINTS,
        "legend.fontsize": POINTS,
        "font.family": "DejaVu Sans",
        "pdf.fonttype": 42,  # text stays text
        "axes.linewidth": 0.6,
    }
