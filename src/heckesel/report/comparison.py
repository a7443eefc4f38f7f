"""Corrected against naive predictions: how large the difference is, and for whom."""

from dataclasses import dataclass

import numpy as np

from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.metrics.regions import AGAINST_BELOW, WELL_FROM, regions
from heckesel.plots.chance_of_selection import strips_of
from heckesel.plots.predictions_of import has_t_errors, selection_probability
from heckesel.report.formatting import percent
from heckesel.report.naive_model import Naive
from heckesel.report.refits import Refits
from heckesel.report.report_data import ReportData

LEVEL = 0.9
EVERYONE = "everyone"
SMALLEST_SHARE = 0.05  # of all cases, for a region that the headline may be about
REGIONS = {
    "against": ("seldom selected", f"below {percent(AGAINST_BELOW)}"),
    "mid": ("sometimes selected", f"from {percent(AGAINST_BELOW)} to {percent(WELL_FROM)}"),
    "well": ("mostly selected", f"of {percent(WELL_FROM)} or more"),
}


@dataclass(frozen=True)
class Group:
    """Mean predictions over the cases of a group, and the mean ends of their intervals.

    uncertainty : half a 90 % interval of the change (`Refits.uncertainty`); NaN if unknown
    probability : (smallest, largest) estimated probability of selection in the group; chance :
        its mean
    """

    name: str
    meaning: str
    cases: int
    observed: int
    probability: tuple[float, float]
    chance: float
    naive: float
    corrected: float
    uncertainty: float
    interval: tuple[float, float]

    @property
    def change(self) -> float:
        return self.corrected - self.naive

    @property
    def clear(self) -> bool:
        """Whether the change exceeds its uncertainty."""
        return abs(self.change) > self.uncertainty

    @property
    def known(self) -> bool:
        """Whether the uncertainty of the change is known."""
        return np.isfinite(self.uncertainty)


@dataclass(frozen=True)
class Comparison:
    """unobserved : the cases without an outcome; unselected, unselected_interval : their mean
    prediction given that they were not selected, and its interval; None if the model has neither
    """

    naive: Naive
    everyone: Group
    regions: tuple[Group, ...]
    not_shown: int
    strips: tuple[Group, ...]
    unobserved: Group
    unselected: float | None
    unselected_interval: tuple[float, float] | None

    @property
    def largest(self) -> Group:
        """The region with the largest change: of those with a clear one, if there are any.

        Regions with a small share of the cases do not count.
        """
        least = SMALLEST_SHARE * self.everyone.cases
        candidates = [group for group in self.regions if group.cases >= least]
        candidates = [group for group in candidates if group.clear] or candidates
        return max(candidates, key=lambda group: abs(group.change), default=self.everyone)


def nothing_to_compare(model, data: ReportData) -> bool:
    """Whether every case has an outcome, so that there is nothing to correct."""
    return bool(model.identification_.verdict == NO_SELECTION or data.s.all())


def compare(model, data: ReportData, naive: Naive, refits: Refits | None = None) -> Comparison:
    """refits : give the uncertainty of changes; None leaves it unknown"""
    corrected, interval = _predicted(model, data, data.frame, "population")
    probability = selection_probability(model, data.frame)

    def group(name: str, meaning: str, rows: np.ndarray) -> Group:
        return Group(
            name=name,
            meaning=meaning,
            cases=len(rows),
            observed=int(data.s[rows].sum()),
            probability=(float(probability[rows].min()), float(probability[rows].max())),
            chance=float(probability[rows].mean()),
            naive=float(naive.mean[rows].mean()),
            corrected=float(corrected[rows].mean()),
            uncertainty=float("nan") if refits is None else refits.uncertainty(rows, LEVEL),
            interval=_mean_interval(interval[rows]),
        )

    found, unobserved = regions(probability), np.flatnonzero(~data.s)
    given = None
    if data.classes is not None or not has_t_errors(model):
        given = _predicted(model, data, data.frame.iloc[unobserved], "unselected")
    return Comparison(
        naive=naive,
        everyone=group(EVERYONE, "", np.arange(data.n)),
        regions=tuple(group(*REGIONS[name], rows) for name, rows in found.items()),
        not_shown=data.n - sum(map(len, found.values())),
        strips=tuple(group(f"{j + 1}", "", rows) for j, rows in enumerate(strips_of(probability))),
        unobserved=group("without an outcome", "", unobserved),
        unselected=None if given is None else float(given[0].mean()),
        unselected_interval=None if given is None else _mean_interval(given[1]),
    )


def _predicted(model, data: ReportData, frame, target: str) -> tuple[np.ndarray, np.ndarray]:
    """(m,) means and (m, 2) intervals: of outcomes or, for classes, of the probability."""
    if data.classes is not None:
        interval = model.predict_proba_interval(frame, LEVEL, target)
        return model.predict_proba(frame, target)[:, 1], interval
    found = model.predict_distribution(frame, target)
    return found.mean, found.interval(LEVEL)


def _mean_interval(interval: np.ndarray) -> tuple[float, float]:
    """The mean over cases of the ends of their intervals (m, 2)."""
    low, high = interval.mean(axis=0)
    return float(low), float(high)
