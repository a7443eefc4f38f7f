"""How every figure looks: sizes, a colour, marker and line for each method, panels and curves.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Each method also
has its own marker and line, for prints without colour.
"""

from collections.abc import Iterable, Sequence

from heckesel.plots import percent_axis
from reproduction.pages.method_labels import LABELS

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


def draw_dots(axes, data: dict, methods: Sequence[str], series: Iterable[tuple]):
    """ECE and two coverages, a panel each, with a row for each method: mean and sd over seeds.

    data : by metric, dataset and method; series : (dataset, shift, marker, filled)
    """
    for axis, (metric, title) in zip(axes, DOTS.items(), strict=True):
        for dataset, shift, shape, filled in series:
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


def settings() -> dict:
    sizes = ("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize")
    return {
        **dict.fromkeys((*sizes, "legend.fontsize"), POINTS),
        "font.family": "DejaVu Sans",
        "pdf.fonttype": 42,  # text stays text
        "axes.linewidth": 0.6,
        "axes.titlelocation": "left",
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    }
