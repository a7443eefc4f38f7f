"""Metrics of a score for two classes: discrimination, calibration and swap sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from heckesel.errors import DataError, is_share, is_whole
from heckesel.numeric_input import check_level, numeric, ones_of

if TYPE_CHECKING:  # experiments run on machines without it
    import pandas as pd


def gini(y, score) -> float:
    """Gini coefficient, 2 AUC - 1, of a score.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    score : array-like of shape (m,)
        Larger where 1 is more likely.

    Returns
    -------
    float
        1 if the score separates the classes, 0 if it is unrelated to them.

    Raises
    ------
    DataError
        If an outcome is not 0 or 1, or a class is missing.

    Examples
    --------
    >>> gini([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8])
    0.5
    """
    ones, zeros = _by_class(y, score)
    below = np.searchsorted(zeros, ones, side="left") + np.searchsorted(zeros, ones, side="right")
    return float(below.mean() / len(zeros) - 1)


def ks(y, score) -> float:
    """Kolmogorov-Smirnov distance between the scores of the two classes.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    score : array-like of shape (m,)
        Scores.

    Returns
    -------
    float
        Largest difference between the two distribution functions.

    Raises
    ------
    DataError
        If an outcome is not 0 or 1, or a class is missing.

    Examples
    --------
    >>> ks([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8])
    0.5
    """
    ones, zeros = _by_class(y, score)
    at = np.concatenate([ones, zeros])
    shares = [np.searchsorted(each, at, side="right") / len(each) for each in (ones, zeros)]
    return float(np.abs(shares[0] - shares[1]).max())


def calibration_table(y, probability, *, bins: int = 10, level: float = 0.9) -> pd.DataFrame:
    """Predicted probabilities and observed shares, in bins with equally many rows.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    probability : array-like of shape (m,)
        Predicted probability of 1.
    bins : int, default=10
        Number of bins.
    level : float, default=0.9
        Confidence level of the intervals of the observed shares (Wilson).

    Returns
    -------
    DataFrame
        One row per bin: ``n``, mean ``predicted``, ``observed``, ``low`` and ``high``.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> table = calibration_table([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], bins=2)
    >>> table["observed"].tolist()
    [0.0, 1.0]
    """
    y, probability = _outcomes(y), numeric(probability, "probability")
    _check_length(y, probability, "probability")
    if not is_whole(bins) or not 1 <= bins <= len(y):
        raise DataError(f"bins must be between 1 and the {len(y)} rows, got {bins!r}")
    check_level(level)
    order = np.argsort(probability, kind="stable")
    place = np.empty(len(y), dtype=int)
    place[order] = np.arange(len(y)) * bins // len(y)
    n = np.bincount(place, minlength=bins)
    predicted, observed = (np.bincount(place, each, bins) / n for each in (probability, y))
    z = ndtri((1 + level) / 2)
    middle = (observed + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(observed * (1 - observed) / n + z**2 / (4 * n**2))
    found = {"n": n, "predicted": predicted, "observed": observed}
    import pandas as pd

    return pd.DataFrame(found | {"low": middle - half, "high": middle + half})


def swap_set(old, new, *, accept: float, y=None) -> pd.DataFrame:
    """Compare the units accepted by an old and by a new risk score at the same acceptance rate.

    Parameters
    ----------
    old, new : array-like of shape (m,)
        Scores of risk, such as probabilities of default; the lowest are accepted.
    accept : float
        Share of the rows that is accepted, between 0 and 1.
    y : array-like of shape (m,), optional
        Outcomes, 0 or 1, NaN where unknown.

    Returns
    -------
    DataFrame
        One row each for ``both``, ``swapped in`` (by the new score only), ``swapped out`` and
        ``neither``. Columns: ``n``, its ``share``, the means of ``old`` and ``new`` and, with y,
        ``observed``, the share of ones among the rows with a known outcome.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> swap_set([0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.2, 0.4], accept=0.5)["n"].to_dict()
    {'both': 1, 'swapped in': 1, 'swapped out': 1, 'neither': 1}
    """
    old, new = numeric(old, "old"), numeric(new, "new")
    _check_length(old, new, "new")
    if not is_share(accept):
        raise DataError(f"accept must lie between 0 and 1, got {accept!r}")
    count = round(accept * len(old))
    by_old, by_new = (np.argsort(np.argsort(each, kind="stable")) < count for each in (old, new))
    groups = {
        "both": by_old & by_new,
        "swapped in": ~by_old & by_new,
        "swapped out": by_old & ~by_new,
        "neither": ~by_old & ~by_new,
    }
    columns = {"old": old, "new": new}
    if y is not None:
        columns["observed"] = numeric(y, "y")
        _check_length(old, columns["observed"], "y")
    import pandas as pd

    frame = pd.DataFrame(columns)
    rows = {name: frame[chosen].mean() for name, chosen in groups.items()}
    n = pd.Series({name: int(chosen.sum()) for name, chosen in groups.items()})
    table = pd.DataFrame(rows).T
    table.insert(0, "n", n)
    table.insert(1, "share", n / len(old))
    return table


def _by_class(y, score) -> tuple[np.ndarray, np.ndarray]:
    """Sorted scores of the ones and of the zeros."""
    y, score = _outcomes(y), numeric(score, "score")
    _check_length(y, score, "score")
    ones, zeros = np.sort(score[y == 1]), np.sort(score[y == 0])
    if not len(ones) or not len(zeros):
        raise DataError(f"y has one class only, {y[0]:g}; a score needs both to be compared")
    return ones, zeros


def _outcomes(y) -> np.ndarray:
    return ones_of(numeric(y, "y"), "y").astype(float)


def _check_length(first, second, name: str) -> None:
    if first.shape != second.shape:
        raise DataError(f"{name} has {len(second)} rows, but there are {len(first)}")
    if np.isnan(second).any() and name != "y":
        raise DataError(f"{name} is missing in row {int(np.flatnonzero(np.isnan(second))[0])}")
