"""The held-out check: refits without some cases, and the calibration of their predictions."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.estimators.network_options import AUTO, training_plan
from heckesel.metrics.calibration import LEVELS, reliability
from heckesel.report.comparison import has_t_errors
from heckesel.report.formatting import percent
from heckesel.report.report_data import ReportData

FOLDS = 5
# With more rows a single fold holds enough cases, and five refits would take minutes.
EVERY_FOLD_UP_TO = 50_000
MEMBERS = 2  # of a refitted ensemble without folds: the smallest with epistemic variance
# The band contains all 19 points of this share of correct models. A pointwise band of 90 % would
# fail 56 % of them, and a joint one of 90 % one in ten, too many for a check that changes the
# advice of the page.
JOINT_LEVEL = 0.99
DRAWS = 20_000  # of correct models: the width of the band then has an error of 1 %
# With many cases every model leaves the band; a smaller gap does not matter in practice.
LARGEST_HARMLESS_GAP = 0.02
SEED = 1307  # of the folds: the same data give the same page


@dataclass(frozen=True)
class Calibration:
    """Calibration on `cases` held-out observed outcomes.

    share : (19,) of them below the predicted quantile at each of `level` (19,)
    low, high : (19,) the band that contains all shares of 99 of 100 correct models
    covered : share inside their 90 % interval; error : mean |share - level|
    """

    how: str
    cases: int
    level: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    covered: float
    error: float

    @property
    def outside(self) -> int:
        """The number of points outside the band."""
        return int(np.sum((self.share < self.low) | (self.share > self.high)))

    @property
    def worst(self) -> tuple[float, float]:
        """(level, share) of the point furthest from the diagonal."""
        furthest = np.argmax(np.abs(self.share - self.level))
        return float(self.level[furthest]), float(self.share[furthest])

    @property
    def passed(self) -> bool:
        level, share = self.worst
        return not self.outside or abs(share - level) < LARGEST_HARMLESS_GAP

    @property
    def sentence(self) -> str:
        """The result of the check in words."""
        points, (level, share) = len(self.level), self.worst
        if not self.outside:
            return f"The check passed: all {points} points lie inside the band."
        verb = "lies" if self.outside == 1 else "lie"
        count = f"{self.outside} of {points} points {verb} outside the band"
        if self.passed:
            return (
                f"The check passed: {count}, but the largest gap is "
                f"{percent(abs(share - level), 1)}, which does not matter in practice."
            )
        return (
            f"The check failed: {count}. The largest gap: {percent(share, 1)} of the outcomes lie "
            f"below a value that {percent(level)} were predicted to lie below."
        )


@dataclass(frozen=True)
class NotChecked:
    """Why a part of the report could not be computed."""

    reason: str


def check_held_out(model, data: ReportData) -> Calibration | NotChecked:
    """Refit without each fold (linear model) or without one (networks, with fewer members), and
    compare held-out observed outcomes with their distribution given selection."""
    linear = isinstance(model, HeckmanRegressor)
    if has_t_errors(model):
        return NotChecked("networks with t errors have no distribution given selection")
    twin = clone(model) if linear else smaller(model, int(data.s.sum()))
    every = linear and data.n <= EVERY_FOLD_UP_TO
    fold = assign_folds(data.s, data.groups)
    try:
        transforms = [
            _transforms(twin, data, fold == number) for number in range(FOLDS if every else 1)
        ]
    except DataError as error:
        return NotChecked(f"the model could not be refitted without some of the cases: {error}")
    how = f"the model was refitted {FOLDS} times, each time without a fifth of the cases"
    if not every:
        size = "" if linear else f", as an ensemble of {twin.n_members},"
        how = f"the model was refitted once{size} without a fifth of the cases"
    return calibration(np.concatenate(transforms), how)


def smaller(model, selected: int):
    """An unfitted copy of networks with one member per fold, or MEMBERS without folds.

    Every method can be fitted this way, and each member sees the same share of the rows as the
    members of `model`.

    selected : rows with an outcome that `model` was fitted to
    """
    options = training_plan(model, selected)
    most = MEMBERS if options.folds is None else options.folds
    twin = clone(model).set_params(
        progress=False, folds=options.folds, n_members=min(options.n_members, most)
    )
    if model.errors == AUTO:  # it chose normal errors: t errors are not checked
        twin.set_params(errors="normal")
    return twin


def assign_folds(s: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """(n,) the fold of each case; observed and unobserved cases are split separately, or groups of
    dependent cases."""
    rng = np.random.default_rng(SEED)
    if groups is not None:
        return (rng.permutation(groups.max() + 1) % FOLDS)[groups]
    fold = np.empty(len(s), dtype=int)
    for rows in (np.flatnonzero(s), np.flatnonzero(~s)):
        fold[rng.permutation(rows)] = np.arange(len(rows)) % FOLDS
    return fold


def _transforms(twin, data: ReportData, out: np.ndarray) -> np.ndarray:
    """F(y | x, w, s = 1) of the observed cases in `out`, from a fit to all other cases."""
    rows = np.flatnonzero(out & data.s)
    if not len(rows):
        raise DataError("a fold has no observed outcome; use more rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # the page shows the verdict
        fitted = data.fitted(twin, np.flatnonzero(~out))
        target = "population" if data.s.all() else "selected"
        predictive = fitted.predict_distribution(data.frame.iloc[rows], target=target)
        return predictive.cdf(data.y[rows])


def calibration(u: np.ndarray, how: str) -> Calibration:
    """Calibration from the transforms u (m,), which are uniform if the model is right."""
    share, half = reliability(u), half_band(len(u))
    return Calibration(
        how=how,
        cases=len(u),
        level=LEVELS,
        share=share,
        low=(LEVELS - half).clip(0),
        high=(LEVELS + half).clip(None, 1),
        covered=float(np.mean(np.abs(2 * u - 1) <= 0.9)),
        error=float(np.mean(np.abs(share - LEVELS))),
    )


def half_band(m: int) -> np.ndarray:
    r"""(19,) half the width of the band for m cases.

    The share below level p has sd :math:`\sqrt{p(1-p)/m}` if the model is right. The largest of the
    19 correlated deviations, in sd, is simulated, because with few cases it is far from normal at
    the outer levels.
    """
    sd = np.sqrt(LEVELS * (1 - LEVELS) / m)
    bins = np.full(len(LEVELS) + 1, 1 / (len(LEVELS) + 1))  # the levels are evenly spaced
    counts = np.random.default_rng(SEED).multinomial(m, bins, size=DRAWS)
    shares = counts.cumsum(axis=1)[:, :-1] / m
    furthest = np.abs((shares - LEVELS) / sd).max(axis=1)
    return np.quantile(furthest, JOINT_LEVEL) * sd
