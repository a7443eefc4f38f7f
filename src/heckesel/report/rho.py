"""What the data says about rho, the correlation of the errors of selection and outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.classic.profile import Scan
from heckesel.diagnostics.profile import ProfileCurve, profile_curve
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError
from heckesel.estimators.fit import HeckmanFit
from heckesel.estimators.linear import HeckmanRegressor
from heckesel.report.numbers import percent

DRAWN = 241  # points of the curve: closer than a pixel needs
LEVEL = 0.95
AT_ONE = 1 - 2e-6  # where the grid of every scan ends


@dataclass(frozen=True)
class RhoMode:
    """drop : log-likelihood (or evidence) below the best"""

    rho: float
    sigma: float | None
    drop: float
    note: str


@dataclass(frozen=True)
class RhoCurve:
    """rho : (j,); height : (j,), 0 at the best; interval : None where there is none"""

    kind: str
    rho: tuple[float, ...]
    height: tuple[float, ...]
    modes: tuple[RhoMode, ...]
    interval: tuple[float, float] | None
    interval_kind: str
    note: str = ""


@dataclass(frozen=True)
class RhoValues:
    """No curve: the value of each member, or the one value of a two-step fit, and what would
    give a curve."""

    rho: tuple[float, ...]
    sigma: tuple[float, ...]
    way_out: str


def evidence_on_rho(model) -> RhoCurve | RhoValues | None:
    """None where nothing was selected: there is no rho then."""
    if model.identification_.verdict == NO_SELECTION:
        return None
    if isinstance(model, HeckmanRegressor):
        result = model.result_
        if isinstance(result, HeckmanFit) and isinstance(result.scan, Scan):
            return likelihood_curve(result)
        way_out = "Two steps give one value and no likelihood; method='ml' draws the curve."
        if result.method == "ml":
            way_out = "The curve needs the rows of the fit, and a model from a file has none."
        return RhoValues((float(result.rho),), (float(result.sigma),), way_out)
    if "curve" in model.info_:
        return evidence_curve(model.info_)
    if model.identification_.profile is not None:
        return verdict_curve(model.identification_.profile, model.rho_)
    return RhoValues(
        tuple(np.atleast_1d(model.rho_).tolist()),
        tuple(np.atleast_1d(model.sigma_).tolist()),
        "Each member settled on one value; method='profile' draws the curve over all of them.",
    )


def likelihood_curve(result) -> RhoCurve:
    """The profile log-likelihood of a fit by maximum likelihood."""
    part = result.scan.rows < result.data.n
    curve = profile_curve(result.scan, level=LEVEL)
    rho, height = _thinned(curve)
    interval = None
    try:
        interval = result.interval("rho", LEVEL, method="profile")
        kind = f"{percent(LEVEL)} profile-likelihood interval"
    except DataError as reason:
        kind = f"no interval: {reason}"
    note = ""
    if part:
        note = (
            f"The curve is that of {result.scan.rows:,} rows, stretched to all; modes and interval "
            "are of all rows."
        )
    best = result.modes[0].loglik
    return RhoCurve(
        kind="profile log-likelihood",
        rho=rho,
        height=height,
        modes=tuple(
            RhoMode(mode.rho, mode.sigma, mode.loglik - best, _of_status(mode.status))
            for mode in result.modes
        ),
        interval=interval,
        interval_kind=kind,
        note=note,
    )


def verdict_curve(profile: ProfileCurve, members) -> RhoCurve:
    """The curve that the verdict looked at: of smooth curves in place of the networks."""
    rho, height = _thinned(profile)
    low, high = np.min(members), np.max(members)
    return RhoCurve(
        kind="profile log-likelihood",
        rho=rho,
        height=height,
        modes=tuple(
            RhoMode(at, None, drop, _of_status("boundary" if abs(at) > AT_ONE else ""))
            for at, drop in profile.modes
        ),
        interval=profile.interval,
        interval_kind=f"{percent(profile.level)} profile-likelihood interval",
        note=f"The curve is the one the verdict looked at, of {profile.rows:,} rows, with a sum of "
        f"smooth curves in place of the networks, whose members put ρ between {low:.2f} and "
        f"{high:.2f}; method='profile' draws the curve of the networks themselves.",
    )


def _thinned(curve: ProfileCurve) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """rho and height at even steps of rho and at the modes."""
    ends = curve.rho[0], curve.rho[-1]
    modes = [rho for rho, _ in curve.modes if ends[0] < rho < ends[1]]
    rho = np.unique([*np.linspace(*ends, DRAWN), *modes])
    height = np.interp(rho, curve.rho, curve.loglik)
    return tuple(rho.tolist()), tuple(height.tolist())


def _of_status(status: str) -> str:
    return {"boundary": "at the boundary", "max_iterations": "not converged"}.get(status, "")


def evidence_curve(info: dict) -> RhoCurve:
    """The evidence of the profile method, averaged over its members."""
    low, high = info["rho_interval"]
    return RhoCurve(
        kind="log evidence",
        rho=tuple(info["curve"]["rho"]),
        height=tuple(info["curve"]["log_evidence"]),
        modes=tuple(
            RhoMode(
                mode["rho"],
                mode["sigma"],
                mode["log_density"],
                f"{percent(mode['weight'])} of the weight"
                + (", at the end" if mode["boundary"] else ""),
            )
            for mode in info["modes"]
        ),
        interval=(low, high),
        interval_kind="90 % posterior interval",
    )
