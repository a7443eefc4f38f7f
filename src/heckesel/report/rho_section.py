"""The evidence on rho, the correlation of the errors of selection and outcome."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heckesel.diagnostics.profile_curve import ProfileCurve, profile_curve
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError
from heckesel.fit_info import RhoInfo
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.results.heckman_probit_fit import HeckmanProbitFit
from heckesel.linear.rho_scan import Scan
from heckesel.report.formatting import ends, percent, significant

POINTS = 241  # of the curve: more than pixels
LEVEL = 0.95
STATUS = {"boundary": "at the boundary", "max_iterations": "not converged"}
GRID_END = 1 - 2e-6  # the largest rho of every scan


@dataclass(frozen=True)
class OwnRho:
    """The rho behind the predictions."""

    value: float
    sentence: str


@dataclass(frozen=True)
class ShownMode:
    """drop : log-likelihood (or log evidence) minus that of the best mode"""

    rho: float
    sigma: float | None
    drop: float
    note: str


@dataclass(frozen=True)
class RhoCurve:
    """rho : (j,); height : (j,), 0 at the best; interval : None if there is none
    whose : the model behind the curve, if it is not the one that predicts
    """

    kind: str
    rho: np.ndarray
    height: np.ndarray
    modes: tuple[ShownMode, ...]
    interval: tuple[float, float] | None
    interval_kind: str
    note: str = ""
    whose: str = ""


@dataclass(frozen=True)
class RhoValues:
    """Estimates without a curve, one per member, and how to get a curve."""

    rho: tuple[float, ...]
    sigma: tuple[float, ...]
    way_out: str


def own_rho(model) -> OwnRho | None:
    """None if every case has an outcome, or if the networks do not estimate rho."""
    members = np.atleast_1d(model.rho_)
    if model.identification_.verdict == NO_SELECTION or not np.isfinite(members).all():
        return None
    if hasattr(model, "classes_") and not hasattr(model, "result_"):
        return OwnRho(
            float(members[0]),
            f"This model averages over ρ. The held-out likelihood is highest at "
            f"{significant(float(members[0]), 3)}.",
        )
    info: Any = getattr(model.fitted_, "info", None)  # a linear classifier has none
    best = isinstance(info, RhoInfo)
    if best or len(getattr(info, "candidates", ())) > 1:
        value = float(members[0] if best else np.average(members, weights=info.weight))
        return OwnRho(
            value,
            f"This model averages over ρ. The {'best value' if best else 'mean'} is "
            f"{significant(value, 3)}, and 90 % of the weight lies between "
            f"{ends(info.rho_interval).replace(' to ', ' and ')}.",
        )
    value = float(members.mean())
    sentence = f"This model estimates ρ as {significant(value, 3)}"
    if len(members) > 1:
        interval = ends((members.min(), members.max()))
        sentence += f", the mean of its {len(members)} members, which range from {interval}"
    return OwnRho(value, f"{sentence}.")


def evidence_on_rho(model) -> RhoCurve | RhoValues | None:
    """None if every case has an outcome, because there is no rho."""
    if model.identification_.verdict == NO_SELECTION:
        return None
    if hasattr(model, "result_"):
        result = model.result_
        if isinstance(result, HeckmanFit | HeckmanProbitFit) and isinstance(result.scan, Scan):
            return likelihood_curve(result)
        way_out = "The two-step method has no likelihood; method='ml' draws the curve."
        if isinstance(result, HeckmanFit) and result.method == "ml":
            way_out = "method='ml' with normal errors and a constant σ draws a curve over ρ."
        elif result.method == "ml":
            way_out = "The curve needs the rows of the fit, which a saved model does not contain."
        return RhoValues((float(result.rho),), (float(result.sigma),), way_out)
    if hasattr(model, "classes_"):
        found = model.identification_.profile
        return None if found is None else verdict_curve(found, "held-out log-likelihood")
    if isinstance(model.fitted_.info, RhoInfo):
        return evidence_curve(model.fitted_.info)
    found = model.identification_.profile
    if found is not None:  # of a spline model in place of the networks
        whose = (
            "The curve below is that of the model behind the verdict, a sum of splines in place "
            f"of the networks, fitted to {found.rows:,} rows. method='profile' draws the curve of "
            "the networks themselves."
        )
        return verdict_curve(found, "profile log-likelihood", whose)
    return RhoValues(
        tuple(np.atleast_1d(model.rho_).tolist()),
        tuple(np.atleast_1d(model.sigma_).tolist()),
        "Each member has one estimate; method='profile' draws the curve over all values.",
    )


def likelihood_curve(result) -> RhoCurve:
    """The profile log-likelihood of a maximum likelihood fit."""
    curve = profile_curve(result.scan, level=LEVEL)
    interval = None
    try:
        interval = result.interval("rho", LEVEL, method="profile")
        kind = f"{percent(LEVEL)} profile-likelihood interval"
    except DataError as reason:
        kind = f"no interval: {reason}"
    note = ""
    if result.scan.rows < result.data.n:
        note = (
            f"The curve uses {result.scan.rows:,} rows and is scaled up to all rows; the modes and "
            "the interval use all rows."
        )
    best = result.modes[0].loglik
    return RhoCurve(
        "profile log-likelihood",
        *_on_grid(curve),
        modes=tuple(
            ShownMode(
                mode.rho,
                getattr(mode, "sigma", None),
                mode.loglik - best,
                STATUS.get(mode.status, ""),
            )
            for mode in result.modes
        ),
        interval=interval,
        interval_kind=kind,
        note=note,
    )


def verdict_curve(profile: ProfileCurve, kind: str, whose: str = "") -> RhoCurve:
    """The curve behind the verdict."""
    return RhoCurve(
        kind,
        *_on_grid(profile),
        modes=tuple(
            ShownMode(at, None, drop, STATUS["boundary"] if abs(at) > GRID_END else "")
            for at, drop in profile.modes
        ),
        interval=profile.interval,
        interval_kind=f"{percent(profile.level)} profile-likelihood interval",
        whose=whose,
    )


def _on_grid(curve: ProfileCurve) -> tuple[np.ndarray, np.ndarray]:
    """rho and height on an even grid and at the modes."""
    ends = curve.rho[0], curve.rho[-1]
    modes = [rho for rho, _ in curve.modes if ends[0] < rho < ends[1]]
    rho = np.unique([*np.linspace(*ends, POINTS), *modes])
    return rho, np.interp(rho, curve.rho, curve.loglik)


def evidence_curve(info: RhoInfo) -> RhoCurve:
    """The evidence of the profile method, averaged over its members."""
    low, high = info.rho_interval
    return RhoCurve(
        kind="log evidence",
        rho=np.array(info.curve["rho"]),
        height=np.array(info.curve["log_evidence"]),
        modes=tuple(
            ShownMode(
                mode.rho,
                mode.sigma,
                mode.log_density,
                f"{percent(mode.weight)} of the weight"
                + (", at the boundary" if mode.boundary else ""),
            )
            for mode in info.modes
        ),
        interval=(low, high),
        interval_kind="90 % posterior interval",
    )
