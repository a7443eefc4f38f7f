"""Mean predictions over the estimated probability of selection."""

import numpy as np

from heckesel.numeric_input import check_level
from heckesel.plots.canvas import (
    BAND,
    CORRECTED,
    LEVEL,
    NAIVE,
    axes_or_new,
    legend_above,
    percent_axis,
    tidy,
)
from heckesel.plots.predictions_of import (
    check_selection_model,
    means_of,
    outcome_of,
    selection_probability,
)

STRIPS, FEWEST = 10, 10  # strips of equal size, with at least so many rows each


def by_selection(model, X, *, naive=None, level: float = LEVEL, ax=None):
    """Draw mean predictions over the estimated probability of selection.

    Parameters
    ----------
    model : fitted estimator
        A regressor or classifier that models selection.
    X : frame or array-like
        Rows to predict, instrument columns included.
    naive : fitted estimator, optional
        A model to compare with, fitted to the same columns.
    level : float, default=0.9
        Level of the band.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the model has no selection equation, or X lacks a column.

    Notes
    -----
    Rows are split into at most ten strips of equal size by their probability of selection. The
    marks are mean predictions of the population. The band uses the mean standard error of the
    predictions in the strip, which is conservative for their mean.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> X = frame[["x", "z"]]
    >>> model = hk.HeckmanRegressor(["z"]).fit(X, frame["y"])
    >>> hk.plots.by_selection(model, X).get_xlabel()
    'estimated probability of selection'
    """
    check_level(level)
    check_selection_model(model, "by_selection()")
    frame = model.columns_.frame_of(X)
    chance = selection_probability(model, frame)
    rows = strips_of(chance)
    middle = np.array([chance[strip].mean() for strip in rows])

    corrected = means_of(model, frame, level).over(rows)
    ax = axes_or_new(ax)
    draw_strips(
        ax,
        middle,
        corrected.mean,
        corrected.interval,
        None if naive is None else means_of(naive, frame, level).over(rows).mean,
        interval_label=f"{100 * level:g} % interval of the corrected mean",
    )
    tidy(ax, "estimated probability of selection", f"{outcome_of(model)}, mean")
    return ax


def strips_of(chance: np.ndarray) -> list[np.ndarray]:
    """Row numbers of the strips, from the least to the most likely to be selected."""
    order = np.argsort(chance, kind="stable")
    return np.array_split(order, max(1, min(STRIPS, len(chance) // FEWEST)))


def draw_strips(
    ax, chance, corrected, interval, naive=None, *, interval_label, label=None, colour=CORRECTED
) -> None:
    """Means over the chance of selection; interval : (j, 2) around the corrected means."""
    ax.fill_between(chance, *interval.T, color=BAND, lw=0, label=interval_label)
    if naive is not None:
        ax.plot(chance, naive, "--D", color=NAIVE, mfc="white", ms=5, lw=2, label="naive mean")
    label = label or ("mean prediction" if naive is None else "corrected mean")
    ax.plot(chance, corrected, "-o", color=colour, mec="white", ms=6, lw=2, label=label)
    ax.set_xlim(0, 1)
    percent_axis(ax.xaxis)
    legend_above(ax)
