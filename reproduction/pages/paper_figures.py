"""The paper's four figures and those of our own experiments, drawn from `paper/figures/*.json`.

Each is a PDF and a PNG without a date, so the same data and the same matplotlib give the same
bytes. The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Each
method also has its own marker and line, for prints without colour.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from heckesel.plots import percent_axis
from reproduction.pages.beyond_paper.x5_page import WHERE
from reproduction.pages.beyond_paper.x6_page import FOREST, TITLES
from reproduction.pages.method_labels import LABELS
from reproduction.regime_draws import ERRORS as X5_ERRORS

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
    # never drawn beside the GP, MC dropout and the weighted ensemble, whose colours they share
    "spline_joint": ("#009E73", "D", "-"),
    "auto": ("#009E73", "D", "-"),
    "old_auto": ("#CC79A7", "X", "-"),
}
NOMINAL = 0.9
DOTS = {
    "ece_against": "(a) ECE, selected against",
    "coverage90_against": "(b) coverage, selected against",
    "coverage90_well": "(c) coverage, well sampled",
}
SELECTED_AGAINST, DARK = "#EEEEEE", "#333333"
NOMINAL_LINE = (":", "black", "nominal 90 %")
REACH = 1.2  # standard deviations shown on either side, of errors by outcome


FONT_SIZES = ("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize")
SETTINGS = {
    **dict.fromkeys((*FONT_SIZES, "legend.fontsize"), POINTS),
    "font.family": "DejaVu Sans",
    "pdf.fonttype": 42,  # text stays text
    "axes.linewidth": 0.6,
    "axes.titlelocation": "left",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
}


def draw_figures(folder: Path) -> list[Path]:
    """Draw every figure whose data are in `folder`, beside them, and return the paths."""
    from matplotlib import rc_context

    written = []
    with rc_context(SETTINGS):
        for name, draw in FIGURES.items():
            needed = [folder / f"{part}.json" for part in PARTS.get(name, (name,))]
            if all(path.exists() for path in needed):
                figure = draw(*(json.loads(path.read_text(encoding="utf-8")) for path in needed))
                written += _save(figure, folder / name)
    return written


def draw_setup(example: dict, coverage: dict):
    """Figure 1: (a) one draw and two bands, (b) coverage against rho."""
    figure, [(left, right)] = panel_grid(1, 2, height=3.6)
    _draw_example(left, example)
    left.set_title("(a) one draw, ρ = 0.9, with 90 % intervals")
    title = "(b) with instrument, mean ± sd of 8 seeds"
    draw_coverage(right, coverage["rho"], coverage["methods"], title, low=0.35)
    legend_below(figure, right)
    return figure


def draw_honesty(data: dict):
    """Figure 2: coverage with and without the instrument, and bias."""
    figure, [axes] = panel_grid(1, 3, height=3.4)
    rho = data["rho"]
    draw_coverage(axes[0], rho, data["coverage_with"], "(a) with instrument", low=0.2)
    draw_coverage(axes[1], rho, data["coverage_without"], "(b) without instrument", low=0.2)
    axes[1].set_ylabel("")
    shown = ("heckman_two_step", "heckman_joint", "deep_ensemble", "weighted_ensemble")
    for key, line, filled in (("bias_with", "-", True), ("bias_without", "--", False)):
        curves = {method: data[key][method] for method in shown}
        draw_curves(axes[2], rho, curves, line=line, filled=filled)
    bias_axis(axes[2], rho, "bias of the mean", "(c) bias, selected against")
    kinds = handles(axes[2], ("o-", DARK, "with"), ("o--", DARK, "without", "white"))
    axes[2].legend(handles=kinds, loc="upper left")
    legend_below(figure, axes[0])
    return figure


def draw_semireal(data: dict):
    """Figure 3: ECE, coverage, and coverage where data are plenty."""
    figure, [axes] = panel_grid(1, 3, height=3.2, sharey=True)
    methods = list(data["ece_against"]["california"])
    for axis, (metric, title) in zip(axes, DOTS.items(), strict=True):
        for dataset, shift, shape, filled in (
            ("california", -0.17, "o", True),
            ("wine", 0.17, "s", False),
        ):
            for row, method in enumerate(methods):
                look = _marks(method, filled) | {"marker": shape, "ms": 5, "lw": 1, "capsize": 2}
                value = data[metric][dataset][method]
                axis.errorbar(value["mean"], row + shift, xerr=value["sd"], **look)
        axis.grid(axis="x", lw=0.4, color="#DDDDDD")
        axis.set(axisbelow=True, title=title)
        if metric != "ece_against":
            axis.axvline(NOMINAL, color="black", lw=0.8, ls=":")
            percent_axis(axis.xaxis)
    axes[0].set_yticks(range(len(methods)), [LABELS[method] for method in methods])
    axes[0].invert_yaxis()
    axes[0].set_xlim(left=0)
    california, wine = ("o", DARK, "California housing"), ("s", DARK, "wine quality", "white")
    key_below(figure, axes[0], california, wine, NOMINAL_LINE)
    return figure


def draw_panels(data: dict):
    """Figure 4: rho of panels and pairs, squares where it is on the boundary."""
    fits = data["fits"]
    figure, [[axis]] = panel_grid(1, 1, height=1.1 + 0.21 * len(fits), width=5.2)
    for row, fit in enumerate(fits):
        axis.plot([fit["low"], fit["high"]], [row, row], color="#56B4E9", lw=1.5, zorder=1)
        marker, colour = ("s", "#D55E00") if fit["boundary"] else ("o", "#0072B2")
        axis.plot(fit["rho"], row, marker, color=colour, ms=5, zorder=2)
    names = [f"→ {fit['target']}" if fit["target"] else "panel" for fit in fits]
    tasks = [f"{fit['task']}: {name}" for fit, name in zip(fits, names, strict=True)]
    axis.set_yticks(range(len(fits)), tasks)
    axis.invert_yaxis()
    axis.axvline(0, color="black", lw=0.6)
    axis.set(xlabel="estimate of ρ", xlim=(-1.08, 1.08))
    points = ("s", "#D55E00", "on the boundary"), ("o", "#0072B2", "interior")
    key_below(figure, axis, *points, ("-", "#56B4E9", "95 % profile interval"))
    return figure


def draw_without_instrument(data: dict):
    """X1: coverage and bias against rho on the paper's curve, alpha = 0."""
    figure, [(left, right)] = panel_grid(1, 2, height=3.4)
    title = "(a) no instrument, mean ± sd of 8 seeds"
    draw_coverage(left, data["rho"], data["coverage90"], title, low=0.2)
    draw_curves(right, data["rho"], data["bias_f0"], bars=True)
    bias_axis(right, data["rho"], title="(b) the same, bias of the mean")
    legend_below(figure, left, columns=6)
    return figure


def draw_regimes(data: dict):
    """X5: coverage above CRPS, a column for each kind of errors, a row for each instrument."""
    figure, axes = panel_grid(6, len(X5_ERRORS), height=10.5, sharex=True, sharey="row")
    rho, panels = data["rho"], data["panels"]
    for column, errors in enumerate(X5_ERRORS):
        for place, (instrument, name) in enumerate(WHERE.items()):
            coverage, crps = axes[place, column], axes[3 + place, column]
            shown = panels[f"coverage90_against {instrument} {errors}"]
            draw_coverage(coverage, rho, shown, low=0.4, bars=False)
            draw_curves(crps, rho, panels[f"crps_against {instrument} {errors}"])
            for axis, what in ((coverage, "coverage"), (crps, "CRPS")):
                axis.set_ylabel(f"{what},\n{name}" if column == 0 else "")
                axis.set_xlabel("")
        axes[0, column].set_title(errors)
        axes[-1, column].set(xlabel="true ρ", xticks=(rho[0], 0, rho[-1]))
    for crps in axes[3:, 0]:
        crps.set_ylim(bottom=0)
    legend_below(figure, axes[0, 0], columns=4)
    return figure


def draw_forest(data: dict):
    """The same on less space: outcomes without names, sorted by the naive error."""
    naive = [row["methods"].get("naive", [np.nan])[0] for row in data["outcomes"]]
    rows = [data["outcomes"][at] for at in np.argsort(naive)]
    figure, [axes] = panel_grid(1, len(FOREST), height=3.9, sharey=True)
    _draw_rows(axes, rows, 0.6, 1.4)
    axes[0].set(ylim=(len(rows), -1), yticks=[], ylabel=f"{len(rows)} outcomes")
    figure.supxlabel("estimate less known mean of the unselected, in standard deviations", size=8)
    return figure


def draw_errors(data: dict):
    """A forest plot: a panel for each method, a row for each outcome, the truth at 0. An arrow
    where an estimate lies outside the panel."""
    rows = data["outcomes"]
    figure, [axes] = panel_grid(1, len(FOREST), height=1 + 0.085 * len(rows), sharey=True)
    starts = [
        at for at, row in enumerate(rows) if not at or row["source"] != rows[at - 1]["source"]
    ]
    _draw_rows(axes, rows, 1.0, 2.5)
    for axis in axes:
        for start in starts[1:]:
            axis.axhline(start - 0.5, color="#DDDDDD", lw=0.5)
    ends = [*starts[1:], len(rows)]
    middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
    axes[0].set_yticks(middles, [rows[start]["source"] for start in starts])
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel("estimate less known mean of the unselected, in standard deviations", size=8)
    return figure


def _draw_rows(axes, rows: list[dict], width: float, size: float) -> None:
    for axis, (method, colour) in zip(axes, FOREST.items(), strict=True):
        for place, row in enumerate(rows):
            if method not in row["methods"]:
                continue
            value, low, high = row["methods"][method]
            axis.plot(np.clip([low, high], -REACH, REACH), [place, place], color=colour, lw=width)
            marker = "o" if abs(value) <= REACH else ">" if value > 0 else "<"
            at = float(np.clip(value, -REACH, REACH))
            axis.plot(at, place, marker, color=colour, ms=size, clip_on=False)
        axis.axvline(0, color="black", lw=0.7)
        axis.tick_params(axis="y", length=0)
        axis.set(xlim=(-REACH, REACH), title=TITLES[method])


def panel_grid(rows: int, columns: int, *, height: float, width: float = WIDTH, **shared):
    """A figure and its panels: (rows, columns)"""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def draw_curves(
    axis, rho, curves: dict, *, bars: bool = False, line=None, filled: bool = True
) -> None:
    """Methods side by side at each rho, so that their bars do not cover each other."""
    for position, (method, curve) in enumerate(curves.items()):
        shift, sd = 0.007 * (position - (len(curves) - 1) / 2), curve["sd"] if bars else None
        look = _marks(method, filled) | {"ls": STYLES[method][2] if line is None else line}
        look |= {"ms": 4.5, "lw": 1.2, "elinewidth": 0.8, "label": LABELS[method]}
        axis.errorbar([value + shift for value in rho], curve["mean"], yerr=sd, **look)


def _marks(method: str, filled: bool) -> dict:
    colour, marker, _ = STYLES[method]
    return {"color": colour, "marker": marker, "mfc": colour if filled else "white"}


def draw_coverage(axis, rho, curves: dict, title: str = "", *, low: float, bars: bool = True):
    """Coverage against rho, from `low` to 100 %, with the nominal one as a line."""
    draw_curves(axis, rho, curves, bars=bars)
    axis.axhline(NOMINAL, color="black", lw=0.6)
    axis.set(xlabel="true ρ", ylabel="coverage, selected against", ylim=(low, 1.0), title=title)
    axis.set_xticks([0, 0.3, 0.6, 0.9])
    percent_axis(axis.yaxis)


def bias_axis(axis, rho, label: str = "bias, selected against", title: str = "") -> None:
    axis.axhline(0, color="black", lw=0.6)
    axis.set(xlabel="true ρ", ylabel=label, xticks=rho, title=title)


def legend_below(figure, axis, *, columns: int = 4) -> None:
    """The legend of what the panel shows."""
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def handles(axis, *entries: tuple[str, ...]) -> list:
    """What a legend shows for (format, colour, label) or (format, colour, label, face)."""
    return [
        axis.plot([], [], form, color=colour, label=label, mfc=face[0] if face else colour)[0]
        for form, colour, label, *face in entries
    ]


def key_below(figure, axis, *entries: tuple[str, ...]) -> None:
    """A legend that explains markers and lines."""
    shown = handles(axis, *entries)
    figure.legend(handles=shown, loc="outside lower center", ncols=len(entries))


def _draw_example(axis, example: dict) -> None:
    axis.axvspan(example["against_from"], 3, color=SELECTED_AGAINST, zorder=0, lw=0)
    middle = (example["against_from"] + 3) / 2
    axis.text(middle, -3.4, "selected\nagainst", ha="center", va="bottom")
    units = example["units"]
    for selected, colour, marker, label in (
        (True, "#333333", ".", "observed"),
        (False, "#888888", "x", "not observed"),
    ):
        kept = [i for i, s in enumerate(units["selected"]) if s is selected]
        x, y = ([units[key][i] for i in kept] for key in ("x", "y"))
        axis.scatter(x, y, s=7, c=colour, marker=marker, linewidths=0.5, label=label, alpha=0.6)
    for method, band in example["bands"].items():
        colour, _, line = STYLES[method]
        axis.fill_between(example["x"], band["low"], band["high"], color=colour, alpha=0.15, lw=0)
        for edge in ("low", "high"):
            axis.plot(example["x"], band[edge], color=colour, ls=line, lw=0.7)
        axis.plot(example["x"], band["mean"], color=colour, ls=line, lw=1.8, label=LABELS[method])
    axis.plot(example["x"], example["f0"], color="black", ls=":", lw=1.4, label="true $f_0$")
    axis.set(xlabel="$x$", ylabel="$y$", xlim=(-3, 3), ylim=(-3.5, 5.0))
    axis.legend(loc="upper left", ncols=2, columnspacing=1.0, borderaxespad=0.2)


def _save(figure, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(".pdf"), stem.with_suffix(".png")]
    figure.savefig(paths[0], metadata={"CreationDate": None, "Producer": None, "Creator": None})
    figure.savefig(paths[1], dpi=200, metadata={"Software": None})
    return paths


FIGURES: dict[str, Callable] = {
    "fig1": draw_setup,
    "fig2": draw_honesty,
    "fig3": draw_semireal,
    "fig4": draw_panels,
    "x1": draw_without_instrument,
    "x5": draw_regimes,
    "x6": draw_errors,
    "forest": draw_forest,
}
PARTS = {"fig1": ("fig1a", "fig1b"), "forest": ("x6",)}
