"""The probability of selection with the instruments and without them."""

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr

from heckesel.data import CONSTANT, SelectionData
from heckesel.display import p_equation
from heckesel.errors import DataError
from heckesel.linear.probit import fit_probit
from heckesel.plots.canvas import (
    CORRECTED,
    NAIVE,
    SOFT,
    axes_or_new,
    legend_above,
    percent_axis,
    tidy,
)
from heckesel.tables.outcome.unobserved import without_unobserved

MOST_POINTS = 1500  # of the scatter plot


def instrument_strength(model, X=None, y=None, *, selected=None, ax=None):
    r"""Draw the probability of selection with the instruments against that without them.

    Parameters
    ----------
    model : HeckmanFit or fitted estimator
        A fit with instruments.
    X, y, selected : array-like, optional
        The data of the fit; required for models with networks.
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
    statistic, freedom = 2 * (long.loglik - short.loglik), int(instrumental.sum())
    ax = axes_or_new(ax, (4.6, 4.4))
    shown = np.unique(np.linspace(0, len(s) - 1, MOST_POINTS).round().astype(int))
    ax.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=(0, (3, 3)))
    for rows, marker, colour, label in (
        (shown[~s[shown]], "x", NAIVE, "unselected unit"),
        (shown[s[shown]], "o", CORRECTED, "selected unit"),
    ):
        ax.scatter(
            without[rows],
            with_them[rows],
            s=16,
            marker=marker,
            color=colour,
            alpha=0.55,
            lw=1 if marker == "x" else 0,
            label=label,
        )
    listed = _list_of(names)
    tidy(
        ax,
        f"probability of selection without the {listed}",
        f"probability of selection with the {listed}",
        grid="both",
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        percent_axis(axis)
    legend_above(ax)
    p = chdtrc(freedom, max(statistic, 0.0))
    text = f"χ²({freedom}) = {statistic:,.1f}, {p_equation(p)}"
    if not _are_independent(model):
        text = _wald_text(getattr(model, "result_", model), terms[instrumental])
    ax.text(0.97, 0.03, text, transform=ax.transAxes, ha="right")
    return ax


def _are_independent(model) -> bool:
    """Whether twice a difference of log-likelihoods is chi-squared."""
    result = getattr(model, "result_", model)
    in_groups = getattr(model, "groups_name_", None) is not None or (
        getattr(result, "covariance", None) == "cluster"
    )
    return not in_groups and getattr(result, "weight_kind", "frequency") == "frequency"


def _wald_text(result, names) -> str:
    """The test that follows the covariance of the fit; networks have none."""
    if not hasattr(result, "wald_test"):
        return ""
    test = result.wald_test([("select", name) for name in names])
    return f"{test}, {p_equation(test.p_value)}"


def _selection_of(model, X, y, selected):
    """The selection columns as a frame with a constant, s, weights, and the instruments' terms."""
    result = getattr(model, "result_", model)
    data = getattr(result, "data", None)
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
        labels = without_unobserved(np.asarray(y, dtype=object), model.unobserved)
        s = pd.notna(labels) if selected is None else np.asarray(selected)
        w = pd.DataFrame(columns.w(X), columns=list(columns.w_names)).assign(**{CONSTANT: 1.0})
        if len(s) != len(w):
            raise DataError(f"X has {len(w)} rows but y has {len(s)}")
        found = w, s, np.ones(len(w))
        names = tuple(name for name in columns.w_names if name not in columns.x_names)
    if found[1].all():
        raise DataError("every unit was selected, so there is no probability of selection")
    if not names:
        raise DataError("the fit has no instruments, so there is nothing to compare")
    return *found, names


def _list_of(names) -> str:
    if len(names) > 2:
        return f"{len(names)} instruments"
    return f"instrument{'s' if len(names) > 1 else ''} {' and '.join(names)}"
