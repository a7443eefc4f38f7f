"""The held-out check: the calibration of predictions for cases that a refit has not seen."""

from dataclasses import dataclass

import numpy as np

from heckesel.metrics.calibration import LEVELS, class_half_band, half_band, reliability
from heckesel.plots.calibration_curve import class_shares
from heckesel.report.formatting import percent
from heckesel.report.refits import NotChecked, Refits
from heckesel.report.report_data import ReportData

# With many cases every model leaves the band; a smaller gap does not matter in practice.
LARGEST_HARMLESS_GAP = 0.02


@dataclass(frozen=True)
class HeldOutCheck:
    """Calibration on `cases` held-out observed outcomes.

    level, share : (j,) predicted and observed shares: of outcomes below 19 predicted quantiles or,
        for classes, of the second class in tenths of the predicted probability
    low, high : (j,) the band that contains all shares of 99 of 100 correct models, whose
        predictions are known exactly. The refits' errors of all folds together nearly cancel: each
        fold is missing from the fits to all others.
    covered : share inside their 90 % interval, for classes the observed share of the second class
    error : mean |share - level|
    """

    how: str
    cases: int
    level: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    covered: float
    error: float
    classes: bool = False

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
        if self.classes:
            return (
                f"The check failed: {count}. The largest gap: the class was observed in "
                f"{percent(share, 1)} of the cases for which {percent(level, 1)} were predicted."
            )
        return (
            f"The check failed: {count}. The largest gap: {percent(share, 1)} of the outcomes lie "
            f"below a value that {percent(level)} were predicted to lie below."
        )


def check_held_out(refits: Refits | NotChecked, data: ReportData) -> HeldOutCheck | NotChecked:
    """Compare held-out observed outcomes with their predictions given selection."""
    if isinstance(refits, NotChecked):
        return refits
    if refits.predicted is None:
        return NotChecked("networks with t errors have no distribution given selection")
    if data.classes is None:
        return calibration(refits.predicted, refits.how)
    return class_calibration(data.y[refits.held_out], refits.predicted, refits.how)


def calibration(u: np.ndarray, how: str) -> HeldOutCheck:
    """Calibration from the transforms u (m,), which are uniform if the model is right."""
    covered = float(np.mean(np.abs(2 * u - 1) <= 0.9))
    return _calibration(how, len(u), LEVELS, reliability(u), half_band(len(u)), covered=covered)


def class_calibration(y: np.ndarray, probability: np.ndarray, how: str) -> HeldOutCheck:
    """Calibration of probabilities (m,) for the classes y (m,), 0 or 1."""
    level, share, count = class_shares(y, probability)
    half, covered = class_half_band(level, count), float(y.mean())
    return _calibration(how, len(y), level, share, half, covered=covered, classes=True)


def _calibration(how: str, cases: int, level, share, half_band, **rest) -> HeldOutCheck:
    low, high = (level - half_band).clip(0), (level + half_band).clip(None, 1)
    error = float(np.mean(np.abs(share - level)))
    return HeldOutCheck(how, cases, level, share, low, high, error=error, **rest)
