"""The chapter X5: coverage and scores by regime, for auto, the two-step and the naive ensemble."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from reproduction.draws.regime_draws import ERRORS, INSTRUMENTS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, not_above, target_row
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results, Row
from reproduction.x5_regimes import AUTO, FRESH_SEEDS, METHODS, NAIVE, TWO_STEP

REGIME, SETTING = ("instrument", "errors", "rho"), ("outcome", "selection", "n")
RANGE, AT_LEAST = (0.85, 0.96), (0.85, np.inf)
WANTED = {"strong": (RANGE, 0.97), "weak": (RANGE, 0.90), "none": (AT_LEAST, 0.90)}
WHERE = {"strong": "strong instrument", "weak": "weak instrument", "none": "no instrument"}
ALLOWANCE = 2.0  # standard errors
CRPS_FACTOR = 1.02
# Of the deep ensemble's interval score, and the values of rho it is averaged over.
SCORE_FACTOR = {
    "\\|ρ\\| ≥ .5": (1.0, [rho for rho in RHOS if abs(rho) >= 0.5]),
    "ρ = 0": (1.1, [0.0]),
}


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


def targets(results: Results) -> list[TargetRow]:
    found = []
    for instrument, (bounds, share) in WANTED.items():
        says = "coverage ≥ 85 %" if bounds == AT_LEAST else "coverage 85–96 %"
        says = f"{WHERE[instrument]}: {says} in {100 * share:.0f} % of the regimes"
        for method in METHODS:
            wanted = {"low": share} if method == AUTO else {}
            covered = Requirement(well_covered(results, method, instrument), **wanted)
            found.append(target_row(says, method, covered, form=md.PERCENT))
    found.append(_near_the_best(results))
    found += [_interval_score(results, name) for name in SCORE_FACTOR]
    says = "with an instrument: CRPS over all points at most 2 % above the deep ensemble's in every"
    for method in (AUTO, TWO_STEP):
        wanted = {"low": 1.0} if method == AUTO else {}
        crps = Requirement(not_above_naive(results, method), **wanted)
        found.append(target_row(f"{says} regime", method, crps, form=md.PERCENT))
    return found


def well_covered(results: Results, method: str, instrument: str) -> np.ndarray:
    """1 for each regime whose coverage is within the bounds for this instrument, 0 for others."""
    bounds, _ = WANTED[instrument]
    found = metric_by_regime(results, method, "coverage90_against", instrument=instrument)
    return np.array([float(each.within(*bounds)) for each in found.values()])


def not_above_naive(results: Results, method: str) -> np.ndarray:
    """1 for each regime with an instrument whose CRPS over all points is at most 2 % above the
    deep ensemble's on the same draws, 0 for others."""

    def excess(own: Row, naive: Row) -> float:
        return own["crps"] - CRPS_FACTOR * naive["crps"]

    found = regimes(results, (method, NAIVE), excess)
    return np.array(
        [float(each.within(-np.inf, 0.0)) for key, each in found.items() if key[0] != "none"]
    )


def _near_the_best(results: Results) -> TargetRow:
    """The best single method is the one with the lowest mean over these regimes."""
    crps = _same_draws(results, METHODS, "crps_against", instrument="strong")
    best = min((m for m in METHODS if m != AUTO), key=lambda method: np.sum(crps[method]))
    says = "strong instrument: CRPS, selected against, within 2 % of the best single method's"
    limit = not_above(crps[AUTO], CRPS_FACTOR * crps[best], name=f"limit from {LABELS[best]}")
    return target_row(says, AUTO, limit)


def _interval_score(results: Results, part: str) -> TargetRow:
    (factor, rhos), metric = SCORE_FACTOR[part], "interval_score90_against"
    found = [
        _same_draws(results, (AUTO, NAIVE), metric, instrument="none", rho=rho) for rho in rhos
    ]
    own, naive = (np.concatenate([each[method] for each in found]) for method in (AUTO, NAIVE))
    above = "not above" if factor == 1 else f"at most {100 * (factor - 1):.0f} % above"
    says = f"no instrument, {part}: mean interval score {above} the deep ensemble's"
    return target_row(says, AUTO, not_above(own, factor * naive, name="limit"))


def _same_draws(results: Results, methods: Sequence[str], metric: str, **cell) -> dict:
    """Method -> its mean in each regime, over the draws that all of them have run."""

    def of_one(place: int) -> np.ndarray:
        found = regimes(results, methods, lambda *rows: rows[place][metric], **cell)
        return np.array([each.mean for each in found.values()])

    return {method: of_one(place) for place, method in enumerate(methods)}


def metric_by_regime(results: Results, method: str, metric: str, **cell) -> dict[tuple, Pooled]:
    """Its mean in each regime."""
    return regimes(results, (method,), lambda row: row[metric], **cell)


def _means(results: Results, method: str, metric: str, **cell) -> np.ndarray:
    return np.array(
        [each.mean for each in metric_by_regime(results, method, metric, **cell).values()]
    )


def parts(results: Results) -> dict[str, str]:
    return {"summary": _summary(results), "by_regime": _by_regime(results)}


def _summary(results: Results) -> str:
    columns = [
        md.Column("regimes within bounds", "within", md.mean_percent),
        md.Column("coverage", "coverage90_against", md.mean_percent),
        md.Column("width", "width90_against"),
        md.Column("interval score", "interval_score90_against"),
        md.Column("CRPS", "crps_against"),
        md.Column("mean of \\|bias\\|", "bias_f0_against", md.mean_absolute),
        md.Column("CRPS, all points", "crps"),
        md.Column("seconds", "seconds"),
    ]

    def find(instrument: str, method: str, metric: str) -> np.ndarray:
        if metric == "within":
            return well_covered(results, method, instrument)
        return _means(results, method, metric, instrument=instrument)

    lines = [
        ([WHERE[instrument], LABELS[method]], partial(find, instrument, method))
        for instrument, method in product(INSTRUMENTS, METHODS)
    ]
    return md.metric_table(("instrument", "method"), columns, lines)


def _by_regime(results: Results) -> str:
    shown = {
        "coverage90_against": ("coverage", md.PERCENT),
        "interval_score90_against": ("interval score", md.NUMBER),
        "crps": ("CRPS, all points", md.NUMBER),
    }
    found = {(m, metric): metric_by_regime(results, m, metric) for metric in shown for m in METHODS}
    header = [f"{name}, {LABELS[m]}" for name, _ in shown.values() for m in METHODS]
    lines = []
    for key in product(INSTRUMENTS, ERRORS, RHOS):
        numbers = [
            shown[metric][1].value(values[key].mean) if key in values else ""
            for (_, metric), values in found.items()
        ]
        lines.append([key[0], key[1], md.decimal(key[2]), *numbers])
    return md.table(["instrument", "errors", "ρ", *header], lines)
