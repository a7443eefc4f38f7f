"""The prior of rho: every choice on the sources of the truth table, leaving one source out.

`python -m reproduction.truth.calibrate` fits every outcome once, tries all constants of
`heckesel.correction.prior` on a grid, and writes

* `held_out_priors.json`: for each source the constants that the other sources choose, with which
  X6 judges the method;
* `results/x6_calibration.json`: how each constant, and the choice without each source, did.

Sources have equal weight, whatever their number of outcomes. College, mothers and sources without
an instrument do not take part. The criterion is the root mean square error of the mean of the
hidden, relative to no correction, plus the interval score relative to a constant margin, plus
penalties for harm beyond 3 % of the outcomes and coverage below 93 %, the middle of what the
protocol asks for. The choice is the mean over the best tenth of the grid.
"""

import json
import sys
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr

import heckesel as hk
from heckesel.correction.prior import RHO, spike_and_slab
from heckesel.correction.rho import FLAT, NORMAL, Evidence
from reproduction.truth.sources import OUTCOMES, SOURCES, load_outcome

SPIKE = (0.05, 0.06, 0.07, 0.08)
SLAB, SHARE = (0.3, 0.5), (0.05, 0.10, 0.15)
EXTRAPOLATION, NORMAL_SHARE = (0.05, 0.07, 0.1, 0.13), (1 / 3, 0.5, 2 / 3)
BEST = 0.1  # share of the grid whose constants are averaged
MUCH_WORSE = 0.05  # standard deviations of the outcome
PRIORS = Path(__file__).parent / "held_out_priors.json"
RESULTS = Path(__file__).parents[2] / "results" / "x6_calibration.json"


@dataclass(frozen=True)
class Fitted:
    """An outcome, in standard deviations: the error of no correction, its variance, the shift of
    the hidden mean per unit of theta and of beta, the standard error of the truth."""

    source: str
    evidence: Evidence
    error: float
    variance: float
    normal: float
    flat: float
    truth_se: float


def fit_outcome(source: str, outcome: str) -> Fitted:
    known = load_outcome(source, outcome)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hk.HeckmanRegressor(known.instruments).fit(known.x, known.y, groups=known.groups)
    hidden = known.x[known.hidden]
    x, w = model.columns_.x(hidden), model.columns_.w(hidden)
    members = model.fitted_.outcome.predict_members(x)
    normal, flat, _, _ = model.fitted_.shift(x, w, "unselected", members.mean(axis=0))
    everyone = np.concatenate([known.y[~known.hidden], known.truth])
    sd, means = everyone.std(ddof=1), members.mean(axis=1)
    return Fitted(
        source,
        model.evidence_,
        float((model.fitted_.law.inside(members.mean(axis=0)).mean() - known.truth.mean()) / sd),
        float((len(means) - 1) * means.var() / sd**2),
        float(normal.mean() / sd),
        float(flat.mean() / sd),
        float(known.truth.std(ddof=1) / np.sqrt(len(known.truth)) / sd),
    )


class Table:
    """All outcomes side by side: posteriors on the grid of rho, and what they get right."""

    def __init__(self, fits: list[Fitted]):
        self.source = np.array([each.source for each in fits])
        self.error = np.array([each.error for each in fits])
        self.variance = np.array([each.variance for each in fits])
        self.truth_se = np.array([each.truth_se for each in fits])
        self.shift = np.stack(
            [
                [each.normal * each.evidence.theta for each in fits],
                [each.flat * each.evidence.beta for each in fits],
            ]
        )  # (2, outcomes, rho)
        logs = np.stack(
            [[each.evidence.log_likelihood(k) for each in fits] for k in (NORMAL, FLAT)]
        )
        self.likelihood = np.exp(logs - logs.max(axis=(0, 2), keepdims=True))
        counts = {source: (self.source == source).sum() for source in set(self.source)}
        weight = np.array([1 / counts[source] for source in self.source])
        self.weight = weight / weight.sum()
        margin = np.array([self._margin(source) for source in self.source])
        self.margin_score = interval_score(self.error - margin, self.error + margin)

    def _margin(self, source: str) -> float:
        """The 90th percentile of the absolute naive error on the other sources."""
        others = self.source != source
        order = np.argsort(np.abs(self.error[others]))
        reached = np.cumsum(self.weight[others][order])
        at = np.searchsorted(reached, 0.9 * reached[-1])
        return np.abs(self.error[others])[order][at]

    def posterior(self, prior, extrapolation, normal_share):
        kernel = np.exp(-0.5 * ((RHO[:, None] - RHO) / extrapolation) ** 2)
        share = np.array([normal_share, 1 - normal_share])[:, None, None]
        found = share * (self.likelihood @ (kernel / kernel.sum(axis=1, keepdims=True)).T) * prior
        return found / found.sum(axis=(0, 2))[:, None]

    def quantile(self, posterior, p: float):
        sd = np.sqrt(self.variance) + 1e-6
        low, high = np.full(len(sd), -4.0), np.full(len(sd), 4.0)
        for _ in range(30):
            middle = 0.5 * (low + high)
            below = ndtr((middle[:, None] - self.shift) / sd[:, None])
            reached = np.sum(posterior * below, axis=(0, 2)) >= p
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def judge(self, move, low, high) -> dict[str, np.ndarray]:
        """One number per outcome for every measure."""
        low, high = np.minimum(low, move), np.maximum(high, move)
        error = self.error + move
        side = np.where(error > 0, move - low, high - move)
        return {
            "squared": error**2,
            "covers": np.abs(error) <= np.hypot(side, 1.645 * self.truth_se),
            "score": interval_score(self.error + low, self.error + high),
            "worse": np.abs(error) > np.abs(self.error) + MUCH_WORSE,
            "width": high - low,
        }

    def summary(self, judged, rows) -> dict[str, float]:
        weight = self.weight[rows] / self.weight[rows].sum()

        def mean(values):
            return float(weight @ values[rows])

        return {
            "rms_over_naive": float(np.sqrt(mean(judged["squared"]) / mean(self.error**2))),
            "score_over_margin": mean(judged["score"]) / mean(self.margin_score),
            "covers": mean(judged["covers"]),
            "worse": mean(judged["worse"]),
            "width": mean(judged["width"]),
        }


def interval_score(low, high):
    """Of a 90 % interval for 0."""
    return high - low + 20 * np.maximum(0, low) + 20 * np.maximum(0, -high)


def criterion(found: dict[str, float]) -> float:
    harm = 2 * max(0.0, found["worse"] - 0.03) + 2 * max(0.0, 0.93 - found["covers"])
    return found["rms_over_naive"] + found["score_over_margin"] + harm


def grid(table: Table) -> list[tuple[dict, dict]]:
    """Constants, and what they get right outcome by outcome."""
    names = ("spike", "slab", "slab_share", "extrapolation", "normal_share")
    values = product(SPIKE, SLAB, SHARE, EXTRAPOLATION, NORMAL_SHARE)
    found = [dict(zip(names, each, strict=True)) for each in values]
    return [(given, judge(table, given)) for given in found]


def judge(table: Table, given: dict[str, float]) -> dict[str, np.ndarray]:
    prior = spike_and_slab(given["spike"], given["slab"], given["slab_share"])
    posterior = table.posterior(prior, given["extrapolation"], given["normal_share"])
    move = np.sum(posterior * table.shift, axis=(0, 2))
    return table.judge(move, table.quantile(posterior, 0.05), table.quantile(posterior, 0.95))


def choice(table: Table, tried, rows) -> dict[str, float]:
    """The geometric mean of the constants over the best tenth of the grid.

    With so few sources the single best changes with each source that is left out.
    """
    found = np.array([criterion(table.summary(judged, rows)) for _, judged in tried])
    best = np.argsort(found, kind="stable")[: round(BEST * len(found))]
    constants = np.array([list(tried[at][0].values()) for at in best])
    means = np.exp(np.log(constants).mean(axis=0)).round(3).tolist()
    return dict(zip(tried[0][0], means, strict=True))


def main(workers: int = 2) -> None:
    keys = [key for key in OUTCOMES if SOURCES[key[0]].instruments and not SOURCES[key[0]].doubtful]
    fits = Parallel(n_jobs=workers, batch_size=1)(delayed(fit_outcome)(*key) for key in keys)
    table = Table(fits)
    tried = grid(table)
    everything = np.ones(len(fits), dtype=bool)
    names = sorted(set(table.source))
    chosen = {name: choice(table, tried, table.source != name) for name in names}
    PRIORS.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    judged = {name: judge(table, given) for name, given in chosen.items()}
    left_out = {
        key: np.array([judged[source][key][j] for j, source in enumerate(table.source)])
        for key in tried[0][1]
    }
    on_all = choice(table, tried, everything)
    results = {
        "outcomes": len(fits),
        "sources": len(names),
        "chosen_on_all": on_all | table.summary(judge(table, on_all), everything),
        "leaving_one_source_out": table.summary(left_out, everything),
        "grid": [given | table.summary(found, everything) for given, found in tried],
    }
    rounded = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 4))
    RESULTS.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    for name in ("chosen_on_all", "leaving_one_source_out"):
        print(name, rounded[name])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
