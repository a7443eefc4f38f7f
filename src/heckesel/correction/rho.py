r"""What the instrument says about rho, and the posterior that it leaves.

Among the selected the instrument moves p while the residual r = y - E[y | x, s = 1] shows what the
unselected would have done. Two readings carry this one contrast to the unselected:

* normal: :math:`E[r \mid x, z, s=1] = \theta\,(h_1 - m(x))`, with :math:`\theta = \rho\sigma`;
* flat in p: the unselected have the mean residual :math:`\beta` whatever their z, so that
  :math:`E[r \mid x, z, s=1] = \beta\,(1 - \bar p(x)/p)`.

The regressors have mean 0 given x among the selected, so an error of g(x) does not move the
estimates, and where the instrument does not vary among the selected they are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import chi2

from heckesel.correction.prior import RHO, RhoPrior
from heckesel.correction.selection import MOST_ARMS, cluster_sums, mills, scaled_gram

DISTINCT = 0.005  # share of the second contrast that the first leaves, to tell the readings apart
SPANNED = 1e-13  # eigenvalue, as a share of the largest, from which a direction of x counts
LEAST = 1e-6  # share of the variation of h_1 or p that x must leave
NORMAL, FLAT = 0, 1
TAIL = [0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4]
COMPONENT_EDGES = np.array([*TAIL, *(1 - np.array(TAIL[::-1]))])  # cumulative probabilities


@dataclass(frozen=True)
class Evidence:
    r"""Moments :math:`T_k(\theta) = a - \theta b_k` with variance
    :math:`\Omega + \theta^2 D_k`, where k is the reading.

    a : (i,); b : (2, i); omega : (i, i); drift : (2, i, i), from errors of the first step;
    df : degrees of freedom, clusters or rows less one
    rms : of the residual; curvature : mean of c_1(x), by which sigma exceeds it;
    contrast : K, the difference of the hidden mean per unit of -theta
    bend : p-value of the curve of E[r | p] that neither reading allows, NaN if z has too few values
    """

    a: np.ndarray
    b: np.ndarray
    omega: np.ndarray
    drift: np.ndarray
    df: float
    rms: float
    curvature: float
    contrast: float
    bend: float = np.nan

    @property
    def theta(self) -> np.ndarray:
        r"""(395,) :math:`\rho\sigma`, with :math:`\sigma^2 = E r^2/(1 - \rho^2 c_1)`"""
        return RHO * self.rms / np.sqrt(1 - RHO**2 * self.curvature)

    @property
    def beta(self) -> np.ndarray:
        """(395,) the shift of the unselected that is the same in the normal reading."""
        return -self.contrast * self.theta

    def log_likelihood(self, reading: int) -> np.ndarray:
        """(395,) log of the likelihood of each rho relative to 0, by inverting its test."""
        if not len(self.a):
            return np.zeros(len(RHO))
        values = self.beta if reading == FLAT else self.theta
        return self._half(reading, np.zeros(1)) - self._half(reading, values)

    def _half(self, k: int, values) -> np.ndarray:
        rest = self.a - np.multiply.outer(values, self.b[k])  # (v, i)
        variance = self.omega + (values**2)[:, None, None] * self.drift[k]
        stat = np.sum(rest * np.linalg.solve(variance, rest[:, :, None])[:, :, 0], axis=1)
        # without the determinant a value that only inflates the variance would seem likely
        size = np.linalg.slogdet(variance)[1]
        return 0.5 * (self.df + 1) * np.log1p(stat / self.df) + 0.5 * size

    def estimate(self, reading: int) -> tuple[float, float]:
        """theta or beta with its standard error; 0 and infinity if the instrument says nothing."""
        if not len(self.a):
            return 0.0, np.inf
        weight = np.linalg.solve(self.omega, self.b[reading])
        information = weight @ self.b[reading]
        found = weight @ self.a / information
        first_step = found**2 * (weight @ self.drift[reading] @ weight) / information**2
        return float(found), float(np.sqrt(1 / information + first_step))

    def rho(self, reading: int) -> tuple[float, float]:
        """The estimate as a correlation, and its standard error."""
        found, se = self.estimate(reading)
        theta = found if reading == NORMAL else -found / self.contrast
        scale = self.rms if self.rms > 0 else 1.0
        theta, se = theta / scale, se / scale / (1.0 if reading == NORMAL else self.contrast)
        return float(theta / np.sqrt(1 + theta**2 * self.curvature)), float(se)


def nothing_said(rms: float, curvature: float, contrast: float) -> Evidence:
    zeros = np.zeros((2, 0)), np.zeros((0, 0)), np.zeros((2, 0, 0))
    return Evidence(np.zeros(0), *zeros, 2.0, rms, curvature, contrast)


def what_the_instrument_says(
    r, sd, index, averages, columns, partial, weight, clusters, covariance, contrast, values: int
) -> Evidence:
    """r, index, weight : (n,) of the selected; sd : (n,) of r relative to its root mean square, by
    which theta and beta are multiplied; averages : (4, n) over z; partial : (n, q) functions of x
    that are partialled out; columns : (n, k) of the selection index with its covariance (k, k);
    contrast : K; values : number of distinct values of z"""
    mean_p, mean_phi, mean_p2, mean_q_phi = averages
    p, h1 = np.exp(log_ndtr(index)), mills(index)
    m = mean_phi / mean_p
    rms = float(np.sqrt(np.average(r**2, weights=weight)))
    removed = np.average(m**2 + mean_q_phi / mean_p, weights=weight * sd**2)
    curvature = float(np.clip(removed, 0.0, 0.95))
    nothing = nothing_said(rms, curvature, contrast)
    if values < 2 or not np.isfinite(covariance).all():
        return nothing
    root = np.sqrt(weight)
    sizes, directions = np.linalg.eigh(scaled_gram(partial, root))
    used = sizes > SPANNED * sizes[-1]
    whiten = directions[:, used] / np.sqrt(sizes[used])  # partial @ whiten is orthonormal

    def rest(v):
        for _ in range(2):  # the second time removes what rounding left
            v = v - partial @ (whiten @ (whiten.T @ (partial.T @ (weight[:, None] * v))))
        return root[:, None] * v

    by_p = p - mean_p2 / mean_p  # what p adds to x among the selected
    moved = sd[:, None] * np.column_stack([h1 - m, by_p, 1 - mean_p / p, (p - mean_p) ** 2])
    free = rest(np.column_stack([moved, r]))
    contrasts, e = free[:, :2], free[:, 4]
    variation = np.sum(contrasts**2, axis=0) / np.array(
        [weight @ (sd * h1) ** 2, weight @ (sd * p) ** 2]
    )
    if variation.min() < LEAST or len(r) <= used.sum() + 3:
        return nothing
    i = (contrasts / np.sqrt(np.mean(contrasts**2, axis=0)))[:, :1]
    if values > MOST_ARMS:
        other = contrasts[:, 1] - i[:, 0] * (i[:, 0] @ contrasts[:, 1]) / (i[:, 0] @ i[:, 0])
        if other @ other > DISTINCT * (contrasts[:, 1] @ contrasts[:, 1]):
            i = np.column_stack([i, other / np.sqrt(np.mean(other**2))])
    regressors = free[:, [0, 2]]
    slope = -root * sd * h1 * (h1 + index)  # times columns: of h1 in the coefficients of the index
    shared = whiten.T @ scaled_gram(partial, root, columns, slope)
    b = regressors.T @ i
    # The regressor is estimated, too: without the square of its error, which is in both factors,
    # the slope is not attenuated.
    twice = np.sum((scaled_gram(columns, slope) - shared.T @ shared) * covariance)
    b[NORMAL, 0] -= twice / np.sqrt(np.mean(contrasts[:, 0] ** 2))
    if b[NORMAL, 0] <= 0:
        return nothing
    projected = columns.T @ (slope[:, None] * i)
    # In the flat reading the error of 1/p, which small p inflate, would explain any contrast.
    drift = np.stack([projected.T @ covariance @ projected, np.zeros((i.shape[1], i.shape[1]))])
    fitted, _ = np.linalg.qr(regressors)
    # HC3: a row of high leverage pulls the fit towards itself, so that its residual is too small
    leverage = weight * np.sum((partial @ whiten) ** 2, axis=1) + np.sum(fitted**2, axis=1)
    left = (e - fitted @ (fitted.T @ e)) / np.maximum(1 - leverage, 0.1)
    scores = cluster_sums(i * left[:, None], clusters)
    scores = scores[np.any(scores != 0, axis=1)] if clusters is not None else scores
    count = len(scores)
    if count < 3:
        return nothing
    small = count / (count - 1)
    bend = _bend(e, contrasts, free[:, 3], clusters) if values > 3 else np.nan
    return Evidence(
        i.T @ e,
        b,
        small * scores.T @ scores,
        drift,
        float(count - 1),
        rms,
        curvature,
        contrast,
        bend,
    )


def _bend(e, contrasts, square, clusters) -> float:
    """p-value of a quadratic in p beside both readings."""
    both = np.column_stack([contrasts, square])
    q, triangle = np.linalg.qr(both)
    if abs(triangle[2, 2]) < 1e-2 * np.sqrt(square @ square) or square @ square == 0:
        return np.nan
    left = e - q @ (q.T @ e)
    score = cluster_sums(q[:, 2] * left, clusters)
    return float(chi2.sf((q[:, 2] @ e) ** 2 / max(score @ score, 1e-300), 1))


@dataclass(frozen=True)
class Posterior:
    """weight : (2, 395) of each reading and rho; theta, beta : (395,) what rho means in the normal
    and in the flat reading"""

    weight: np.ndarray
    theta: np.ndarray
    beta: np.ndarray

    def moments(self, normal, flat):
        r"""Mean and variance (m,) of the shift :math:`c_N\theta` or :math:`c_F\beta`.

        normal, flat : (m,) c_N and c_F
        """
        of_normal, of_flat = self.weight
        mean = normal * (of_normal @ self.theta) + flat * (of_flat @ self.beta)
        second = normal**2 * (of_normal @ self.theta**2) + flat**2 * (of_flat @ self.beta**2)
        return mean, np.maximum(second - mean**2, 0.0)

    @property
    def rho(self) -> float:
        return float(self.weight.sum(axis=0) @ RHO)

    @property
    def rho_squared(self) -> float:
        return float(self.weight.sum(axis=0) @ RHO**2)

    @property
    def normal_share(self) -> float:
        return float(self.weight[NORMAL].sum())

    def rho_interval(self, level: float = 0.9) -> tuple[float, float]:
        below = np.cumsum(self.weight.sum(axis=0))
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below, RHO)
        return float(low), float(high)

    def components(self):
        """A few (weight, theta, beta) that stand for the posterior.

        Their masses are small in the tails, where the ends of intervals lie: the mean of a wide
        bin would be farther out than a quantile in it.
        """
        found = []
        for reading, values in ((NORMAL, self.theta), (FLAT, self.beta)):
            total = self.weight[reading].sum()
            if total < 1e-4:
                continue
            share = self.weight[reading] / total
            part = np.searchsorted(COMPONENT_EDGES, np.cumsum(share) - 0.5 * share)
            for j in np.unique(part):
                mass = share[part == j].sum()
                if mass > 0:
                    value = share[part == j] @ values[part == j] / mass
                    pair = (value, 0.0) if reading == NORMAL else (0.0, value)
                    found.append((total * mass, *pair))
        return found


def posterior(evidence: Evidence, prior: RhoPrior) -> Posterior:
    """Prior times likelihood. What is true of the unselected differs from what the instrument shows
    at its margin, so the likelihood is widened first."""
    logs = np.stack([evidence.log_likelihood(NORMAL), evidence.log_likelihood(FLAT)])
    likelihood = np.exp(logs - logs.max())
    likelihood = likelihood * np.array([[prior.normal_share], [1 - prior.normal_share]])
    if prior.extrapolation > 0 and len(evidence.a):
        kernel = np.exp(-0.5 * ((RHO[:, None] - RHO) / prior.extrapolation) ** 2)
        likelihood = likelihood @ (kernel / kernel.sum(axis=1, keepdims=True)).T
    weight = likelihood * prior.weight
    return Posterior(weight / weight.sum(), evidence.theta, evidence.beta)
