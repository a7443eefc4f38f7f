"""Targets of X5: coverage and scores by regime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heckesel.correction.prior import RHO, spike_and_slab
from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.rows import Results, Row
from reproduction.problems import AUTO
from reproduction.regime_draws import ERRORS, RHOS
from reproduction.x5_regimes import FRESH_SEEDS
from reproduction.x5_regimes import METHODS as RUN

OLD = "old_auto"
METHODS = (AUTO, OLD, *(method for method in RUN if method != AUTO))
REGIME, SETTING = ("instrument", "errors", "rho"), ("outcome", "selection", "n")
WITHIN, SHARE = (0.85, 0.96), 0.92
AVERAGED = (0.88, 0.95)
WHERE = {"strong": "strong instrument", "weak": "weak instrument", "none": "no instrument"}
ALLOWANCE = 2.0  # standard errors
CRPS_FACTOR, SUPPORTED = 1.05, 0.9


@dataclass(frozen=True)
class Pooled:
    """A mean over the settings of a regime and its Monte Carlo standard error."""

    mean: float
    error: float

    def within(self, low: float, high: float) -> bool:
        allowance = ALLOWANCE * self.error
        return low - allowance <= self.mean <= high + allowance


def pooled(values: Sequence[np.ndarray]) -> Pooled:
    """values : over seeds, for each setting; settings are fixed, so only seeds vary"""
    variances = [each.var(ddof=1) / len(each) if len(each) > 1 else 0.0 for each in values]
    mean = float(np.mean([each.mean() for each in values]))
    return Pooled(mean, float(np.sqrt(np.sum(variances)) / len(values)))


def regimes(
    results: Results, methods: Sequence[str], value: Callable[..., float], **cell
) -> dict[tuple, Pooled]:
    """`value(row of each method)` by regime, over the draws that all these methods have run."""
    draws: dict[tuple, dict[str, Row]] = {}
    for row in results.x5:
        wanted = row["method"] in methods and row["seed"] in FRESH_SEEDS
        if wanted and cell.items() <= row.items():
            key = tuple(row[name] for name in (*REGIME, *SETTING, "seed"))
            draws.setdefault(key, {})[row["method"]] = row
    found: dict[tuple, dict[tuple, list[float]]] = {}
    for key, rows in draws.items():
        if len(rows) == len(methods):
            regime, setting = key[: len(REGIME)], key[len(REGIME) : -1]
            number = value(*(rows[name] for name in methods))
            found.setdefault(regime, {}).setdefault(setting, []).append(number)
    return {
        regime: pooled([np.array(each) for each in settings.values()])
        for regime, settings in found.items()
    }


def targets(results: Results) -> list[md.TargetRow]:
    strong = {"instrument": "strong"}
    covered = metric_by_regime(results, AUTO, "coverage90_against", **strong).values()

    def log_crps(own: Row, old: Row) -> float:
        return np.log(own["crps_against"] / old["crps_against"])

    said = metric_by_regime(results, AUTO, "supported", **strong)
    within = np.array([float(each.within(*WITHIN)) for each in covered])
    compared = regimes(results, (AUTO, OLD), log_crps, **strong).values()
    ratios = np.exp([each.mean for each in compared])
    clear = np.array([each.mean for key, each in said.items() if abs(key[2]) >= 0.5])
    where = "strong instrument"
    coverage = f"{where}: coverage 85–96 % in {100 * SHARE:.0f} % of the regimes"
    scores = f"{where}: CRPS over that of the old auto ≤ {md.decimal(CRPS_FACTOR)}"
    verdict = f"{where}, \\|ρ\\| ≥ .5: verdict *supported* in 90 % of the draws"
    found = [
        md.seeds_row(coverage, AUTO, within, low=SHARE, form=md.PERCENT),
        md.seeds_row(scores, AUTO, ratios, high=CRPS_FACTOR),
        md.seeds_row(verdict, AUTO, clear, low=SUPPORTED, form=md.PERCENT),
    ]
    for instrument in ("weak", "none"):
        says = f"{WHERE[instrument]}: coverage averaged over the prior of ρ 88–95 %"
        covered = averaged_coverage(results, AUTO, instrument)
        found.append(md.seeds_row(says, AUTO, covered, *AVERAGED, form=md.PERCENT))
    return found


def averaged_coverage(results: Results, method: str, instrument: str) -> np.ndarray:
    """Coverage for each kind of errors, linear between the values of rho and averaged over their
    prior."""
    found = metric_by_regime(results, method, "coverage90_against", instrument=instrument)
    return np.array(
        [
            np.average(np.interp(RHO, RHOS, means), weights=spike_and_slab())
            for errors in ERRORS
            if len(means := [found[k].mean for k in sorted(found) if k[1] == errors]) == len(RHOS)
        ]
    )


def metric_by_regime(results: Results, method: str, metric: str, **cell) -> dict[tuple, Pooled]:
    """Its mean in each regime."""
    return regimes(results, (method,), lambda row: row[metric], **cell)
