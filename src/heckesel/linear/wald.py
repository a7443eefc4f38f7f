"""Wald tests: of any block of estimates, and of the instruments in the selection equation."""

import numpy as np
from scipy.special import chdtrc

from heckesel.data import SelectionData
from heckesel.linear.probit import selection_probit

# The rule of thumb for instrumental variables: below ten per instrument, noise in the estimated
# effect of the instruments dominates the error of the correction. An irrelevant column passes
# about once in 600 datasets.
STRONG_WALD_PER_INSTRUMENT = 10.0
# Relative to the largest singular value of an information matrix with a unit diagonal. Rounding is
# near 1e-16, so columns this close to one another are collinear.
COLLINEAR = 1e-10


def wald_test(estimate, covariance) -> tuple[float, float]:
    """estimate' V^-1 estimate and its chi-squared p-value; NaN if V is not a covariance matrix."""
    if not np.isfinite(covariance).all():
        return float("nan"), float("nan")
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # a two-step |rho| > 1 can make V indefinite
        return float("nan"), float("nan")
    statistic = float(estimate @ np.linalg.solve(covariance, estimate))
    return statistic, float(chdtrc(len(estimate), statistic))


def instruments_are_strong(data: SelectionData) -> bool:
    r"""Whether the instruments pass the Wald rule of the verdict.

    Let z index the instruments and r the other columns in the information matrix of the probit. The
    statistic is :math:`\gamma_z'(I_{zz} - I_{zr}I_{rr}^{-}I_{rz})\gamma_z`. Any generalised inverse
    gives the same value, so the other columns may be collinear, as all levels of a category are.
    """
    if not data.instruments:
        return False
    probit = selection_probit(data)
    chosen = np.array([name in data.instruments for name in (*data.w_names, None)])
    size = np.sqrt(np.maximum(np.diag(-probit.hessian), np.finfo(float).tiny))
    information, gamma = -probit.hessian / np.outer(size, size), (probit.gamma * size)[chosen]
    across = information[np.ix_(~chosen, chosen)]
    explained = np.linalg.lstsq(information[np.ix_(~chosen, ~chosen)], across, rcond=COLLINEAR)[0]
    unexplained = information[np.ix_(chosen, chosen)] - across.T @ explained
    return bool(gamma @ unexplained @ gamma >= STRONG_WALD_PER_INSTRUMENT * len(gamma))
