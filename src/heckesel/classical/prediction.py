r"""Predictions of a linear fit for the three targets.

With c = rho sigma and eta = w'gamma the mean is

* population: x'beta
* selected:   x'beta + c lambda(eta)
* unselected: x'beta - c lambda(-eta)

where with t errors the mean of a truncated t replaces lambda. With shape errors E[e] is not zero,
and the population mean is x'beta + sigma E[e]. sigma may vary with x.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr, ndtri, stdtr

from heckesel.classical.covariance import critical_value
from heckesel.data import check_complete, check_level
from heckesel.errors import DataError, HeckeselError, is_one_of, warn_user
from heckesel.margins import (
    STEP,
    Groups,
    MeanEstimates,
    Move,
    Quantity,
    average_of,
    contrasts_of,
    effect_of,
    elasticity_of,
    groups_of,
    held_values,
    moves_of,
)
from heckesel.math import student
from heckesel.math.sinh_arcsinh import moments_given_selection, population_moments
from heckesel.math.special import HALF_LOG_2PI, inverse_mills, mills_delta
from heckesel.math.truncated import mean_of_selection
from heckesel.predictive import (
    Predictive,
    check_target,
    mean_and_slopes,
    predict_given_selection,
    predict_shape,
    predict_student,
)
from heckesel.scales import TargetTransform
from heckesel.tables.frames import numbers_of, row_labels


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
    return predict_given_selection(*given, fit.df if fit.errors == "t" else np.inf)


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


SELECTION = "selection"  # the target that is the probability of selection itself
EFFECT, ELASTICITY = "effect", "elasticity"
NUMBERS = ("value", "se", "p", "low", "high")  # of MeanEstimates
# Ends of a probability that have a probit: rho = +-1 may leave none above them.
LEAST_PROBABILITY, MOST_PROBABILITY = 1e-300, np.nextafter(1.0, 0.0)
DF_STEP = 1e-5  # of central differences in log df


@dataclass(frozen=True)
class LinearMeans:
    """The expected outcome of rows under a linear fit, or its probability, with inference.

    fit : with params, cov, freedom and over_rho; target : one of the three, or SELECTION
    outcome : from a fit, x, w and the columns of log sigma(x) to the mean outcome of the target
        (m,) and its gradient (m, k) in the order of `fit.params`
    is_binary : whether the outcome is a class, whose probability is the mean
    """

    fit: Any
    target: str
    outcome: Callable
    is_binary: bool = False

    @property
    def is_probability(self) -> bool:
        return self.is_binary or self.target == SELECTION

    def estimate(
        self, versions: Sequence[tuple], quantity: Quantity, level: float
    ) -> MeanEstimates:
        """versions : (x, w, scale) with constants, None where not needed"""
        fit, over = self.fit, self.fit.over_rho
        value, slope = self._of(fit, versions, quantity)
        covariance = fit.cov.to_numpy() if self.is_binary else covariance_of_known(fit)
        variance = variance_along(slope, covariance)
        variance = np.where(variance >= 0, variance, np.nan)
        se = np.sqrt(variance)
        if over is None or (self.target == SELECTION and np.isfinite(se).all()):
            # the selection equation is a probit, which rho hardly affects
            over, values = None, value
            with np.errstate(divide="ignore", invalid="ignore"):
                z = -np.abs(value / se)
            p = 2 * (ndtr(z) if np.isinf(fit.freedom) else stdtr(fit.freedom, z))
        else:
            held = (given_rho(fit, at) for at in range(len(over.atanh_rho)))
            found = [self._of(each, versions, quantity) for each in held]
            values = np.array([each for each, _ in found])
            pairs = zip(found, over.cov, strict=True)
            variance = np.array([variance_along(slope, cov) for (_, slope), cov in pairs])
            p = over.p_values(values, variance)
        on_probit_scale = self.is_probability and quantity.is_average
        if on_probit_scale:
            values = ndtri(np.clip(values, LEAST_PROBABILITY, MOST_PROBABILITY))
            variance = (np.sqrt(variance) / density(values)) ** 2
        if over is None:
            half = critical_value(level, fit.freedom) * np.sqrt(variance)
            ends = np.column_stack([values - half, values + half])
        else:
            ends = over.interval(values, variance, level)
        return MeanEstimates(value, se, p, *(ndtr(ends) if on_probit_scale else ends).T)

    def _of(self, fit, versions, quantity: Quantity):
        if self.target == SELECTION:
            pairs = [selection_probability(fit, w) for _, w, _ in versions]
        else:
            pairs = [self.outcome(fit, *each) for each in versions]
        return quantity.of(*map(list, zip(*pairs, strict=True)))


def outcome_means(fit, target: str) -> LinearMeans:
    """Of a linear outcome, on the scale of y where the fit has a transform."""
    transform = fit.transform
    if transform is None:
        return LinearMeans(
            fit, target, lambda fit, x, w, scale: mean_and_gradient(fit, x, w, target, scale)
        )
    if not (fit.method == "ml" and fit.errors == "normal"):
        raise DataError(
            "averages and marginal effects on the scale of y need maximum likelihood with normal "
            "errors; fit method='ml', or use result_ for the scale of the fit"
        )
    return LinearMeans(
        fit,
        target,
        lambda fit, x, w, scale: mean_and_gradient_of_y(fit, transform, x, w, target, scale),
    )


def selection_probability(fit, w) -> tuple[np.ndarray, np.ndarray]:
    """(m,) P(selected) = F(w'gamma) and its gradient (m, k); F is normal or, with t errors, t."""
    is_gamma = fit.params.index.get_level_values(0) == "select"
    index = w @ fit.params.to_numpy()[is_gamma]
    gradient = np.zeros((len(w), len(fit.params)))
    if getattr(fit, "errors", "normal") != "t":
        gradient[:, is_gamma] = density(index)[:, None] * w
        return np.exp(log_ndtr(index)), gradient
    gradient[:, is_gamma] = np.exp(student.log_density(index, fit.df).value)[:, None] * w
    at_df = list(fit.params.index).index(("ancillary", "log_df"))
    ends = (stdtr(fit.df * np.exp(step), index) for step in (DF_STEP, -DF_STEP))
    gradient[:, at_df] = np.subtract(*ends) / (2 * DF_STEP)
    return stdtr(fit.df, index), gradient


def density(z):
    """The standard normal density."""
    return np.exp(-0.5 * z * z - HALF_LOG_2PI)


def variance_along(slope, covariance) -> np.ndarray:
    """(g,) of quantities with these slopes (g, k); NaN where there is one in a parameter without
    standard error."""
    unknown = np.isnan(np.diag(covariance))
    known, inside = slope[:, ~unknown], covariance[np.ix_(~unknown, ~unknown)]
    variance = np.einsum("gi,ij,gj->g", known, inside, known)
    return np.where((slope[:, unknown] != 0).any(axis=1), np.nan, variance)


def margins(means: LinearMeans, level: float, *, by, **options) -> pd.DataFrame:
    """Average marginal effects over the rows of the fit."""
    frame, names, estimate = _over_own_rows(means, level)
    groups, levels = groups_of(frame, by, means.fit.data.weight), means.fit.design.categories
    return effects_table(frame, names, estimate, groups, levels=levels, **options)


def average(means: LinearMeans, level: float, *, at, by) -> pd.Series | pd.DataFrame:
    """The mean over the rows of the fit of the expected outcome, of all or for each value of by."""
    frame, _, estimate = _over_own_rows(means, level)
    table = averages_table(estimate, frame, groups_of(frame, by, means.fit.data.weight), at)
    if at is None and by is None:
        return table.drop(columns="n").iloc[0].rename(None)
    return table


def _over_own_rows(means: LinearMeans, level: float):
    """The frame behind the rows of a fit, the variables of the target, and how to estimate."""
    fit = means.fit
    check_level(level)
    if not is_one_of(means.target, (SELECTION,)):
        check_fit_has(fit, means.target)
    elif not fit.has_selection:
        raise DataError(f"every unit was selected, so target={means.target!r} has no meaning")
    frame, names = fit.design.table(means.target)
    all_names = fit.data.x_names, fit.data.w_names, fit.data.scale_names

    def answer(frames, quantity: Quantity) -> MeanEstimates:
        versions = [fit.design.matrices(each, means.target) for each in frames]
        for values, labels in zip(versions[0], all_names, strict=True):
            if values is not None:
                check_complete(values, labels, np.arange(len(values)))
        return means.estimate(versions, quantity, level)

    return frame, names, lambda questions: [answer(*each) for each in questions]


# From pairs of versions of a frame and a quantity of these to the estimates.
Estimate = Callable[[list[tuple[list[pd.DataFrame], Quantity]]], list[MeanEstimates]]


def averages_table(
    estimate: Estimate, frame: pd.DataFrame, groups: Groups, at=None
) -> pd.DataFrame:
    """``n``, ``mean``, ``se``, ``low`` and ``high`` by held values and group."""
    held, mean = held_values(frame, at), average_of(groups)
    found = estimate([([own], mean) for _, own in held.frames])
    columns = {"n": np.tile(groups.n, len(found))}
    for name, of in zip(("mean", "se", "low", "high"), ("value", "se", "low", "high"), strict=True):
        columns[name] = np.concatenate([getattr(each, of) for each in found])
    if at is None:
        return pd.DataFrame(columns, pd.Index(["all"]) if groups.labels is None else groups.labels)
    keys = [(*values, *label) for values, _ in held.frames for label in groups.keys]
    return pd.DataFrame(
        columns, pd.MultiIndex.from_tuples(keys, names=[*held.names, *groups.names])
    )


def effects_table(
    frame: pd.DataFrame,
    names,
    estimate: Estimate,
    groups: Groups,
    *,
    at,
    contrast,
    kind: str,
    levels: Mapping[str, tuple],
    contrast_indicators: bool = False,
    step: float = STEP,
) -> pd.DataFrame:
    """``effect``, ``se``, ``z``, ``p``, ``low`` and ``high`` by held values, group and variable.

    levels : of columns of numbers that are categories
    """
    if not is_one_of(kind, (EFFECT, ELASTICITY)):
        raise DataError(f"kind must be {EFFECT!r} or {ELASTICITY!r}, got {kind!r}")
    if contrast is not None and kind == ELASTICITY:
        raise DataError("contrast= compares values, which has no elasticity; use kind='effect'")
    moves = (
        contrasts_of(frame, contrast, levels)
        if contrast is not None
        else [
            move
            for name in names
            for move in moves_of(
                frame[name],
                levels.get(name),
                contrast_indicators=contrast_indicators,
                step=step,
            )
            if move.is_number or kind == EFFECT
        ]
    )
    if not moves:
        raise DataError("there is no numeric column, so there are no elasticities")
    held = held_values(frame, at, levels)
    index, parts = [], []
    for values, own in held.frames:
        found = estimate([_question(move, own, groups, kind) for move in moves])
        for place, label in enumerate(groups.keys):
            index += [(*values, *label, move.label) for move in moves]
            parts += [[getattr(each, name)[place] for name in NUMBERS] for each in found]
    columns = dict(zip(NUMBERS, np.array(parts).T, strict=True))
    table = pd.DataFrame(columns).rename(columns={"value": "effect"})
    table.insert(2, "z", table["effect"] / table["se"])
    outer = [*held.names, *groups.names]
    table.index = (
        pd.MultiIndex.from_tuples(index, names=[*outer, "variable"])
        if outer
        else pd.Index([label for (label,) in index])
    )
    return table


def _question(move: Move, frame: pd.DataFrame, groups: Groups, kind: str):
    sides = move.sides(frame)
    if kind == EFFECT:
        return sides, effect_of(groups, move.width)
    column = numbers_of(frame[move.name], move.name)
    return (*sides, frame), elasticity_of(groups, column, move.width)
