"""Estimates with their intervals, one row each: coefficients, and changes of groups."""

import numpy as np

from heckesel.errors import DataError, as_list
from heckesel.numeric_input import check_level
from heckesel.plots.canvas import CORRECTED, SOFT, axes_or_new, legend_above, tidy

ROW_HEIGHT, MARGINS = 0.34, 1.1  # inches


def coefficients(fit, *, equation: str = "outcome", terms=None, level: float = 0.95, ax=None):
    """Draw the coefficients of an equation with their intervals.

    Parameters
    ----------
    fit : HeckmanFit, HeckmanRegressor or HeckmanClassifier
        A linear fit.
    equation : str, default="outcome"
        ``"outcome"``, ``"select"`` or another equation of the table of coefficients.
    terms : str or list of str, optional
        Terms to draw, in this order. By default all of them but the constant.
    level : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the fit has no table of coefficients, or no such equation or term.

    Notes
    -----
    The intervals are those of ``fit.to_frame(level)``. A fit at rho = -1 or 1 has none, and the
    legend then states this.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> ax = hk.plots.coefficients(hk.heckman("y ~ x", "~ x + z", frame), equation="select")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x', 'z']
    """
    check_level(level)
    result = getattr(fit, "result_", fit)
    if not hasattr(result, "to_frame") or not hasattr(result, "params"):
        raise DataError(
            f"coefficients() needs a linear fit, and a {type(fit).__name__} has no coefficients"
        )
    table = result.to_frame(level)
    equations = list(dict.fromkeys(table.index.get_level_values(0)))
    if equation not in equations:
        raise DataError(f"there is no equation {equation!r}; there are {', '.join(equations)}")
    table = table.loc[equation]
    chosen = [] if terms is None else as_list("terms", terms)
    chosen = chosen or [t for t in table.index if t != "Intercept"]
    unknown = [term for term in chosen if term not in table.index]
    if unknown or not chosen:
        what = f"term {unknown[0]!r}" if unknown else "term but the constant"
        raise DataError(
            f"the {equation} equation has no {what}; there are {', '.join(table.index)}"
        )
    table = table.loc[chosen]
    ax = axes_or_new(ax, (5.5, MARGINS + ROW_HEIGHT * len(table)))
    draw_intervals(
        ax,
        [str(term) for term in table.index],
        table["coef"].to_numpy(),
        table[["low", "high"]].to_numpy(),
        label="coefficient",
        interval_label=f"{100 * level:g} % interval",
    )
    what = {"outcome": "outcome", "select": "selection"}.get(equation, equation)
    tidy(ax, f"coefficient in the {what} equation", grid="x")
    return ax


def draw_intervals(ax, names, estimate, interval, *, label, interval_label=None, colour=CORRECTED):
    """One row for each name, the first at the top; interval : (m, 2), NaN where there is none."""
    rows, known = np.arange(len(names)), np.isfinite(interval).all(axis=1)
    ax.axvline(0.0, color=SOFT, lw=1, ls=(0, (3, 3)), zorder=1)
    if known.any():
        ax.hlines(
            rows[known], *interval[known].T, color=colour, lw=2.2, zorder=2, label=interval_label
        )
    ax.plot(estimate, rows, "o", color=colour, mec="white", ms=6, zorder=3, label=label)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    if not known.any():
        ax.plot([], [], " ", label="(no standard errors, so no intervals)")
    legend_above(ax)
