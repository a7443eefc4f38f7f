"""The distribution of an outcome around its mean, which keeps to the support of the outcome.

`Smooth` scales and shifts the held-out residuals. `Tilted` has the values of the outcome as its
support and moves mass between them. `fit_law` decides which one fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from heckesel.correction.selection import density
from heckesel.learners.splines import FoldedRows, RidgeMembers

FEW_VALUES = 12  # up to which an outcome is tilted
SPIKE = 0.1  # share of one value from which a continuous outcome is tilted, too
AT_BOUND = 0.01  # share of values at the minimum or maximum from which it is a bound
MOST_VALUES = 80  # that represent a spiky outcome
NODES = 20  # means at which the distribution of the values is estimated
LEVELS = np.concatenate(
    [[0.001, 0.0025, 0.005], np.linspace(0.01, 0.99, 197), [0.995, 0.9975, 0.999]]
)
SPREAD_STEPS = 3
FAR = 9.0  # squared standardised residual beyond which one row counts no more
INSIDE = 2e-3  # distance of a tilted mean from the ends of the support, as a share of the range
TILT_STEPS = 60


@dataclass(frozen=True)
class Law:
    """What is learned from the held-out residuals of the selected.

    values : (v,) support of a tilted outcome, empty if it is smooth
    nodes : (c,) predicted means; base : (c, v) distribution of the values at each
    residual : (levels,) quantiles of the standardised residual
    spread : log variance of the residual given x, or None if it is constant
    variance : of the residual; low, high : ends of the support, which may be infinite
    root_density : of two values: root mean square of phi at the probit of g
    """

    values: np.ndarray
    nodes: np.ndarray
    base: np.ndarray
    residual: np.ndarray
    spread: RidgeMembers | None
    spread_shift: float
    variance: float
    low: float
    high: float
    root_density: float = 1.0

    def noise(self, x) -> np.ndarray:
        """(m,) variance of the residual of a selected unit."""
        if self.spread is None:
            return np.full(len(x), self.variance)
        return np.exp(
            self.spread.predict_members(x).mean(axis=0).clip(*self._limits) + self.spread_shift
        )

    @property
    def _limits(self):
        middle = np.log(self.variance) - self.spread_shift
        return middle - 4.0, middle + 4.0

    def local_sd(self, selected_mean):
        r"""(m,) what a unit of the selection error moves here, relative to its root mean square.

        The same everywhere, but in a probit of two values :math:`\phi(\Phi^{-1}(g))`.
        """
        if len(self.values) != 2:
            return np.ones(len(selected_mean))
        return density(self._probit(selected_mean)) / self.root_density

    def moved(self, selected_mean, move):
        """(..., m) the means after a move, inside the support, and their slope in it.

        The probability of the second of two values moves along its probit.
        """
        if len(self.values) != 2:
            return self.inside(selected_mean + move), 1.0
        probit, width = self._probit(selected_mean), self.high - self.low
        after = probit + move / (width * density(probit))
        return self.inside(self.low + width * ndtr(after)), density(after) / density(probit)

    def _probit(self, mean):
        return ndtri((self.inside(mean) - self.low) / (self.high - self.low))

    def inside(self, mean):
        """The means, moved inside the support."""
        if not len(self.values):
            return np.clip(mean, self.low, self.high)
        margin = INSIDE * (self.high - self.low)
        return np.clip(mean, self.low + margin, self.high - margin)

    def distribution(self, selected_mean, mean, std):
        """selected_mean : (m,) g(x); mean, std : (m,) of what is predicted"""
        if not len(self.values):
            return Smooth(mean, std, self.residual, self.low, self.high)
        if len(self.nodes) == 1:
            base = np.broadcast_to(self.base[0], (len(mean), len(self.values)))
        else:
            place = np.interp(selected_mean, self.nodes, np.arange(len(self.nodes)))
            left = np.minimum(place.astype(int), len(self.nodes) - 2)
            part = (place - left)[:, None]
            base = (1 - part) * self.base[left] + part * self.base[left + 1]
        return Tilted(self.values, tilt(base, self.values, mean))


def fit_law(rows: FoldedRows, y, held_out) -> Law:
    """rows, y, held_out : of the selected"""
    weight = rows.weight
    low, high, values = support(y)
    r = y - held_out
    variance = float(np.average(r**2, weights=weight))
    nothing = np.zeros(0)
    if len(values):
        nodes, base = _base(y, held_out, weight, values)
        law = Law(values, nodes, base, nothing, None, 0.0, variance, low, high)
        if len(values) != 2:
            return law
        squares = np.average(law.local_sd(held_out) ** 2, weights=weight)
        return replace(law, root_density=float(np.sqrt(squares)))
    spread, shift, scale = _spread(rows, r, variance)
    e = r / np.sqrt(scale)
    order = np.argsort(e)
    cumulative = np.cumsum(weight[order])
    at = (cumulative - 0.5 * weight[order]) / cumulative[-1]
    quantiles = np.interp(LEVELS, at, e[order])
    middle, sd = _moments(quantiles)
    return Law(
        nothing,
        nothing,
        np.zeros((0, 0)),
        (quantiles - middle) / sd,
        spread,
        shift,
        variance,
        low,
        high,
    )


def support(y):
    """The ends of the range, and the values of an outcome that has few of them, or spikes."""
    values, counts = np.unique(y, return_counts=True)
    share = counts / len(y)
    if len(values) <= FEW_VALUES:
        return values[0], values[-1], values
    low = values[0] if share[0] >= AT_BOUND else 0.0 if values[0] >= 0 else -np.inf
    high = values[-1] if share[-1] >= AT_BOUND else np.inf
    if values[0] >= 0 and values[-1] <= 1:
        high = 1.0
    if share.max() < SPIKE:
        return low, high, np.zeros(0)
    atoms = values[share >= 0.5 / MOST_VALUES]
    rest = y[~np.isin(y, atoms)]
    if len(rest):
        count = min(MOST_VALUES, len(np.unique(rest)))
        atoms = np.unique(
            np.concatenate(
                [atoms, np.quantile(rest, (np.arange(count) + 0.5) / count, method="nearest")]
            )
        )
    return values[0], values[-1], atoms


def _base(y, held_out, weight, values):
    """Distribution of the values near each node of the predicted mean, by kernel weights."""
    middle = np.interp(y, values, np.arange(len(values)))
    code = np.rint(middle).astype(int)
    one = np.zeros((len(y), len(values)))
    one[np.arange(len(y)), code] = weight
    overall = one.sum(axis=0) / one.sum()
    sd = held_out.std()
    if len(values) == 2 or sd <= 1e-9 * (values[-1] - values[0]):
        return np.array([np.average(held_out)]), overall[None]
    nodes = np.unique(np.quantile(held_out, np.linspace(0.01, 0.99, NODES)))
    if len(nodes) < 2:
        return nodes[:1], overall[None]
    width = 1.1 * sd * len(y) ** -0.2
    base = np.empty((len(nodes), len(values)))
    for j, node in enumerate(nodes):
        kernel = np.exp(-0.5 * ((held_out - node) / width) ** 2)
        near = (
            kernel @ one + 5.0 * np.average(weight) * overall
        )  # five rows of the overall distribution
        base[j] = near / near.sum()
    return nodes, base


def _spread(rows, r, variance):
    r"""log Var(r | x), if held-out rows say that the variance depends on x.

    Fisher scoring for a normal variance: the working response is
    :math:`\log s + r^2/s - 1`, from log r^2 as a start.
    """
    if variance <= 0:
        return None, 0.0, np.full(len(r), max(variance, 1e-300))
    weight, response = rows.weight, np.log(r**2 + 1e-2 * variance)
    for _ in range(SPREAD_STEPS):
        held_out, members = rows.fit_ridge(response, curved=True)
        middle = np.average(held_out, weights=weight)
        held_out = np.clip(held_out, middle - 4, middle + 4)
        shift = float(np.log(np.average(r**2 / np.exp(held_out), weights=weight)))
        log_scale = held_out + shift
        response = log_scale + np.minimum(r**2 / np.exp(log_scale), FAR) - 1
    scale = np.exp(log_scale)
    loss = log_scale + r**2 / scale
    constant = np.log(variance) + r**2 / variance
    gain = weight * (constant - loss)
    if gain.sum() <= 2.0 * np.sqrt(np.sum((gain - gain.mean()) ** 2)):
        return None, 0.0, np.full(len(r), variance)
    return members, shift, scale


def _moments(quantiles):
    """Mean and standard deviation of a piecewise linear quantile function."""
    width = np.diff(LEVELS)
    total = width.sum()
    middle = 0.5 * (quantiles[1:] + quantiles[:-1])
    mean = width @ middle / total
    second = width @ (
        (quantiles[1:] ** 2 + quantiles[1:] * quantiles[:-1] + quantiles[:-1] ** 2) / 3
    )
    return mean, max(np.sqrt(max(second / total - mean**2, 0)), 1e-12)


def tilt(base, values, mean):
    r"""(m, v) probabilities proportional to base exp(kappa values), with kappa that gives the mean.

    Newton's method in a bracket: the mean rises with kappa, and its slope is the variance.
    """
    if len(values) == 1:
        return np.ones((len(mean), 1))
    unit = (values - values[0]) / (values[-1] - values[0])
    target = (mean - values[0]) / (values[-1] - values[0])
    log_base = np.log(np.maximum(base, 1e-12))
    kappa, low, high = np.zeros(len(mean)), np.full(len(mean), -1e3), np.full(len(mean), 1e3)
    for _ in range(TILT_STEPS):
        p = log_base + kappa[:, None] * unit
        p = np.exp(p - p.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        now = p @ unit
        gap = target - now
        if np.abs(gap).max(initial=0.0) < 1e-12:
            break
        low, high = np.where(gap > 0, kappa, low), np.where(gap < 0, kappa, high)
        newton = gap / np.maximum(p @ unit**2 - now**2, 1e-12)
        step = kappa + np.clip(newton, -10.0, 10.0)  # far from the root the slope is tiny
        step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        kappa = np.where(np.abs(gap) < 1e-12, kappa, step)
    return p


@dataclass(frozen=True)
class Smooth:
    """mean + std e, with e of the given quantiles, kept inside [low, high]; mean, std : (m,)"""

    observed_levels: ClassVar = (LEVELS[0], LEVELS[-1])  # beyond them the tails are assumed

    mean: np.ndarray
    std: np.ndarray
    residual: np.ndarray
    low: float
    high: float

    def quantile(self, p):
        return np.clip(self.mean + self.std * _e_quantile(self.residual, p), self.low, self.high)

    def cdf(self, y):
        y = np.asarray(y, dtype=float)
        below = _e_cdf(self.residual, (y - self.mean) / self.std)
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, below))

    def sample(self, size, rng):
        e = _e_quantile(self.residual, rng.random((size, len(self.mean))))
        return np.clip(self.mean + self.std * e, self.low, self.high)

    def log_density(self, y):
        """By differences of the distribution function over a tenth of a standard deviation."""
        e = (np.asarray(y, dtype=float) - self.mean) / self.std
        rise = _e_cdf(self.residual, e + 0.1) - _e_cdf(self.residual, e - 0.1)
        return np.log(np.maximum(rise, 1e-300) / 0.2) - np.log(self.std)

    def take(self, rows):
        return replace(self, mean=self.mean[rows], std=self.std[rows])


def _tails(residual):
    """Slopes of exponential tails beyond the outer levels."""
    left = (residual[12] - residual[0]) / np.log(LEVELS[12] / LEVELS[0])
    right = (residual[-1] - residual[-13]) / np.log((1 - LEVELS[-13]) / (1 - LEVELS[-1]))
    return max(left, 1e-9), max(right, 1e-9)


def _e_quantile(residual, p):
    left, right = _tails(residual)
    p = np.asarray(p, dtype=float)
    inside = np.interp(p, LEVELS, residual)
    with np.errstate(divide="ignore"):
        below = residual[0] + left * np.log(np.minimum(p, LEVELS[0]) / LEVELS[0])
        above = residual[-1] - right * np.log(np.minimum(1 - p, 1 - LEVELS[-1]) / (1 - LEVELS[-1]))
    return np.where(p < LEVELS[0], below, np.where(p > LEVELS[-1], above, inside))


def _e_cdf(residual, e):
    left, right = _tails(residual)
    steps = residual + 1e-12 * np.arange(len(residual))
    inside = np.interp(e, steps, LEVELS)
    below = LEVELS[0] * np.exp(np.minimum(e - residual[0], 0.0) / left)
    above = 1 - (1 - LEVELS[-1]) * np.exp(-np.maximum(e - residual[-1], 0.0) / right)
    return np.where(e < residual[0], below, np.where(e > residual[-1], above, inside))


@dataclass(frozen=True)
class Tilted:
    """values : (v,); probability : (m, v)"""

    values: np.ndarray
    probability: np.ndarray

    def quantile(self, p):
        reached = np.cumsum(self.probability, axis=1) >= np.asarray(p, dtype=float) - 1e-12
        reached[:, -1] = True
        return self.values[reached.argmax(axis=1)]

    def cdf(self, y):
        y = np.asarray(y, dtype=float)
        below = np.concatenate(
            [np.zeros((len(self.probability), 1)), np.cumsum(self.probability, axis=1)], axis=1
        )
        count = np.searchsorted(self.values, y, side="right")
        if count.ndim <= 1:
            return np.minimum(below[np.arange(len(below)), np.broadcast_to(count, len(below))], 1.0)
        return np.minimum(below[np.arange(len(below)), count], 1.0)

    def sample(self, size, rng):
        below = np.cumsum(self.probability, axis=1)
        draw = rng.random((size, len(below)))
        place = (
            np.stack([(row[:, None] > below[:, :-1]).sum(axis=1) for row in draw])
            if size
            else np.zeros((0, len(below)), int)
        )
        return self.values[place]

    def log_density(self, y):
        """The log probability of the nearest value."""
        y = np.broadcast_to(np.asarray(y, dtype=float), (*np.shape(y)[:-1], len(self.probability)))
        near = np.abs(y[..., None] - self.values).argmin(axis=-1)
        return np.log(
            np.maximum(
                np.take_along_axis(
                    np.broadcast_to(self.probability, (*near.shape, len(self.values))),
                    near[..., None],
                    -1,
                )[..., 0],
                1e-300,
            )
        )

    def take(self, rows):
        return replace(self, probability=self.probability[rows])
