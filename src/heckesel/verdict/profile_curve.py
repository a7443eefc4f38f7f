"""The profile likelihood over rho: a curve, its modes, and an interval."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import chdtri

from heckesel.classical.ml import NEAR_BOUNDARY, Scan, selected_mode
from heckesel.verdict.identify import RIVAL

LEVEL = 0.9
STEPS = 4001  # of the interpolated curve, over |atanh rho| up to 7
STEPS_SHOWN = 20  # every twentieth is kept for plots


@dataclass(frozen=True)
class ProfileCurve:
    """Profile log-likelihood over rho, relative to its maximum.

    At each rho all other parameters are at their best values.

    Attributes
    ----------
    rho : ndarray of shape (j,)
        Increasing values of rho.
    loglik : ndarray of shape (j,)
        Log-likelihood at each rho minus its maximum.
    modes : tuple of (rho, loglik)
        Every local maximum, best first.
    interval : tuple of float
        The smallest interval that contains every rho that a likelihood-ratio test at `level` does
        not reject.
    level : float
        Confidence level of `interval`.
    rows : int
        Number of rows the likelihood was computed on.
    selected : int
        Position in `modes` of the mode that the fit uses.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> from heckesel.verdict.profile_curve import profile_curve
    >>> profile = profile_curve(hk.heckman("y ~ x", "~ x + z", frame).scan)
    >>> low, high = profile.interval
    >>> bool(low < profile.modes[0][0] < high)
    True
    """

    rho: np.ndarray
    loglik: np.ndarray
    modes: tuple[tuple[float, float], ...]
    interval: tuple[float, float]
    level: float
    rows: int
    selected: int = 0

    @property
    def at_boundary(self) -> bool:
        """Whether the best rho is close to 1 or -1, even if the fit uses an interior one."""
        return abs(self.modes[0][0]) > NEAR_BOUNDARY

    def as_evidence(self) -> dict:
        """Return what a verdict needs to know of the curve."""
        rho, height = self.modes[self.selected]
        return {
            "rho": rho,
            "rho_low": self.interval[0],
            "rho_high": self.interval[1],
            "rho_level": self.level,
            "modes": [{"rho": at, "loglik": value} for at, value in self.modes],
            "near_modes": sum(value > height - RIVAL for _, value in self.modes),
            "at_boundary": self.at_boundary,
            "rows_profiled": self.rows,
        }


def profile_curve(found: Scan, level: float = LEVEL, *, unit: float = 1.0) -> ProfileCurve:
    """The curve of a scan. A scan of some of the rows is scaled up to all of them.

    Between grid values the curve is the cubic with their values and slopes.

    unit : the factor that turns the weights into a number of rows
    """
    stretch = unit * found.stretch
    a, height = found.atanh_rho, found.loglik
    slope = np.array([point.slope for point in found.points])
    fine = np.linspace(a[0], a[-1], STEPS)
    curve = stretch * CubicHermiteSpline(a, height, slope)(fine)
    best = max(curve.max(), stretch * height.max())
    ends = _not_rejected(fine, curve, best - _allowed_drop(level))
    # With many rows the modes were refined on all of them, so their heights need no scaling.
    modes = tuple(
        (float(np.tanh(mode.a)), unit * float(mode.value - found.modes[0].value))
        for mode in found.modes
    )
    shown = slice(None, None, STEPS_SHOWN)
    selected = selected_mode(found.modes, unit)
    return ProfileCurve(
        np.tanh(fine[shown]), curve[shown] - best, modes, ends, level, found.rows, selected
    )


def _allowed_drop(level: float) -> float:
    """The largest drop of the log-likelihood that a test at `level` does not reject."""
    return 0.5 * float(chdtri(1, 1 - level))


def _not_rejected(atanh_rho, height, lowest: float) -> tuple[float, float]:
    """The first and the last rho with a height of at least `lowest`.

    If that is an end of the grid, the interval extends to rho = +-1.
    """
    kept = atanh_rho[height >= lowest]
    low, high = (kept[0], kept[-1]) if len(kept) else (atanh_rho[np.argmax(height)],) * 2
    return (
        -1.0 if low == atanh_rho[0] else float(np.tanh(low)),
        1.0 if high == atanh_rho[-1] else float(np.tanh(high)),
    )
