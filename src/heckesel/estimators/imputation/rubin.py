"""Rubin's rules: one estimate and its standard error from m completed tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from heckesel.data import check_level, numeric
from heckesel.errors import DataError


@dataclass(frozen=True)
class PooledEstimates:
    """Estimates from m completed tables, combined by Rubin's rules.

    Every field but `m` has the shape of one estimate: a float, an array or a Series.

    Attributes
    ----------
    estimate, se : float, ndarray or Series
        Pooled estimates and standard errors.
    df : float, ndarray or Series
        Degrees of freedom of the t distribution for tests and intervals.
    within, between : float, ndarray or Series
        Mean of the variances, and variance of the estimates over the tables.
    missing_information : float, ndarray or Series
        Share of the variance that is due to the missing outcomes,
        :math:`\\lambda = (1 + 1/m) B / T`.
    m : int
        Number of completed tables.
    """

    estimate: Any
    se: Any
    df: Any
    within: Any
    between: Any
    missing_information: Any
    m: int

    @property
    def p_values(self):
        """P-values of the hypotheses that a parameter is zero."""
        return 2 * stdtr(self.df, -abs(self.estimate / self.se))

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Confidence intervals.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        ndarray of shape (2,) or (k, 2)
            Lower and upper ends.

        Raises
        ------
        DataError
            If `level` is not between 0 and 1.
        """
        check_level(level)
        half = stdtrit(self.df, (1 + level) / 2) * self.se
        return np.stack([self.estimate - half, self.estimate + half], axis=-1)


def pool_estimates(estimates, variances, *, df: float = np.inf) -> PooledEstimates:
    r"""Combine the estimates from m completed tables by Rubin's rules.

    Parameters
    ----------
    estimates : sequence of m floats, arrays or Series
        The estimates of each completed table.
    variances : sequence of the same shape
        Their squared standard errors.
    df : float, default=inf
        Degrees of freedom that the estimates would have with complete data, such as n - 1 for a
        mean of n rows.

    Returns
    -------
    PooledEstimates

    Raises
    ------
    DataError
        If there are fewer than two tables, or a variance is missing or negative.

    Notes
    -----
    With the mean variance W and the variance B of the estimates,

    .. math:: T = W + (1 + 1/m) B, \qquad \lambda = (1 + 1/m) B / T,

    and the degrees of freedom of Barnard and Rubin (1999) are

    .. math:: \nu = \left(\frac{\lambda^2}{m - 1}
              + \frac{\nu_c + 3}{\nu_c (\nu_c + 1)(1 - \lambda)}\right)^{-1}

    where :math:`\nu_c` is `df`.

    Examples
    --------
    >>> import heckesel as hk
    >>> pooled = hk.pool_estimates([2.0, 2.2, 2.1], [0.04, 0.05, 0.045])
    >>> print(round(pooled.estimate, 3), round(pooled.se, 3), round(pooled.df))
    2.1 0.242 38
    """
    labels = estimates[0].index if isinstance(estimates[0], pd.Series) else None
    values, squares = (
        _rows_of(each, name, labels)
        for each, name in ((estimates, "estimates"), (variances, "variances"))
    )
    m = len(values)
    if values.shape != squares.shape:
        raise DataError(f"estimates have shape {values.shape} but variances {squares.shape}")
    if m < 2:
        raise DataError(f"Rubin's rules need at least two completed tables, got {m}")
    if not (squares >= 0).all():
        raise DataError(f"variances must not be negative or missing, got {squares.min()!r}")
    if not df > 0:
        raise DataError(f"df must be positive, got {df!r}")
    within, between = squares.mean(axis=0), values.var(axis=0, ddof=1)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):  # no variance at all: a constant
        share = (1 + 1 / m) * between / total
        per_df = (1 + 3 / df) / (df + 1)  # (df + 3) / (df (df + 1)), 0 if df is infinite
        observed = np.where(share < 1, per_df / (1 - share), np.inf) if per_df else 0.0
        freedom = 1 / (share**2 / (m - 1) + observed)
    parts = (values.mean(axis=0), np.sqrt(total), freedom, within, between, share)
    estimate, se, freedom, within, between, share = (_like(each, labels) for each in parts)
    return PooledEstimates(estimate, se, freedom, within, between, share, m)


def _like(values, labels):
    """A float, an array or, with labels, a Series."""
    if labels is not None:
        return pd.Series(values, labels)
    return values if np.ndim(values) else float(values)


def _rows_of(tables, name: str, labels) -> np.ndarray:
    """(m,) or (m, k) numbers, one row per table; Series are matched by their labels."""
    if labels is not None:
        tables = [pd.Series(each).reindex(labels).to_numpy() for each in tables]
    return numeric(np.asarray(tables), name)
