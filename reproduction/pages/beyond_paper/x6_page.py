"""Targets of X6, and its figure: known outcomes of the unselected, predicted by every method.

docs/truth.md defines the measures: every source has the same weight.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.macros import fixed
from reproduction.pages.rows import Results
from reproduction.truth.judge import LEVEL, mean_row
from reproduction.truth.sources import OUTCOMES, SOURCES, Source
from reproduction.x6_truth import FEW_VALUES, VERDICTS

AUTO, OLD, SUPPORTED = "auto", "old auto", float(VERDICTS.index("supported by the instrument"))
PENALTY = 2 / (1 - LEVEL)  # of the interval score, for each unit that the truth lies outside
HARM, ROWS_COVERED, PIT_LIMIT, FEWEST = 0.05, (0.80, 0.97), 0.05, 5
SETS: dict[str, Callable[[Source], bool]] = {
    "development": lambda of: of.has_instrument and not of.doubtful,
    "strong": lambda of: of.strong,
    "one-sided": lambda of: of.one_sided,
    "doubtful instrument": lambda of: of.doubtful,
    "no instrument": lambda of: not of.has_instrument,
}
FOREST = {"naive": "#D55E00", "ml": "#56B4E9", "two-step": "#0072B2", AUTO: "#009E73"}
TITLES = {"naive": "naive", "ml": "maximum likelihood", "two-step": "two-step", AUTO: "heckesel"}
COUNT = md.NumberFormat("{:.0f}".format, "{:.0f}".format)


def by_source(values: pd.Series) -> float:
    """The mean over sources of the mean over their outcomes."""
    return float(values.groupby(level="source").mean().mean())


def weighted_quantile(values: pd.Series, p: float) -> float:
    """The smallest value whose share, every source with the same weight, is at least p."""
    kept = values.dropna()
    if kept.empty:
        return np.nan
    weight = 1 / kept.groupby(level="source").transform("size")
    order = np.argsort(kept.to_numpy(), kind="stable")
    share = np.cumsum(weight.to_numpy()[order])
    at = np.searchsorted(share, p * share[-1] * (1 - 1e-12))
    return float(kept.to_numpy()[order][at])


@dataclass
class Truth:
    """Metrics as frames of (source, outcome) by method."""

    rows: pd.DataFrame
    _wide: dict[str, pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Results) -> "Truth":
        places = {key: place for place, key in enumerate(OUTCOMES)}
        ordered = sorted(
            [*results.x6, *results.peers], key=lambda row: places[row["source"], row["outcome"]]
        )
        index = ["source", "outcome", "method"]
        rows = pd.DataFrame(ordered, columns=None if ordered else index).set_index(index)
        for source, outcome, _ in rows.index[rows.index.get_level_values(2) == OLD]:
            own, known = rows.loc[(source, outcome, OLD)], rows.loc[(source, outcome, "truth")]
            ends = (own["estimate"], own["low"], own["high"])
            if np.isfinite(ends).all():  # in frozen rows the other metrics have other units
                of_mean = mean_row(*ends, known["truth"], known["truth_se"], known["sd"])
                rows.loc[(source, outcome, OLD), list(of_mean)] = list(of_mean.values())
        return cls(rows)

    def wide(self, metric: str) -> pd.DataFrame:
        """NaN where a method has no such metric."""
        if metric not in self._wide:
            found = self.rows.get(metric, pd.Series(np.nan, index=self.rows.index))
            self._wide[metric] = found.unstack("method", sort=False)
        return self._wide[metric]

    def values(self, metric: str, method: str, chosen: str | None = None) -> pd.Series:
        wide = self.wide(metric)
        if method not in wide:
            return pd.Series(dtype=float, index=wide.index[:0])
        found = wide[method].dropna()
        names = found.index.get_level_values("source")
        kept = [chosen is None or SETS[chosen](SOURCES[name]) for name in names]
        return found[kept]

    def margin_scores(self) -> pd.Series:
        """Interval score of the naive mean ± the 90th percentile of |error| in other sources."""
        errors = self.values("error", "naive").abs()
        others = self.values("error", "naive", "development").abs()
        names = others.index.get_level_values("source")
        margins = {
            source: weighted_quantile(others[names != source], LEVEL)
            for source in errors.index.unique("source")
            if (names != source).any()
        }
        margin = errors.index.get_level_values("source").map(margins).to_numpy(dtype=float)
        return 2 * margin + PENALTY * np.maximum(errors - margin, 0)


def ratio(own: pd.Series, other: pd.Series, power: float = 1.0) -> float:
    """Ratio of two averages over the outcomes that both have; power 2 gives that of the rms."""
    own, other = own.align(other, join="inner")
    if not len(own):
        return np.nan
    return (by_source(own.abs() ** power) / by_source(other.abs() ** power)) ** (1 / power)


def log_ratio(own: pd.Series, other: pd.Series) -> tuple[float, float]:
    """Geometric mean and largest of the ratios."""
    own, other = own.align(other, join="inner")
    if not len(own):
        return np.nan, np.nan
    found = np.log(own / other)
    return float(np.exp(by_source(found))), float(np.exp(found.max()))


def worse(truth: Truth, method: str, chosen: str) -> pd.Series:
    """1 for each outcome whose error exceeds the naive one by more than HARM."""
    own, naive = (truth.values("error", m, chosen).abs() for m in (method, naive_of(method)))
    own, naive = own.align(naive, join="inner")
    return (own > naive + HARM).astype(float)


def naive_of(method: str) -> str:
    return "naive classifier" if method == "classifier" else "naive"


def targets(results: Results) -> list[md.TargetRow]:
    truth, dev = Truth.of(results), "development"
    own = truth.values("interval_score", AUTO, dev)
    alone = ratio(own, truth.values("interval_score", "prior", dev))
    naive = truth.values("error", "naive", "strong")
    strong = ratio(truth.values("error", AUTO, "strong"), naive, 2)
    found = [
        *_mean_targets(truth, AUTO),
        md.number_row("interval score over that of the prior alone ≤ .90", AUTO, alone, high=0.9),
        md.number_row("strong sources: rms over naive ≤ .88", AUTO, strong, high=0.88),
    ]
    for other, says, mean, most in (
        ("naive", "the same learner uncorrected", 0.99, 1.05),
        ("ensemble", "the deep ensemble", 0.85, 1.05),
    ):
        crps = log_ratio(truth.values("crps", AUTO, dev), truth.values("crps", other, dev))
        says = f"CRPS over {says} ≤ {md.decimal(mean)}, worst ≤ {md.decimal(most)}"
        found.append(md.number_row(says, AUTO, crps, high=(mean, most)))
    # 1 for each outcome whose hidden rows are distributed as `auto` says, within the limits
    covered = truth.values("rows_covered", AUTO, dev).between(*ROWS_COVERED)
    kept = pd.concat([covered, truth.values("pit_distance", AUTO, dev) <= PIT_LIMIT]).astype(float)
    says = f"hidden rows: 90 % intervals cover 80–97 % (outcomes with at most {FEW_VALUES} values: "
    says += "PIT uniform within .05) in 95 % of the outcomes"
    said = truth.values("verdict", AUTO, dev) == SUPPORTED
    said = said[said].index
    count = (len(said), len(said.unique("source"))) if len(kept) else np.nan
    covers, error = (truth.values(metric, AUTO, dev) for metric in ("covers", "error"))
    covers, error = (each[each.index.isin(said)] for each in (covers, error))
    rms = ratio(error, truth.values("error", "naive", dev), 2)
    brier = log_ratio(*(truth.values("brier", m, dev) for m in ("classifier", "naive classifier")))
    supported, mostly = "verdict *supported*:", "coverage of the mean ≥ 85 %"
    scored = "Brier score over the same learner uncorrected ≤ .99, worst ≤ 1.05"
    return [
        *found,
        md.number_row(says, AUTO, kept.mean(), low=0.95, form=md.PERCENT),
        md.number_row(f"{supported} outcomes ≥ 10, sources ≥ 4", AUTO, count, (10, 4), form=COUNT),
        md.number_row(f"{supported} {mostly}", AUTO, by_source(covers), 0.85, form=md.PERCENT),
        md.number_row(f"{supported} rms over naive ≤ .90", AUTO, rms, high=0.9),
        *_mean_targets(truth, "classifier"),
        md.number_row(scored, "classifier", brier, high=(0.99, 1.05)),
    ]


def _mean_targets(truth: Truth, method: str) -> list[md.TargetRow]:
    """The targets of the mean of the hidden, on the development sources."""
    dev = "development"
    covers, width = (truth.values(metric, method, dev) for metric in ("covers", "width"))
    error, naive = (truth.values("error", m, dev) for m in (method, naive_of(method)))
    sizes = covers.groupby(level="source").size()
    each = covers.groupby(level="source").mean()[sizes >= FEWEST]
    squares = (error**2).groupby(level="source").mean() / (naive**2).groupby(level="source").mean()
    few_off = (squares.dropna() <= 1.05**2).mean()
    score = ratio(truth.values("interval_score", method, dev), truth.margin_scores())
    harm = by_source(worse(truth, method, dev))
    median = weighted_quantile(width, 0.5)
    many = f"coverage ≥ 75 % in 90 % of the sources with {FEWEST} or more outcomes"

    rows = (
        ("coverage of the mean 88–97 %", by_source(covers), 0.88, 0.97, md.PERCENT),
        (many, (each >= 0.75).mean(), 0.9, np.inf, md.PERCENT),
        ("interval score over that of the constant margin ≤ .85", score, -np.inf, 0.85),
        ("rms over naive ≤ .88", ratio(error, naive, 2), -np.inf, 0.88),
        ("rms over naive ≤ 1.05 in 90 % of the sources", few_off, 0.9, np.inf, md.PERCENT),
        ("worse than naive by more than .05 sd in ≤ 3 %", harm, -np.inf, 0.03, md.PERCENT),
        ("median width of the interval of the mean ≤ .50 sd", median, -np.inf, 0.5),
    )
    return [md.number_row(says, method, *measured) for says, *measured in rows]


def errors_by_outcome(results: Results) -> dict:
    """Estimate and interval less the truth, in standard deviations of the outcome."""
    truth, found = Truth.of(results), []
    for key in truth.wide("truth").index:
        known = truth.rows.loc[(*key, "truth")]
        methods = {}
        for method in FOREST:
            row = truth.rows.loc[(*key, method)] if (*key, method) in truth.rows.index else {}
            ends = [row.get(name, np.nan) for name in ("estimate", "low", "high")]
            if np.isfinite(ends).all():
                methods[method] = [
                    float(fixed((end - known["truth"]) / known["sd"], 4)) for end in ends
                ]
        found.append({"source": key[0], "outcome": key[1], "methods": methods})
    return {"outcomes": found}
