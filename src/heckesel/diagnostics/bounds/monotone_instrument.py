"""Bounds from a column whose values order, or do not change, the mean outcome."""

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End, Maxima
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.errors import DataError

MOST = 50  # values of the instrument; maxima over more err too far inwards to be of use
FEWEST = 10  # rows with a value of the instrument; intervals treat means of them as normal


def monotone_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean if it does not decrease with the instrument v.

    .. math:: \sum_u \Pr(v = u)\,\max_{t \le u}\bigl(\mathrm{E}[y s \mid v = t]
              + \text{low}\,\Pr(s = 0 \mid v = t)\bigr)

    This is the monotone instrumental variable of Manski and Pepper (2000).
    """
    assert sample.instrument is not None
    count = sample.instrument.max() + 1
    order = np.tril(np.ones((count, count), dtype=bool))
    return _largest_end(sample, rows, order.T if sample.mirrored else order)


def independent_end(sample: BoundedSample, rows) -> End:
    """Lower end if the mean does not depend on the instrument: the maximum is over all its values
    (Manski, 1990)."""
    assert sample.instrument is not None
    count = sample.instrument.max() + 1
    return _largest_end(sample, rows, np.ones((count, count), dtype=bool))


def check_instrument_values(sample: BoundedSample, rows) -> None:
    """Refuse values of the instrument that few rows have."""
    assert sample.instrument is not None
    units = np.bincount(sample.instrument, rows, sample.instrument.max() + 1)
    if len(units) < 2:
        raise DataError("the instrument has the same value in every row")
    if len(units) > MOST or units.min() < FEWEST:
        raise DataError(
            f"the instrument has {len(units)} values, one of them in {units.min():.0f} rows"
            + (" of a treatment arm" if sample.treated is not None else "")
            + f", but at most {MOST} values with {FEWEST} rows each can be used; group them, for "
            "example with pandas.qcut(instrument, 5, labels=False)"
        )


def _largest_end(sample: BoundedSample, rows, allowed) -> End:
    """allowed : (j, j) bool, row by row the values of the instrument with means that bound that of
    one value from below"""
    weight, codes = sample.weight * rows, sample.instrument
    assert codes is not None
    count = len(allowed)
    if not np.isfinite(sample.low) and not sample.answered[rows].all():
        return End(-np.inf, np.zeros(sample.n), unlimited=True)
    y = np.where(sample.answered, sample.y, sample.low)
    size = np.bincount(codes, weight, count)
    mean = np.bincount(codes, weight * y, count) / size
    contributions = np.zeros((sample.n, count))
    contributions[np.arange(sample.n), codes] = weight * (y - mean[codes]) / size[codes]

    share = size / size.sum()
    first = np.where(allowed, mean, -np.inf).argmax(axis=1)
    largest = mean[first]
    value = float(share @ largest)
    maxima = Maxima(
        contributions,
        first,
        allowed & _may_be_largest(sample, contributions, mean, first),
        share,
    )
    return End(value, weight * (largest[codes] - value) / size.sum(), (maxima,))


def _may_be_largest(sample: BoundedSample, contributions, mean, first) -> np.ndarray:
    """(j, j) bool: the means that are not clearly below the largest one of their row.

    The distance, sqrt(log n) standard errors of the difference, grows with n, but more slowly than
    the differences that are not zero do.
    """
    covariance = sample.covariance(contributions)
    variance = np.diag(covariance)
    of_difference = variance + variance[first, None] - 2 * covariance[first]
    units = sample.units(np.ones(sample.n, dtype=bool))
    distance = np.sqrt(np.log(units) * np.maximum(of_difference, 0.0))
    return mean >= mean[first, None] - distance
