"""Corrected against naive predictions: how large the difference is, and for whom."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr
from sklearn.base import clone

from heckesel.diagnostics.column_problems import check_fit
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.estimators.deep_ensemble_regressor import DeepEnsembleRegressor
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.estimators.network_options import AUTO, training_plan
from heckesel.methods import fit_one, least_squares
from heckesel.metrics.regions import AGAINST_BELOW, FEWEST_POINTS, WELL_FROM, regions
from heckesel.predictive.distribution import Predictive
from heckesel.predictive.transformed import transformed
from heckesel.report.formatting import percent
from heckesel.report.report_data import ReportData
from heckesel.tables.fit_input import read_table

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

    def group(name: str, meaning: str, rows: np.ndarray) -> Group:
        return Group(
            name=name,
            meaning=meaning,
            cases=len(rows),
            observed=int(data.s[rows].sum()),
            probability=(float(probability[rows].min()), float(probability[rows].max())),
            naive=float(naive.predictive.mean[rows].mean()),
            corrected=float(corrected.mean[rows].mean()),
            uncertainty=uncertainty_of_change(naive.predictive, corrected, rows),
            interval=_mean_interval(interval[rows]),
        )

    found = regions(probability)
    order = np.argsort(probability, kind="stable")
    strips = np.array_split(order, max(1, min(STRIPS, data.n // FEWEST_POINTS)))
    unobserved, given = np.flatnonzero(~data.s), None
    if not has_t_errors(model):
        given = model.predict_distribution(data.frame.iloc[unobserved], target="unselected")
    return Comparison(
        naive=naive,
        everyone=group(EVERYONE, "", np.arange(data.n)),
        regions=tuple(group(*REGIONS[name], rows) for name, rows in found.items()),
        not_shown=data.n - sum(map(len, found.values())),
        strips=tuple(group(f"{j + 1}", "", rows) for j, rows in enumerate(strips)),
        unobserved=group("without an outcome", "", unobserved),
        unselected=None if given is None else float(given.mean.mean()),
        unselected_interval=None if given is None else _mean_interval(given.interval(LEVEL)),
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
    plan = training_plan(model, selected)
    used = model.get_params() | vars(plan)
    if plan.weight_decay == AUTO:  # chosen on held-out rows
        used["weight_decay"] = model.info_["weight_decay"]
    plain = DeepEnsembleRegressor()
    return plain.set_params(**{name: used[name] for name in plain.get_params()})


def _least_squares(model, data: ReportData) -> Naive:
    twin = clone(model)
    sample = read_table(
        twin,
        data.frame,
        data.y,
        selected=data.s,
        sample_weight=data.weight,
        groups=data.groups,
        check=check_fit,
        linear=True,
    )
    fitted = fit_one(least_squares, sample)
    names = (*sample.x_names, "Intercept")
    predictive = transformed(fitted.predict(sample.x), twin.transform_)
    return Naive(LEAST_SQUARES, predictive, dict(zip(names, fitted.beta.tolist(), strict=True)))
