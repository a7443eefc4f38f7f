"""Scales on which an outcome is fitted: strictly monotone functions z = forward(y)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import boxcox1p, inv_boxcox1p

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of
from heckesel.math.splines import spline_of

ROUND_TRIP = 1e-6  # relative error of inverse(forward(y)); allows for single precision
LOG, LOG1P, SQRT, YEO_JOHNSON, AUTO = "log", "log1p", "sqrt", "yeo-johnson", "auto"
NAMES = (LOG, LOG1P, SQRT, YEO_JOHNSON)
# y = exp(z) - shift, with exact moments and y > -shift.
SHIFTS = {LOG: 0.0, LOG1P: 1.0}
FOLDS = 5  # of the choice of a scale
MOST_ROWS = 20_000  # of which a random sample chooses
INNER_KNOTS = 3
ROWS_PER_COLUMN = 20  # splines need more rows than this for each of their columns
SIMPLEST_FIRST = (None, LOG, SQRT, LOG1P, YEO_JOHNSON)


@dataclass(frozen=True)
class TargetTransform:
    """z = forward(y) and y = inverse(z), strictly monotone.

    name : one of NAMES, None for functions of the user
    parameter : lambda of the Yeo-Johnson transformation
    functions : forward and inverse of the user
    """

    name: str | None = None
    parameter: float | None = None
    functions: tuple[Callable, Callable] | None = None
    increasing: bool = True

    def forward(self, y):
        """z of y."""
        if self.functions is not None:
            return self.functions[0](y)
        if self.name == SQRT:  # signed, so that a normal z has an inverse
            return np.sign(y) * np.sqrt(np.abs(y))
        if self.name == YEO_JOHNSON:
            return yeo_johnson(y, self.parameter)
        return np.log(y) if self.name == LOG else np.log1p(y)

    def inverse(self, z):
        """y of z."""
        if self.functions is not None:
            return self.functions[1](z)
        if self.name == SQRT:
            return z * np.abs(z)
        if self.name == YEO_JOHNSON:
            z = np.asarray(z, dtype=float)
            size = np.abs(z)
            low, high = inv_boxcox1p(size, 2 - self.parameter), inv_boxcox1p(size, self.parameter)
            return np.where(z >= 0, high, -low)
        return np.exp(z) if self.name == LOG else np.expm1(z)

    def log_slope(self, y):
        """log |forward'(y)| of a named scale."""
        if self.name == SQRT:
            with np.errstate(divide="ignore"):  # the slope at 0 is infinite
                return -np.log(2) - 0.5 * np.log(np.abs(y))
        if self.name == YEO_JOHNSON:
            return log_slope_of_yeo_johnson(y, self.parameter)
        return -np.log(y) if self.name == LOG else -np.log1p(y)

    @property
    def shift(self) -> float | None:
        """Of a logarithm: y = exp(z) - shift; None for other functions."""
        return SHIFTS.get(self.name or "")

    def label(self, outcome: str) -> str:
        """The transformed outcome, as tables and reports call it."""
        if self.name is None:
            return f"transformed({outcome})"
        if self.parameter is None:
            return f"{self.name}({outcome})"
        return f"{self.name}({outcome}, {self.parameter:.3g})"

    def check_loaded(self) -> None:
        """Refuse a scale that does not exist."""
        given = self.parameter is not None
        if self.name not in NAMES or (self.name == YEO_JOHNSON) != given:
            raise ValueError(f"a scale {self.name!r} with the parameter {self.parameter}")
        if not 0 <= (self.parameter or 0.0) <= 2:
            raise ValueError(f"a scale {self.name!r} with the parameter {self.parameter}")


def named_transform(name: str, parameter: float | None = None) -> TargetTransform:
    """One of NAMES; the Yeo-Johnson transformation needs its parameter, lambda."""
    return TargetTransform(name, parameter if name == YEO_JOHNSON else None)


def yeo_johnson(y, power: float):
    r"""((1 + y)^\lambda - 1)/\lambda for y >= 0, and -((1 - y)^(2 - \lambda) - 1)/(2 - \lambda)
    below, logarithms in the limit. With lambda from 0 to 2 every number is a possible z."""
    y = np.asarray(y, dtype=float)
    size = np.abs(y)
    return np.where(y >= 0, boxcox1p(size, power), -boxcox1p(size, 2 - power))


def log_slope_of_yeo_johnson(y, power: float):
    return np.where(np.asarray(y) >= 0, power - 1, 1 - power) * np.log1p(np.abs(y))


def target_transform(given) -> TargetTransform | str | None:
    """From the option of an estimator: a transformation, or one of "yeo-johnson" and "auto", which
    the data complete."""
    if given is None:
        return None
    if is_one_of(given, (YEO_JOHNSON, AUTO)):
        return given
    if is_one_of(given, NAMES):
        return named_transform(given)
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(callable, given)):
        return TargetTransform(functions=tuple(given))
    raise DataError(
        f"target_transform must be None, {', '.join(map(repr, NAMES))}, {AUTO!r} or two functions "
        f"(forward, inverse), got {given!r}"
    )


def on_other_scale(model) -> bool:
    """Whether the outcome of `model` is transformed; after a fit with "auto" it need not be."""
    return getattr(model, "transform_", model.target_transform) is not None


def transform_outcome(y, transform: TargetTransform, y_name: str):
    """(n,) z = forward(y), NaN where y is NaN, and the transform with its direction.

    An outcome that inverse(forward(y)) does not recover is an error that names the row.
    """
    seen = np.flatnonzero(~np.isnan(y))
    z = np.full(len(y), np.nan)
    with np.errstate(all="ignore"):
        z[seen] = transform.forward(y[seen])
        back = transform.inverse(z[seen])
    bad = seen[~np.isfinite(z[seen])]
    if len(bad):
        value = f"{y[bad[0]]:g}"
        needs = {LOG: "needs positive values", LOG1P: "needs values above -1"}.get(
            transform.name or "", f"makes it {z[bad[0]]:g}"
        )
        raise DataError(
            f"the outcome {y_name!r} is {value} in row {bad[0]}, and target_transform {needs}; use "
            "another transformation or, if this value stands for a missing outcome, pass "
            f"unobserved={value} (--unobserved {value} in the shell)"
        )
    size = np.abs(y[seen]) + (np.ptp(y[seen]) if len(seen) else 0.0)
    ok = np.abs(back - y[seen]) <= ROUND_TRIP * size
    if not ok.all():
        lost = seen[~ok]
        raise DataError(
            f"target_transform does not invert: the outcome {y_name!r} is {y[lost[0]]:g} in row "
            f"{lost[0]}, but inverse(forward(y)) is {back[~ok][0]:g}; pass two functions that are "
            "inverse to each other"
        )
    return z, _directed(transform, y[seen], z[seen])


def _directed(transform: TargetTransform, y, z) -> TargetTransform:
    steps = np.diff(z[np.argsort(y, kind="stable")])
    if (steps >= 0).all():
        return transform
    if (steps <= 0).all():
        return replace(transform, increasing=False)
    raise DataError(
        "target_transform must be monotone, but forward both rises and falls over the outcomes"
    )


# A scale is chosen by the held-out likelihood of y itself. Each is used in a regression of
# z = forward(y) on functions of w among the selected rows. They stand for f(x) and for the effect
# of selection, which is a function of w. Errors are normal, and the density of y is that of z times
# the slope of `forward`, so that scales can be compared.


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
