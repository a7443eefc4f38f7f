"""Do the predictions hold for cases the fit has not seen? Refits that leave some out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.estimators.network_options import AUTO, ON_FOLDS, judging
from heckesel.metrics.calibration import LEVELS, reliability
from heckesel.report.changes import has_t_errors
from heckesel.report.coefficient_table import Table
from heckesel.report.formatting import percent

FOLDS = 5
# Beyond this a single fold holds enough cases, and five refits would take minutes.
EVERY_FOLD_UP_TO = 50_000
MEMBERS = 2  # of a refitted ensemble without folds: the fewest that can differ
# The band holds all 19 points of this share of right models. Nine of ten for each point alone would
# fail 56 % of them, and nine of ten together one in ten: too many for a page that takes it badly.
JOINT_LEVEL = 0.99
DRAWS = 20_000  # of right models: the width of the band is then known to 1 %
# With many cases every model leaves the band; a point that is off by less misleads nobody.
TOO_SMALL_TO_MATTER = 0.02
SEED = 1307  # of the deal into folds: the same page for the same data


@dataclass(frozen=True)
class Calibration:
    """Of `cases` observed outcomes left out of the refits.

    share : (19,) of them below the predicted quantile at each of `level` (19,)
    low, high : (19,) the band that holds all shares of 99 of 100 right models
    covered : share inside their 90 % interval; error : mean |share - level|
    """

    how: str
    cases: int
    level: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    covered: float
    error: float

    @property
    def outside(self) -> int:
        """Points that lie outside the band."""
        ends = zip(self.share, self.low, self.high, strict=True)
        return sum(not low <= share <= high for share, low, high in ends)

    @property
    def worst(self) -> tuple[float, float]:
        """(level, share) of the point furthest from the diagonal."""
        points = zip(self.level, self.share, strict=True)
        return max(points, key=lambda point: abs(point[1] - point[0]))

    @property
    def passed(self) -> bool:
        level, share = self.worst
        return not self.outside or abs(share - level) < TOO_SMALL_TO_MATTER

    @property
    def sentence(self) -> str:
        """Whether the check was passed, in words."""
        points, (level, share) = len(self.level), self.worst
        if not self.outside:
            return f"The check is passed: all {points} points lie inside the band."
        verb = "lies" if self.outside == 1 else "lie"
        count = f"{self.outside} of {points} points {verb} outside the band"
        if self.passed:
            return (
                f"The check is passed: {count}, but so many cases show gaps that do not matter, "
                f"and here none is wider than {percent(abs(share - level), 1)}."
            )
        return (
            f"The check is not passed: {count}. The widest gap: {percent(share, 1)} of the "
            f"outcomes lie below a value that {percent(level)} were predicted to lie below."
        )


@dataclass(frozen=True)
class NotChecked:
    reason: str


def check_held_out(model, table: Table) -> Calibration | NotChecked:
    """Refit without each fold (a linear model) or without one (networks, of fewer members), and
    ask the distribution of y given selection for the observed outcomes left out."""
    linear = isinstance(model, HeckmanRegressor)
    if has_t_errors(model):
        return NotChecked("networks with t errors have no distribution given selection")
    twin = clone(model) if linear else smaller(model, int(table.s.sum()))
    every = linear and table.n <= EVERY_FOLD_UP_TO
    fold = deal(table.s)
    try:
        transforms = [
            _transforms(twin, table, fold == left_out) for left_out in range(FOLDS if every else 1)
        ]
    except DataError as error:
        return NotChecked(f"a refit without some of the cases could not be made: {error}")
    return calibration(np.concatenate(transforms), _how(twin, every, linear))


def smaller(model, selected: int):
    """A twin of networks with a member for each fold, or MEMBERS without folds: every method can
    be fitted so, and each member sees as large a share of the rows as those of `model`.

    selected : rows with an outcome that `model` was fitted to
    """
    judged = judging(model, selected, needs_folds=model.method in ON_FOLDS)
    most = MEMBERS if judged.folds is None else judged.folds
    twin = clone(model).set_params(
        progress=False, folds=judged.folds, n_members=min(judged.n_members, most)
    )
    if model.errors == AUTO:  # normal was chosen: t errors are not checked
        twin.set_params(errors="normal")
    return twin


def deal(s: np.ndarray) -> np.ndarray:
    """(n,) which of the folds each case is in; observed and unobserved are dealt out apart."""
    rng = np.random.default_rng(SEED)
    fold = np.empty(len(s), dtype=int)
    for rows in (np.flatnonzero(s), np.flatnonzero(~s)):
        fold[rng.permutation(rows)] = np.arange(len(rows)) % FOLDS
    return fold


def _transforms(twin, table: Table, out: np.ndarray) -> np.ndarray:
    """F(y | x, w, s = 1) of the observed cases in `out`, by a fit to all others."""
    rows = np.flatnonzero(out & table.s)
    if not len(rows):
        raise DataError("a fold holds no observed outcome; give more rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # the page says the verdict
        fitted = table.fitted(twin, np.flatnonzero(~out))
        target = "population" if table.s.all() else "selected"
        predictive = fitted.predict_distribution(table.frame.iloc[rows], target=target)
        return predictive.cdf(table.y[rows])


def calibration(u: np.ndarray, how: str) -> Calibration:
    """What the transforms u (m,) of a right model, which are uniform, say of this one."""
    share, half = reliability(u), half_band(len(u))
    return Calibration(
        how=how,
        cases=len(u),
        level=tuple(LEVELS.tolist()),
        share=tuple(share.tolist()),
        low=tuple((LEVELS - half).clip(0).tolist()),
        high=tuple((LEVELS + half).clip(None, 1).tolist()),
        covered=float(np.mean(np.abs(2 * u - 1) <= 0.9)),
        error=float(np.mean(np.abs(share - LEVELS))),
    )


def half_band(m: int) -> np.ndarray:
    r"""(19,) half the width of the band for m cases.

    The share below level p has sd :math:`\sqrt{p(1-p)/m}` under a right model. How many of these
    the furthest of 19 correlated points lies away is drawn, since for few cases at the outer
    levels it is far from normal.
    """
    sd = np.sqrt(LEVELS * (1 - LEVELS) / m)
    cells = np.full(len(LEVELS) + 1, 1 / (len(LEVELS) + 1))  # the levels cut (0, 1) evenly
    counts = np.random.default_rng(SEED).multinomial(m, cells, size=DRAWS)
    shares = counts.cumsum(axis=1)[:, :-1] / m
    furthest = np.abs((shares - LEVELS) / sd).max(axis=1)
    return np.quantile(furthest, JOINT_LEVEL) * sd


def _how(twin, every: bool, linear: bool) -> str:
    if every:
        return f"the model was refitted {FOLDS} times, each time without a fifth of the cases"
    size = "" if linear else f", as an ensemble of {twin.n_members},"
    return f"the model was refitted once{size} without a fifth of the cases"
