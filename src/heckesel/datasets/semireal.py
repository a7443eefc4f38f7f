"""Selection induced on real data: the outcomes are real, who keeps one is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.datasets.truth import Truth
from heckesel.errors import DataError

NO_RESIDUAL = 1e-10
# Residuals of a standardised outcome; an exact linear relation leaves about 1e-15 of rounding.


@dataclass(frozen=True)
class SemiReal:
    """A pool with induced selection and held-out rows, in units of the pool's mean and sd.

    frame : (n_pool rows) covariates, z, y (NaN where not selected)
    truth : of the pool
    test_frame : (n_test rows) covariates and y, never missing; no z is drawn for these rows
    test_truth : of the test rows, without `propensity`
    """

    frame: pd.DataFrame
    truth: Truth
    test_frame: pd.DataFrame
    test_truth: Truth


def induce_selection(
    frame: pd.DataFrame, *, outcome: str, rho: float, seed: int, n_pool: int, n_test: int
) -> SemiReal:
    r"""Hide half of the outcomes of a complete table, depending on the outcomes themselves.

    With m the linear prediction of the outcome from all other columns and r its residual, both
    standardised over the pool, and c the median of the left side over the pool,

    .. math:: s = 1[-m + z + \rho r + \sqrt{1 - \rho^2}\, v > c], \quad z, v \sim N(0, 1)

    so units that look good are selected against, and at ρ > 0 those better than they look are
    selected for. Taking ρr + √(1-ρ²)v as standard normal given x, the truth has
    P(s=1 | x, z) = Φ(-m + z - c) and P(s=1 | x) = Φ((-m - c)/√2); both are exact at ρ = 0 only.

    Rows are ordered by `default_rng(seed).permutation`: the pool first, then the test rows. A
    new `default_rng(seed)` draws z, then v. Means and standard deviations (divisor n), the
    linear fit and c come from the pool alone and are applied to the test rows as they are. With
    these rules the draws are those of the published experiments.
    """
    _check_arguments(rho, seed, n_pool, n_test)
    x_names = _check_frame(frame, outcome, n_pool, n_test)
    order = np.random.default_rng(seed).permutation(len(frame))
    rows = np.split(order[: n_pool + n_test], [n_pool])  # (n_pool,), (n_test,)
    table = frame[[*x_names, outcome]].to_numpy(dtype=float)
    _check_varies(table[rows[0]], [*x_names, outcome], seed)
    pool, test = _scale_by_first(table[rows[0]], table[rows[1]])
    m, m_test, r = _linear_prediction(pool, test, outcome)

    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=n_pool), rng.normal(size=n_pool)
    index = -m + z + rho * r + np.sqrt(1 - rho**2) * v
    c = np.median(index)

    y, y_test = pool[:, -1].copy(), test[:, -1].copy()  # editing a frame must not edit the truth
    observed = np.where(index > c, y, np.nan)
    columns = np.column_stack([pool[:, :-1], z, observed])
    return SemiReal(
        frame=pd.DataFrame(columns, columns=[*x_names, "z", "y"]),
        truth=Truth(y, None, ndtr(-m + z - c), _propensity_given_x(m, c)),
        test_frame=pd.DataFrame(test, columns=[*x_names, "y"]),
        test_truth=Truth(y_test, None, None, _propensity_given_x(m_test, c)),
    )


def _propensity_given_x(m, c):
    """P(s = 1 | x): z and the noise beside it are independent, their sum has variance 2."""
    return ndtr((-m - c) / np.sqrt(2))


def _scale_by_first(first, *others):
    """Every array less the mean of the first, in units of its standard deviation (divisor n)."""
    mean, sd = first.mean(axis=0), first.std(axis=0)
    return [(values - mean) / sd for values in (first, *others)]


def _linear_prediction(pool, test, outcome):
    """Standardised m on pool and test rows, and the standardised residual r on the pool.

    pool, test : the outcome is the last column; pool columns have mean 0, so the fit has no
        constant
    """
    beta = np.linalg.lstsq(pool[:, :-1], pool[:, -1], rcond=None)[0]
    fitted, fitted_test = pool[:, :-1] @ beta, test[:, :-1] @ beta
    residual = pool[:, -1] - fitted
    if residual.std() < NO_RESIDUAL:
        raise DataError(
            f"{outcome} is an exact linear function of the other columns, which leaves no "
            "residual for selection to depend on"
        )
    m, m_test = _scale_by_first(fitted, fitted_test)
    return m, m_test, _scale_by_first(residual)[0]


def _check_arguments(rho, seed, n_pool, n_test):
    if not (isinstance(rho, Real) and -1 < rho < 1):
        raise DataError(f"rho is {rho!r} but must lie strictly between -1 and 1")
    if not (isinstance(seed, Integral) and seed >= 0):
        raise DataError(f"seed is {seed!r} but must be a whole number, 0 or above")
    for name, size in (("n_pool", n_pool), ("n_test", n_test)):
        if not (isinstance(size, Integral) and size >= 1):
            raise DataError(f"{name} is {size!r} but must be a positive whole number")


def _check_frame(frame, outcome, n_pool, n_test):
    """The names of the covariates, once the frame is found to be complete and large enough."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"frame is a {type(frame).__name__} but must be a pandas DataFrame")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"frame has two columns named {twice!r}: rename one")
    if outcome not in frame.columns:
        raise DataError(f"outcome is {outcome!r}, which is not a column of frame")
    x_names = [name for name in frame.columns if name != outcome]
    for name in ("y", "z"):
        if name in x_names:
            raise DataError(f"frame has a column {name!r}, a name the result needs: rename it")
    if n_pool + n_test > len(frame):
        raise DataError(f"n_pool + n_test is {n_pool + n_test} but frame has {len(frame)} rows")
    if not 1 <= len(x_names) < n_pool - 1:
        raise DataError(
            f"frame has {len(x_names)} columns besides {outcome!r}, but there must be at least "
            f"one, and fewer than n_pool - 1 = {n_pool - 1}"
        )
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise DataError(f"column {name!r} is not numeric: encode it first")
        if not np.isfinite(frame[name].to_numpy(dtype=float, na_value=np.nan)).all():
            raise DataError(f"column {name!r} has missing or infinite values: drop those rows")
    return x_names


def _check_varies(pool, names, seed):
    for name, column in zip(names, pool.T, strict=True):
        if np.ptp(column) == 0:
            raise DataError(f"column {name!r} is constant in the pool of seed {seed}: drop it")
