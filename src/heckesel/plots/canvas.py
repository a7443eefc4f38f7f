"""Axes to draw on, the colours of all pictures, and what their axes and legends look like."""

from heckesel.errors import DataError, imported

# From Okabe and Ito's palette, which colour-blind readers can distinguish; a dash or a marker
# distinguishes the same series in grey.
CORRECTED, NAIVE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, SOFT, GRID = "#1A1D21", "#5F666E", "#D3D7DC"
BAND = "#C6DEEE"  # CORRECTED at a fifth of its strength, on white
SIZE = (5.5, 3.4)  # inches
LEVEL = 0.9
MOST_LETTERS = 34  # of two labels beside each other


def axes_or_new(ax, size: tuple[float, float] = SIZE):
    """The given axes, or those of a new figure that is not registered with pyplot."""
    if ax is None:
        needs = "plots need matplotlib, which is not installed"
        figure = imported("matplotlib.figure", needs, "report").Figure
        return figure(figsize=size, layout="constrained").subplots()
    if not hasattr(ax, "errorbar"):
        raise DataError(f"ax must be matplotlib axes, not {type(ax).__name__}")
    return ax


def tidy(ax, xlabel: str, ylabel: str = "", *, grid: str = "y") -> None:
    """Labels, a light grid behind the data, and no frame at the top and on the right.

    Dollar signs in names are not mathematics.
    """
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis=grid, color=GRID, lw=0.7)


def legend_above(ax, columns: int = 2) -> None:
    """A legend above the axes, where it covers no data; long labels are in one column."""
    lengths = sorted(len(label) for label in ax.get_legend_handles_labels()[1])
    if not lengths:
        return
    columns = 1 if sum(lengths[-2:]) > MOST_LETTERS else columns
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.8,
    )


def percent_axis(axis) -> None:
    """Shares as per cent."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
