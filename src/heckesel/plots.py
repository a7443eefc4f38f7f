"""Plots of fits: every function draws on matplotlib axes and returns them.

Without ``ax=`` a new figure is made, which is not registered with pyplot; save it with
``ax.figure.savefig("picture.png")``. In a notebook, or to open a window, pass axes of pyplot, as in
``fig, ax = plt.subplots(layout="constrained")``.
"""

import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr

from heckesel.classical.ml import Scan
from heckesel.classical.probit import fit_probit
from heckesel.data import (
    CONSTANT,
    SelectionData,
    check_level,
    check_weights,
    evenly_spaced,
    seed_of,
)
from heckesel.diagnose import Placebo
from heckesel.display import p_equation
from heckesel.errors import DataError, as_list, imported
from heckesel.metrics import LEVELS, class_half_band, half_band, reliability, transforms
from heckesel.tables.fit_input import observed_values, split_groups
from heckesel.verdict.bounds import Bounds
from heckesel.verdict.identify import NOTHING_TO_CORRECT
from heckesel.verdict.linear import ProfileCurve, profile_curve
from heckesel.verdict.sensitivity import PLAUSIBLE, Sensitivity

__all__ = [
    "bounds",
    "by_selection",
    "calibration",
    "coefficients",
    "effect",
    "instrument_evidence",
    "instrument_strength",
    "placebo",
    "rho_likelihood",
    "rho_posterior",
    "sensitivity",
]

# From Okabe and Ito's palette, which colour-blind readers can distinguish; a dash or a marker
# distinguishes the same series in grey.
CORRECTED, NAIVE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, SOFT, GRID = "#1A1D21", "#5F666E", "#D3D7DC"
BAND = "#C6DEEE"  # CORRECTED at a fifth of its strength, on white
DASHED = {"color": SOFT, "lw": 1, "ls": (0, (3, 3))}
PAPER = {"fc": "white", "ec": "none", "pad": 1, "alpha": 0.75}  # behind numbers on a curve
MOST_LETTERS = 34  # of two labels beside each other

STRIPS, FEWEST_IN_STRIP = 10, 10  # strips of equal size, with at least so many rows each
POINTS, MOST_ROWS = 25, 400  # of a curve, and to average over: 10,000 predictions
OUTER = 0.01  # share of the values at either end that a curve does not extend to
TENTHS, FEWEST_IN_TENTH = 10, 20  # groups of classes, with at least so many units each
LOWEST = -20.0  # log-likelihood units below the best: values of rho without any support
NEAREST = 0.12  # in rho, of the numbers beside two modes
MOST_POINTS = 1500  # of a scatter plot


def axes_or_new(ax, size: tuple[float, float] = (5.5, 3.4)):
    """The given axes, or those of a new figure (size in inches) that pyplot does not know."""
    if ax is None:
        needs = "plots need matplotlib, which is not installed"
        figure = imported("matplotlib.figure", needs, "report").Figure
        return figure(figsize=size, layout="constrained").subplots()
    if not hasattr(ax, "errorbar"):
        raise DataError(f"ax must be matplotlib axes, not {type(ax).__name__}")
    return ax


def tidy(ax, xlabel: str, ylabel: str = "", *, grid: str = "y", legend: int = 2):
    """Labels, a light grid, no frame at the top and on the right, and a legend above the axes.

    legend : columns of the legend; it has one if its labels are long. Dollar signs in names are
        not mathematics.
    """
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(axis=grid, color=GRID, lw=0.7)
    lengths = sorted(len(label) for label in ax.get_legend_handles_labels()[1])
    if lengths:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=1 if sum(lengths[-2:]) > MOST_LETTERS else legend,
            frameon=False,
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.8,
        )
    return ax


def percent_axis(axis) -> None:
    """Shares as per cent."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")


def square(ax, margin: float, largest: float = 1.0):
    """Shares on both axes, and a diagonal."""
    ax.plot([0, largest], [0, largest], **DASHED, zorder=1)
    limits = -margin, largest + margin
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)
    return ax


def interval_rows(ax, names, series) -> None:
    """One row per name, the first at the top, with the estimates of each series and intervals.

    series : (label, colour, marker, frame with `mean`, `low` and `high`) of one or two series
    """
    at = np.arange(len(names))
    for place, (label, colour, marker, found) in zip((-0.13, 0.13), series, strict=False):
        rows = at + (place if len(series) > 1 else 0.0)
        known = np.isfinite(found[["low", "high"]]).all(axis=1).to_numpy()
        ends = found.loc[known, "low"], found.loc[known, "high"]
        ax.hlines(rows[known], *ends, color=colour, lw=2.2, zorder=2)
        face = colour if marker == "o" else "white"
        look = {"color": colour, "mfc": face, "mec": "white" if marker == "o" else colour}
        ax.plot(found["mean"], rows, marker, ms=6, zorder=3, label=label, **look)
    ax.set_yticks(at, [str(name) for name in names])
    ax.set_ylim(len(at) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def outcome_of(model) -> str:
    """The predicted quantity in words: the outcome, or the probability of its second class."""
    if not hasattr(model, "classes_"):
        return f"predicted {model.outcome_name_}"
    label = model.classes_[1]
    if isinstance(label, float | np.floating) and label == int(label):
        label = int(label)
    return f"probability of {model.outcome_name_} = {label}"


def selection_probability(model, X) -> np.ndarray:
    r"""(m,) P(s = 1 | x, w) = \Phi(w'\gamma)."""
    if not hasattr(model, "columns_") or not hasattr(model, "fitted_"):
        raise DataError(
            "by_selection() needs a fitted estimator, such as HeckmanRegressor, not a "
            f"{type(model).__name__}"
        )
    if model.identification_.verdict == NOTHING_TO_CORRECT:
        raise DataError("every unit was selected, so there is no probability of selection")
    return ndtr(model.fitted_.index(model.columns_.w(model.columns_.frame_of(X))))


def strips_of(chance: np.ndarray) -> np.ndarray:
    """(n,) numbers of strips of equal size, from the least to the most likely to be selected."""
    count = max(1, min(STRIPS, len(chance) // FEWEST_IN_STRIP))
    strip = np.empty(len(chance), dtype=int)
    for number, rows in enumerate(np.array_split(np.argsort(chance, kind="stable"), count)):
        strip[rows] = number
    return strip


def group_averages(
    model, frame, groups: np.ndarray, level: float, target: str = "population"
) -> pd.DataFrame:
    """Mean predictions by group, 0 to k - 1: `mean`, `low` and `high`, NaN where unknown."""
    if hasattr(model, "average"):
        with warnings.catch_warnings(), suppress(DataError):  # this scale has no intervals
            warnings.simplefilter("ignore")  # of networks without intervals
            grouped = frame.assign(**{"(group)": groups})
            found = model.average(grouped, target, by="(group)", level=level)
            return found[["mean", "low", "high"]].reset_index(drop=True)
    given = {"target": target} if hasattr(model, "columns_") else {}
    if hasattr(model, "predict_proba"):
        mean = np.asarray(model.predict_proba(frame, **given))[:, 1]
    else:
        mean = np.asarray(model.predict(frame, **given), dtype=float)
    found = pd.DataFrame({"mean": pd.Series(mean).groupby(groups).mean()})
    return found.assign(low=np.nan, high=np.nan)


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
    chosen = chosen or [term for term in table.index if term != "Intercept"]
    unknown = [term for term in chosen if term not in table.index]
    if unknown or not chosen:
        what = f"term {unknown[0]!r}" if unknown else "term but the constant"
        raise DataError(
            f"the {equation} equation has no {what}; there are {', '.join(table.index)}"
        )
    table = table.loc[chosen]
    ax = axes_or_new(ax, (5.5, 1.1 + 0.34 * len(table)))
    ax.axvline(0.0, **DASHED, zorder=1)
    known = table["low"].notna().any()
    label = f"coefficient with {100 * level:g} % interval" if known else "coefficient"
    found = table.rename(columns={"coef": "mean"})
    interval_rows(ax, table.index, [(label, CORRECTED, "o", found)])
    if not known:
        ax.plot([], [], " ", label="(no standard errors, so no intervals)")
    what = {"outcome": "outcome", "select": "selection"}.get(equation, equation)
    return tidy(ax, f"coefficient in the {what} equation", grid="x")


def effect(model, X, column: str, *, naive=None, level: float = 0.9, ax=None):
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
        fitted to the same columns. It has a band if it has `average`.
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
    band is that of ``model.average``.

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
    if column not in model.columns_.varied:
        raise DataError(f"on_problem='fix' omits or replaces the column {column!r}")
    frame = model.columns_.with_numbers(frame)
    rows = evenly_spaced(len(frame), MOST_ROWS)
    frame, levels = frame.iloc[rows], model.columns_.levels.get(column)
    if levels is None:
        known = frame[column].to_numpy(dtype=float)
        values = np.unique(known[np.isfinite(known)])
        if len(values) > POINTS:
            low, high = np.quantile(known[np.isfinite(known)], [OUTER, 1 - OUTER])
            values = np.linspace(low, high, POINTS)
    else:
        values = np.array(list(levels), dtype=object)
    stacked = frame.iloc[np.tile(np.arange(len(frame)), len(values))].reset_index(drop=True)
    stacked[column] = np.repeat(values, len(frame))
    groups = np.repeat(np.arange(len(values)), len(frame))
    ax = axes_or_new(ax)
    name = "mean prediction" if naive is None else "corrected"
    drawn = [(naive, "naive", NAIVE, "--", "D", 0.12)] if naive is not None else []
    drawn.append((model, name, CORRECTED, "-", "o", -0.12))
    for each, label, colour, dashes, marker, beside in drawn:
        found = group_averages(each, stacked, groups, level)
        banded = found["low"].notna().all()
        label += f", with {100 * level:g} % interval" if banded else ""
        if levels is None:
            ax.plot(values, found["mean"], color=colour, ls=dashes, lw=2, label=label)
            if banded:
                ax.fill_between(values, found["low"], found["high"], color=colour, alpha=0.2, lw=0)
            continue
        ends = [found["mean"] - found["low"], found["high"] - found["mean"]] if banded else None
        at = np.arange(len(values)) + beside
        ax.errorbar(at, found["mean"], ends, fmt=marker, color=colour, ms=6, lw=2, label=label)
    if levels is not None:
        ax.set_xticks(np.arange(len(values)), [str(value) for value in values])
    return tidy(ax, column, f"{outcome_of(model)}, mean over rows")


def by_selection(model, X, *, naive=None, level: float = 0.9, ax=None):
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
    marks are mean predictions of the population, and the band is that of ``model.average``.

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
    chance = selection_probability(model, X)
    frame, strip = model.columns_.frame_of(X), strips_of(chance)
    middle = pd.Series(chance).groupby(strip).mean()
    corrected = group_averages(model, frame, strip, level)
    ax = axes_or_new(ax)
    if corrected["low"].notna().all():
        label = f"{100 * level:g} % interval of the {'corrected ' * (naive is not None)}mean"
        ax.fill_between(middle, corrected["low"], corrected["high"], color=BAND, lw=0, label=label)
    if naive is not None:
        mean = group_averages(naive, frame, strip, level)["mean"]
        ax.plot(middle, mean, "--D", color=NAIVE, mfc="white", ms=5, lw=2, label="naive mean")
    label = "mean prediction" if naive is None else "corrected mean"
    ax.plot(middle, corrected["mean"], "-o", color=CORRECTED, mec="white", ms=6, lw=2, label=label)
    ax.set_xlim(0, 1)
    percent_axis(ax.xaxis)
    return tidy(ax, "estimated probability of selection", f"{outcome_of(model)}, mean")


def calibration(model, X, y, *, target: str = "selected", regions=None, ax=None):
    """Draw a reliability diagram: observed shares over predicted probabilities.

    Parameters
    ----------
    model : fitted estimator
        Any regressor or classifier of this package.
    X : frame or array-like of shape (m, columns)
        Units that were not used to fit the model.
    y : array-like of shape (m,)
        Their outcomes, NaN where they were not observed; for a classifier, the classes.
    target : {"selected", "population", "unselected"}, default="selected"
        The units whose outcomes y are. In a simulation, outcomes of the population may be known.
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
        If X and y differ in length, or there are more than four regions.

    Notes
    -----
    For numeric outcomes, the points are the shares of outcomes below the predicted quantiles at
    5 %, ..., 95 %. For classes, units are grouped by tenths of the predicted probability. Points of
    a calibrated model lie near the diagonal. The band contains all points of 99 % of correct
    models, if the predictions are known exactly and y was not used to make them.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> new = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=1).frame
    >>> model = hk.HeckmanRegressor(["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> ax = hk.plots.calibration(model, new[["x", "z"]], new["y"])
    >>> ax.get_ylabel()
    'observed share of outcomes below'
    """
    if not hasattr(model, "columns_"):
        raise DataError(f"calibration() needs a fitted estimator, not a {type(model).__name__}")
    frame, classes = model.columns_.frame_of(X), hasattr(model, "classes_")
    y, observed = observed_values(model, y, rows=len(frame))
    predicted = np.full(len(y) if classes else (len(y), 2), np.nan)
    if classes:
        predicted[observed] = model.predict_proba(frame[observed], target)[:, 1]
    else:
        found = model.predict_distribution(frame[observed], target)
        predicted[observed] = transforms(y[observed], found)
    parts = {"": np.arange(len(y))} if regions is None else dict(regions)
    looks = ((CORRECTED, "o"), (NAIVE, "D"), (GREEN, "s"), (PURPLE, "^"))
    if not 0 < len(parts) <= len(looks):
        raise DataError(f"regions must be one to {len(looks)}, got {len(parts)}")
    ax = axes_or_new(ax, (4.6, 4.7))
    for (colour, marker), (name, rows) in zip(looks, parts.items(), strict=False):
        rows = np.asarray(rows)[observed[rows]]
        if classes:
            order = np.argsort(predicted[rows], kind="stable")
            tenths = np.array_split(rows[order], max(1, min(TENTHS, len(rows) // FEWEST_IN_TENTH)))
            level, share = (np.array([v[t].mean() for t in tenths]) for v in (predicted, y))
            half = class_half_band(level, np.array([len(tenth) for tenth in tenths]))
        else:
            level, share, half = LEVELS, reliability(predicted[rows]), half_band(len(rows))
        if regions is None:
            low, high = (np.clip(level + sign * half, 0, 1) for sign in (-1, 1))
            ax.fill_between(level, low, high, color=BAND, lw=0, label="band of correct models")
        name = str(name).replace("$", r"\$")  # no mathematics
        label = f"{name} ({len(rows):,} units)" if name else "observed"
        ax.plot(level, share, marker, color=colour, mec="white", ms=6, label=label)
    names, largest = ("predicted share of outcomes below", "observed share of outcomes below"), 1.0
    if classes:
        names = "predicted probability of the class", "observed share of the class"
        largest = min(1.0, float(np.ceil(10 * max(ax.dataLim.max)) / 10))
    tidy(ax, *names, grid="both", legend=1)
    return square(ax, 0.0, largest)


def rho_likelihood(fit, *, level: float = 0.9, ax=None):
    """Draw the log-likelihood as a function of rho, with its maxima and an interval.

    Parameters
    ----------
    fit : HeckmanFit, fitted estimator or ProfileCurve
        A fit by maximum likelihood with normal errors.
    level : float, default=0.9
        Confidence level of the interval.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If there is no likelihood over rho, as for a two-step fit.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> ax = hk.plots.rho_likelihood(hk.heckman("y ~ x", "~ x + z", frame))
    >>> ax.get_ylabel()
    'log-likelihood below its maximum'
    """
    curve, result = fit, getattr(fit, "result_", fit)
    if isinstance(getattr(result, "scan", None), Scan):
        check_level(level)
        try:
            interval = result.interval("rho", level, method="profile")
        except DataError:  # as in groups, weighted by probability, or separated
            interval = None
        curve = replace(profile_curve(result.scan, level), interval=interval)
    elif not isinstance(fit, ProfileCurve):
        raise DataError(
            f"there is no likelihood over rho in this {type(fit).__name__}; a fit by maximum "
            "likelihood with normal errors (method='ml') has one"
        )
    ax, kept = axes_or_new(ax), np.flatnonzero(np.asarray(curve.loglik) >= LOWEST)
    shown = slice(kept[0], kept[-1] + 1)  # the curve may dip below in between
    rho, height = curve.rho[shown], np.clip(curve.loglik[shown], LOWEST, None)
    if curve.interval is not None:
        label = f"{100 * curve.level:g} % interval"
        ax.axvspan(*np.clip(curve.interval, -1, 1), color=BAND, lw=0, label=label)
    ax.axvline(0.0, **DASHED)
    ax.plot(rho, height, color=CORRECTED, lw=2)
    near = [(r, h) for r, h in curve.modes if h >= LOWEST]
    many = "maxima" if len(near) > 1 else "maximum"
    ax.plot(*np.array(near).T, "o", color=NAIVE, mec="white", ms=7, label=many)
    written: list[float] = []
    for r, h in near:
        if all(abs(r - other) > NEAREST for other in written):
            written.append(r)
            ax.annotate(
                f"{r:.2f}".replace("-", "−"),
                (r, h),
                (0, 8),
                textcoords="offset points",
                ha="right" if r > 0.8 else "left" if r < -0.8 else "center",
                bbox=PAPER,
            )
    lowest = float(height.min())
    ax.set(xlim=(-1.03, 1.03), ylim=(1.05 * lowest - 0.3, 0.16 * max(-lowest, 2.0)))
    return tidy(ax, "ρ, correlation of the errors", "log-likelihood below its maximum")


def instrument_evidence(model, X, y, *, selected=None, sample_weight=None, groups=None, ax=None):
    r"""Draw what the instrument says: residuals of the selected as it changes their selection.

    Parameters
    ----------
    model : HeckmanRegressor or HeckmanClassifier
        A fit with ``method="auto"``.
    X, y, selected, sample_weight, groups : array-like
        The data of the fit.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the fit has no instrument that says anything, or the data are not those of the fit.

    Notes
    -----
    With p the probability of selection given x and z, and r the held-out residual of a selected
    unit, the points are means of s r, with r = 0 if unselected, in groups of equal size by
    :math:`p - \bar p(x)`. The curves are the means that the two readings of the instrument imply:
    :math:`\theta(\phi(q) - m(x)\,p)` if errors are normal, and :math:`\beta(p - \bar p(x))` if the
    unselected have the same mean residual whatever the instrument. All are near 0 if outcomes are
    missing at random given x. Bars are 90 % intervals of the points.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.9, alpha=1.0, seed=0).frame
    >>> X, y = frame[["x", "z"]], frame["y"]
    >>> model = hk.HeckmanRegressor(["z"], learner="splines").fit(X, y)
    >>> hk.plots.instrument_evidence(model, X, y).get_ylabel()
    'mean residual of y, 0 if unselected'
    """
    evidence = getattr(model, "evidence_", None)
    if evidence is None or not len(evidence.a):
        raise DataError(
            "instrument_evidence() needs a fit with method='auto' and an instrument that varies "
            f"among comparable selected units, and this {type(model).__name__} has none"
        )
    from heckesel.correction.rho import FLAT, NORMAL
    from heckesel.regressor import folds_of

    X, found = split_groups(X, groups, model)
    codes = np.arange(len(X)) if found is None else found.codes
    x, w = model.columns_.x(X), model.columns_.w(X)
    y, s = observed_values(model, y, selected, rows=len(x))
    fitted = getattr(model.fitted_, "corrected", model.fitted_)
    transform = getattr(model, "transform_", None)
    known = y[s] if transform is None else transform.forward(y[s])
    own = None if found is None else codes
    folds = folds_of(model.cv, s, own, seed_of(model.random_state))[s]
    members, residual = fitted.outcome.predict_members(x[s]), np.zeros(len(s))
    residual[s] = known - members[folds % len(members), np.arange(len(folds))]
    weight = check_weights(sample_weight, len(s), s)
    rms = np.sqrt(np.average(residual[s] ** 2, weights=weight[s]))
    if not np.isclose(rms, evidence.rms, rtol=1e-6):
        raise DataError(
            "X and y must be the data of the fit, and its random_state a number: their held-out "
            f"residuals have a root mean square of {rms:.4g}, those of the fit {evidence.rms:.4g}"
        )
    index, (mean_p, mean_phi) = fitted.index(w), fitted.selection.averages(x)[:2]
    moved = ndtr(index) - mean_p
    theta, beta = (evidence.estimate(reading)[0] for reading in (NORMAL, FLAT))
    density = np.exp(-(index**2) / 2) / np.sqrt(2 * np.pi)
    drawn = {
        "moved": moved,
        "seen": residual,
        "normal": theta * (density - mean_phi / mean_p * ndtr(index)),
        "flat": beta * moved,
    }
    group = strips_of(moved)
    total = pd.Series(weight).groupby(group).sum()
    sums = pd.DataFrame(drawn).mul(weight, axis=0).groupby(group).sum()
    mean = sums.div(total, axis=0)
    gap = pd.Series((residual - mean["seen"].to_numpy()[group]) * weight)
    half = 1.645 * np.sqrt((gap.groupby([group, codes]).sum() ** 2).groupby(level=0).sum()) / total
    ax = axes_or_new(ax)
    ax.axhline(0.0, **DASHED)
    ends = mean["seen"] - half, mean["seen"] + half
    ax.vlines(mean["moved"], *ends, color=INK, lw=1.2)
    ax.plot(mean["moved"], mean["seen"], "o", color=INK, ms=5, label="observed")
    ax.plot(mean["moved"], mean["normal"], color=CORRECTED, lw=2, label="normal errors")
    ax.plot(
        mean["moved"], mean["flat"], color=NAIVE, lw=2, ls="--", label="same for all unselected"
    )
    ax.xaxis.set_major_formatter(
        lambda share, _: f"{100 * share:+.0f} %".replace("-", "−").replace("+0", "0")
    )
    scale = model.outcome_name_ if transform is None else transform.label(model.outcome_name_)
    what = "probability of selection,\nrelative to units with the same x"
    return tidy(ax, what, f"mean residual of {scale}, 0 if unselected", legend=3)


def rho_posterior(model, *, ax=None):
    """Draw the prior of rho and its posterior, which adds what the instrument says.

    Parameters
    ----------
    model : HeckmanRegressor or HeckmanClassifier
        A fit with ``method="auto"``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the model has no posterior of rho.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(["z"], learner="linear").fit(frame[["x", "z"]], frame["y"])
    >>> hk.plots.rho_posterior(model).get_ylabel()
    'density'
    """
    rho = getattr(getattr(model, "fitted_", None), "rho", None)
    if not hasattr(rho, "weight"):
        raise DataError(
            f"there is no posterior of rho in this {type(model).__name__}; a fit with "
            "method='auto' and unselected units has one"
        )
    from heckesel.correction.prior import RHO, rho_prior

    ax, step = axes_or_new(ax), RHO[1] - RHO[0]
    prior, posterior = rho_prior(model.rho_prior).weight, rho.weight.sum(axis=0)
    ax.fill_between(RHO, posterior / step, color=BAND, lw=0)
    ax.plot(RHO, posterior / step, color=CORRECTED, lw=2, label="posterior")
    ax.plot(RHO, prior / step, color=NAIVE, lw=2, ls="--", label="prior")
    ax.axvline(0.0, **DASHED)
    ax.set(xlim=(-1, 1), ylim=(0, None))
    return tidy(ax, "ρ, correlation of the errors", "density")


def sensitivity(curves: Sensitivity, name: str = "mean", *, threshold: float = 0.0, ax=None):
    """Draw a quantity as a function of a fixed rho, with its breakdown point.

    Parameters
    ----------
    curves : Sensitivity or PriorSensitivity
        The result of `heckesel.sensitivity`.
    name : str, default="mean"
        A key of ``curves.values``: a column of the outcome equation, or "mean".
    threshold : float, default=0.0
        The value at which the conclusion changes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If `curves` is something else, or has no such quantity.

    Notes
    -----
    The breakdown point is the rho closest to 0 at which the quantity crosses the threshold. The
    thick part of the curve has a log-likelihood within 2 units of the best.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> curves = hk.sensitivity(hk.heckman("y ~ x", "~ x + z", frame))
    >>> hk.plots.sensitivity(curves, "x").get_ylabel()
    'coefficient of x'
    """
    curves = getattr(curves, "curve", curves)
    if not isinstance(curves, Sensitivity):
        raise DataError(
            f"sensitivity() draws the result of hk.sensitivity, not a {type(curves).__name__}"
        )
    breakdown = curves.breakdown(name, threshold)
    value, ax = curves.values[name], axes_or_new(ax)
    ax.plot(curves.rho, value, color=CORRECTED, lw=1.2, ls=(0, (5, 2)), label="other values of ρ")
    likely = np.where(curves.loglik > -PLAUSIBLE, value, np.nan)
    label = f"within {PLAUSIBLE:g} log-likelihood units of the best"
    ax.plot(curves.rho, likely, "-o", color=CORRECTED, lw=3, ms=5, mec="white", label=label)
    ax.axvline(0.0, color=GRID, lw=1.2)
    if breakdown is None:
        ax.plot([], [], " ", label=f"never crosses {threshold:g}")
    else:
        ax.axhline(threshold, **DASHED)
        label = f"breakdown point, ρ = {breakdown:.2f}".replace("-", "−")
        look = {"color": NAIVE, "mec": "white", "ms": 8, "zorder": 4}
        ax.plot(breakdown, threshold, "D", label=label, **look)
    what = "mean prediction of the population" if name == "mean" else f"coefficient of {name}"
    ax.set_xlim(-1.03, 1.03)
    return tidy(ax, "ρ, correlation of the errors, held fixed", what, legend=1)


def placebo(found: Placebo, *, ax=None):
    """Plot the errors of naive and corrected means of hidden columns, with the truth at 0.

    Parameters
    ----------
    found : Placebo
        The result of `heckesel.placebo`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import heckesel as hk
    >>> women = hk.datasets.load_mroz()[["lwage", "educ", "age", "kidslt6"]]
    >>> X = women.drop(columns="lwage")
    >>> found = hk.placebo(X, women["lwage"], instruments=["kidslt6"], learner="linear")
    >>> [label.get_text() for label in hk.plots.placebo(found).get_yticklabels()]
    ['educ', 'age']
    """
    table = found.table
    ax = axes_or_new(ax, (5.5, 1.2 + 0.35 * len(table)))
    ax.axvline(0.0, **DASHED, zorder=1)
    alone = pd.DataFrame({"mean": table["naive"], "low": np.nan, "high": np.nan})
    corrected = table.rename(columns={"corrected": "mean"})
    naive, label = ("naive", NAIVE, "D", alone), "corrected, with 90 % interval"
    interval_rows(ax, table.index, [naive, (label, CORRECTED, "o", corrected)])
    return tidy(ax, "error of the mean of the unselected, in standard deviations", grid="x")


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
    limits = np.array([[r.interval_low, r.low, r.high, r.interval_high] for r in found.rows])
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
    target = found.rows[0].target.split(" of all")[0]
    return tidy(ax, f"{target} of {found.outcome}", grid="x", legend=3)


def instrument_strength(model, X=None, y=None, *, selected=None, ax=None):
    r"""Draw the probability of selection with the instruments against that without them.

    Parameters
    ----------
    model : HeckmanFit or fitted estimator
        A fit with instruments.
    X, y, selected : array-like, optional
        The data of the fit; required unless it is a linear fit that keeps its rows.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the fit has no instruments, or no rows because it was loaded from a file.

    Notes
    -----
    Both probabilities come from probits of selection: one on all columns, one on the columns of the
    outcome equation. The instruments are strong if points lie far from the diagonal: units that
    the other columns cannot distinguish then differ in their probability of selection. The
    statistic is twice the difference of the log-likelihoods; with groups or probability weights it
    is the Wald statistic of a linear fit. If there are more than 1,500 units, only 1,500 evenly
    spaced units are drawn.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> ax = hk.plots.instrument_strength(hk.heckman("y ~ x", "~ x + z", frame))
    >>> ax.get_xlabel()
    'probability of selection without the instrument z'
    """
    w, s, weight, names = _selection_of(model, X, y, selected)
    terms, s = w.columns, s.astype(bool)
    instrumental = terms.isin(names)
    everything, others = w.to_numpy(), w.loc[:, ~instrumental].to_numpy()
    long, short = fit_probit(everything, s, weight), fit_probit(others, s, weight)
    with_them, without = ndtr(everything @ long.gamma), ndtr(others @ short.gamma)
    ax = axes_or_new(ax, (4.6, 4.4))
    shown = evenly_spaced(len(s), MOST_POINTS)
    for rows, marker, width, colour, label in (
        (shown[~s[shown]], "x", 1, NAIVE, "unselected unit"),
        (shown[s[shown]], "o", 0, CORRECTED, "selected unit"),
    ):
        look = {"s": 16, "alpha": 0.55, "lw": width, "color": colour, "marker": marker}
        ax.scatter(without[rows], with_them[rows], label=label, **look)
    listed = f"instrument{'s' if len(names) > 1 else ''} {' and '.join(names)}"
    listed = f"{len(names)} instruments" if len(names) > 2 else listed
    axes = [f"probability of selection {way} the {listed}" for way in ("without", "with")]
    axes = [each if len(each) < 50 else each.replace("selection ", "selection\n") for each in axes]
    square(tidy(ax, *axes, grid="both"), 0.02)
    result = getattr(model, "result_", model)
    clustered = getattr(model, "groups_name_", None) is not None or (
        getattr(result, "covariance", None) == "cluster"
    )
    text = ""
    if not clustered and getattr(result, "weight_kind", "frequency") == "frequency":
        statistic, freedom = 2 * (long.loglik - short.loglik), int(instrumental.sum())
        p = chdtrc(freedom, max(statistic, 0.0))
        text = f"LR χ²({freedom}) = {statistic:,.1f}, {p_equation(p)}"
    elif hasattr(result, "wald_test"):
        test = result.wald_test([("select", name) for name in terms[instrumental]])
        text = f"{test}, {p_equation(test.p_value)}"
    ax.text(0.97, 0.03, text, transform=ax.transAxes, ha="right", bbox=PAPER)
    return ax


def _selection_of(model, X, y, selected):
    """The selection columns as a frame with a constant, s, weights, and the instruments' terms."""
    data = getattr(getattr(model, "result_", model), "data", None)
    if isinstance(data, SelectionData):
        found = pd.DataFrame(data.w, columns=list(data.w_names)), data.s, data.weight
        names = data.instruments
    elif not hasattr(model, "columns_"):
        raise DataError(
            "instrument_strength() needs the rows of the fit; this one was loaded or read them "
            "from files, so fit a frame with a sample of the rows"
        )
    elif X is None or (y is None and selected is None):
        raise DataError("give the data of the fit, too: instrument_strength(model, X, y)")
    else:
        columns = model.columns_
        w = pd.DataFrame(columns.w(X), columns=list(columns.w_names)).assign(**{CONSTANT: 1.0})
        _, s = observed_values(model, y, selected, rows=len(w))
        found = w, s, np.ones(len(w))
        names = tuple(name for name in columns.w_names if name not in columns.x_names)
    if found[1].all():
        raise DataError("every unit was selected, so there is no probability of selection")
    if not names:
        raise DataError("the fit has no instruments, so there is nothing to compare")
    return *found, names
