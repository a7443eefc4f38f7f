"""The constants of the prior of rho, chosen on real outcomes whose truth is known.

python -m reproduction.truth.calibrate [workers]

Each development outcome is fitted once. Its likelihood of rho is then combined with every candidate
of `GRID`. The point is chosen by the rms error over that of no correction, among candidates that
are worse than it by more than .05 sd in at most 3 % of the outcomes; given the point, the interval
is chosen by its interval score, among candidates that cover at least 88 %. Every source has the
same weight. For each source the choice is made on the others: `held_out_priors.json` has these
constants, which X6 uses, and the table shows how they did on the source that was left out.
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from unittest import mock

import numpy as np
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from heckesel import regressor
from heckesel.correction.prior import RhoPrior, spike_and_slab
from heckesel.correction.rho import FLAT, NORMAL, Evidence, posterior
from heckesel.io import write_atomically
from reproduction.truth.sources import OUTCOMES, SOURCES, load_outcome
from reproduction.x6_truth import PRIORS

SLAB = 0.3
GRID = {
    "spike": (0.03, 0.06, 0.10),
    "interval": (0.06, 0.08, 0.12),
    "share": (0.04, 0.10, 0.16),
    "extrapolation": (0.05, 0.07, 0.10),
    "normal": (0.2, 1 / 3, 0.5),
}
HARM, MOST_HARM, LEAST_COVERAGE = 0.05, 0.03, 0.88
KEYS = [key for key in OUTCOMES if SOURCES[key[0]].has_instrument and not SOURCES[key[0]].doubtful]


@dataclass(frozen=True)
class Stage:
    """One fitted outcome, in standard deviations of y: the error and the standard error of the
    uncorrected mean of the hidden, and how that mean moves with theta and with beta."""

    evidence: Evidence
    error: float
    se: float
    truth_se: float
    normal: float
    flat: float


def stage(key: tuple[str, str]) -> Stage:
    known, found = load_outcome(*key), {}

    def keep(evidence, prior):
        found["evidence"] = evidence
        return posterior(evidence, prior)

    with mock.patch.object(regressor, "posterior", keep), threadpool_limits(1):
        model = regressor.HeckmanRegressor(known.instruments)
        model.fit(known.x, known.y, groups=known.groups)
    hidden, fitted = known.x[known.hidden], model.fitted_
    x, w = model.columns_.x(hidden), model.columns_.w(hidden)
    members = fitted.outcome.predict_members(x).mean(axis=1)
    normal, flat, _, _ = fitted._shift(x, w, "unselected")
    sd = np.std([*known.y.dropna(), *known.truth], ddof=1)
    se = np.sqrt((len(members) - 1) * members.var())
    truth_se = known.truth.std(ddof=1) / np.sqrt(len(known.truth))
    numbers = members.mean() - known.truth.mean(), se, truth_se, normal.mean(), flat.mean()
    return Stage(found["evidence"], *(float(number / sd) for number in numbers))


def moves(one: Stage, spike: float, share: float, extrapolation: float, normal: float):
    """The shift of the mean: its posterior mean and its quantiles at 5 % and 95 %."""
    prior = spike_and_slab(spike, SLAB, share)
    found = posterior(one.evidence, RhoPrior(prior, prior, extrapolation, normal, ""))
    shift = np.concatenate([one.normal * found.theta, one.flat * found.beta])
    weight = np.concatenate([found.point[NORMAL], found.point[FLAT]])
    grid = np.linspace(shift.min() - 4 * one.se, shift.max() + 4 * one.se, 241)
    below = ndtr((grid[:, None] - shift) / max(one.se, 1e-6)) @ weight
    return float(weight @ shift), *np.interp((0.05, 0.95), below, grid)


def main(workers: int = 2) -> None:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        stages = list(executor.map(stage, KEYS))
        names = [name for name in GRID if name != "spike"]
        spikes = sorted({*GRID["spike"], *GRID["interval"]})
        every = list(product(spikes, *(GRID[name] for name in names[1:])))
        table = dict(zip(every, executor.map(_candidate, product([stages], every)), strict=True))
    source = np.array([key[0] for key in KEYS])
    weight = np.array([1 / np.sum(source == name) for name in source])
    error = np.array([one.error for one in stages])
    noise = 1.645 * np.array([one.truth_se for one in stages])

    def measures(point, interval, rows):
        (mean, _, _), (_, low, high) = table[point].T, table[interval].T
        off, low, high = error + mean, error + np.minimum(low, mean), error + np.maximum(high, mean)
        w = weight[rows] / weight[rows].sum()
        side = np.where(off > 0, off - low, high - off)
        return {
            "rms over naive": np.sqrt(w @ off[rows] ** 2 / (w @ error[rows] ** 2)),
            "worse": w @ (np.abs(off) > np.abs(error) + HARM)[rows],
            "covers": w @ (np.abs(off) <= np.hypot(side, noise))[rows],
            "score": w @ (high - low + 20 * np.maximum(low, 0) + 20 * np.maximum(-high, 0))[rows],
        }

    def choose(rows) -> tuple:
        points = [each for each in every if each[0] in GRID["spike"]]
        found = {each: measures(each, each, rows) for each in points}
        kind = [each for each in points if found[each]["worse"] <= MOST_HARM] or points
        point = min(kind, key=lambda each: found[each]["rms over naive"])
        intervals = [(spike, *point[1:]) for spike in GRID["interval"]]
        found = {each: measures(point, each, rows) for each in intervals}
        wide = [each for each in intervals if found[each]["covers"] >= LEAST_COVERAGE] or intervals
        return point, min(wide, key=lambda each: found[each]["score"])

    chosen = {name: choose(source != name) for name in dict.fromkeys(source)}
    for name, pair in chosen.items():
        print(
            name, *pair, {k: round(float(v), 3) for k, v in measures(*pair, source == name).items()}
        )
    print("all", *choose(source != ""))
    held_out = {
        name: {
            "point": [point[0], SLAB, point[1]],
            "interval": [interval[0], SLAB, interval[1]],
            "extrapolation": point[2],
            "normal_share": point[3],
        }
        for name, (point, interval) in chosen.items()
    }
    write_atomically(PRIORS, json.dumps(held_out, indent=1) + "\n")


def _candidate(given) -> np.ndarray:
    stages, constants = given
    return np.array([moves(one, *constants) for one in stages])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
