r"""Predictions of a linear fit for the three targets.

With c = rho sigma and eta = w'gamma the mean is

* population: x'beta
* selected:   x'beta + c lambda(eta)
* unselected: x'beta - c lambda(-eta)

where with t errors the mean of a truncated t replaces lambda. With shape errors E[e] is not zero,
and the population mean is x'beta + sigma E[e]. sigma may vary with x.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.data import check_complete
from heckesel.errors import DataError, HeckeselError, warn_user
from heckesel.numerics.normal import inverse_mills, mills_delta
from heckesel.numerics.sinh_arcsinh import moments_given_selection, population_moments
from heckesel.numerics.truncated_student import mean_of_selection
from heckesel.predictive import (
    Predictive,
    check_target,
    mean_and_slopes,
    predict_given_selection,
    predict_shape,
    predict_student,
    predict_student_given_selection,
)
from heckesel.scales import TargetTransform
from heckesel.tables.frames import row_labels


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
    sigma, at = sigma_of(fit, scale), p + q  # the first parameter after both equations
    index = None if target == "population" else sign * (w @ fit.params["select"].to_numpy())
    if fit.errors == "shape":
        a, _, *shape = fit.params["ancillary"]
        if index is None:
            moments = population_moments(*shape)
        else:
            moments = moments_given_selection(index, sign * a, *shape)
            gradient[:, p:at] = (sigma * sign * moments.d_index)[:, None] * w
        shift = sigma * moments.mean
        gradient[:, at] = sigma * sign * moments.d_atanh_rho
        gradient[:, at + 1] = shift
        gradient[:, at + 2] = sigma * moments.d_skewness
        gradient[:, at + 3] = sigma * moments.d_log_tail
    elif index is None:
        return mean, gradient
    else:
        mills, slope, d_log_df = _truncated_mean(fit, index)
        mills, c = sign * mills, fit.rho * sigma
        shift = c * mills
        gradient[:, p:at] = (c * slope)[:, None] * w
        if fit.method == "two-step":
            gradient[:, at] = mills
        else:  # atanh rho, then log sigma
            gradient[:, at] = (1 - fit.rho**2) * sigma * mills
            gradient[:, at + 1] = shift
        if d_log_df is not None:
            gradient[:, at + 2] = c * sign * d_log_df
    if scale is not None:
        here = len(fit.params) - scale.shape[1]
        gradient[:, here:] = np.broadcast_to(shift, len(x))[:, None] * scale
    return mean + shift, gradient


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
    columns, selection, scale = matrices(fit, data, x, w, target)
    rows = x if data is None else data
    if rows is None:  # of the fit
        rows = getattr(fit.design, "frame", None)
    return replace(predict(fit, columns, selection, target, scale), index=row_labels(rows))


def matrices(fit, data, x, w, target: str) -> tuple:
    """The columns of x, w and log sigma(x) of those rows; None for those that are not needed."""
    check_fit_has(fit, target)
    given = fit.design.given(data, x, w)
    columns = fit.design.outcome_matrix(given)
    selection = None if target == "population" else fit.design.selection_matrix(given)
    scale = fit.design.scale_matrix(given)
    names = fit.data.x_names, fit.data.w_names, fit.data.scale_names
    for values, labels in zip((columns, selection, scale), names, strict=True):
        if values is not None:
            check_complete(values, labels, np.arange(len(values)))
    return columns, selection, scale


def given_rho(fit, at: int):
    """The fit with rho held at one of the values of `fit.over_rho`."""
    over = fit.over_rho
    params = pd.Series(over.params[at], fit.params.index)
    changed = {"params": params, "rho": float(np.tanh(over.atanh_rho[at]))}
    if hasattr(fit, "sigma"):
        changed["sigma"] = float(np.exp(params["ancillary", "log_sigma"]))
    return replace(fit, **changed)


def check_fit_has(fit, target: str) -> None:
    check_target(target)
    if target != "population" and not fit.has_selection:
        raise DataError(f"every unit was selected, so target={target!r} has no meaning")


def predict(fit, x, w, target: str, scale=None) -> Predictive:
    """Parameter uncertainty is the epistemic part; it widens the error as tau^2 would:
    sigma'^2 = sigma^2 + tau^2 and rho' = rho sigma / sigma'."""
    mean, gradient = mean_and_gradient(fit, x, w, target, scale)
    sigma = sigma_of(fit, scale)
    epistemic = np.einsum("ij,jk,ik->i", gradient, covariance_of_known(fit), gradient)
    # with a two-step |rho| > 1 there may be no covariance; missing results are NaN
    epistemic = np.where(epistemic >= 0, epistemic, np.nan)
    if fit.df <= 2:
        warn_user(
            f"with {fit.df:.2f} degrees of freedom the variance of the errors is infinite, and so "
            "is std; intervals and quantiles are valid"
        )
    location, index = x @ fit.params["outcome"].to_numpy(), None
    sign = -1.0 if target == "unselected" else 1.0
    if target != "population":
        index = sign * (w @ fit.params["select"].to_numpy())
    if fit.errors == "shape":
        a, _, *shape = fit.params["ancillary"]
        sigma = np.broadcast_to(sigma, len(location))
        return predict_shape(location, epistemic, sigma, *shape, index=index, atanh_rho=sign * a)
    if index is None:
        if fit.errors == "t":
            return predict_student(mean, epistemic, sigma, fit.df)
        return Predictive.normal(mean, epistemic, sigma**2)
    if abs(fit.rho) > 1:
        raise HeckeselError(
            f"the two-step estimate of rho is {fit.rho:.3f}, which is not a possible correlation; "
            "fit method='ml', or predict the population"
        )
    given = location, epistemic, sigma, sign * fit.rho * sigma, index
    if fit.errors == "t":
        return predict_student_given_selection(*given, fit.df)
    return predict_given_selection(*given)


def mean_and_gradient_of_y(fit, transform: TargetTransform, x, w, target: str, scale=None):
    r"""`mean_and_gradient` of y where the fit is for z = forward(y), by the chain rule through
    :math:`E[y] = h(x'\beta, \log\sigma, \operatorname{atanh}\rho, \eta)`, whose slopes are central
    differences."""
    p, q = x.shape[1], len(fit.data.w_names) if fit.has_selection else 0
    values, sign = fit.params.to_numpy(), -1.0 if target == "unselected" else 1.0
    index = None if target == "population" else sign * (w @ values[p : p + q])
    mean, slopes = mean_and_slopes(
        transform,
        x @ values[:p],
        np.log(sigma_of(fit, scale)),
        np.arctanh(fit.rho) if q else 0.0,
        index,
        sign,
    )
    gradient = np.zeros((len(x), len(values)))
    gradient[:, :p] = slopes[0][:, None] * x
    if q:
        gradient[:, p + q], gradient[:, p + q + 1] = slopes[2], slopes[1]
    if index is not None:
        gradient[:, p : p + q] = sign * slopes[3][:, None] * w
    if scale is not None:
        gradient[:, len(values) - scale.shape[1] :] = slopes[1][:, None] * scale
    return mean, gradient
