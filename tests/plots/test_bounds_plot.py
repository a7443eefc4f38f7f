"""The picture of bounds shows the numbers of the table."""

import matplotlib
import numpy as np
import pytest

import heckesel as hk

matplotlib.use("Agg")
Y = np.array([1.0, 2.0, 3.0, np.nan, np.nan] * 4)


def test_lines_are_bounds_and_intervals():
    found = hk.bounds(Y, 0.0, 4.0, follow_up=np.isnan(Y) & (np.arange(20) < 10))
    ax = hk.plots.bounds(found)
    frame = found.to_frame()
    thin, thick = (
        np.array([path.vertices[:, 0] for path in part.get_paths()]) for part in ax.collections
    )
    np.testing.assert_allclose(thin, frame[["ci_low", "ci_high"]])
    np.testing.assert_allclose(thick, frame[["lower", "upper"]])
    (point,) = ax.lines
    np.testing.assert_allclose(point.get_xdata(), frame.loc["missing at random", "lower"])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(frame.index)
    assert ax.get_xlabel() == "mean of y"


def test_infinite_bounds_end_at_the_edge():
    ax = hk.plots.bounds(hk.bounds(Y, -np.inf, np.inf))
    for part in ax.collections:
        np.testing.assert_allclose(part.get_paths()[0].vertices[:, 0], ax.get_xlim())


def test_given_axes_are_used_and_other_results_refused():
    axes = matplotlib.figure.Figure().subplots()
    assert hk.plots.bounds(hk.bounds(Y, 0.0, 4.0), ax=axes) is axes
    with pytest.raises(hk.DataError, match=r"draws what hk\.bounds returns, not a tuple"):
        hk.plots.bounds((0.0, 1.0))
