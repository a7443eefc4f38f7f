r"""The posterior over rho and forms, for an outcome that is linear in given columns.

Every form is optimised on a grid of a = atanh rho. The grid is then refined where the posterior
mass is. The weight of a point is the likelihood of held-out units times the prior mass of rho
around it. Held-out units penalise superfluous parameters of a form, and under a flat likelihood the
posterior of rho is its prior.

No form is exactly right, and the posterior under a misspecified likelihood is too narrow. The
weights are therefore averaged over bootstrap samples of the units, so that a few units cannot
determine the result. Such a bagged posterior is wide enough under misspecification, too (Huggins
and Miller 2023); Yao et al. (2018) use it for weights of models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from heckesel.networks.rho.fitted_points import (
    FORMS,
    HOPELESS,
    Fitting,
    Points,
    independent_optima,
)
from heckesel.networks.rho.form_held_out import evidence_of
from heckesel.networks.rho.form_optima import Optima
from heckesel.networks.rho.rho_prior import RhoPrior, bin_edges

COARSE = np.linspace(-3.0, 3.0, 13)  # |rho| up to .995
REFINEMENTS = 2
INSERTED = 12  # points of each refinement, at quantiles of the posterior so far
FINE = np.linspace(-3.0, 3.0, 1201)  # where the posterior is interpolated for that
LOW = -1e6  # stands for no evidence at all
BAGS = 100  # bootstrap samples
PRIOR_MASS = 2.0  # of a form: the length of (-1, 1)
LEAD = 2.0  # standard errors
DROPPED = 1e-3  # weight of the least likely points, which predictions omit
# Weight of a run of points that predictions replace by two. Means, standard deviations and ends of
# intervals then change by less than .01 standard deviations, and a third of the points is left.
RUN = 0.06
NEGLIGIBLE = 1e-3  # posterior share of a form that is not refined any further
# With many rows a peak of the evidence may be narrower than the grid. Then points are added around
# the maximum of a smooth curve, at most MOST_APPROACHES times; AROUND is in standard deviations of
# the peak.
MOST_APPROACHES = 5
AROUND = np.linspace(-4.5, 4.5, 7)


@dataclass(frozen=True)
class Posterior:
    """weight (j,) of the points, adding up to one; log_density (j,) of the weight in rho; factor
    (j,) by which the variance of the mean is multiplied; log_total (BAGS,) the likelihood of each
    bootstrap sample under all points together."""

    points: Points
    weight: np.ndarray
    log_density: np.ndarray
    factor: np.ndarray
    log_total: np.ndarray

    def share_of(self, rival: np.ndarray) -> float:
        """The weight of another model, with a single rho instead of a distribution; rival :
        (groups,) its log-likelihood of held-out units.

        Its prior weight is that of a form. LEAD standard errors of the difference to the best point
        are subtracted from its log-likelihood: if held-out units do not distinguish the two, the
        posterior should be used, because it includes the uncertainty about rho.
        """
        lead = rival - self.best_by_group()
        handicap = LEAD * np.sqrt(len(lead)) * lead.std()
        own = rival @ _bags(len(rival)) + np.log(PRIOR_MASS) - handicap
        return float(np.mean(1 / (1 + np.exp(np.clip(self.log_total - own, -700, 700)))))

    def best_by_group(self, among: np.ndarray | None = None) -> np.ndarray:
        """(groups,) readings of the point with the largest weight, at its most likely factor;
        among : positions of points"""
        among = np.arange(len(self.weight)) if among is None else among
        readings = self.points.readings[among[self.weight[among].argmax()]]
        return readings[readings.sum(axis=1).argmax()]

    def thinned(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of a few points, and weights with which they represent all of them.

        Predictions take as long as there are points, and they change smoothly with rho. So the
        points of a form are divided into runs of about the same weight, and each run is replaced
        by two of its points.
        """
        order = np.argsort(self.weight)
        likely = np.zeros(len(self.weight), dtype=bool)
        likely[order[np.cumsum(self.weight[order]) > DROPPED]] = True
        weight = np.zeros(len(self.weight))
        for one in np.unique(self.points.form[likely]):
            own = np.flatnonzero(likely & (self.points.form == one))
            own = own[np.argsort(self.points.a[own])]
            mass = self.weight[own]
            middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
            run = np.floor(middle * np.ceil(mass.sum() / RUN))
            for each in (own[run == number] for number in np.unique(run)):
                weight[each] = _on_two(self.points.a[each], self.weight[each])
        kept = np.flatnonzero(weight)
        return kept, weight[kept]


def _on_two(a: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(n,) masses of at most two of the points at a (n,), in ascending order, whose total and mean
    are those of `mass`, and whose variance is as close as possible."""
    if len(a) < 3:
        return mass
    mean = np.average(a, weights=mass)
    variance = np.average((a - mean) ** 2, weights=mass)
    low, high = np.flatnonzero(a <= mean), np.flatnonzero(a > mean)
    of_pairs = np.outer(mean - a[low], a[high] - mean)  # variances
    i, j = np.unravel_index(np.abs(of_pairs - variance).argmin(), of_pairs.shape)
    i, j = low[i], high[j]
    found = np.zeros(len(a))
    share = (mean - a[i]) / (a[j] - a[i])
    found[[i, j]] = mass.sum() * (1 - share), mass.sum() * share
    return found


def form_posterior(fitting: Fitting, prior: RhoPrior) -> Posterior:
    """Points of all forms over (-1, 1), denser where the posterior mass is."""
    points = _coarse(fitting, independent_optima(fitting.design))
    for _ in range(MOST_APPROACHES):
        form, a, near = _between_peaks(points)
        if not len(form):
            break
        points = points.with_more(fitting.points(form, a, points.v[near], points.ridge[near]))
    for _ in range(REFINEMENTS):
        form, a, near = _wanted(weighted(points, prior))
        if not len(form):
            break
        points = points.with_more(fitting.points(form, a, points.v[near], points.ridge[near]))
    return weighted(points, prior)


def _coarse(fitting: Fitting, start: Optima) -> Points:
    """Every form at every a of COARSE. The normal form starts at its optimum at rho = 0. The others
    start at the normal optimum with the same rho, so that none fits worse than the normal form it
    contains."""
    count, others = len(COARSE), np.arange(1, len(FORMS))
    same = torch.zeros(count, dtype=torch.int64)
    first = np.zeros(count, dtype=int)
    normal = fitting.points(first, COARSE, start.v[same], start.ridge[same])
    near = torch.arange(count).repeat(len(others))
    form, a = np.repeat(others, count), np.tile(COARSE, len(others))
    return normal.with_more(fitting.points(form, a, normal.v[near], normal.ridge[near]))


def weighted(points: Points, prior: RhoPrior) -> Posterior:
    """The weights of the points, averaged over bootstrap samples of the groups of units."""
    mass = np.zeros(len(points.form))
    for own in (np.flatnonzero(points.form == one) for one in np.unique(points.form)):
        order = own[np.argsort(points.a[own])]
        mass[order] = prior.mass(bin_edges(np.tanh(points.a[order])))
    looked_at = np.isfinite(points.readings).all(axis=(1, 2)) & (mass > 0)
    readings, groups = points.readings[looked_at], points.readings.shape[2]
    evidence, _ = evidence_of(readings @ _bags(groups))  # (j, BAGS)
    log_weight = evidence + np.log(mass[looked_at])[:, None]
    total = logsumexp(log_weight, axis=0)
    bagged = logsumexp(log_weight - total, axis=1) - np.log(BAGS)
    weight, density = np.zeros(len(mass)), np.full(len(mass), -np.inf)
    weight[looked_at] = np.exp(bagged)
    density[looked_at] = bagged - np.log(mass[looked_at])
    factor = np.ones(len(mass))
    factor[looked_at] = evidence_of(readings.sum(axis=2))[1]
    return Posterior(points, weight, density, factor, total)


def _bags(groups: int) -> np.ndarray:
    """(groups, BAGS) weight of each group in each Bayesian bootstrap sample, on average 1."""
    return np.random.default_rng(0).dirichlet(np.ones(groups), size=BAGS).T * groups


def _between_peaks(points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New points for each form whose peak is not yet enclosed by evaluated points: their form, a,
    and the position of the nearest existing point."""
    form, at, near = [], [], []
    for one in np.unique(points.form):
        own = np.flatnonzero(points.form == one)
        own = own[np.argsort(points.a[own])]
        a, looked_at = points.a[own], np.isfinite(points.readings[own]).all(axis=(1, 2))
        top, height, sd = _peak(a, points.evidence[own])
        known = a[looked_at]
        enclosed = len(known) and known[0] <= top <= known[-1]
        if enclosed or height < points.evidence.max() - HOPELESS:
            continue
        new = np.setdiff1d(np.clip(top + sd * AROUND, a[0], a[-1]), a)
        form += [one] * len(new)
        at += new.tolist()
        near += own[np.abs(new[:, None] - a).argmin(axis=1)].tolist()
    return np.array(form, dtype=int), np.array(at), np.array(near, dtype=int)


def _peak(a: np.ndarray, evidence: np.ndarray) -> tuple[float, float, float]:
    """Position and height of the maximum of a smooth curve through the evidence, and the standard
    deviation in a of a normal density with the same curvature at its maximum."""
    curve = CubicSpline(a, evidence)
    best = int(evidence.argmax())
    around = np.linspace(a[max(best - 1, 0)], a[min(best + 1, len(a) - 1)], 2001)
    top = float(around[curve(around).argmax()])
    return top, float(curve(top)), float(1 / np.sqrt(max(-curve(top, 2), 1.0)))


def _wanted(found: Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New points at quantiles of the posterior: their form, a, and the position of the nearest
    existing point."""
    form, at, near = [], [], []
    points = found.points
    for one in np.unique(points.form):
        own = np.flatnonzero(points.form == one)
        if found.weight[own].sum() < NEGLIGIBLE:
            continue
        own = own[np.argsort(points.a[own])]
        a, height = points.a[own], found.log_density[own]
        finite = np.isfinite(height)
        height = np.interp(FINE, a[finite], height[finite], left=LOW, right=LOW)
        log_density = height - 2 * np.log(np.cosh(FINE))  # of a, not of rho
        below = np.cumsum(np.exp(log_density - log_density.max()))
        new = np.interp((np.arange(INSERTED) + 0.5) / INSERTED, below / below[-1], FINE)
        nearest = np.abs(new[:, None] - a).argmin(axis=1)
        fresh = np.abs(new - a[nearest]) > 1e-3
        form += [one] * int(fresh.sum())
        at += new[fresh].tolist()
        near += own[nearest[fresh]].tolist()
    return np.array(form, dtype=int), np.array(at), np.array(near, dtype=int)
