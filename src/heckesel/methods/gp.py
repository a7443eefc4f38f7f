r"""Gaussian process on the selected units: an exact baseline without a correction.

y = f(x) + noise, with f a process of the kernel of `numerics.marginal_likelihood` and y scaled to
mean 0 and variance 1. The p + 2 hyper-parameters theta maximise the marginal likelihood.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import OptimizeResult, minimize

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.marginal_likelihood import (
    LOW_RANK_COLUMNS,
    kernel,
    log_marginal_likelihood,
    low_rank_factor,
    noise_with_ridge,
)
from heckesel.predictive import Predictive, check_target

# scikit-learn's bounds, and its first start for Constant(1) * RBF(1) + White(.1). Where several
# optima compete, as on repeated rows, the start decides which one is found.
LOG_BOUND = np.log(1e5)
FIRST_START = np.log([1.0, 1.0, 0.1])
# An evaluation costs n^3, and nearly all restarts end in the known optimum or in a far worse one.
# Beyond `RESTART_ALL` rows, restarts therefore use a part of the rows. They are repeated on all
# rows only if they exceed the first optimum on that part by `RESTART_MARGIN` units of
# log-likelihood, for which a looser tolerance is enough. The part consists of blocks of neighbours,
# because an optimum with little noise may depend on rows that repeat each other.
RESTART_ALL = 600
RESTART_PART = 200
RESTART_BLOCK = 8
RESTART_TOLERANCE = 1e-6
RESTART_MARGIN = 1.0
# Relative change of the log-likelihood at which an optimisation ends. The default of scipy, 2e-9,
# leaves an error of up to 1e-6.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class GPConfig:
    """Options of the fit.

    max_rows : if more units are selected, this many are drawn without replacement
    restarts : further starts, uniform in theta within the bounds
    device : "cpu", "cuda", or "auto", which is CUDA where there is one
    """

    max_rows: int = 2000
    restarts: int = 2
    device: str = "auto"


@dataclass(frozen=True)
class Scaling:
    """x_mean, x_scale : (p,)"""

    x_mean: np.ndarray
    x_scale: np.ndarray
    y_mean: float
    y_scale: float


@dataclass(frozen=True)
class GPInfo:
    """log_marginal_likelihood, constant, noise : of the scaled y, the last two are variances

    length_scales : (p,) in units of x; n_rows : units that the process was fitted to
    status : "converged", "boundary" (a hyper-parameter ended on its bound), "max_iterations" or
        "stalled" (rounding ended the line search)
    """

    log_marginal_likelihood: float
    constant: float
    length_scales: list[float]
    noise: float
    n_rows: int
    status: str


@dataclass(frozen=True)
class GPFit:
    """The posterior of f given the selected units and theta.

    With g(x) = factor^{-1} k(points, x), f(x) has mean coefficients'g and variance
    c - g'g + |inner g|^2. Dense: the points are the n units, factor that of their noisy
    covariance, inner is None. Low rank: the points are r pivots, factor that of their kernel.

    """

    points: np.ndarray
    factor: np.ndarray
    coefficients: np.ndarray
    inner: np.ndarray | None
    theta: np.ndarray
    scaling: Scaling
    info: GPInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Normal: the posterior variance of f is epistemic, the noise aleatoric.

        Outcomes are assumed to be missing at random, so all targets have the same prediction.
        """
        check_target(target)
        x = (np.asarray(x, dtype=float) - self.scaling.x_mean) / self.scaling.x_scale
        cross = kernel(self.theta, self.points, x)  # (r, m)
        g = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        variance = np.exp(self.theta[0]) - np.sum(g**2, axis=0)
        if self.inner is not None:
            variance += np.sum((self.inner @ g) ** 2, axis=0)
        unit = self.scaling.y_scale**2
        return Predictive.normal(
            mean=self.scaling.y_mean + self.scaling.y_scale * (self.coefficients @ g),
            epistemic=unit * np.maximum(variance, 0.0),  # rounding alone goes below 0
            aleatoric=unit * np.exp(self.theta[-1]),
        )


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[GPFit]:
    """One Gaussian process for each dataset; seeds draw the rows, when there are too many, and the
    restarts.

    On the CPU the datasets follow one another: an evaluation is one Cholesky factorisation, which
    keeps LAPACK busy by itself. On a GPU all datasets are factorised together.
    """
    config = config or GPConfig()
    config = config if device is None else replace(config, device=device)
    datasets = [_scaled_rows(data, seed, config) for data, seed in zip(datas, seeds, strict=True)]
    rows = [(x, y) for x, y, _ in datasets]
    if len({x.shape[1] for x, _ in rows}) > 1:
        raise DataError("datasets fitted together must have the same number of columns")
    starts = [np.repeat(FIRST_START, [1, x.shape[1], 1]) for x, _ in rows]
    peaks = _maximise(rows, starts, config)
    again = _promising_restarts(rows, peaks, seeds, config)
    restarted = _maximise([rows[i] for i, _ in again], [start for _, start in again], config)
    for (i, _), peak in zip(again, restarted, strict=True):
        peaks[i] = min(peaks[i], peak, key=lambda found: found.fun)
    return [
        _posterior(x, y, scaling, peak)
        for (x, y, scaling), peak in zip(datasets, peaks, strict=True)
    ]


def _scaled_rows(
    data: SelectionData, seed: int, config: GPConfig
) -> tuple[np.ndarray, np.ndarray, Scaling]:
    """Selected x (n, p), scaled over all units as for networks, y (n,) scaled, and the scaling.

    Everything is sorted before it is summed, so that the order of units changes no digit.
    """
    if np.ptp(data.weight[data.s]) > 0:
        raise DataError("the gp method cannot weight rows; fit it without weights")
    ordered = np.sort(data.x, axis=0)
    x_mean, x_scale = np.nanmean(ordered, axis=0), np.nanstd(ordered, axis=0)
    x_scale = np.where(x_scale > 0, x_scale, 1.0)
    x, y = (data.x[data.s] - x_mean) / x_scale, data.y[data.s]
    if len(y) > config.max_rows:
        drawn = np.random.default_rng(seed).choice(len(y), config.max_rows, replace=False)
        x, y = x[drawn], y[drawn]
    order = np.lexsort((y, *x.T))
    x, y = x[order], y[order]
    scaling = Scaling(x_mean, x_scale, float(y.mean()), float(y.std()) or 1.0)
    return x, (y - scaling.y_mean) / scaling.y_scale, scaling


def _promising_restarts(rows, peaks, seeds, config) -> list[tuple[int, np.ndarray]]:
    """(dataset, theta) of each restart that beats the first optimum on a part of the rows."""
    if config.restarts == 0:
        return []
    parts, starts = [], []
    for (x, y), peak, seed in zip(rows, peaks, seeds, strict=True):
        step = 1 if len(y) <= RESTART_ALL else len(y) // RESTART_PART
        part = np.arange(len(y)) // RESTART_BLOCK % step == 0
        # scikit-learn's generator, so that the same seed restarts from the same points
        rng = np.random.RandomState(seed)
        starts += [peak.x, *rng.uniform(-LOG_BOUND, LOG_BOUND, (config.restarts, len(peak.x)))]
        parts += [(x[part], y[part])] * (1 + config.restarts)
    found = _maximise(parts, starts, config, tolerance=RESTART_TOLERANCE)
    promising = []
    for i in range(len(rows)):
        first, *others = found[i * (1 + config.restarts) :][: 1 + config.restarts]
        promising += [(i, peak.x) for peak in others if peak.fun < first.fun - RESTART_MARGIN]
    return promising


def _posterior(x, y, scaling: Scaling, peak: OptimizeResult) -> GPFit:
    theta, t = peak.x, noise_with_ridge(peak.x)
    info = GPInfo(
        log_marginal_likelihood=float(-peak.fun),
        constant=float(np.exp(theta[0])),
        length_scales=(np.exp(theta[1:-1]) * scaling.x_scale).tolist(),
        noise=float(np.exp(theta[-1])),
        n_rows=len(y),
        status=_status(peak),
    )
    low_rank = low_rank_factor(theta, x) if x.shape[1] <= LOW_RANK_COLUMNS else None
    if low_rank is None:
        factor = np.linalg.cholesky(kernel(theta, x, x) + t * np.eye(len(y)))
        coefficients = solve_triangular(factor, y, lower=True)
        return GPFit(x, factor, coefficients, None, theta, scaling, info)
    g, pivots = low_rank
    root = np.linalg.cholesky(t * np.eye(len(pivots)) + g @ g.T)
    inner = np.sqrt(t) * solve_triangular(root, np.eye(len(pivots)), lower=True)
    coefficients = inner.T @ (inner @ (g @ y)) / t
    return GPFit(x[pivots], g[:, pivots].T, coefficients, inner, theta, scaling, info)


def _status(peak: OptimizeResult) -> str:
    if peak.status == 0 and (np.abs(peak.x) >= LOG_BOUND).any():
        return "boundary"
    return {0: "converged", 1: "max_iterations", 2: "stalled"}[peak.status]


def _maximise(rows, starts, config: GPConfig, *, tolerance: float = TOLERANCE):
    """The optimum of each (x, y) from its start; `fun` is minus the log-likelihood."""

    def climb(likelihood: Callable, start: np.ndarray) -> OptimizeResult:
        def loss(theta):
            value, gradient = likelihood(theta)
            return -value, -gradient

        bounds = [(-LOG_BOUND, LOG_BOUND)] * len(start)
        options = {"ftol": tolerance}
        return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    device = _torch_device(config.device)
    if rows and device is not None:
        from heckesel.math.marginal_likelihood_torch import climb_side_by_side

        return climb_side_by_side(climb, starts, rows, device)
    return [
        climb(lambda theta, x=x, y=y: log_marginal_likelihood(theta, x, y), start)
        for (x, y), start in zip(rows, starts, strict=True)
    ]


def _torch_device(device: str) -> str | None:
    """Where torch should compute, or None for NumPy."""
    if device not in ("auto", "cpu", "cuda"):
        raise DataError(f'device must be "auto", "cpu" or "cuda" but is {device!r}')
    if device == "auto" and find_spec("torch"):
        import torch

        return "cuda" if torch.cuda.is_available() else None
    return "cuda" if device == "cuda" else None
