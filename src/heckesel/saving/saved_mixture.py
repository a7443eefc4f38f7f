"""Mixtures over rho as plain fields and arrays, and back: over last layers or over splines."""

from __future__ import annotations

import numpy as np

from heckesel.errors import DataError
from heckesel.methods.spline_joint import SplineBasis
from heckesel.networks.rho.last_layer import LastLayer
from heckesel.networks.rho.rho_curve import Curve
from heckesel.networks.rho.rho_mixture import MixturePoints, RhoMixture
from heckesel.networks.rho.rho_prior import RhoPrior
from heckesel.numerics.splines import DEGREE, Spline
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.saving.saved_members import (
    members_from,
    members_state,
    scaling_from,
    scaling_state,
)

# What files call them; two more have other names there: spread and doubt.
POINTS = ("model", "weight", "rho", "gamma", "delta", "theta")
CURVE = ("a", "log_evidence", "v", "ridge", "weight")
BASES = ("LastLayer", "SplineBasis")


def mixture_state(fit: RhoMixture) -> dict:
    if fit.curve.prior.density is not None:
        raise DataError("a prior that is a function cannot be saved")
    return _basis(fit.basis) | {
        "scaling": scaling_state(fit.scaling),
        "parts": {name: getattr(fit.points, name) for name in POINTS}
        | {"spread": fit.points.cholesky_factor},
        "curve": {name: getattr(fit.curve, name) for name in CURVE}
        | {
            "doubt": fit.curve.variance_factor,
            "prior": [fit.curve.prior.low, fit.curve.prior.high],
        },
        "info": fit.info,
    }


def mixture_from(state: Fields, p: int, q: int) -> RhoMixture:
    # Files that say nothing of a basis have networks.
    splines = state.has("basis") and state.text("basis", BASES) == "SplineBasis"
    basis = _splines_from(state.inside("splines"), p) if splines else _last_layer_from(state, p)
    k = 1 if isinstance(basis, SplineBasis) else len(basis.axes)
    width, ridges = basis.membership.shape
    return RhoMixture(
        basis=basis,
        scaling=scaling_from(state.inside("scaling"), p, q),
        points=_points_from(state.inside("parts"), k, q, width),
        curve=_curve_from(state.inside("curve"), k, q + 1 + width + 1, ridges),
        info=state.plain("info"),
    )


def _points_from(state: Fields, k: int, q: int, width: int) -> MixturePoints:
    model = state.array("model", (None,), dtype="int64")
    j = len(model)
    if not j or not ((model >= 0) & (model < k)).all():
        raise Damage(f"mixes models beyond the {k} it has")
    rho = state.array("rho", (j,))
    if not (abs(rho) < 1).all():
        raise Damage("has a correlation beyond one")
    return MixturePoints(
        model=model,
        weight=state.array("weight", (j,), positive=True),
        rho=rho,
        gamma=state.array("gamma", (j, q + 1)),
        delta=state.array("delta", (j, width)),
        theta=state.array("theta", (j,), positive=True),
        cholesky_factor=state.array("spread", (j, width + 1, width + 1)),
    )


def _curve_from(state: Fields, k: int, size: int, ridges: int) -> Curve:
    a, ends = state.array("a", (None,)), state.items("prior")
    if len(ends) != 2 or not all(type(end) is float for end in ends):
        raise Damage(f"holds {ends!r:.40} for the ends of a prior")
    if not -1 <= ends[0] < ends[1] <= 1:
        raise Damage(f"has a prior from {ends[0]:g} to {ends[1]:g}")
    return Curve(
        a=a,
        log_evidence=state.array("log_evidence", (len(a),)),
        v=state.array("v", (len(a), k, size)),
        ridge=state.array("ridge", (len(a), k, ridges)),
        variance_factor=state.array("doubt", (len(a),)),
        weight=state.array("weight", (len(a), k)),
        prior=RhoPrior(*ends),
    )


def _basis(basis) -> dict:
    if isinstance(basis, LastLayer):
        return {
            "basis": "LastLayer",
            "members": members_state(basis.members),
            "axes": basis.axes,
        }
    if isinstance(basis, SplineBasis):
        return {"basis": "SplineBasis", "splines": _splines(basis)}
    raise DataError(f"a mixture over {type(basis).__name__} cannot be saved")


def _last_layer_from(state: Fields, p: int) -> LastLayer:
    members = members_from(state.inside("members"), p)
    axes = state.array("axes", (None, None, None))
    k, sides = axes.shape[:2]
    if not k or sides != -(-len(members.parameters) // k) * members.sizes[-2]:
        raise Damage(f"has {k} x {sides} axes for {len(members.parameters)} members")
    return LastLayer(members, axes)


def _splines(basis: SplineBasis) -> dict:
    """Surfaces as pairs of columns, and the small spline of a column once."""
    small: list[Spline | None] = [None] * len(basis.curves)
    for i, j, one, other in basis.surfaces:
        small[i], small[j] = one, other
    return {
        "curves": [_spline(each) for each in basis.curves],
        "small": [_spline(each) for each in small],
        "pairs": np.array([surface[:2] for surface in basis.surfaces], np.int64).reshape(-1, 2),
        "membership": basis.membership,
    }


def _splines_from(state: Fields, p: int) -> SplineBasis:
    curves, small = (_each_spline(state, field, p) for field in ("curves", "small"))
    pairs = state.array("pairs", (None, 2), dtype="int64")
    if not ((pairs >= 0) & (pairs < p)).all() or (pairs[:, 0] == pairs[:, 1]).any():
        raise Damage(f"has surfaces that are no two of its {p} columns")
    surfaces = tuple((i, j, small[i], small[j]) for i, j in pairs.tolist())
    wiggles, bent = ([each.turn.shape[1] if each else 0 for each in s] for s in (curves, small))
    width = 1 + p + sum(wiggles) + sum((1 + bent[i]) * (1 + bent[j]) for i, j in pairs.tolist())
    membership = state.array("membership", (width, None))
    if not np.isin(membership, (0, 1)).all():
        raise Damage("has columns that carry a part of a ridge")
    return SplineBasis(curves, surfaces, membership)


def _spline(spline: Spline | None) -> dict | None:
    if spline is None:
        return None
    return {name: getattr(spline, name) for name in Spline.__dataclass_fields__}


def _each_spline(state: Fields, field: str, p: int) -> tuple[Spline | None, ...]:
    items = state.items(field)
    if len(items) != p:
        raise Damage(f"has {len(items)} splines for {p} columns in {field!r} of {state.name}")
    return tuple(
        None if item is None else _spline_from(Fields(item, f"{state.name}, {field} {j}"))
        for j, item in enumerate(items)
    )


def _spline_from(state: Fields) -> Spline:
    knots = state.array("knots", (None,))
    count = len(knots) - DEGREE - 1
    if count <= DEGREE or (np.diff(knots) < 0).any():
        raise Damage(f"has knots that do not ascend in {state.name}")
    first, last = knots[: DEGREE + 1], knots[count:]
    if np.ptp(first) or np.ptp(last) or not first[0] < last[0]:
        raise Damage(f"has knots whose ends are not repeated in {state.name}")
    turn = state.array("turn", (count, None))
    return Spline(knots, turn, state.array("line", (2, turn.shape[1])))
