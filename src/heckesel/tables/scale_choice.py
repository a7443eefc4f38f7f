"""The scale of the outcome, chosen by the held-out likelihood of y itself.

Each scale is used in a regression of z = forward(y) on functions of w among the selected rows. They
stand for f(x) and for the effect of selection, which is a function of w. Errors are normal, and the
density of y is that of z times the slope of `forward`, so that scales can be compared.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from heckesel.data import SelectionData
from heckesel.math.splines import spline_of
from heckesel.scales import (
    AUTO,
    LOG,
    LOG1P,
    SQRT,
    YEO_JOHNSON,
    TargetTransform,
    log_slope_of_yeo_johnson,
    named_transform,
    target_transform,
    yeo_johnson,
)

FOLDS = 5
MOST_ROWS = 20_000  # of which a random sample chooses
INNER_KNOTS = 3
ROWS_PER_COLUMN = 20  # splines need more rows than this for each of their columns
SIMPLEST_FIRST = (None, LOG, SQRT, LOG1P, YEO_JOHNSON)


def chosen_transform(given, data: SelectionData, *, linear: bool) -> TargetTransform | None:
    """The option `target_transform`, completed by the data.

    linear : whether the outcome is linear in x, so that the scale should make it so
    """
    transform = target_transform(given)
    if not isinstance(transform, str):
        return transform
    rows = np.flatnonzero(data.s & (data.weight > 0))
    if len(rows) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False)
    y, weight, design = data.y[rows], data.weight[rows], _design(data.w[rows], linear)
    groups = None if data.groups is None else data.groups[rows]
    name = choose_scale(y, design, weight, groups) if transform == AUTO else transform
    if name is None:
        return None
    power = _best_power(y, design, weight) if name == YEO_JOHNSON else None
    return named_transform(name, power)


def choose_scale(y, design, weight, groups=None) -> str | None:
    """The simplest scale whose held-out log-likelihood is within one standard error of the best.

    y : (n,); design : (n, p), with a constant; weight : (n,); groups : (n,) codes of rows that
    stay in one fold
    """
    allowed = {LOG: (y > 0).all(), SQRT: (y > 0).all(), LOG1P: (y >= 0).all()}
    names = [name for name in SIMPLEST_FIRST if allowed.get(name or "", True)]
    if len(y) < FOLDS * (design.shape[1] + 2):
        return None
    own = np.arange(len(y)) if groups is None else groups
    fold = (np.random.default_rng(0).permutation(own.max() + 1) % FOLDS)[own]
    unit = np.empty((len(names), len(y)))
    for number in range(FOLDS):
        held = fold == number
        unit[:, held] = _held_out(names, y, design, weight, held)
    share = weight / weight.sum()
    best = unit[np.argmax(unit @ share)]
    for name, each in zip(names, unit, strict=True):
        behind = best - each
        mean = share @ behind
        if mean <= np.sqrt(share**2 @ (behind - mean) ** 2):
            return name
    raise AssertionError("the best scale is within one standard error of itself")


def _held_out(names, y, design, weight, held) -> np.ndarray:
    """(scales, held-out rows) log-densities of y under the regression on the other rows."""
    kept, root = ~held, np.sqrt(weight[~held])
    power = _best_power(y[kept], design[kept], weight[kept])
    scaled = [_on_scale(name, y, power) for name in names]
    z, log_slope = (np.stack(each, axis=1) for each in zip(*scaled, strict=True))  # (n, scales)
    beta = np.linalg.lstsq(root[:, None] * design[kept], root[:, None] * z[kept], rcond=None)[0]
    rest = z - design @ beta
    sigma = np.sqrt(np.average(rest[kept] ** 2, axis=0, weights=weight[kept]))
    density = -0.5 * (rest[held] / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
    return (density + log_slope[held]).T


def _on_scale(name: str | None, y, power: float):
    """z and log |forward'(y)|; power : of the Yeo-Johnson transformation"""
    if name is None:
        return y, np.zeros(len(y))
    transform = named_transform(name, power if name == YEO_JOHNSON else None)
    return transform.forward(y), transform.log_slope(y)


def _best_power(y, design, weight) -> float:
    r"""The lambda of the Yeo-Johnson transformation with the highest likelihood of a regression:
    :math:`-\tfrac12 \log(RSS/n) + \overline{\log forward'(y)}`. From 0 to 2, see `yeo_johnson`."""
    root = np.sqrt(weight)
    basis = np.linalg.qr(root[:, None] * design)[0]

    def loss(power: float) -> float:
        z = root * yeo_johnson(y, power)
        rest = np.sum((z - basis @ (basis.T @ z)) ** 2)
        slope = np.average(log_slope_of_yeo_johnson(y, power), weights=weight)
        return 0.5 * np.log(rest) - slope

    return float(minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded").x)


def _design(w: np.ndarray, linear: bool) -> np.ndarray:
    """A constant, the columns of w and, if there are rows enough, their splines."""
    scale = w.std(axis=0)
    w = (w - w.mean(axis=0))[:, scale > 0] / scale[scale > 0]
    columns = [np.ones((len(w), 1)), w]
    if not linear:
        splines = [(spline_of(each, INNER_KNOTS), each) for each in w.T]
        columns += [spline.columns(each) for spline, each in splines if spline is not None]
    wide = np.concatenate(columns, axis=1)
    return wide if len(w) >= ROWS_PER_COLUMN * wide.shape[1] else np.concatenate(columns[:2], 1)
