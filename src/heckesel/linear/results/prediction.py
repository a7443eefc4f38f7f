r"""Predictions of a linear fit for the three targets, and average marginal effects.

With c = rho sigma and eta = w'gamma the mean is

* population: x'beta
* selected:   x'beta + c lambda(eta)
* unselected: x'beta - c lambda(-eta)

where with t errors the mean of a truncated t takes the place of lambda. Shape errors have a mean
other than zero: it is x'beta + sigma E[e], in the population too. sigma may vary with x.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckesel.data import check_complete
from heckesel.errors import DataError, HeckeselError, warn_user
from heckesel.numerics.normal import inverse_mills, mills_delta
from heckesel.numerics.sinh_arcsinh import moments_given_selection, population_moments
from heckesel.numerics.truncated_student import mean_of_selection
from heckesel.predictive.distribution import (
    Predictive,
    check_target,
    predict_given_selection,
    predict_student,
    predict_student_given_selection,
)
from heckesel.predictive.shaped import predict_shape


def sigma_of(fit, scale):
    """sigma, or with the columns of log sigma(x) its (m,) values."""
    if scale is None:
        return fit.sigma
    return fit.sigma * np.exp(scale @ fit.params["scale"].to_numpy())


def mean_and_gradient(fit, x, w, target: str, scale=None):
    """(m,) mean and (m, k) gradient in the order of `fit.params`; scale : (m, columns) of log
    sigma(x), or None where sigma is constant."""
    p, q = x.shape[1], len(fit.data.w_names) if fit.has_selection else 0
    beta = fit.params.to_numpy()[:p]
    gradient = np.zeros((len(x), len(fit.params)))
    gradient[:, :p] = x
    mean = x @ beta
    sign = 1.0 if target == "selected" else -1.0
    sigma = sigma_of(fit, scale)
    if fit.errors == "shape":
        moments, columns = _shape_moments(fit, w, target)
        shift = sigma * moments.mean
        if columns is not None:
            gradient[:, p : p + q] = (sigma * sign * moments.d_index)[:, None] * columns
        gradient[:, p + q] = sigma * sign * moments.d_atanh_rho
        gradient[:, p + q + 1] = shift
        gradient[:, p + q + 2] = sigma * moments.d_skewness
        gradient[:, p + q + 3] = sigma * moments.d_log_tail
        if scale is not None:
            gradient[:, p + q + 4 :] = np.broadcast_to(shift, len(x))[:, None] * scale
        return mean + shift, gradient
    if target == "population":
        return mean, gradient
    index = w @ fit.params.to_numpy()[p : p + q]
    mills, slope, d_log_df = _truncated_mean(fit, sign * index)
    mills = sign * mills
    c = fit.rho * sigma
    gradient[:, p : p + q] = (c * slope)[:, None] * w
    if fit.method == "two-step":
        gradient[:, p + q] = mills
    else:  # atanh rho, then log sigma
        gradient[:, p + q] = (1 - fit.rho**2) * sigma * mills
        gradient[:, p + q + 1] = c * mills
    if d_log_df is not None:
        gradient[:, p + q + 2] = c * sign * d_log_df
    if scale is not None:
        gradient[:, len(fit.params) - scale.shape[1] :] = (c * mills)[:, None] * scale
    return mean + c * mills, gradient


def _shape_moments(fit, w, target: str):
    """Moments of e in the target, and the columns whose index they depend on."""
    shape = fit.params["ancillary", "skewness"], fit.params["ancillary", "log_tail"]
    if target == "population":
        return population_moments(*shape), None
    sign = 1.0 if target == "selected" else -1.0
    index = sign * (w @ fit.params["select"].to_numpy())
    atanh_rho = sign * fit.params["ancillary", "atanh_rho"]
    return moments_given_selection(index, atanh_rho, *shape), w


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
    """The covariance of the parameters; a df or a shape at its end counts as known."""
    covariance = fit.cov.to_numpy()
    at_end = np.isnan(np.diag(covariance))
    if fit.errors != "normal" and at_end.any() and np.isfinite(covariance[0, 0]):
        covariance = np.where(at_end | at_end[:, None], 0.0, covariance)
    return covariance


def predict_rows(fit, data, x, w, target: str) -> Predictive:
    """Predictions for new rows, or without any for the rows of the fit."""
    _check_target(fit, target)
    given = fit.design.given(data, x, w)
    columns = fit.design.outcome_matrix(given)
    selection = None if target == "population" else fit.design.selection_matrix(given)
    scale = fit.design.scale_matrix(given)
    names = fit.data.x_names, fit.data.w_names, fit.data.scale_names
    for values, labels in zip((columns, selection, scale), names, strict=True):
        if values is not None:
            check_complete(values, labels, np.arange(len(values)))
    return predict(fit, columns, selection, target, scale)


def _check_target(fit, target: str) -> None:
    check_target(target)
    if target != "population" and not fit.has_selection:
        raise DataError(f"every unit was selected, so target={target!r} has no meaning")


def predict(fit, x, w, target: str, scale=None) -> Predictive:
    """Parameter uncertainty is the epistemic part; it widens the error as tau^2 would:
    sigma'^2 = sigma^2 + tau^2 and rho' = rho sigma / sigma'."""
    mean, gradient = mean_and_gradient(fit, x, w, target, scale)
    sigma = sigma_of(fit, scale)
    epistemic = np.einsum("ij,jk,ik->i", gradient, covariance_of_known(fit), gradient)
    # a two-step rho beyond one can leave no covariance; what does not exist is NaN
    epistemic = np.where(epistemic >= 0, epistemic, np.nan)
    is_t = fit.errors == "t"
    if fit.df <= 2:
        warn_user(
            f"with {fit.df:.2f} degrees of freedom the variance of the errors is infinite, and so "
            "is std; intervals and quantiles hold"
        )
    if fit.errors == "shape":
        return _predict_shape(fit, x, w, target, epistemic, sigma)
    if target == "population":
        if is_t:
            return predict_student(mean, epistemic, sigma, fit.df)
        return Predictive.normal(mean, epistemic, sigma**2)
    if abs(fit.rho) > 1:
        raise HeckeselError(
            f"the two-step rho is {fit.rho:.3f}, and no distribution has a correlation beyond one; "
            "fit method='ml', or predict the population"
        )
    sign = 1.0 if target == "selected" else -1.0
    location = x @ fit.params["outcome"].to_numpy()
    index = sign * (w @ fit.params["select"].to_numpy())
    covariance = sign * fit.rho * sigma
    if is_t:
        return predict_student_given_selection(
            location, epistemic, sigma, covariance, index, fit.df
        )
    return predict_given_selection(location, epistemic, sigma, covariance, index)


def _predict_shape(fit, x, w, target: str, epistemic, sigma) -> Predictive:
    location, sign = x @ fit.params["outcome"].to_numpy(), 1.0 if target == "selected" else -1.0
    ancillary = fit.params["ancillary"]
    given = {}
    if target != "population":
        index = sign * (w @ fit.params["select"].to_numpy())
        given = {"index": index, "atanh_rho": sign * ancillary["atanh_rho"]}
    return predict_shape(
        location,
        epistemic,
        np.broadcast_to(sigma, len(location)),
        ancillary["skewness"],
        ancillary["log_tail"],
        **given,
    )


def margins(fit, target: str) -> pd.DataFrame:
    """Average marginal effect of each variable with its delta-method standard error.

    A number is moved by a central difference, 1e-4 of its standard deviation; a category from its
    first level to each other one.
    """
    _check_target(fit, target)
    # rows_of(name, value) gives the matrices of x, w and log sigma(x) after a change
    variables, rows_of = fit.design.moves(target)
    effects = {}
    for name, moves in variables.items():
        for label, up, down, width in moves:
            sides = []
            for value in (up, down):
                x, w, scale = rows_of(name, value)
                sides.append(mean_and_gradient(fit, x, w, target, scale))
            weight = fit.data.weight / fit.data.weight.sum()
            effect = weight @ (sides[0][0] - sides[1][0]) / width
            slope = weight @ (sides[0][1] - sides[1][1]) / width
            variance = slope @ covariance_of_known(fit) @ slope
            effects[label] = (effect, np.sqrt(variance) if variance >= 0 else np.nan)
    frame = pd.DataFrame(effects, index=["effect", "se"]).T
    frame["z"] = frame["effect"] / frame["se"]
    return frame
