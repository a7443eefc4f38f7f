r"""Predictions of a classic fit for the three targets, and average marginal effects.

With c = rho sigma and eta = w'gamma the mean is

* population: x'beta
* selected:   x'beta + c lambda(eta)
* unselected: x'beta - c lambda(-eta)

where with t errors the mean of a truncated t takes the place of lambda.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from heckesel.errors import DataError, HeckeselError, IdentificationWarning
from heckesel.numerics.normal import inverse_mills, mills_delta
from heckesel.numerics.truncated_student import mean_of_selection
from heckesel.predictive.distribution import (
    Predictive,
    predict_given_selection,
    predict_student,
    predict_student_given_selection,
)


def mean_and_gradient(fit, x, w, target: str):
    """(m,) mean and (m, k) gradient in the order of `fit.params`."""
    p, q = x.shape[1], len(fit.data.w_names) if fit.has_selection else 0
    beta = fit.params.to_numpy()[:p]
    gradient = np.zeros((len(x), len(fit.params)))
    gradient[:, :p] = x
    mean = x @ beta
    if target == "population":
        return mean, gradient
    sign = 1.0 if target == "selected" else -1.0
    index = w @ fit.params.to_numpy()[p : p + q]
    mills, slope, d_log_df = _truncated_mean(fit, sign * index)
    mills = sign * mills
    c = fit.rho * fit.sigma
    gradient[:, p : p + q] = c * slope[:, None] * w
    if fit.method == "two-step":
        gradient[:, p + q] = mills
    else:  # atanh rho, then log sigma
        gradient[:, p + q] = (1 - fit.rho**2) * fit.sigma * mills
        gradient[:, p + q + 1] = c * mills
    if d_log_df is not None:
        gradient[:, p + q + 2] = c * sign * d_log_df
    return mean + c * mills, gradient


def _truncated_mean(fit, index):
    """E[u | u > -index], its slope and, for t errors, its derivative in log df."""
    if fit.errors == "normal":
        mills = inverse_mills(index)
        return mills, -mills_delta(index, mills), None
    if fit.df <= 1:
        raise DataError(
            f"with {fit.df:g} degrees of freedom the mean given selection does not exist; "
            "predict the population"
        )
    return mean_of_selection(index, fit.df)


def covariance_of_known(fit) -> np.ndarray:
    """The covariance of the parameters; a df at its end counts as known."""
    covariance = fit.cov.to_numpy()
    if fit.errors == "t" and np.isnan(covariance[-1, -1]) and np.isfinite(covariance[0, 0]):
        covariance = covariance.copy()
        covariance[-1], covariance[:, -1] = 0.0, 0.0
    return covariance


def predict(fit, x, w, target: str) -> Predictive:
    """Parameter uncertainty is the epistemic part; it widens the error as tau^2 would:
    sigma'^2 = sigma^2 + tau^2 and rho' = rho sigma / sigma'."""
    mean, gradient = mean_and_gradient(fit, x, w, target)
    epistemic = np.einsum("ij,jk,ik->i", gradient, covariance_of_known(fit), gradient)
    # a two-step rho beyond one can leave no covariance; what does not exist is NaN
    epistemic = np.where(epistemic >= 0, epistemic, np.nan)
    is_t = fit.errors == "t"
    if fit.df <= 2:
        warnings.warn(
            f"with {fit.df:.2f} degrees of freedom the variance of the errors is infinite, and so "
            "is std; intervals and quantiles hold",
            IdentificationWarning,
            stacklevel=4,
        )
    if target == "population":
        if is_t:
            return predict_student(mean, epistemic, fit.sigma, fit.df)
        return Predictive.normal(mean, epistemic, fit.sigma**2)
    if abs(fit.rho) > 1:
        raise HeckeselError(
            f"the two-step rho is {fit.rho:.3f}, and no distribution has a correlation beyond one; "
            "fit method='ml', or predict the population"
        )
    sign = 1.0 if target == "selected" else -1.0
    location = x @ fit.params["outcome"].to_numpy()
    index = sign * (w @ fit.params["select"].to_numpy())
    covariance = sign * fit.rho * fit.sigma
    if is_t:
        return predict_student_given_selection(
            location, epistemic, fit.sigma, covariance, index, fit.df
        )
    return predict_given_selection(location, epistemic, fit.sigma, covariance, index)


def margins(fit, target: str, variables, rows_of) -> pd.DataFrame:
    """Average marginal effect of each variable with its delta-method standard error.

    rows_of(name, value) gives both design matrices of a copy of the data in which the variable is
    shifted by value if it holds numbers, and otherwise set to it.
    Numbers move by a central difference, 1e-4 of their sd; categories from their first
    level to each other one.
    """
    effects = {}
    for name, moves in variables.items():
        for label, up, down, width in moves:
            sides = []
            for value in (up, down):
                x, w = rows_of(name, value)
                sides.append(mean_and_gradient(fit, x, w, target))
            weight = fit.data.weight / fit.data.weight.sum()
            effect = weight @ (sides[0][0] - sides[1][0]) / width
            slope = weight @ (sides[0][1] - sides[1][1]) / width
            variance = slope @ covariance_of_known(fit) @ slope
            effects[label] = (effect, np.sqrt(variance) if variance >= 0 else np.nan)
    frame = pd.DataFrame(effects, index=["effect", "se"]).T
    frame["z"] = frame["effect"] / frame["se"]
    return frame
