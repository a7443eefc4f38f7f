r"""The evidence of the k models of each dataset as a function of rho, on an adaptive grid.

The models of a dataset share a grid of a = atanh rho: 33 values over all of (-1, 1), then midpoints
of intervals with much posterior mass, until there are none. A `Criterion` computes the evidence:
the likelihood with coefficients integrated out (`Laplace`), or that of held-out units
(`heckesel.networks.rho.rho_held_out`).
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.fit_info import RhoInfo, RhoMode
from heckesel.networks.rho.linear_joint import Optima
from heckesel.networks.rho.rho_prior import UNIFORM, RhoPrior, bin_edges
from heckesel.on_disk import on_disk

COARSE = np.linspace(-3.2, 3.2, 33)  # |rho| up to .9967
# The largest posterior share of one grid value; six halvings resolve a curve that is sixty times
# narrower than a coarse step.
LARGEST_SHARE = 0.15
ROUNDS = 6
FIRST_UPDATES = 50  # of the ridges at rho = 0, from arbitrary initial values
INSERTED = 4  # midpoints per round


@dataclass(frozen=True)
class Evidence:
    """The evidence of the k models of a dataset at j values of rho.

    log_evidence : (j,); share : (j, k) of each model in it, adding up to one over models
    variance_factor : (j,) posterior mean of the factor on the variance of delta
    """

    log_evidence: np.ndarray
    share: np.ndarray
    variance_factor: np.ndarray


class Models(Protocol):
    """k models whose coefficients v (k, P) and ridges are fitted at fixed a = atanh rho (k,).

    start : v and ridges from which the fit at rho = 0 starts
    covariance_factor : from the information, of the coefficients that predictions depend on
    """

    def __len__(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def start(self) -> tuple[torch.Tensor, torch.Tensor]: ...
    def optima(self, a, v, ridge, *, updates: int = 2) -> Optima: ...
    def covariance_factor(self, information: torch.Tensor) -> torch.Tensor: ...


class Criterion(Protocol):
    """The function that computes the evidence for rho.

    readings : (k, c) numbers of k models at their optima; evidence : from the readings (j, k, c) of
    one dataset
    """

    def readings(self, optima: Optima) -> np.ndarray: ...

    def evidence(self, readings: np.ndarray) -> Evidence: ...


class Laplace:
    """Likelihoods with v integrated out; models are weighted by theirs."""

    def readings(self, optima: Optima) -> np.ndarray:
        return optima.evidence.cpu().numpy()[:, None]

    def evidence(self, readings: np.ndarray) -> Evidence:
        each = readings[:, :, 0]
        together = logsumexp(each, axis=1)
        return Evidence(together, np.exp(each - together[:, None]), np.ones(len(each)))


@dataclass(frozen=True)
class Curve:
    """Optima of the k models of one dataset on its grid of j values, ordered by rho.

    a : (j,); log_evidence : (j,); v : (j, k, P); ridge : (j, k, ridges);
    variance_factor : (j,); weight : (j, k), the posterior of (rho, model) under `prior`, which adds
    up to one
    """

    a: np.ndarray = field(metadata=on_disk("grid"))
    log_evidence: np.ndarray = field(metadata=on_disk("grid"))
    v: np.ndarray = field(metadata=on_disk("grid", "k", "size"))
    ridge: np.ndarray = field(metadata=on_disk("grid", "k", "ridges"))
    variance_factor: np.ndarray = field(metadata=on_disk("grid"))
    weight: np.ndarray = field(metadata=on_disk("grid", "k"))
    prior: RhoPrior = UNIFORM

    @property
    def rho(self) -> np.ndarray:
        return np.tanh(self.a)


def rho_curves(
    bases: Models, models: int, prior: RhoPrior, criterion: Criterion | None = None
) -> list[Curve]:
    """One curve for each dataset, which has `models` models; model j of dataset c is row
    c * models + j of `bases`."""
    criterion = criterion or Laplace()
    count = len(bases) // models
    found: list[list] = [[] for _ in range(count)]  # per dataset: (a, readings, v, ridge)
    for a, optima in _coarse(bases):
        for dataset, part in enumerate(_by_dataset(optima, models, criterion)):
            found[dataset].append((a, *part))
    for _ in range(ROUNDS):
        wanted = [_midpoints(part, prior, criterion) for part in found]
        if not any(wanted):
            break
        for place in range(INSERTED):
            chosen = [each[place] if place < len(each) else None for each in wanted]
            if not any(chosen):
                break
            parts = _by_dataset(_at(bases, models, found, chosen), models, criterion)
            for own, here, part in zip(found, chosen, parts, strict=True):
                if here is not None:
                    own.append((here[0], *part))
        for part in found:
            part.sort(key=lambda point: point[0])
    return [_curve(part, prior, criterion) for part in found]


def _coarse(bases: Models):
    """From rho = 0 outwards in both directions; each optimum is the start of the next."""
    k = len(bases)
    centre = len(COARSE) // 2

    def at(position, v, ridge, **options):
        a = torch.full((k,), COARSE[position], dtype=v.dtype, device=v.device)
        return bases.optima(a, v, ridge, **options)

    middle = at(centre, *bases.start(), updates=FIRST_UPDATES)
    results = {centre: middle}
    for side in (range(centre + 1, len(COARSE)), range(centre - 1, -1, -1)):
        last = middle
        for position in side:
            last = at(position, last.v, last.ridge)
            results[position] = last
    return [(float(COARSE[position]), results[position]) for position in range(len(COARSE))]


def _by_dataset(optima: Optima, models: int, criterion: Criterion):
    parts = [criterion.readings(optima), optima.v.cpu().numpy(), optima.ridge.cpu().numpy()]
    return [
        tuple(part[first : first + models] for part in parts)
        for first in range(0, len(parts[0]), models)
    ]


def _at(bases, models, found, chosen) -> Optima:
    """Optima at (a, grid position to start from) of each dataset; its first one again if None."""
    where = [(part[0][0], 0) if c is None else c for part, c in zip(found, chosen, strict=True)]
    device = bases.device
    a = np.repeat([value for value, _ in where], models)
    v, ridge = (
        np.concatenate([part[near][field] for part, (_, near) in zip(found, where, strict=True)])
        for field in (2, 3)
    )
    return bases.optima(*(torch.as_tensor(x, device=device) for x in (a, v, ridge)))


def _midpoints(part, prior, criterion) -> list[tuple[float, int]]:
    """(a, position of the grid value below) beside grid values with too much posterior mass."""
    curve = _curve(part, prior, criterion)
    share = curve.weight.sum(axis=1)
    if share.max() <= LARGEST_SHARE:
        return []
    pairs = share[:-1] + share[1:]
    best = sorted(np.argsort(-pairs, kind="stable")[:INSERTED])
    return [(0.5 * (curve.a[at] + curve.a[at + 1]), int(at)) for at in best]


def _curve(part, prior: RhoPrior, criterion: Criterion) -> Curve:
    a = np.array([point[0] for point in part])
    readings, v, ridge = (np.stack([point[field] for point in part]) for field in (1, 2, 3))
    found = criterion.evidence(readings)
    with np.errstate(divide="ignore"):
        log_posterior = found.log_evidence + np.log(prior.mass(bin_edges(np.tanh(a))))
    posterior = np.exp(log_posterior - logsumexp(log_posterior))
    weight = posterior[:, None] * found.share
    return Curve(a, found.log_evidence, v, ridge, found.variance_factor, weight, prior)


def rho_modes(curve: Curve, y_scale: float) -> list[RhoMode]:
    """Local maxima, highest first; without a prior these are the modes of the evidence."""
    height = curve.log_evidence + curve.prior.log_density(curve.rho)
    if not np.isfinite(height).any():  # the prior is an interval between two grid values
        height = np.where(curve.weight.any(axis=1), curve.log_evidence, -np.inf)
    allowed = np.flatnonzero(np.isfinite(height))
    height = height - height.max()
    rises = np.concatenate([[True], height[1:] > height[:-1], [False]])
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:] & np.isfinite(height))
    valleys = [
        left + int(np.argmin(height[left:right]))
        for left, right in zip(peaks[:-1], peaks[1:], strict=True)
    ]
    share = curve.weight.sum(axis=1)
    sides = np.split(share, np.array(valleys, dtype=int))
    modes = []
    for peak, side in zip(peaks, sides, strict=True):
        best = int(np.argmax(curve.weight[peak]))
        modes.append(
            RhoMode(
                rho=float(curve.rho[peak]),
                sigma=float(y_scale / curve.v[peak, best, -1]),
                weight=float(side.sum()),
                log_density=float(height[peak]),
                boundary=bool(peak in (allowed[0], allowed[-1])),
            )
        )
    return sorted(modes, key=lambda mode: -mode.log_density)


def rho_interval(curve: Curve, level: float = 0.9) -> tuple[float, float]:
    """Equal-tailed posterior interval of rho; mass is uniform within the bin of a grid value."""
    edges = np.clip(bin_edges(curve.rho), curve.prior.low, curve.prior.high)
    below = np.concatenate([[0.0], np.cumsum(curve.weight.sum(axis=1))])
    low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below / below[-1], edges)
    return float(low), float(high)


def curve_summary(curve: Curve, y_scale: float) -> RhoInfo:
    """Modes, a 90 % interval and the curve, with maximum 0."""
    height = curve.log_evidence - curve.log_evidence.max()
    return RhoInfo(
        modes=rho_modes(curve, y_scale),
        rho_interval=list(rho_interval(curve)),
        curve={"rho": curve.rho.tolist(), "log_evidence": height.tolist()},
    )
