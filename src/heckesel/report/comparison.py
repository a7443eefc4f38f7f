"""Corrected against naive predictions: how large the difference is, and for whom."""

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
from heckesel.report.formatting import percent
from heckesel.report.report_data import ReportData

LEVEL = 0.9
EVERYONE = "everyone"
STRIPS = 10
SMALLEST_SHARE = 0.05  # of all cases, for a region that the headline may be about
LEAST_SQUARES = "least squares on the observed outcomes"
PLAIN_ENSEMBLE = "a plain ensemble of networks on the observed outcomes"
TRAINED_ALIKE = f"{PLAIN_ENSEMBLE}, with the same options"
GIVEN = "the baseline model you gave"
REGIONS = {
    "against": ("seldom selected", f"below {percent(AGAINST_BELOW)}"),
    "mid": ("sometimes selected", f"from {percent(AGAINST_BELOW)} to {percent(WELL_FROM)}"),
    "well": ("mostly selected", f"of {percent(WELL_FROM)} or more"),
}


@dataclass(frozen=True)
class Naive:
    """what : its name on the page; coefficients : by outcome term, if it is linear"""

    what: str
    predictive: Predictive
    coefficients: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Mean predictions over the cases of a group, and the mean ends of their intervals.

    uncertainty : half a 90 % interval of the change (`uncertainty_of_change`); NaN if unknown
    probability : (smallest, largest) estimated probability of selection in the group
    """

    name: str
    meaning: str
    cases: int
    observed: int
    probability: tuple[float, float]
    naive: float
    corrected: float
    uncertainty: float
    interval: tuple[float, float]

    @property
    def change(self) -> float:
        return self.corrected - self.naive

    @property
    def clear(self) -> bool:
        """Whether the change exceeds its uncertainty, or the uncertainty is unknown."""
        return not abs(self.change) <= self.uncertainty


@dataclass(frozen=True)
class Unobserved:
    """Cases without an outcome: mean predictions given x, and given that they were not selected.

    unselected, interval : None if the model has no such prediction
    """

    cases: int
    naive: float
    population: float
    uncertainty: float
    unselected: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Comparison:
    naive: Naive
    everyone: Group
    regions: tuple[Group, ...]
    not_shown: int
    strips: tuple[Group, ...]
    unobserved: Unobserved

    @property
    def largest(self) -> Group:
        """The region with the largest change: of those with a clear one, if there are any.

        Regions with a small share of the cases do not count.
        """
        least = SMALLEST_SHARE * self.everyone.cases
        candidates = [group for group in self.regions if group.cases >= least]
        candidates = [group for group in candidates if group.clear] or candidates
        return max(candidates, key=lambda group: abs(group.change), default=self.everyone)


def compare(model, data: ReportData, baseline=None) -> Comparison | None:
    """None if every case has an outcome, because there is nothing to correct.

    baseline : a fitted model to compare with; None fits one
    """
    if model.identification_.verdict == NO_SELECTION or data.s.all():
        return None
    naive = naive_fit(model, data, baseline)
    corrected = model.predict_distribution(data.frame)
    interval = corrected.interval(LEVEL)  # (n, 2)
    probability = selection_probability(model, data)

    def group(name, meaning, rows):
        return summarise(
            name,
            meaning,
            rows,
            s=data.s,
            probability=probability,
            naive=naive.predictive,
            corrected=corrected,
            interval=interval,
        )

    found = regions(probability)
    everyone = np.arange(data.n)
    order = np.argsort(probability, kind="stable")
    strips = np.array_split(order, max(1, min(STRIPS, data.n // FEWEST_POINTS)))
    return Comparison(
        naive=naive,
        everyone=group(EVERYONE, "", everyone),
        regions=tuple(group(*REGIONS[name], rows) for name, rows in found.items()),
        not_shown=data.n - sum(map(len, found.values())),
        strips=tuple(group(f"{j + 1}", "", rows) for j, rows in enumerate(strips)),
        unobserved=_unobserved(model, data, naive.predictive, corrected),
    )


def selection_probability(model, data: ReportData) -> np.ndarray:
    r"""(n,) P(s = 1 | x, w) = \Phi(w'\gamma), or the t distribution function with t errors."""
    index = model.fitted_.index(model.columns_.w(data.frame))
    if has_t_errors(model):
        return stdtr(float(np.mean(model.fitted_.df)), index)
    return ndtr(index)


def has_t_errors(model) -> bool:
    """Whether the fit has t errors; if so, it predicts the population only."""
    return getattr(model.fitted_, "df", None) is not None


def summarise(name, meaning, rows, *, s, probability, naive, corrected, interval) -> Group:
    """rows : of the group; s, probability : (n,); naive, corrected : of all n cases;
    interval : (n, 2) of the corrected predictive"""
    return Group(
        name=name,
        meaning=meaning,
        cases=len(rows),
        observed=int(s[rows].sum()),
        probability=(float(probability[rows].min()), float(probability[rows].max())),
        naive=float(naive.mean[rows].mean()),
        corrected=float(corrected.mean[rows].mean()),
        uncertainty=uncertainty_of_change(naive, corrected, rows),
        interval=_mean_interval(interval[rows]),
    )


def uncertainty_of_change(naive: Predictive, corrected: Predictive, rows) -> float:
    """Half a 90 % interval of the mean change over `rows`, from the epistemic variances.

    The errors of one fit are correlated across cases, so the sd of a mean is at most the mean of
    the sds. The two fits are taken as independent. Both make the interval conservative.
    """
    sd = np.sqrt(naive.epistemic[rows] + corrected.epistemic[rows])
    return float(ndtri((1 + LEVEL) / 2) * sd.mean())


def _mean_interval(interval: np.ndarray) -> tuple[float, float]:
    """The mean over cases of the ends of their intervals (m, 2)."""
    low, high = interval.mean(axis=0)
    return float(low), float(high)


def naive_fit(model, data: ReportData, baseline=None) -> Naive:
    """Least squares for a linear model, otherwise an ensemble with the options of the model."""
    if baseline is not None:
        what = PLAIN_ENSEMBLE if isinstance(baseline, DeepEnsembleRegressor) else GIVEN
        return Naive(what, baseline.predict_distribution(data.frame), {})
    if isinstance(model, HeckmanRegressor):
        return _least_squares(model, data)
    plain = data.fitted(plain_ensemble(model, int(data.s.sum())))
    return Naive(TRAINED_ALIKE, plain.predict_distribution(data.frame), {})


def plain_ensemble(model, selected: int) -> DeepEnsembleRegressor:
    """An unfitted ensemble with the options that `model` used on so many selected rows.

    Options that were not given take the defaults of the model's method. Otherwise the two would
    differ in how they were trained.
    """
    known = inspect.signature(DeepEnsembleRegressor).parameters
    options = {name: value for name, value in model.get_params().items() if name in known}
    options_used = judging(model, selected, needs_folds=model.method in ON_FOLDS)
    used = {name: getattr(options_used, name) for name in ("folds", "n_members", "tails")}
    if model.weight_decay is None:
        used["weight_decay"] = WEIGHT_DECAY[model.method]
    elif model.weight_decay == AUTO:  # chosen on held-out rows
        used["weight_decay"] = model.info_["weight_decay"]
    return DeepEnsembleRegressor(**options | used)


def _least_squares(model, data: ReportData) -> Naive:
    twin = clone(model)
    sample = read_table(
        twin, data.frame, data.y, selected=data.s, sample_weight=data.weight, linear=True
    )
    fitted = least_squares.fit(sample)
    names = (*sample.x_names, "Intercept")
    predictive = transformed(fitted.predict(sample.x), twin.transform_)
    return Naive(LEAST_SQUARES, predictive, dict(zip(names, fitted.beta.tolist(), strict=True)))


def _unobserved(model, data, naive: Predictive, corrected: Predictive) -> Unobserved:
    rows = np.flatnonzero(~data.s)
    unselected: float | None = None
    interval: tuple[float, float] | None = None
    if not has_t_errors(model):
        known = model.predict_distribution(data.frame.iloc[rows], target="unselected")
        unselected = float(known.mean.mean())
        interval = _mean_interval(known.interval(LEVEL))
    return Unobserved(
        cases=len(rows),
        naive=float(naive.mean[rows].mean()),
        population=float(corrected.mean[rows].mean()),
        uncertainty=uncertainty_of_change(naive, corrected, rows),
        unselected=unselected,
        interval=interval,
    )
