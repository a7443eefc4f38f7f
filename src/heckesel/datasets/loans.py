"""Simulated loan applications, with defaults observed only for the loans that were granted."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.datasets.error_draws import draw_errors, probability_given_x
from heckesel.datasets.truth import Truth, check_draw

# (intercept, slopes) of the probits of a default and of a grant; slopes are per standard deviation
# of (log income, debt, tenure). Lenders grant loans to those less likely to default.
DEFAULT = (-0.9, np.array([-0.35, 0.45, -0.25]))
GRANT = (0.1, np.array([0.45, -0.5, 0.2]))
LENIENCY = 0.7


@dataclass(frozen=True)
class Loans:
    """Simulated loan applications and their truth.

    Attributes
    ----------
    frame : pandas.DataFrame
        n rows with the columns ``log_income``, ``debt``, ``tenure``, ``leniency`` and ``default``,
        which is NaN if the loan was not granted.
    truth : Truth
        The truth about the same rows.

    Examples
    --------
    >>> import heckesel as hk
    >>> list(hk.datasets.make_loans(100).frame)
    ['log_income', 'debt', 'tenure', 'leniency', 'default']
    """

    frame: pd.DataFrame
    truth: Truth


def make_loans(n: int = 4000, *, rho: float = -0.6, seed: int = 0) -> Loans:
    r"""Simulate loan applications, decided by officers who use unrecorded information.

    Parameters
    ----------
    n : int, default 4000
        Number of applications.
    rho : float, default -0.6
        Correlation of the two errors. It is negative if unrecorded information makes loan officers
        reject applicants who would default.
    seed : int, default 0

    Returns
    -------
    Loans
        ``truth.y`` is the default of every application, granted or not, and ``truth.f0`` its
        probability given the three covariates.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        \text{default} = 1[-0.9 - 0.35 i + 0.45 d - 0.25 t + \varepsilon > 0], \quad
        \text{granted} = 1[0.1 + 0.45 i - 0.5 d + 0.2 t + 0.7 l + u > 0]

    with i = log_income - log 30, d = (debt - .3)/.1, t = (tenure - 6)/3 and l = leniency. All are
    standard normal, except that t is truncated so that tenure is not negative. Leniency is that of
    the randomly assigned loan officer: an instrument. (ε, u) have variance one and correlation ρ.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(1000)
    >>> bool(loans.frame["default"].mean() < loans.truth.y.mean())
    True
    """
    check_draw(rho, seed, sizes={"n": n})
    rng = np.random.default_rng(seed)
    i, d, t, leniency = rng.standard_normal((4, n))
    t = np.maximum(t, -2.0)  # so that tenure is not negative
    epsilon, u = draw_errors(rng, n, rho=rho, sigma=1.0, errors="normal", df=np.inf)
    scores = np.column_stack([i, d, t])
    risk = DEFAULT[0] + scores @ DEFAULT[1]
    merit = GRANT[0] + scores @ GRANT[1]
    default = (risk + epsilon > 0).astype(float)
    granted = merit + LENIENCY * leniency + u > 0
    frame = pd.DataFrame(
        {
            "log_income": np.log(30.0) + i,
            "debt": 0.3 + 0.1 * d,
            "tenure": 6 + 3 * t,
            "leniency": leniency,
            "default": np.where(granted, default, np.nan),
        }
    )
    propensity = ndtr(merit + LENIENCY * leniency)
    given_x = probability_given_x(merit, LENIENCY, "normal", np.inf)
    return Loans(frame, Truth(default, ndtr(risk), propensity, given_x))
