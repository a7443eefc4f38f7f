"""The paper's four figures and those of our own experiments, drawn from `paper/figures/*.json`.

Each is a PDF and a PNG without a date, so the same data and the same matplotlib give the same
bytes.
"""

import json
from collections.abc import Callable
from pathlib import Path

from reproduction.pages import figure_style as style
from reproduction.pages.beyond_paper.x5_page import WHERE
from reproduction.pages.beyond_paper.x6_page import draw_errors, draw_forest
from reproduction.pages.method_labels import LABELS
from reproduction.regime_draws import ERRORS as X5_ERRORS

SELECTED_AGAINST, DARK = "#EEEEEE", "#333333"
NOMINAL = (":", "black", "nominal 90 %")


def draw_figures(folder: Path) -> list[Path]:
    """Draw every figure whose data are in `folder`, beside them, and return the paths."""
    from matplotlib import rc_context

    written = []
    with rc_context(style.settings()):
        for name, draw in FIGURES.items():
            needed = [folder / f"{part}.json" for part in PARTS.get(name, (name,))]
            if all(path.exists() for path in needed):
                figure = draw(*(json.loads(path.read_text(encoding="utf-8")) for path in needed))
                written += _save(figure, folder / name)
    return written


def draw_setup(example: dict, coverage: dict):
    """Figure 1: (a) one draw and two bands, (b) coverage against rho."""
    figure, [(left, right)] = style.panel_grid(1, 2, height=3.6)
    _draw_example(left, example)
    left.set_title("(a) one draw, ρ = 0.9, with 90 % intervals")
    title = "(b) with instrument, mean ± sd of 8 seeds"
    style.draw_coverage(right, coverage["rho"], coverage["methods"], title, low=0.35)
    style.legend_below(figure, right)
    return figure


def draw_honesty(data: dict):
    """Figure 2: coverage with and without the instrument, and bias."""
    figure, [axes] = style.panel_grid(1, 3, height=3.4)
    rho = data["rho"]
    style.draw_coverage(axes[0], rho, data["coverage_with"], "(a) with instrument", low=0.2)
    style.draw_coverage(axes[1], rho, data["coverage_without"], "(b) without instrument", low=0.2)
    axes[1].set_ylabel("")
    shown = ("heckman_two_step", "heckman_joint", "deep_ensemble", "weighted_ensemble")
    for key, line, filled in (("bias_with", "-", True), ("bias_without", "--", False)):
        curves = {method: data[key][method] for method in shown}
        style.draw_curves(axes[2], rho, curves, line=line, filled=filled)
    style.bias_axis(axes[2], rho, "bias of the mean", "(c) bias, selected against")
    kinds = style.handles(axes[2], ("o-", DARK, "with"), ("o--", DARK, "without", "white"))
    axes[2].legend(handles=kinds, loc="upper left")
    style.legend_below(figure, axes[0])
    return figure


def draw_semireal(data: dict):
    """Figure 3: ECE, coverage, and coverage where data are plenty."""
    figure, [axes] = style.panel_grid(1, 3, height=3.2, sharey=True)
    series = ("california", -0.17, "o", True), ("wine", 0.17, "s", False)
    style.draw_dots(axes, data, list(data["ece_against"]["california"]), series)
    axes[0].invert_yaxis()
    axes[0].set_xlim(left=0)
    california, wine = ("o", DARK, "California housing"), ("s", DARK, "wine quality", "white")
    style.key_below(figure, axes[0], california, wine, NOMINAL)
    return figure


def draw_panels(data: dict):
    """Figure 4: rho of panels and pairs, squares where it is on the boundary."""
    fits = data["fits"]
    figure, [[axis]] = style.panel_grid(1, 1, height=1.1 + 0.21 * len(fits), width=5.2)
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
    style.key_below(figure, axis, *points, ("-", "#56B4E9", "95 % profile interval"))
    return figure


def draw_without_instrument(data: dict):
    """X1: coverage and bias against rho on the paper's curve, alpha = 0."""
    figure, [(left, right)] = style.panel_grid(1, 2, height=3.4)
    title = "(a) no instrument, mean ± sd of 8 seeds"
    style.draw_coverage(left, data["rho"], data["coverage90"], title, low=0.2)
    style.draw_curves(right, data["rho"], data["bias_f0"], bars=True)
    style.bias_axis(right, data["rho"], title="(b) the same, bias of the mean")
    style.legend_below(figure, left, columns=6)
    return figure


def draw_regimes(data: dict):
    """X5: coverage above CRPS, a column for each kind of errors, a row for each instrument."""
    figure, axes = style.panel_grid(6, len(X5_ERRORS), height=10.5, sharex=True, sharey="row")
    rho, panels = data["rho"], data["panels"]
    for column, errors in enumerate(X5_ERRORS):
        for place, (instrument, name) in enumerate(WHERE.items()):
            coverage, crps = axes[place, column], axes[3 + place, column]
            shown = panels[f"coverage90_against {instrument} {errors}"]
            style.draw_coverage(coverage, rho, shown, low=0.4, bars=False)
            style.draw_curves(crps, rho, panels[f"crps_against {instrument} {errors}"])
            for axis, what in ((coverage, "coverage"), (crps, "CRPS")):
                axis.set_ylabel(f"{what},\n{name}" if column == 0 else "")
                axis.set_xlabel("")
        axes[0, column].set_title(errors)
        axes[-1, column].set(xlabel="true ρ", xticks=(rho[0], 0, rho[-1]))
    for crps in axes[3:, 0]:
        crps.set_ylim(bottom=0)
    style.legend_below(figure, axes[0, 0], columns=4)
    return figure


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
        colour, _, line = style.STYLES[method]
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
