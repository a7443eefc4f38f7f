"""Partial dependence: the mean prediction as a function of one column."""

import numpy as np

from heckesel.errors import DataError
from heckesel.numeric_input import check_level
from heckesel.plots.canvas import CORRECTED, LEVEL, NAIVE, axes_or_new, legend_above, tidy
from heckesel.plots.predictions_of import Means, means_of, outcome_of
from heckesel.tables.column_kinds import column_levels, is_number

POINTS = 25  # of a curve
MOST_ROWS = 400  # to average over: with these a curve is 10,000 predictions
OUTER = 0.01  # share of the values at either end that the curve does not extend to


def effect(model, X, column: str, *, naive=None, level: float = LEVEL, ax=None):
    r"""Draw the mean prediction of the population as a function of one column.

    Parameters
    ----------
    model : fitted estimator
        Any regressor or classifier of this package.
    X : frame or array-like
        The rows to average over; of more than 400, evenly spaced ones are used.
    column : str
        A column of the outcome equation.
    naive : fitted estimator, optional
        A model to compare with, for example `DeepEnsembleRegressor` or a scikit-learn estimator
        fitted to the same columns. It has a band if it predicts distributions.
    level : float, default=0.9
        Confidence level of the band.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If X has no such column, or it is an instrument, which does not affect the outcome.

    Notes
    -----
    The curve is :math:`\frac1m\sum_i \hat f(v, x_{i,-j})`: column j is set to v in all rows. The
    band uses the mean of the standard errors of the m predictions. It is conservative, since the
    standard error of a mean is at most the mean of the standard errors.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> X = frame[["x", "z"]]
    >>> model = hk.HeckmanRegressor(["z"]).fit(X, frame["y"])
    >>> hk.plots.effect(model, X, "x").get_ylabel()
    'predicted y, mean over rows'
    """
    check_level(level)
    if not hasattr(model, "columns_"):
        raise DataError(f"effect() needs a fitted estimator, not a {type(model).__name__}")
    frame = model.columns_.frame_of(X)
    if column not in frame.columns:
        raise DataError(f"X has no column {column!r}; there are {', '.join(frame.columns)}")
    if column in model.columns_.instruments:
        raise DataError(f"{column!r} is an instrument, so the outcome does not depend on it")
    plan = model.columns_.plan
    if plan is not None:
        if column not in plan.varied:
            raise DataError(f"on_problem='fix' omits or replaces the column {column!r}")
        frame = plan.with_numbers(frame)
    rows = np.unique(np.linspace(0, len(frame) - 1, MOST_ROWS).round().astype(int))
    frame, levels = frame.iloc[rows], model.columns_.levels.get(column)
    if levels is None and not is_number(frame[column]):  # a plan makes it the mean of a target
        levels = column_levels(frame[column])
    values = _grid(frame[column]) if levels is None else list(levels)
    ax = axes_or_new(ax)
    for each, label, colour, look in (
        (naive, "naive", NAIVE, {"ls": "--", "marker": "D"}),
        (model, "corrected", CORRECTED, {"ls": "-", "marker": "o"}),
    ):
        if each is not None:
            label = label if naive is not None else "mean prediction"
            found = partial_dependence(each, frame, column, values, level)
            draw_effect(ax, values, found, label, level, colour, **look)
    tidy(ax, column, f"{outcome_of(model)}, mean over rows")
    legend_above(ax)
    return ax


def partial_dependence(model, frame, column: str, values, level: float) -> Means:
    """The mean over rows with `column` set to each value, and the mean ends of its band."""
    stacked = frame.iloc[np.tile(np.arange(len(frame)), len(values))]
    stacked = stacked.assign(**{column: np.repeat(np.asarray(values), len(frame))})
    found = means_of(model, stacked.reset_index(drop=True), level)
    return found.over(np.arange(len(stacked)).reshape(len(values), len(frame)))


def draw_effect(ax, values, found: Means, label, level, colour, *, ls, marker) -> None:
    """A curve with its band or, for a category, one mark with its interval for each level."""
    if found.interval is not None:
        label = f"{label}, with {100 * level:g} % interval"
    if isinstance(values, np.ndarray):
        if found.interval is not None:
            ax.fill_between(values, *found.interval.T, color=colour, alpha=0.2, lw=0)
        ax.plot(values, found.mean, color=colour, ls=ls, lw=2, label=label)
        return
    at = np.arange(len(values)) + (0.12 if label.startswith("naive") else -0.12)
    error = None if found.interval is None else abs(found.interval - found.mean[:, None]).T
    ax.errorbar(at, found.mean, error, fmt=marker, color=colour, ms=6, lw=2, label=label)
    ax.set_xticks(np.arange(len(values)), [str(value) for value in values])


def _grid(values) -> np.ndarray:
    """Points between the outer quantiles of a column, or its values if they are few."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    distinct = np.unique(known)
    if len(distinct) <= POINTS:
        return distinct
    return np.linspace(np.quantile(known, OUTER), np.quantile(known, 1 - OUTER), POINTS)
