"""Scales on which an outcome is fitted: strictly monotone functions z = forward(y)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import boxcox1p, inv_boxcox1p

from heckesel.errors import DataError, is_one_of

ROUND_TRIP = 1e-6  # relative error of inverse(forward(y)); allows for single precision
LOG, LOG1P, SQRT, YEO_JOHNSON, AUTO = "log", "log1p", "sqrt", "yeo-johnson", "auto"
NAMES = (LOG, LOG1P, SQRT, YEO_JOHNSON)
# y = exp(z) - shift, with exact moments and y > -shift.
SHIFTS = {LOG: 0.0, LOG1P: 1.0}


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
