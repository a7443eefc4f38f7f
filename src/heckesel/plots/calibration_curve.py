"""Predicted probabilities against observed shares, by region."""

import numpy as np

from heckesel.errors import DataError
from heckesel.metrics.calibration import LEVELS, class_half_band, half_band, reliability
from heckesel.metrics.points import points_of
from heckesel.numeric_input import numeric, ones_of
from heckesel.plots.canvas import (
    BAND,
    CORRECTED,
    GREEN,
    NAIVE,
    PURPLE,
    SOFT,
    axes_or_new,
    legend_above,
    percent_axis,
    tidy,
)
from heckesel.predictive.distribution import Predictive

LOOKS = ((CORRECTED, "o"), (NAIVE, "D"), (GREEN, "s"), (PURPLE, "^"))
TENTHS, FEWEST = 10, 20  # groups of classes, with at least so many units each


def calibration(y, predictive, regions=None, *, ax=None):
    """Draw a reliability diagram: observed shares over predicted probabilities.

    Parameters
    ----------
    y : array-like of shape (m,)
        Known outcomes. With probabilities, 1 for the second class and 0 for the first.
    predictive : Predictive or array-like of shape (m,)
        Predictions for the same units; for two classes the probability of the second.
    regions : dict of str to array, optional
        Row numbers by name, as `heckesel.metrics.regions` returns; at most four. By default all
        units are one region, and a band is drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If y and the predictions differ in length, or there are more than four regions.

    Notes
    -----
    For numeric outcomes, the points are the shares of outcomes below the predicted quantiles at
    5 %, ..., 95 %. For classes, units are grouped by tenths of the predicted probability. Points of
    a calibrated model lie near the diagonal. The band contains all points of 99 % of correct
    models, if the predictions are known exactly and y was not used to make them.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=400)
    >>> ax = hk.plots.calibration(y, hk.Predictive.normal(np.zeros(400), 0.0, 1.0))
    >>> ax.get_ylabel()
    'observed share of outcomes below'
    """
    classes = not isinstance(predictive, Predictive)
    if classes:
        y, values = _classes(y, predictive)
    else:
        values = predictive.cdf(points_of(y, "y", predictive))
    parts = {"": np.arange(len(values))} if regions is None else dict(regions)
    if not 0 < len(parts) <= len(LOOKS):
        raise DataError(f"regions must be one to {len(LOOKS)}, got {len(parts)}")
    ax = axes_or_new(ax, (4.6, 4.7))
    for look, (name, rows) in zip(LOOKS, parts.items(), strict=False):
        if classes:
            level, share, count = class_shares(y[rows], values[rows])
            half = class_half_band(level, count)
        else:
            level, share = LEVELS, reliability(values[rows])
            half = half_band(len(values[rows]))
        band = (level - half, level + half) if regions is None else None
        name = str(name).replace("$", r"\$")  # no mathematics
        label = f"{name} ({len(values[rows]):,} units)" if name else "observed"
        draw_reliability(ax, level, share, band, label=label, look=look)
    label_reliability(ax, classes=classes)
    return ax


def class_shares(y: np.ndarray, probability: np.ndarray) -> tuple:
    """Mean predicted probability, observed share and count of each tenth."""
    order = np.argsort(probability, kind="stable")
    groups = np.array_split(order, max(1, min(TENTHS, len(y) // FEWEST)))
    level = np.array([probability[rows].mean() for rows in groups])
    return level, np.array([y[rows].mean() for rows in groups]), np.array([*map(len, groups)])


def draw_reliability(ax, level, share, band=None, *, label="observed", look=LOOKS[0]) -> None:
    """One point per level; band : (low, high), None for none."""
    colour, marker = look
    if band is not None:
        low, high = (np.clip(edge, 0, 1) for edge in band)
        ax.fill_between(level, low, high, color=BAND, lw=0, label="band of correct models")
    ax.plot(level, share, marker, color=colour, mec="white", ms=6, label=label)


def label_reliability(ax, *, classes: bool) -> None:
    """Labels, and equal scales; for classes up to the largest share."""
    largest = 1.0
    if classes:
        labels = "predicted probability of the class", "observed share of the class"
        largest = min(1.0, float(np.ceil(10 * max(ax.dataLim.max)) / 10))
    else:
        labels = "predicted share of outcomes below", "observed share of outcomes below"
    tidy(ax, *labels, grid="both")
    ax.plot([0, largest], [0, largest], color=SOFT, lw=1, ls=(0, (3, 3)), zorder=1)
    ax.set(xlim=(0, largest), ylim=(0, largest), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        percent_axis(axis)
    legend_above(ax, columns=1)


def _classes(y, probability) -> tuple[np.ndarray, np.ndarray]:
    y, probability = numeric(y, "y"), numeric(probability, "predictive")
    if y.ndim != 1 or probability.shape != y.shape:
        raise DataError(
            f"y has shape {y.shape} but the probabilities have {probability.shape}; give the "
            "probability of the second class for each unit, predict_proba(X)[:, 1]"
        )
    ones_of(y, "with probabilities, y")
    outside = np.flatnonzero(~((probability >= 0) & (probability <= 1)))
    if len(outside):
        row = outside[0]
        raise DataError(
            f"probabilities must be between 0 and 1, but row {row} has {probability[row]:g}"
        )
    return y, probability
