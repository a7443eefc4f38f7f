"""What the data says about rho, the correlation of the errors of selection and outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.diagnostics.profile_curve import ProfileCurve, profile_curve
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.rho_scan import Scan
from heckesel.report.formatting import ends, percent, significant

DRAWN = 241  # points of the curve: closer than a pixel needs
LEVEL = 0.95
SPLINES = "a sum of smooth curves (splines)"
AT_ONE = 1 - 2e-6  # where the grid of every scan ends


@dataclass(frozen=True)
class OwnRho:
    """The correlation that the predictions rest on."""

    value: float
    sentence: str


@dataclass(frozen=True)
class RhoMode:
    """drop : log-likelihood (or evidence) below the best"""

    rho: float
    sigma: float | None
    drop: float
    note: str


@dataclass(frozen=True)
class RhoCurve:
    """rho : (j,); height : (j,), 0 at the best; interval : None where there is none
    whose : of what model the curve is, where it is not the one that predicts
    """

    kind: str
    rho: tuple[float, ...]
    height: tuple[float, ...]
    modes: tuple[RhoMode, ...]
    interval: tuple[float, float] | None
    interval_kind: str
    note: str = ""
    whose: str = ""


@dataclass(frozen=True)
class RhoValues:
    """No curve: the value of each member, or the one value of a two-step fit, and what would
    give a curve."""

    rho: tuple[float, ...]
    sigma: tuple[float, ...]
    way_out: str


def own_rho(model) -> OwnRho | None:
    """None where every case has an outcome, and for networks that do not tell their rho."""
    members = np.atleast_1d(model.rho_)
    if model.identification_.verdict == NO_SELECTION or not np.isfinite(members).all():
        return None
    if isinstance(model, HeckmanRegressor):
        value = float(members[0])
        return OwnRho(value, f"This model puts ρ at {significant(value, 3)}.")
    if "modes" in model.info_:
        value, interval = float(members[0]), ends(model.info_["rho_interval"])
        return OwnRho(
            value,
            f"This model averages over ρ: its best value is {significant(value, 3)}, and 90 % of "
            f"the weight lies on values from {interval}.",
        )
    value, spread = float(members.mean()), ends((members.min(), members.max()))
    return OwnRho(
        value,
        f"This model puts ρ at {significant(value, 3)}, the mean over its {len(members)} members, "
        f"which range from {spread}."
        if len(members) > 1
        else f"This model puts ρ at {significant(value, 3)}.",
    )


def evidence_on_rho(model) -> RhoCurve | RhoValues | None:
    """None where every case has an outcome: there is no rho then."""
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
        return verdict_curve(model.identification_.profile)
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


def verdict_curve(profile: ProfileCurve) -> RhoCurve:
    """The curve that the verdict looked at: of smooth curves in place of the networks."""
    rho, height = _thinned(profile)
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
        whose=f"What follows is of another model: {SPLINES} in place of the networks, fitted to "
        f"{profile.rows:,} rows, by which the verdict was reached. method='profile' draws the "
        "curve of the networks themselves.",
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
