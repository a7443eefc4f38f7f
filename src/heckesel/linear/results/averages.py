"""Averages over the rows of a linear fit: marginal effects and the mean outcome, with intervals."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.linear.results.inference import check_level, critical_value
from heckesel.linear.results.prediction import (
    check_fit_has,
    covariance_of_known,
    matrices,
    mean_and_gradient,
    mean_and_gradient_of_y,
)
from heckesel.predictive.scales import TargetTransform


def margins(
    fit, target: str, level: float, transform: TargetTransform | None = None
) -> pd.DataFrame:
    """Average marginal effect of each variable; with `transform` on the scale of y, where the fit
    is for forward(y).

    A number is moved by a central difference, 1e-4 of its standard deviation; a category from its
    first level to each other one.
    """
    check_level(level)
    check_fit_has(fit, target)
    if transform is not None and not (
        fit.method == "ml" and fit.errors == "normal" and not fit.data.scale_names
    ):
        raise DataError(
            "marginal effects on the scale of y need maximum likelihood with normal errors and one "
            "sigma; fit method='ml', or use result_.margins() for the scale of the fit"
        )
    is_linear = target == "population" and transform is None
    # rows_of(name, value) gives the matrices of x, w and log sigma(x) after a change
    variables, rows_of = fit.design.moves(target)
    effects = {}
    for name, moves in variables.items():
        for label, up, down, width in moves:
            sides = rows_of(name, up), rows_of(name, down)

            def effect(at, sides=sides, width=width):
                high, low = (_mean_over_rows(at, *side, target, transform) for side in sides)
                return (high[0] - low[0]) / width, (high[1] - low[1]) / width

            effects[label] = _with_interval(fit, effect, level, is_linear)
    frame = pd.DataFrame(effects, index=["effect", "se", "low", "high"]).T
    frame.insert(2, "z", frame["effect"] / frame["se"])
    return frame


def average(fit, target: str, level: float) -> pd.Series:
    """The mean over the rows of the expected outcome."""
    check_level(level)
    x, w, scale = matrices(fit, None, None, None, target)
    found = _with_interval(
        fit, lambda at: _mean_over_rows(at, x, w, scale, target), level, target == "population"
    )
    return pd.Series(found, index=["mean", "se", "low", "high"])


def _mean_over_rows(fit, x, w, scale, target: str, transform: TargetTransform | None = None):
    """The mean of the expected outcome over rows, and its gradient (size,)."""
    if transform is None:
        mean, gradient = mean_and_gradient(fit, x, w, target, scale)
    else:
        mean, gradient = mean_and_gradient_of_y(fit, transform, x, w, target)
    weight = fit.data.weight / fit.data.weight.sum()
    return weight @ mean, weight @ gradient


def _with_interval(fit, quantity: Callable, level: float, is_linear: bool) -> tuple[float, ...]:
    """Value, delta-method standard error and interval of quantity(fit) -> value, gradient.

    is_linear : whether the gradient does not depend on the parameters
    """
    value, slope = quantity(fit)
    variance = slope @ covariance_of_known(fit) @ slope
    se = np.sqrt(variance) if variance >= 0 else np.nan
    over = fit.over_rho
    if over is None:
        half = critical_value(level, fit.freedom) * se
        return value, se, value - half, value + half
    if is_linear:
        values = value + (over.params - fit.params.to_numpy()) @ slope
        slopes = np.broadcast_to(slope, over.params.shape)
    else:
        found = [quantity(given_rho(fit, at)) for at in range(len(over.atanh_rho))]
        values, slopes = (np.array(each) for each in zip(*found, strict=True))
    variances = over.variances(slopes[:, None, :])
    ((low, high),) = over.interval(values[:, None], variances, level)
    return value, se, low, high


def given_rho(fit, at: int):
    """The fit with rho held at one of the values of `fit.over_rho`."""
    over = fit.over_rho
    params = pd.Series(over.params[at], fit.params.index)
    changed = {"params": params, "rho": float(np.tanh(over.atanh_rho[at]))}
    if hasattr(fit, "sigma"):
        changed["sigma"] = float(np.exp(params["ancillary", "log_sigma"]))
    return replace(fit, **changed)
