r"""Penalised splines with the joint likelihood, averaged over rho: the method "profile".

The outcome is a sum of smooth curves, one per column, and of smooth surfaces for pairs of columns;
the selection index is linear. In Olsen's coordinates v = (gamma, delta, theta, c, extra), with
theta = 1/sigma, delta = beta/sigma and log sigma(x) linear in columns u, the standardised error of
a selected unit is :math:`e = e^{-c'u}(\theta y - b'\delta)`, and its log-likelihood

.. math:: \log\theta - c'u + \ell(\eta, e; a, \text{extra}), \quad \eta = w'\gamma,
          \quad a = \mathrm{atanh}\,\rho,

with :math:`\ell` of an error model. Groups of coefficients have ridges,

.. math:: \ell(v; a) - \tfrac12 \sum_g \lambda_g |\delta_g|^2 ,

that is, priors N(0, 1/lambda_g). The ridges maximise the evidence, the likelihood with v integrated
out (Laplace approximation),

.. math:: \ell(\hat v; a) - \tfrac12 \sum_g \lambda_g |\hat\delta_g|^2
          + \tfrac12 \sum_g r_g \log\lambda_g - \tfrac12 \log|{-H}| ,

r_g the size of a group. As a function of rho the evidence penalises flexible models, and it is the
weight of rho in the predictive distribution, a mixture over an adaptive grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtri

from heckesel.classical.forms import evaluate_form
from heckesel.classical.likelihood import ERROR_MODELS
from heckesel.classical.rows import Sample
from heckesel.data import DataScale, SelectionData
from heckesel.errors import DataError
from heckesel.margins import ComponentMean
from heckesel.math.sinh_arcsinh import moments_given_selection, population_moments
from heckesel.math.special import averaged_index, inverse_mills
from heckesel.math.splines import INNER_KNOTS, Spline, spline_of, spline_width
from heckesel.math.student import cdf as student_cdf
from heckesel.math.truncated import mean_of_selection
from heckesel.predictive import (
    Predictive,
    check_target,
    mean_and_slopes,
    mix_predictives,
    mixed_given_selection,
    mixed_normal,
    predict_given_selection,
    predict_shape,
    predict_student,
)
from heckesel.scales import TargetTransform

SURFACE_KNOTS, FEWEST_KNOTS = 1, 2  # inside the range of a column of a surface, and of a curve
# Limits of the default basis: a fit takes seconds, has enough rows for its columns, and its columns
# take less than 200 MB.
MOST_COLUMNS, LEAST_ROWS, MOST_NUMBERS = 300, 4, 20_000_000
# At the ends the prior sd of a coefficient is 300 (free) or 3e-5 (zero).
RIDGE_RANGE = (1e-5, 1e9)
# On gamma and the straight lines, so that columns may be collinear, as all levels of a category
# are. It is negligible against an information of about one for each row.
SMALL_RIDGE = 1e-6
# Gains in log-likelihood and in evidence below which iterations stop; both change weights little.
GAIN_TOLERANCE, EVIDENCE_TOLERANCE = 1e-5, 1e-2
MAX_ITERATIONS, MAX_HALVINGS = 60, 30
FIRST_UPDATES, UPDATES = 50, 2  # of the ridges: at rho = 0, from arbitrary values, and elsewhere
COARSE = np.linspace(-3.2, 3.2, 33)  # of atanh rho; |rho| up to .9967
# The largest posterior share of one grid value; six halvings resolve a curve that is sixty times
# narrower than a coarse step.
LARGEST_SHARE, ROUNDS, INSERTED = 0.15, 6, 4
NEGLIGIBLE = 1e-3  # share of the posterior below which predictions ignore a rho
PRIOR_NODES = 20  # of the midpoint rule for the prior over one bin of the grid
SCALE_SD = 1.0  # of the prior of the slopes of log sigma in standardised columns


@dataclass(frozen=True)
class RhoMode:
    """A local maximum of the posterior density of rho.

    weight : posterior mass between the minima around it; log_density : 0 for the highest mode
    boundary : the density still increases at the last grid value that the prior allows
    """

    rho: float
    sigma: float
    weight: float
    log_density: float
    boundary: bool


@dataclass(frozen=True)
class RhoInfo:
    """A mixture over rho.

    modes : highest first; rho_interval : equal-tailed, with 90 % of the posterior mass
    curve : "rho" and "log_evidence", the grid and the evidence, whose maximum is 0
    """

    modes: list[RhoMode]
    rho_interval: list[float]
    curve: dict[str, list[float]]

    @property
    def rho(self) -> list[float]:
        """Of the modes."""
        return [mode.rho for mode in self.modes]


# Centre and sd of the normal priors of the parameters of the error model, wide against what
# outcomes have: skewness and log tail 0 are normal errors, and log nu of t errors is around 12
# degrees of freedom, 4.5 to 33 within a standard deviation.
PRIORS: dict[str, tuple[tuple, tuple]] = {
    "normal": ((), ()),
    "t": ((2.5,), (1.0,)),
    "shape": ((0.0, 0.0), (1.0, 0.4)),
}


@dataclass(frozen=True)
class SplineBasis:
    """Columns [1, x, wiggles of each column of x, surfaces of pairs].

    curves : the nonlinear part of each column, None for a column with few values
    surfaces : (i, j, small spline of x_i, small spline of x_j)
    membership : (h, ridges) one where a column has that ridge; straight lines have none
    """

    curves: tuple[Spline | None, ...]
    surfaces: tuple[tuple[int, int, Spline | None, Spline | None], ...]
    membership: np.ndarray

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(m, h)"""
        return np.concatenate(_blocks(self.curves, self.surfaces, x), axis=1)


def spline_basis(x: np.ndarray, interactions="auto", knots: int | None = None) -> SplineBasis:
    """A basis for columns like x (n, p), the selected units.

    interactions : pairs of columns, or "all"; "auto" is the most flexible basis that the rows
        support: all pairs of columns, else none of them, else half as many knots, and so on
    """
    n, p = x.shape
    if is_auto := isinstance(interactions, str) and interactions == "auto":
        interactions, knots = (), FEWEST_KNOTS
        most = min(MOST_COLUMNS, n // LEAST_ROWS, MOST_NUMBERS // max(1, n))
        small = [1 + spline_width(column, SURFACE_KNOTS) for column in x.T]
        surfaces = sum(one * other for one, other in combinations(small, 2))
        for many in (INNER_KNOTS, INNER_KNOTS // 2, INNER_KNOTS // 4, FEWEST_KNOTS):
            wide = 1 + p + sum(spline_width(column, many) for column in x.T)
            if wide <= most:
                interactions, knots = "all" if wide + surfaces <= most else (), many
                break
        else:
            knots = 0
    pairs = list(combinations(range(p), 2)) if interactions == "all" else list(interactions)
    for pair in pairs:
        if len(set(pair)) != 2 or not all(0 <= column < p for column in pair):
            raise DataError(f"an interaction is two different columns below {p}, got {pair!r}")
    knots = INNER_KNOTS if knots is None else knots
    straight = is_auto and not knots
    curves = tuple(None if straight else spline_of(column, knots) for column in x.T)
    small_of = [spline_of(column, SURFACE_KNOTS) for column in x.T] if pairs else []
    surfaces_of = tuple((i, j, small_of[i], small_of[j]) for i, j in pairs)
    widths = [block.shape[1] for block in _blocks(curves, surfaces_of, x[:2])]
    group = np.repeat(np.arange(len(widths)) - 1, widths)
    membership = (group[:, None] == np.arange(len(widths) - 1)).astype(float)
    return SplineBasis(curves, surfaces_of, membership)


def _blocks(curves, surfaces, x) -> list[np.ndarray]:
    def bent(at, spline) -> np.ndarray:
        return np.column_stack([x[:, at], *([spline.columns(x[:, at])] if spline else [])])

    blocks = [np.column_stack([np.ones(len(x)), x])]
    blocks += [curve.columns(column) for curve, column in zip(curves, x.T, strict=True) if curve]
    for i, j, one, other in surfaces:
        product = bent(i, one)[:, :, None] * bent(j, other)[:, None, :]
        blocks.append(product.reshape(len(x), -1))
    return blocks


@dataclass(frozen=True)
class Optimum:
    """The maximum at one rho. v : (P,); ridge : (ridges,); evidence; information : (P, P) minus the
    Hessian of the penalised log-likelihood."""

    v: np.ndarray
    ridge: np.ndarray
    evidence: float
    information: np.ndarray


class Problem:
    """The data, in standardised units, and the coefficients v of an outcome that is linear in given
    columns (n, h), with `membership` (h, ridges)."""

    def __init__(
        self,
        data: SelectionData,
        scaling: DataScale,
        columns: np.ndarray,
        membership: np.ndarray,
        *,
        errors: str = "normal",
        scale: Sequence[int] = (),
    ):
        s, w, self.form = data.s, scaling.w(data.w), ERROR_MODELS[errors]
        sample = Sample(
            w[s],
            np.column_stack([-columns, scaling.y(data.y[s])]),
            data.weight[s],
            w[~s],
            data.weight[~s],
        )
        if len(scale):
            sample = replace(sample, scale_columns=scaling.x(data.x[s])[:, list(scale)])
        self.sample, self.membership, self.sizes = sample, membership, membership.sum(axis=0)
        centre, sd = PRIORS[errors]
        ends = np.cumsum([0, w.shape[1], columns.shape[1], 1, len(scale), len(centre)])
        self.gamma, self.delta, theta, self.c, self.extra = map(slice, ends[:-1], ends[1:])
        self.theta, self.size = theta.start, ends[-1]
        self.fixed, self.centre = np.zeros(self.size), np.zeros(self.size)
        self.fixed[self.gamma] = SMALL_RIDGE
        self.fixed[self.delta] = np.where(membership.any(axis=1), 0.0, SMALL_RIDGE)
        self.fixed[self.c] = SCALE_SD**-2
        self.fixed[self.extra] = np.array(sd) ** -2.0
        self.centre[self.extra] = centre

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients zero, sigma and ridges one."""
        v = self.centre.copy()
        v[self.theta] = 1.0
        return v, np.ones(self.membership.shape[1])

    def standard_deviation(self, v: np.ndarray) -> float:
        """Root mean square of the sd of the outcome error over the selected units."""
        square: Any = 1.0
        extra, u = v[self.extra], self.sample.scale_columns
        if u is not None:
            square = np.average(np.exp(2 * u @ v[self.c]), weights=self.sample.weight_selected)
        if len(extra) == 2:
            square *= population_moments(*extra).variance
        elif len(extra) == 1:  # without a finite sd if nu <= 2
            df = np.exp(extra[0])
            square *= df / (df - 2) if df > 2 else np.inf
        return float(np.sqrt(square) / v[self.theta])

    def surface(self, v: np.ndarray, a: float) -> tuple[float, np.ndarray, np.ndarray]:
        """The log-likelihood at v, its score (P,) and minus its Hessian (P, P)."""
        at = self.extra.start  # of atanh rho among all coordinates
        with np.errstate(over="ignore", invalid="ignore"):
            value, score, hessian = evaluate_form(self.form, self.sample, np.insert(v, at, a))
        free = np.delete(np.arange(len(score)), at)
        return (value if np.isfinite(value) else -np.inf), score[free], -hessian[np.ix_(free, free)]

    def penalised(self, at, v, ridge):
        """Value, score and information with the ridges and the priors."""
        value, score, information = at
        penalty = self.fixed.copy()
        penalty[self.delta] += self.membership @ ridge
        apart = v - self.centre
        value = value - 0.5 * penalty @ apart**2
        return value, score - penalty * apart, information + np.diag(penalty)

    def optimum(self, a: float, v, ridge, *, updates: int = UPDATES) -> Optimum:
        r"""Newton steps in v at fixed a, with a ridge update before each of the first few.

        The update (Fellner and Schall's) moves to the fixed point of the evidence,
        :math:`\lambda_g \leftarrow (r_g - \lambda_g\,\mathrm{tr}\,V_{gg}) / |\delta_g|^2`. Along a
        grid of a the best ridges change slowly and the evidence is flat at its maximum, so two
        updates per grid value are enough.
        """
        here = self.surface(v, a)
        for iteration in range(MAX_ITERATIONS):
            promised = 0.0
            if iteration < updates and len(ridge):
                ridge, promised = self._updated(here, v, ridge)
            value, score, information = self.penalised(here, v, ridge)
            step = cho_solve((_factor(information), True), score)
            gain = 0.5 * float(score @ step)
            if not (promised > EVIDENCE_TOLERANCE or gain > GAIN_TOLERANCE):
                break
            length = 1.0
            for _ in range(MAX_HALVINGS):
                there = self.surface(v + length * step, a)
                reached = self.penalised(there, v + length * step, ridge)[0]
                if reached >= value - 1e-12 * abs(value) - 1e-3 * gain * length:
                    v, here = v + length * step, there
                    break
                length *= 0.5
            else:
                break
        value, _, information = self.penalised(here, v, ridge)
        log_determinant = 2 * np.log(np.diag(_factor(information))).sum()
        evidence = value + 0.5 * (self.sizes @ np.log(ridge) - log_determinant)
        return Optimum(v, ridge, float(evidence), information)

    def _updated(self, here, v, ridge) -> tuple[np.ndarray, float]:
        """The next ridges, and approximately how much evidence they gain: its slope in log lambda
        is (r_g - lambda_g tr V_gg - lambda_g |delta_g|^2)/2."""
        information = self.penalised(here, v, ridge)[2]
        covariance = cho_solve((_factor(information), True), np.eye(self.size))
        variance = np.diag(covariance)[self.delta] @ self.membership
        size = v[self.delta] ** 2 @ self.membership
        degrees = np.maximum(self.sizes - ridge * variance, 0)
        # At the start every delta is zero and has no information about its ridge.
        moved = np.clip(degrees / np.maximum(size, 1e-300), *RIDGE_RANGE)
        moved = np.where(size > 0, moved, ridge)
        return moved, float(np.abs(0.5 * (degrees - ridge * size) * np.log(moved / ridge)).sum())


def _factor(information) -> np.ndarray:
    """The lower Cholesky factor; where the likelihood is not concave, of the information with a
    diagonal added to it that makes it positive definite."""
    diagonal = np.abs(np.diag(information)) + 1e-300
    for damping in (0.0, *10.0 ** np.arange(-6, 7)):
        try:
            return cho_factor(information + np.diag(damping * diagonal), lower=True)[0]
        except np.linalg.LinAlgError:
            continue
    raise DataError("the likelihood has no maximum; rescale columns with extreme values")


@dataclass(frozen=True)
class Points:
    """j values of rho with their weights and coefficients, in standardised units.

    weight, rho, theta : (j,); gamma : (j, q); delta : (j, h); scale : (j, r); extra : (j, ...)
    root : (j, P', P') root of the covariance of all coefficients but gamma
    """

    weight: np.ndarray
    rho: np.ndarray
    gamma: np.ndarray
    delta: np.ndarray
    theta: np.ndarray
    scale: np.ndarray
    extra: np.ndarray
    root: np.ndarray


@dataclass(frozen=True)
class SplineProfile:
    """The fit: a mixture over `points`.

    errors : the error model; scale : positions of the columns of x in which log sigma is linear
    """

    basis: SplineBasis
    scaling: DataScale
    points: Points
    errors: str
    scale: tuple[int, ...]
    info: RhoInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p) of any unit or, with w (m, q), of a selected or an unselected one. The
        uncertainty of the mean is computed by the delta method."""
        check_target(target, needs_w=w is None)
        points, unit, x = self.points, self.scaling.y_scale, self.scaling.x(x)
        columns, j = self.basis.columns(x), len(self.points.weight)
        f, sigma, doubt = np.empty((3, j, len(x)))
        for i in range(j):
            f[i], sigma[i], slopes = self._mean(i, columns, x, *self._moments(i, None))
            doubt[i] = ((slopes @ points.root[i]) ** 2).sum(axis=1)
        f, sigma, doubt = self.scaling.y_centre + unit * f, unit * sigma, unit**2 * doubt
        sign = -1.0 if target == "unselected" else 1.0
        index = None if target == "population" else sign * self._indices(w)
        if self.errors == "normal":
            if index is None:
                return mixed_normal(points.weight, f, doubt, sigma)
            log_weight = np.log(points.weight)[:, None] + log_ndtr(index)
            covariance = sign * points.rho[:, None] * sigma
            return mixed_given_selection(log_weight, f, doubt, sigma, covariance, index)
        parts = []
        for i in range(j):
            a, at = sign * np.arctanh(points.rho[i]), None if index is None else index[i]
            if self.errors == "shape":
                own = predict_shape(
                    f[i], doubt[i], sigma[i], *points.extra[i], index=at, atanh_rho=a
                )
            elif at is None:
                own = predict_student(f[i], doubt[i], sigma[i], float(np.exp(points.extra[i, 0])))
            else:
                covariance, df = np.tanh(a) * sigma[i], float(np.exp(points.extra[i, 0]))
                own = predict_given_selection(f[i], doubt[i], sigma[i], covariance, at, df)
            parts.append(own)
        log_weight = np.broadcast_to(np.log(points.weight)[:, None], f.shape)
        if index is not None:
            log_weight = log_weight + log_ndtr(self._probit_index(index))
        return mix_predictives(parts, log_weight)

    def component_means(
        self, x, w, target: str, *, transform: TargetTransform | None = None, **_
    ) -> Iterator[ComponentMean]:
        """The mean at x and w under each point, with its gradient in the parameters of `root`."""
        plain = self.errors == "normal" and not self.scale
        if transform is not None and not plain:
            raise DataError(
                "averages and marginal effects on the scale of y need normal errors with one "
                "sigma; fit without errors= and scale="
            )
        points, unit, x = self.points, self.scaling.y_scale, self.scaling.x(x)
        columns, sign = self.basis.columns(x), -1.0 if target == "unselected" else 1.0
        indices = None if target == "population" else sign * self._indices(w)
        log_p = None if indices is None else log_ndtr(self._probit_index(indices))
        for i, weight in enumerate(points.weight):
            index = None if indices is None else indices[i]
            if transform is None:
                moments = self._moments(i, index, sign)
                f, sigma, slopes = self._mean(i, columns, x, *moments)
                mean = self.scaling.y_centre + unit * (f + sigma * moments[0])
                slopes = unit * slopes
            else:
                f, theta = columns @ points.delta[i] / points.theta[i], points.theta[i]
                location, log_sigma = self.scaling.y_centre + unit * f, np.log(unit / theta)
                a = np.arctanh(points.rho[i])
                mean, found = mean_and_slopes(transform, location, log_sigma, a, index, sign)
                by_delta = found[0][:, None] * unit * columns
                by_theta = -(found[0] * unit * f + found[1])
                slopes = np.column_stack([by_delta, by_theta]) / theta
            log_weight = np.log(weight) + (np.zeros(len(x)) if log_p is None else log_p[i])
            yield ComponentMean(float(weight), mean, slopes, points.root[i], log_weight=log_weight)

    def draw(self, rng) -> SplineProfile:
        """One of the points, with coefficients drawn from their covariance."""
        points = self.points
        i = rng.choice(len(points.weight), p=points.weight / points.weight.sum())
        moved = points.root[i] @ rng.standard_normal(points.root.shape[2])
        ends = np.cumsum([points.delta.shape[1], 1, points.scale.shape[1]])
        delta, theta, scale, extra = np.split(moved, ends)
        drawn = Points(
            weight=np.ones(1),
            rho=points.rho[[i]],
            gamma=points.gamma[[i]],
            delta=points.delta[[i]] + delta,
            theta=points.theta[[i]] + theta,
            scale=points.scale[[i]] + scale,
            extra=points.extra[[i]] + extra,
            root=np.zeros_like(points.root[[i]]),
        )
        return replace(self, points=drawn)

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over the points."""
        log_weight = np.log(self.points.weight)[:, None]
        return averaged_index(self._probit_index(self._indices(w)), log_weight)

    def _indices(self, w) -> np.ndarray:
        """(j, m)"""
        return self.points.gamma @ self.scaling.w(w).T

    def _probit_index(self, index) -> np.ndarray:
        """(j, m) the index with the same probability under normal errors."""
        if self.errors != "t":
            return index
        df = np.exp(self.points.extra[:, 0])
        p = [student_cdf(row, float(each)) for row, each in zip(index, df, strict=True)]
        return ndtri(np.stack(p))

    def _moments(self, i: int, index, sign: float = 1.0) -> tuple:
        """The mean of the errors e under point i, of all units or at this index (m,), and its
        slopes in the parameters of the error model, which are zero where they are neglected."""
        rho, extra = sign * self.points.rho[i], self.points.extra[i]
        if self.errors == "shape":
            found = population_moments(*extra)
            if index is not None:
                found = moments_given_selection(index, np.arctanh(rho), *extra)
            return found.mean, (found.d_skewness, found.d_log_tail)
        if index is None:
            return 0.0, (0.0,) * len(extra)
        if self.errors == "t":
            return rho * mean_of_selection(index, float(np.exp(extra[0])))[0], (0.0,)
        return rho * inverse_mills(index), ()

    def _mean(self, i: int, columns, x, mean_of_e, by_extra):
        """f and sigma (m,) under point i, and the gradient of f + sigma E[e] in the parameters of
        `root`."""
        points, u = self.points, x[:, list(self.scale)]
        theta = points.theta[i]
        f, sigma = columns @ points.delta[i] / theta, np.exp(u @ points.scale[i]) / theta
        offset = sigma * mean_of_e
        by_rest = [columns / theta, -(f + offset) / theta, offset[:, None] * u]
        return f, sigma, np.column_stack([*by_rest, *(sigma * each for each in by_extra)])


def fit_profile(
    data: SelectionData,
    *,
    errors: str = "normal",
    scale: Sequence[int] = (),
    prior: Callable[[np.ndarray], np.ndarray] | None = None,
    interactions="auto",
    knots: int | None = None,
) -> SplineProfile:
    """Fit the splines at a grid of rho and average over it.

    errors : "normal", "t" or "shape"; scale : positions of the columns of x in which log sigma is
    linear
    prior : density of rho, up to a constant; None is uniform on (-1, 1)
    interactions, knots : of `spline_basis`
    """
    scaling = DataScale.of(data)
    basis = spline_basis(scaling.x(data.x[data.s]), interactions, knots)
    columns = basis.columns(scaling.x(data.x[data.s]))
    problem = Problem(data, scaling, columns, basis.membership, errors=errors, scale=scale)
    found = {0.0: problem.optimum(0.0, *problem.start(), updates=FIRST_UPDATES)}
    for side in (COARSE[COARSE > 1e-9], COARSE[COARSE < -1e-9][::-1]):
        last = found[0.0]  # each optimum is the start of the next
        for a in side:
            last = found[float(a)] = problem.optimum(float(a), last.v, last.ridge)
    for _ in range(ROUNDS):
        a, share = _posterior(found, prior)
        if share.max() <= LARGEST_SHARE:
            break
        best = np.argsort(-(share[:-1] + share[1:]), kind="stable")[:INSERTED]
        for at in sorted(best):
            near = found[a[at]]
            middle = float(0.5 * (a[at] + a[at + 1]))
            found[middle] = problem.optimum(middle, near.v, near.ridge)
    a, share = _posterior(found, prior)
    kept = np.flatnonzero(share > min(NEGLIGIBLE, 0.5 * share.max()))
    optima = [found[a[at]] for at in kept]
    v = np.array([each.v for each in optima])
    root = np.stack([_covariance_root(each.information, problem.gamma.stop) for each in optima])
    points = Points(
        weight=share[kept] / share[kept].sum(),
        rho=np.tanh(a[kept]),
        gamma=v[:, problem.gamma],
        delta=v[:, problem.delta],
        theta=v[:, problem.theta],
        scale=v[:, problem.c],
        extra=v[:, problem.extra],
        root=root,
    )
    info = _summary(problem, found, a, share, prior, scaling.y_scale)
    return SplineProfile(basis, scaling, points, errors, tuple(scale), info)


def _covariance_root(information, q: int) -> np.ndarray:
    """A root of the covariance of all coefficients but the first q, those of the index: the inverse
    is root root' with a triangular root, whose last rows and columns are one."""
    lower = np.tril(_factor(information))
    return solve_triangular(lower, np.eye(len(lower)), lower=True).T[q:, q:]


def _posterior(found: dict[float, Optimum], prior) -> tuple[np.ndarray, np.ndarray]:
    """The grid of atanh rho in order, and the posterior share of each value."""
    a = np.array(sorted(found))
    with np.errstate(divide="ignore"):
        height = np.log(_prior_mass(a, prior)) + [found[each].evidence for each in a]
    return a, np.exp(height - logsumexp(height))


def _edges(a) -> np.ndarray:
    rho = np.tanh(a)
    return np.concatenate([[-1.0], 0.5 * (rho[1:] + rho[:-1]), [1.0]])


def _prior_mass(a, prior) -> np.ndarray:
    edges = _edges(a)
    if prior is None:
        return np.diff(edges)
    share = (np.arange(PRIOR_NODES) + 0.5) / PRIOR_NODES
    nodes = edges[:-1, None] + np.diff(edges)[:, None] * share
    values = np.asarray(prior(nodes), dtype=float)
    bad = values.shape != nodes.shape or not np.isfinite(values).all() or (values < 0).any()
    if bad or not values.any():
        raise DataError(
            "the rho_prior function must take an array of rho and return a density for each: "
            "finite, not negative, and positive somewhere"
        )
    return values.mean(axis=1) * np.diff(edges)


def _summary(problem: Problem, found, a, share, prior, unit: float) -> RhoInfo:
    """Modes of the posterior, highest first, a 90 % interval, and the curve of the evidence."""
    rho, evidence = np.tanh(a), np.array([found[each].evidence for each in a])
    height = evidence.copy()
    if prior is not None:
        with np.errstate(divide="ignore"):
            height += np.log(np.asarray(prior(rho), dtype=float))
        if not np.isfinite(height).any():  # the prior is an interval between two grid values
            height = np.where(share > 0, evidence, -np.inf)
    allowed = np.flatnonzero(np.isfinite(height))
    height = height - height.max()
    rises = np.concatenate([[True], height[1:] > height[:-1], [False]])
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:] & np.isfinite(height))
    valleys = [
        left + int(np.argmin(height[left:right]))
        for left, right in zip(peaks[:-1], peaks[1:], strict=True)
    ]
    sides = np.split(share, np.array(valleys, dtype=int))
    modes = [
        RhoMode(
            rho=float(rho[peak]),
            sigma=unit * problem.standard_deviation(found[a[peak]].v),
            weight=float(side.sum()),
            log_density=float(height[peak]),
            boundary=bool(peak in (allowed[0], allowed[-1])),
        )
        for peak, side in zip(peaks, sides, strict=True)
    ]
    below = np.concatenate([[0.0], np.cumsum(share)])
    low, high = np.interp([0.05, 0.95], below / below[-1], _edges(a))
    return RhoInfo(
        modes=sorted(modes, key=lambda mode: -mode.log_density),
        rho_interval=[float(low), float(high)],
        curve={"rho": rho.tolist(), "log_evidence": (evidence - evidence.max()).tolist()},
    )
