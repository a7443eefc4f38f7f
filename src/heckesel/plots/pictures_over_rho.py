"""Pictures over rho: the likelihood with its modes, and conclusions with their breakdown point."""

from dataclasses import replace

import numpy as np

from heckesel.diagnostics.profile_curve import ProfileCurve, profile_curve
from heckesel.diagnostics.sensitivity_curves import PLAUSIBLE, Sensitivity
from heckesel.errors import DataError
from heckesel.linear.rho_scan import Scan
from heckesel.numeric_input import check_level
from heckesel.plots.canvas import (
    BAND,
    CORRECTED,
    GRID,
    NAIVE,
    SOFT,
    axes_or_new,
    legend_above,
    tidy,
)

LOWEST = -20.0  # log-likelihood units below the best: values of rho without any support
NEAREST = 0.12  # in rho, of the numbers beside two modes


def rho_likelihood(fit, *, level: float = 0.9, ax=None):
    """Draw the log-likelihood as a function of rho, with its maxima and an interval.

    Parameters
    ----------
    fit : HeckmanFit, fitted estimator, Identification or ProfileCurve
        For a linear fit by maximum likelihood, its profile is drawn. For an estimator with
        networks, or the result of `heckesel.identify`, the curve is the one that the verdict uses.
    level : float, default=0.9
        Confidence level of the interval. The curve of a verdict has a fixed level.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If there is no likelihood over rho, as for a two-step fit.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> ax = hk.plots.rho_likelihood(hk.heckman("y ~ x", "~ x + z", frame))
    >>> ax.get_ylabel()
    'log-likelihood below its maximum'
    """
    curve = _profile_of(fit, level)
    ax = axes_or_new(ax)
    draw_over_rho(
        ax,
        curve.rho,
        curve.loglik,
        curve.modes,
        curve.interval,
        interval_label=f"{100 * curve.level:g} % interval",
    )
    tidy(ax, "ρ, correlation of the errors", "log-likelihood below its maximum")
    return ax


def _profile_of(fit, level: float) -> ProfileCurve:
    if isinstance(fit, ProfileCurve):
        return fit
    result = getattr(fit, "result_", fit)
    if isinstance(getattr(result, "scan", None), Scan):
        check_level(level)
        try:
            interval = result.interval("rho", level, method="profile")
        except DataError:  # as in groups, weighted by probability, or separated
            interval = None
        return replace(profile_curve(result.scan, level), interval=interval)
    found = getattr(fit, "identification_", fit)
    if getattr(found, "profile", None) is None:
        raise DataError(
            f"there is no likelihood over rho in this {type(fit).__name__}; a fit by maximum "
            "likelihood with normal errors (method='ml') and hk.identify have one"
        )
    return found.profile


def draw_over_rho(ax, rho, height, modes, interval, *, interval_label) -> None:
    """modes : (rho, height) of each maximum, best first; interval : None if there is none."""
    kept = np.flatnonzero(np.asarray(height) >= LOWEST)
    shown = slice(kept[0], kept[-1] + 1)  # the curve may dip below in between
    lowest = max(float(np.min(height[shown])), LOWEST)
    if interval is not None:
        ends = np.clip(interval, -1, 1)
        ax.axvspan(*ends, color=BAND, lw=0, label=interval_label)
    ax.axvline(0.0, color=SOFT, lw=1, ls=(0, (3, 3)))
    ax.plot(rho[shown], np.clip(height[shown], LOWEST, None), color=CORRECTED, lw=2)
    near = [(r, h) for r, h in modes if h >= LOWEST]
    many = "maxima" if len(near) > 1 else "maximum"
    ax.plot(*np.array(near).T, "o", color=NAIVE, mec="white", ms=7, label=many)
    written: list[float] = []
    for r, h in near:
        if all(abs(r - other) > NEAREST for other in written):
            written.append(r)
            side = "right" if r > 0.8 else "left" if r < -0.8 else "center"
            ax.annotate(
                f"{r:.2f}".replace("-", "−"),
                (r, h),
                (0, 8),
                textcoords="offset points",
                ha=side,
                bbox={"fc": "white", "ec": "none", "pad": 1, "alpha": 0.75},
            )
    ax.set(xlim=(-1.03, 1.03), ylim=(1.05 * lowest - 0.3, 0.16 * max(-lowest, 2.0)))
    legend_above(ax)


def sensitivity(curves: Sensitivity, name: str = "mean", *, threshold: float = 0.0, ax=None):
    """Draw a quantity as a function of a fixed rho, with its breakdown point.

    Parameters
    ----------
    curves : Sensitivity
        The result of `heckesel.sensitivity`.
    name : str, default="mean"
        A key of ``curves.values``: a column of the outcome equation, or "mean".
    threshold : float, default=0.0
        The value at which the conclusion changes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If `curves` is something else, or has no such quantity.

    Notes
    -----
    The breakdown point is the rho closest to 0 at which the quantity crosses the threshold. The
    thick part of the curve has a log-likelihood within 2 units of the best.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> curves = hk.sensitivity(hk.heckman("y ~ x", "~ x + z", frame))
    >>> hk.plots.sensitivity(curves, "x").get_ylabel()
    'coefficient of x'
    """
    if not isinstance(curves, Sensitivity):
        raise DataError(
            f"sensitivity() draws the result of hk.sensitivity, not a {type(curves).__name__}"
        )
    crossings, breakdown = curves.crossings(name, threshold), curves.breakdown(name, threshold)
    value = curves.values[name]
    ax = axes_or_new(ax)
    ax.plot(curves.rho, value, color=CORRECTED, lw=1.2, ls=(0, (5, 2)), label="other values of ρ")
    likely = np.where(curves.loglik > -PLAUSIBLE, value, np.nan)
    ax.plot(
        curves.rho,
        likely,
        "-o",
        color=CORRECTED,
        lw=3,
        ms=5,
        mec="white",
        label=f"within {PLAUSIBLE:g} log-likelihood units of the best",
    )
    ax.axvline(0.0, color=GRID, lw=1.2)
    if crossings:
        ax.axhline(threshold, color=SOFT, lw=1, ls=(0, (3, 3)))
        ax.plot(
            breakdown,
            threshold,
            "D",
            color=NAIVE,
            mec="white",
            ms=8,
            zorder=4,
            label=f"breakdown point, ρ = {breakdown:.2f}".replace("-", "−"),
        )
    what = "mean prediction of the population" if name == "mean" else f"coefficient of {name}"
    tidy(ax, "ρ, correlation of the errors, held fixed", what)
    ax.set_xlim(-1.03, 1.03)
    if not crossings:
        ax.plot([], [], " ", label=f"never crosses {threshold:g}")
    legend_above(ax, columns=1)
    return ax
