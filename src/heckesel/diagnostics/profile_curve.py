"""The profile likelihood over rho as evidence: a curve, its modes, what it cannot reject."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.special import chdtri

from heckesel.errors import HeckeselError
from heckesel.linear.estimates import NEAR_BOUNDARY
from heckesel.linear.rho_scan import Scan, selected_mode

LEVEL = 0.9
STEPS = 4001  # of the interpolated curve, over |atanh rho| up to 7
STEPS_SHOWN = 20  # every twentieth is kept, to draw
# A 90 % interval that reaches this far on both sides says nothing about rho, sign included.
SAYS_NOTHING = 0.5


@dataclass(frozen=True)
class ProfileCurve:
    """log-likelihood of each rho, everything else at its best, relative to the best rho.

    rho, loglik : (j,); modes : (rho, loglik) of every local maximum, best first; interval : the
    smallest that holds every rho the likelihood does not reject at `level`; rows : of the curve
    """

    rho: np.ndarray
    loglik: np.ndarray
    modes: tuple[tuple[float, float], ...]
    interval: tuple[float, float]
    level: float
    rows: int
    selected: int = 0  # which of the modes the fit uses

    @property
    def says_nothing(self) -> bool:
        return self.interval[0] < -SAYS_NOTHING and self.interval[1] > SAYS_NOTHING

    @property
    def at_boundary(self) -> bool:
        """Whether the best rho is one, or minus one, even if the fit uses an interior one."""
        return abs(self.modes[0][0]) > NEAR_BOUNDARY

    def plot(self, axes=None):
        """The curve with its modes and interval, on matplotlib axes, which are returned."""
        axes = axes or new_axes()
        axes.axvspan(*self.interval, color="0.9", label=f"{100 * self.level:g} % interval")
        axes.plot(self.rho, self.loglik, color="#0072B2")
        for rho, height in self.modes:
            axes.plot(rho, height, "o", color="#D55E00")
            axes.annotate(f"{rho:.2f}", (rho, height), (0, 6), textcoords="offset points")
        lowest = max(float(self.loglik.min()), -20.0)
        axes.set(xlabel="rho", ylabel="log-likelihood", xlim=(-1, 1), ylim=(lowest, 2.5))
        axes.legend(loc="lower center", frameon=False)
        return axes


def new_axes():
    """matplotlib axes of a figure of their own."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise HeckeselError(
            "pictures need matplotlib, which is not installed: pip install 'heckesel[report]'"
        ) from None
    return plt.subplots(figsize=(5.5, 3.2), layout="constrained")[1]


def profile_curve(found: Scan, level: float = LEVEL, *, unit: float = 1.0) -> ProfileCurve:
    """From a scan, whose curve is stretched to all rows where it is that of a part; unit : the
    factor that makes its weights count rows.

    Between grid values the curve is the cubic with their values and slopes.
    """
    stretch = unit * found.stretch
    a, height = found.atanh_rho, found.loglik
    slope = np.array([point.slope for point in found.points])
    fine = np.linspace(a[0], a[-1], STEPS)
    curve = stretch * CubicHermiteSpline(a, height, slope)(fine)
    best = max(curve.max(), stretch * height.max())
    drop = 0.5 * float(chdtri(1, 1 - level))
    kept = fine[curve >= best - drop]
    low, high = (kept[0], kept[-1]) if len(kept) else (fine[np.argmax(curve)],) * 2
    ends = (
        -1.0 if low == fine[0] else float(np.tanh(low)),
        1.0 if high == fine[-1] else float(np.tanh(high)),
    )
    # Modes of a long table were polished on all its rows: their heights need no stretching.
    modes = tuple(
        (float(np.tanh(mode.a)), unit * float(mode.value - found.modes[0].value))
        for mode in found.modes
    )
    shown = slice(None, None, STEPS_SHOWN)
    selected = selected_mode(found.modes, unit)
    return ProfileCurve(
        np.tanh(fine[shown]), curve[shown] - best, modes, ends, level, found.rows, selected
    )


def held_out_profile(rho, loglik, rows: int, level: float = LEVEL) -> ProfileCurve:
    """From the log-likelihood of units left out at each rho of an ordered grid.

    Between grid values the curve is monotone, so that its modes are theirs. Where it has not
    fallen far enough at an end of the grid the interval reaches to rho = +-1.
    """
    a, height = np.arctanh(np.asarray(rho)), np.asarray(loglik) - np.max(loglik)
    fine = np.linspace(a[0], a[-1], STEPS // STEPS_SHOWN)
    curve = PchipInterpolator(a, height)(fine)
    kept = np.tanh(fine[curve >= -0.5 * float(chdtri(1, 1 - level))])
    low, high = (kept[0], kept[-1]) if len(kept) else (rho[np.argmax(height)],) * 2
    ends = (
        -1.0 if np.isclose(low, rho[0]) else float(low),
        1.0 if np.isclose(high, rho[-1]) else float(high),
    )
    rises = np.concatenate([[True], np.diff(height) > 0, [False]])
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:])
    modes = sorted(((float(rho[at]), float(height[at])) for at in peaks), key=lambda m: -m[1])
    return ProfileCurve(np.tanh(fine), curve, tuple(modes), ends, level, rows)
