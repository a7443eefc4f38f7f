"""What the correction changed against a fit that takes selection for chance, and for whom."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr
from sklearn.base import clone

from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.estimators.deep_ensemble_regressor import DeepEnsembleRegressor
from heckesel.estimators.deep_heckman_regressor import WEIGHT_DECAY
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.estimators.network_options import AUTO, ON_FOLDS, judging
from heckesel.estimators.regression import read_table
from heckesel.methods import least_squares
from heckesel.metrics.regions import AGAINST_BELOW, FEWEST_POINTS, WELL_FROM, regions
from heckesel.predictive.distribution import Predictive
from heckesel.predictive.transformed import transformed
from heckesel.report.coefficient_table import Table
from heckesel.report.formatting import percent

LEVEL = 0.9
EVERYONE = "everyone"
STRIPS = 10
WORTH_A_SENTENCE = 0.05  # of all cases
LEAST_SQUARES = "least squares on the observed outcomes"
PLAIN_ENSEMBLE = "a plain ensemble of networks on the observed outcomes"
TRAINED_ALIKE = f"{PLAIN_ENSEMBLE}, with the same options"
GIVEN = "the baseline that was given"
REGIONS = {
    "against": ("seldom selected", f"under {percent(AGAINST_BELOW)}"),
    "mid": ("sometimes selected", f"from {percent(AGAINST_BELOW)} to {percent(WELL_FROM)}"),
    "well": ("mostly selected", f"of {percent(WELL_FROM)} or more"),
}


@dataclass(frozen=True)
class Naive:
    """what : how the page calls it; coefficients : by outcome term, of a linear one"""

    what: str
    predictive: Predictive
    coefficients: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Means over the cases of a group: of predictions, and of the ends of their intervals.

    doubt : the 90 % uncertainty of the change (`doubt_of_change`); NaN where there is none
    chance : (smallest, largest) estimated chance of selection in the group
    """

    name: str
    meaning: str
    cases: int
    observed: int
    chance: tuple[float, float]
    naive: float
    corrected: float
    doubt: float
    interval: tuple[float, float]

    @property
    def change(self) -> float:
        return self.corrected - self.naive

    @property
    def clear(self) -> bool:
        """Whether the change is more than its uncertainty."""
        return not abs(self.change) <= self.doubt  # without one, the change is all there is


@dataclass(frozen=True)
class Unobserved:
    """Cases without an outcome: predictions knowing x alone, and knowing that they were not
    selected as well (None where the model has no such prediction)."""

    cases: int
    naive: float
    population: float
    doubt: float
    unselected: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Comparison:
    naive: Naive
    everyone: Group
    regions: tuple[Group, ...]
    left_out: int
    strips: tuple[Group, ...]
    unobserved: Unobserved

    @property
    def largest(self) -> Group:
        """The region that changed most, of those with a share of the cases worth a sentence: one
        that clearly changed, where there is one."""
        least = WORTH_A_SENTENCE * self.everyone.cases
        candidates = [group for group in self.regions if group.cases >= least]
        candidates = [group for group in candidates if group.clear] or candidates
        return max(candidates, key=lambda group: abs(group.change), default=self.everyone)


def compare(model, table: Table, baseline=None) -> Comparison | None:
    """None where every case has an outcome, since there is nothing to correct then.

    baseline : a fitted model to compare with; None fits one
    """
    if model.identification_.verdict == NO_SELECTION or table.s.all():
        return None
    naive = naive_fit(model, table, baseline)
    corrected = model.predict_distribution(table.frame)
    interval = corrected.interval(LEVEL)  # (n, 2)
    chance = chance_of_selection(model, table)

    def group(name, meaning, rows):
        return summary(
            name,
            meaning,
            rows,
            s=table.s,
            chance=chance,
            naive=naive.predictive,
            corrected=corrected,
            interval=interval,
        )

    found = regions(chance)
    everyone = np.arange(table.n)
    order = np.argsort(chance, kind="stable")
    strips = np.array_split(order, max(1, min(STRIPS, table.n // FEWEST_POINTS)))
    return Comparison(
        naive=naive,
        everyone=group(EVERYONE, "", everyone),
        regions=tuple(group(*REGIONS[name], rows) for name, rows in found.items()),
        left_out=table.n - sum(map(len, found.values())),
        strips=tuple(group(f"{j + 1}", "", rows) for j, rows in enumerate(strips)),
        unobserved=_unobserved(model, table, naive.predictive, corrected),
    )


def chance_of_selection(model, table: Table) -> np.ndarray:
    r"""(n,) P(s = 1 | x, w) = \Phi(w'\gamma), or the distribution function of t errors there."""
    index = model.fitted_.index(model.columns_.w(table.frame))
    if has_t_errors(model):
        return stdtr(float(np.mean(model.fitted_.df)), index)
    return ndtr(index)


def has_t_errors(model) -> bool:
    """Whether the fit has t errors, asked for or chosen: it then predicts the population alone."""
    return getattr(model.fitted_, "df", None) is not None


def summary(name, meaning, rows, *, s, chance, naive, corrected, interval) -> Group:
    """rows : those of the group; s, chance : (n,); naive, corrected : of all n cases;
    interval : (n, 2) that of the corrected."""
    return Group(
        name=name,
        meaning=meaning,
        cases=len(rows),
        observed=int(s[rows].sum()),
        chance=(float(chance[rows].min()), float(chance[rows].max())),
        naive=float(naive.mean[rows].mean()),
        corrected=float(corrected.mean[rows].mean()),
        doubt=doubt_of_change(naive, corrected, rows),
        interval=_typical(interval[rows]),
    )


def doubt_of_change(naive: Predictive, corrected: Predictive, rows) -> float:
    """Half a 90 % interval of the mean change over `rows`, from the epistemic variances.

    The errors of one fit go together over cases, so that the sd of a mean is up to the mean of
    the sds; those of the two fits are taken as independent. Both make it rather too large.
    """
    sd = np.sqrt(naive.epistemic[rows] + corrected.epistemic[rows])
    return float(ndtri((1 + LEVEL) / 2) * sd.mean())


def _typical(interval: np.ndarray) -> tuple[float, float]:
    """Mean over cases of the two ends of their intervals (m, 2): that of a typical case."""
    low, high = interval.mean(axis=0)
    return float(low), float(high)


def naive_fit(model, table: Table, baseline=None) -> Naive:
    """Least squares beside a linear model, else an ensemble trained as the model was."""
    if baseline is not None:
        what = PLAIN_ENSEMBLE if isinstance(baseline, DeepEnsembleRegressor) else GIVEN
        return Naive(what, baseline.predict_distribution(table.frame), {})
    if isinstance(model, HeckmanRegressor):
        return _least_squares(model, table)
    plain = table.fitted(plain_ensemble(model, int(table.s.sum())))
    return Naive(TRAINED_ALIKE, plain.predict_distribution(table.frame), {})


def plain_ensemble(model, selected: int) -> DeepEnsembleRegressor:
    """Not fitted; with the options that `model` used on so many selected rows, its method's own
    where they were left open: else the two would differ by how they were trained."""
    known = inspect.signature(DeepEnsembleRegressor).parameters
    options = {name: value for name, value in model.get_params().items() if name in known}
    judged = judging(model, selected, needs_folds=model.method in ON_FOLDS)
    used = {name: getattr(judged, name) for name in ("folds", "n_members", "tails")}
    if model.weight_decay is None:
        used["weight_decay"] = WEIGHT_DECAY[model.method]
    elif model.weight_decay == AUTO:  # rows left out chose it
        used["weight_decay"] = model.info_["weight_decay"]
    return DeepEnsembleRegressor(**options | used)


def _least_squares(model, table: Table) -> Naive:
    twin = clone(model)
    data = read_table(
        twin, table.frame, table.y, selected=table.s, sample_weight=table.weight, linear=True
    )
    fitted = least_squares.fit(data)
    names = (*data.x_names, "Intercept")
    predictive = transformed(fitted.predict(data.x), twin.transform_)
    return Naive(LEAST_SQUARES, predictive, dict(zip(names, fitted.beta.tolist(), strict=True)))


def _unobserved(model, table, naive: Predictive, corrected: Predictive) -> Unobserved:
    rows = np.flatnonzero(~table.s)
    unselected: float | None = None
    interval: tuple[float, float] | None = None
    if not has_t_errors(model):
        known = model.predict_distribution(table.frame.iloc[rows], target="unselected")
        unselected = float(known.mean.mean())
        interval = _typical(known.interval(LEVEL))
    return Unobserved(
        cases=len(rows),
        naive=float(naive.mean[rows].mean()),
        population=float(corrected.mean[rows].mean()),
        doubt=doubt_of_change(naive, corrected, rows),
        unselected=unselected,
        interval=interval,
    )
