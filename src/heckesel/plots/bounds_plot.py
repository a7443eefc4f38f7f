"""Bounds and their intervals, one line for each set of assumptions."""

import numpy as np

from heckesel.diagnostics.bounds.bounds_table import Bounds
from heckesel.errors import DataError
from heckesel.plots.canvas import CORRECTED, NAIVE, axes_or_new, legend_above, tidy


def bounds(found: Bounds, *, ax=None):
    """Draw bounds and their confidence intervals, one line for each set of assumptions.

    The thick part of a line shows the bounds, with a point if they are equal; the thin part shows
    the confidence interval. Bounds that cross are orange. Infinite bounds extend to the edge.

    Parameters
    ----------
    found : Bounds
        The result of `heckesel.bounds`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If `found` is something else.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 3.0, np.nan, np.nan])
    >>> ax = hk.plots.bounds(hk.bounds(y, 0.0, 4.0))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['no assumption', 'missing at random']
    """
    if not isinstance(found, Bounds):
        raise DataError(
            f"plots.bounds() draws what hk.bounds returns, not a {type(found).__name__}"
        )
    ax = axes_or_new(ax, (6.4, 1.2 + 0.36 * len(found.rows)))
    limits = np.array([[r.ci_low, r.lower, r.upper, r.ci_high] for r in found.rows])
    finite = limits[np.isfinite(limits)]
    left, right = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    margin = 0.05 * ((right - left) or 1.0)
    shown = np.clip(limits, left - margin, right + margin)
    at = np.arange(len(found.rows))
    colours = np.where(limits[:, 1] > limits[:, 2], NAIVE, CORRECTED)
    interval = f"{100 * found.level:g} % interval"
    ax.hlines(at, shown[:, 0], shown[:, 3], colors=colours, lw=1.2, label=interval)
    ax.hlines(at, shown[:, 1], shown[:, 2], colors=colours, lw=5, label="bounds")
    points = limits[:, 1] == limits[:, 2]
    ax.plot(shown[points, 1], at[points], "o", ms=5, color=CORRECTED, label="estimate")
    ax.set_yticks(at, [row.name for row in found.rows])
    ax.set_ylim(len(at) - 0.5, -0.5)
    ax.set_xlim(left - margin, right + margin)
    tidy(ax, f"{found.rows[0].target.split(' of all')[0]} of {found.outcome}", grid="x")
    legend_above(ax, columns=3)
    return ax
