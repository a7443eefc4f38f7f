"""The paper's four figures and those of our own experiments, drawn from `paper/figures/*.json`.

Each is a PDF and a PNG without a date, so the same data and the same matplotlib give the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from reproduction.pages import figure_style as style
from reproduction.pages.method_labels import LABELS
from reproduction.pages.our_figures import FIGURES as OUR_FIGURES

SELECTED_AGAINST = "#EEEEEE"


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
    figure, (left, right) = style.panels(2, height=3.6)
    _draw_example(left, example)
    left.set_title("(a) one draw, ρ = 0.9, with 90 % intervals", loc="left")
    title = "(b) with instrument, mean ± sd of 8 seeds"
    style.draw_coverage(right, coverage["rho"], coverage["methods"], title, low=0.35)
    style.legend_below(figure, right)
    return figure


def draw_honesty(data: dict):
    """Figure 2: coverage with and without the instrument, and bias."""
    figure, axes = style.panels(3, height=3.4)
    rho = data["rho"]
    style.draw_coverage(axes[0], rho, data["coverage_with"], "(a) with instrument", low=0.2)
    style.draw_coverage(axes[1], rho, data["coverage_without"], "(b) without instrument", low=0.2)
    axes[1].set_ylabel("")
    shown = ("heckman_two_step", "heckman_joint", "deep_ensemble", "weighted_ensemble")
    for key, line, filled in (("bias_with", "-", True), ("bias_without", "--", False)):
        curves = {method: data[key][method] for method in shown}
        style.draw_curves(axes[2], rho, curves, line=line, filled=filled)
    style.bias_axis(axes[2], rho, "bias of the mean", "(c) bias, selected against")
    kinds = [
        axes[2].plot([], [], "o-", color="#333333", label="with")[0],
        axes[2].plot([], [], "o--", color="#333333", mfc="white", label="without")[0],
    ]
    axes[2].legend(handles=kinds, loc="upper left", frameon=False)
    style.legend_below(figure, axes[0])
    return figure


def draw_semireal(data: dict):
    """Figure 3: ECE, coverage, and coverage where data are plenty."""
    figure, axes = style.panels(3, height=3.2, sharey=True)
    series = [
        (lambda metric, method: data[metric]["california"][method], -0.17, "o", True),
        (lambda metric, method: data[metric]["wine"][method], 0.17, "s", False),
    ]
    style.draw_dots(axes, list(data["ece_against"]["california"]), series)
    axes[0].invert_yaxis()
    axes[0].set_xlim(left=0)
    style.key_below(
        figure,
        axes[0],
        ("o", {"color": "#333333", "label": "California housing"}),
        ("s", {"color": "#333333", "mfc": "white", "label": "wine quality"}),
        (":", {"color": "black", "label": "nominal 90 %"}),
    )
    return figure


def draw_panels(data: dict):
    """Figure 4: rho of panels and pairs, squares where it is on the boundary."""
    fits = data["fits"]
    figure, (axis,) = style.panels(1, height=1.1 + 0.21 * len(fits), width=5.2)
    for row, fit in enumerate(fits):
        axis.plot([fit["low"], fit["high"]], [row, row], color="#56B4E9", lw=1.5, zorder=1)
        marker, colour = ("s", "#D55E00") if fit["boundary"] else ("o", "#0072B2")
        axis.plot(fit["rho"], row, marker, color=colour, ms=5, zorder=2)
    names = [
        f"{fit['task']}: → {fit['target']}" if fit["target"] else f"{fit['task']}: panel"
        for fit in fits
    ]
    axis.set_yticks(range(len(fits)), names)
    axis.invert_yaxis()
    axis.axvline(0, color="black", lw=0.6)
    axis.set(xlabel="estimate of ρ", xlim=(-1.08, 1.08))
    style.key_below(
        figure,
        axis,
        ("s", {"color": "#D55E00", "label": "on the boundary"}),
        ("o", {"color": "#0072B2", "label": "interior"}),
        ("-", {"color": "#56B4E9", "label": "95 % profile interval"}),
    )
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
    axis.legend(loc="upper left", ncols=2, frameon=False, columnspacing=1.0, borderaxespad=0.2)


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
    **OUR_FIGURES,
}
PARTS = {"fig1": ("fig1a", "fig1b")}
