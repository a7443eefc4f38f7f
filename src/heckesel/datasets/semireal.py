"""Selection induced on real data: the outcomes are real, and selection is simulated."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.datasets.truth import Truth, check_draw
from heckesel.errors import DataError

NO_RESIDUAL = 1e-10
# Residuals of a standardised outcome; an exact linear relation leaves about 1e-15 of rounding.


@dataclass(frozen=True)
class SemiReal:
    """Real data with induced selection, standardised by the mean and sd of the pool.

    Attributes
    ----------
    frame : pandas.DataFrame
        The pool: ``n_pool`` rows with the covariates, ``z`` and ``y``, which is NaN if the unit was
        not selected.
    truth : Truth
        The truth about the pool.
    test_frame : pandas.DataFrame
        ``n_test`` held-out rows with the covariates and ``y``, which is never missing. They have no
        ``z``.
    test_truth : Truth
        The truth about the test rows, without ``propensity``.

    Examples
    --------
    >>> import heckesel as hk
    >>> wine = hk.datasets.load_wine_quality()
    >>> semi = hk.datasets.induce_selection(
    ...     wine, outcome="quality", rho=0.5, seed=0, n_pool=1000, n_test=500
    ... )
    >>> semi.test_frame.shape
    (500, 12)
    """

    frame: pd.DataFrame
    truth: Truth
    test_frame: pd.DataFrame
    test_truth: Truth


def induce_selection(
    frame: pd.DataFrame, *, outcome: str, rho: float, seed: int, n_pool: int, n_test: int
) -> SemiReal:
    r"""Hide half of the outcomes of a complete table, depending on the outcomes themselves.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numeric columns without missing values.
    outcome : str
        Column of `frame` that becomes ``y``. All other columns are covariates.
    rho : float
        Dependence of selection on the outcome, strictly between -1 and 1.
    seed : int
    n_pool, n_test : int
        Number of rows of the pool and of the test set.

    Returns
    -------
    SemiReal

    Raises
    ------
    DataError
        If an argument is out of range, if a column is constant, not numeric or not complete, or if
        the other columns determine the outcome.

    Notes
    -----
    Let m be the linear prediction of the outcome from all other columns and r its residual, both
    standardised over the pool, and let c be the median of the left-hand side over the pool. Then

    .. math:: s = 1[-m + z + \rho r + \sqrt{1 - \rho^2}\, v > c], \quad z, v \sim N(0, 1)

    so units with a high prediction are less likely to be selected and, if ρ > 0, units with a
    positive residual are more likely. The truth takes ρr + √(1-ρ²)v as standard normal given x:
    P(s=1 | x, z) = Φ(-m + z - c) and P(s=1 | x) = Φ((-m - c)/√2). Both are exact only at ρ = 0.

    ``default_rng(seed).permutation`` orders the rows: the pool first, then the test rows. A new
    ``default_rng(seed)`` draws z, then v. Means, standard deviations (divisor n), the linear fit
    and c are computed on the pool only. These rules reproduce the draws of the published
    experiments.

    Examples
    --------
    >>> import heckesel as hk
    >>> wine = hk.datasets.load_wine_quality()
    >>> semi = hk.datasets.induce_selection(
    ...     wine, outcome="quality", rho=0.5, seed=0, n_pool=1000, n_test=500
    ... )
    >>> int(semi.frame["y"].notna().sum())
    500
    """
    check_draw(rho, seed, sizes={"n_pool": n_pool, "n_test": n_test})
    x_names = _check_frame(frame, outcome, n_pool, n_test)
    order = np.random.default_rng(seed).permutation(len(frame))
    rows = np.split(order[: n_pool + n_test], [n_pool])  # (n_pool,), (n_test,)
    table = frame[[*x_names, outcome]].to_numpy(dtype=float)
    for name, column in zip([*x_names, outcome], table[rows[0]].T, strict=True):
        if np.ptp(column) == 0:
            raise DataError(f"column {name!r} is constant in the pool of seed {seed}; drop it")
    pool, test = _scale_by_first(table[rows[0]], table[rows[1]])
    m, m_test, r = _linear_prediction(pool, test, outcome)

    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=n_pool), rng.normal(size=n_pool)
    index = -m + z + rho * r + np.sqrt(1 - rho**2) * v
    c = np.median(index)

    # copies, so that editing a frame does not change the truth
    y, y_test = pool[:, -1].copy(), test[:, -1].copy()
    observed = np.where(index > c, y, np.nan)
    columns = np.column_stack([pool[:, :-1], z, observed])
    return SemiReal(
        frame=pd.DataFrame(columns, columns=[*x_names, "z", "y"]),
        truth=Truth(y, None, ndtr(-m + z - c), _propensity_given_x(m, c)),
        test_frame=pd.DataFrame(test, columns=[*x_names, "y"]),
        test_truth=Truth(y_test, None, None, _propensity_given_x(m_test, c)),
    )


def _propensity_given_x(m, c):
    """P(s = 1 | x): z and the noise are independent, so their sum has variance 2."""
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
            f"{outcome} is an exact linear function of the other columns, so it has no residual "
            "that selection could depend on"
        )
    m, m_test = _scale_by_first(fitted, fitted_test)
    return m, m_test, _scale_by_first(residual)[0]


def _check_frame(frame, outcome, n_pool, n_test):
    """The names of the covariates of a frame that is complete and large enough."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"frame is a {type(frame).__name__} but must be a pandas DataFrame")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"column {twice!r} appears twice in frame; rename one")
    if outcome not in frame.columns:
        raise DataError(f"frame has no column {outcome!r}, which is the outcome")
    x_names = [name for name in frame.columns if name != outcome]
    for name in ("y", "z"):
        if name in x_names:
            raise DataError(f"frame has a column {name!r}, a name that the result uses; rename it")
    if n_pool + n_test > len(frame):
        raise DataError(f"n_pool + n_test is {n_pool + n_test} but frame has {len(frame)} rows")
    if not 1 <= len(x_names) < n_pool - 1:
        raise DataError(
            f"frame has {len(x_names)} columns besides {outcome!r}, but there must be at least "
            f"one, and fewer than n_pool - 1 = {n_pool - 1}"
        )
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise DataError(f"column {name!r} is not numeric; encode it first")
        if not np.isfinite(frame[name].to_numpy(dtype=float, na_value=np.nan)).all():
            raise DataError(f"column {name!r} has missing or infinite values; drop those rows")
    return x_names
