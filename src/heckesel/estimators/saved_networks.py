"""Fitted networks as plain fields and arrays, and back: one pair of functions for each class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heckesel.deep.binary_mixture import BinaryMixture
from heckesel.deep.cells import Members
from heckesel.deep.ensemble import GaussianEnsemble, SelectionEnsemble
from heckesel.deep.last_layer import LastLayer
from heckesel.deep.nets import parameter_count
from heckesel.deep.rho_curve import Curve
from heckesel.deep.rho_mixture import Parts, RhoMixture
from heckesel.deep.rho_prior import RhoPrior
from heckesel.deep.scaling import Scaling
from heckesel.errors import DataError
from heckesel.estimators.columns import Columns
from heckesel.estimators.model_file import Damage
from heckesel.estimators.networks import BesideProbit
from heckesel.estimators.saved_fields import Fields

CURVE = ("a", "log_evidence", "v", "ridge", "doubt", "weight")


def state_of(model) -> dict:
    """What the fit left on `model`, beyond what all models have."""
    values = {name: getattr(model, name) for name in ("rho_", "sigma_") if hasattr(model, name)}
    return {"fitted": fitted_state(model.fitted_)} | values


def restore(model, state: Fields, columns: Columns) -> None:
    """Put on `model` what `state_of` took from it."""
    model.fitted_ = restored(state.inside("fitted"), columns)
    model.info_ = model.fitted_.info
    for name in ("rho_", "sigma_"):
        if state.has(name):
            setattr(model, name, state.array(name, (None,), finite=False))


def fitted_state(fitted) -> dict:
    kind = type(fitted).__name__
    if kind not in KINDS:
        raise DataError(f"a fit of kind {kind} cannot be saved; known: {', '.join(KINDS)}")
    to_fields, _ = KINDS[kind]
    return {"kind": kind} | to_fields(fitted)


def restored(state: Fields, columns: Columns):
    _, from_fields = KINDS[state.text("kind", tuple(KINDS))]
    return from_fields(state, len(columns.x_names), len(columns.w_names))


def _selection(fit: SelectionEnsemble) -> dict:
    return {
        "members": _members(fit.members),
        "scaling": _scaling(fit.scaling),
        "sigma": fit.sigma,
        "covariance": fit.covariance,
        "gamma": fit.gamma,
        "info": fit.info,
        "spread": None if fit.spread is None else _members(fit.spread),
        "df": fit.df,
        "selection": None if fit.selection is None else _members(fit.selection),
        "tail_df": fit.tail_df,
    }


def _selection_of(state: Fields, p: int, q: int) -> SelectionEnsemble:
    members = _members_of(state.inside("members"), p, outputs=(1, 2))
    k = len(members.theta)
    gamma = state.array("gamma", (None, q + 1))
    if len(gamma) not in (1, k):
        raise Damage(f"has {len(gamma)} rows of gamma for {k} members")
    spread = _members_of(state.inside("spread"), p) if state.has("spread") else None
    if spread is not None and len(spread.theta) != k:
        raise Damage(f"has {len(spread.theta)} networks of spread for {k} members")
    df = state.array("df", (k,)) if state.has("df") else None
    if df is not None and not (df > 2).all():
        raise Damage("has degrees of freedom that are not above 2")
    return SelectionEnsemble(
        members=members,
        scaling=_scaling_of(state.inside("scaling"), p, q),
        sigma=state.array("sigma", (k,), positive=True),
        covariance=state.array("covariance", (k,)),
        gamma=gamma,
        info=state.plain("info"),
        spread=spread,
        df=df,
        selection=_members_of(state.inside("selection"), q) if state.has("selection") else None,
        tail_df=_tail_df_of(state),
    )


def _gaussian(fit: GaussianEnsemble) -> dict:
    return {
        "members": _members(fit.members),
        "scaling": _scaling(fit.scaling),
        "info": fit.info,
        "level": fit.level,
        "tail_df": fit.tail_df,
    }


def _gaussian_of(state: Fields, p: int, q: int) -> GaussianEnsemble:
    return GaussianEnsemble(
        members=_members_of(state.inside("members"), p, outputs=(2,)),
        scaling=_scaling_of(state.inside("scaling"), p, q),
        info=state.plain("info"),
        level=state.number("level", positive=True),
        tail_df=_tail_df_of(state),
    )


def _tail_df_of(state: Fields) -> float | None:
    """Files that say nothing of tails have normal ones."""
    df = state.number("tail_df") if state.has("tail_df") else None
    if df is not None and df <= 2:
        raise Damage("has tails with degrees of freedom that are not above 2")
    return df


def _beside(fit: BesideProbit) -> dict:
    return {"outcome": fitted_state(fit.outcome), "gamma": fit.gamma}


def _beside_of(state: Fields, p: int, q: int) -> BesideProbit:
    inner = state.inside("outcome")
    inner.text("kind", ("GaussianEnsemble",))
    outcome = _gaussian_of(inner, p, q)
    gamma = state.array("gamma", (q + 1,)) if state.has("gamma") else None
    return BesideProbit(outcome, gamma, outcome.info)


def _mixture(fit: RhoMixture) -> dict:
    if not isinstance(fit.basis, LastLayer):
        raise DataError(f"a mixture over {type(fit.basis).__name__} cannot be saved")
    if fit.curve.prior.density is not None:
        raise DataError("a prior that is a function cannot be saved")
    return {
        "members": _members(fit.basis.members),
        "axes": fit.basis.axes,
        "scaling": _scaling(fit.scaling),
        "parts": {name: getattr(fit.parts, name) for name in Parts.__dataclass_fields__},
        "curve": {name: getattr(fit.curve, name) for name in CURVE}
        | {"prior": [fit.curve.prior.low, fit.curve.prior.high]},
        "info": fit.info,
    }


def _mixture_of(state: Fields, p: int, q: int) -> RhoMixture:
    members = _members_of(state.inside("members"), p)
    axes = state.array("axes", (None, None, None))
    k, sides, width = len(axes), axes.shape[1], axes.shape[2] + 1  # a constant beside the columns
    if not k or sides != -(-len(members.theta) // k) * members.sizes[-2]:
        raise Damage(f"has {k} x {sides} axes for {len(members.theta)} members")
    return RhoMixture(
        basis=LastLayer(members, axes),
        scaling=_scaling_of(state.inside("scaling"), p, q),
        parts=_parts_of(state.inside("parts"), k, q, width),
        curve=_curve_of(state.inside("curve"), k, q + 1 + width + 1),
        info=state.plain("info"),
    )


def _parts_of(state: Fields, k: int, q: int, width: int) -> Parts:
    model = state.array("model", (None,), dtype="int64")
    j = len(model)
    if not j or not ((model >= 0) & (model < k)).all():
        raise Damage(f"mixes models beyond the {k} it has")
    rho = state.array("rho", (j,))
    if not (abs(rho) < 1).all():
        raise Damage("has a correlation beyond one")
    return Parts(
        model=model,
        weight=state.array("weight", (j,), positive=True),
        rho=rho,
        gamma=state.array("gamma", (j, q + 1)),
        delta=state.array("delta", (j, width)),
        theta=state.array("theta", (j,), positive=True),
        spread=state.array("spread", (j, width + 1, width + 1)),
    )


def _curve_of(state: Fields, k: int, size: int) -> Curve:
    a, ends = state.array("a", (None,)), state.items("prior")
    if len(ends) != 2 or not all(type(end) is float for end in ends):
        raise Damage(f"holds {ends!r:.40} for the ends of a prior")
    if not -1 <= ends[0] < ends[1] <= 1:
        raise Damage(f"has a prior from {ends[0]:g} to {ends[1]:g}")
    return Curve(
        a=a,
        log_evidence=state.array("log_evidence", (len(a),)),
        v=state.array("v", (len(a), k, size)),
        ridge=state.array("ridge", (len(a), k, None)),
        doubt=state.array("doubt", (len(a),)),
        weight=state.array("weight", (len(a), k)),
        prior=RhoPrior(*ends),
    )


def _binary(fit: BinaryMixture) -> dict:
    return {
        "members": _members(fit.members),
        "scaling": _scaling(fit.scaling),
        "weight": fit.weight,
        "rho": fit.rho,
        "info": fit.info,
    }


def _binary_of(state: Fields, p: int, q: int) -> BinaryMixture:
    members = _members_of(state.inside("members"), p)
    weight = state.array("weight", (None,), positive=True)
    rho = state.array("rho", weight.shape, finite=False)
    plain = len(rho) == 1 and np.isnan(rho).all()
    if not len(rho) or not (plain or (np.abs(rho) < 1).all()):
        raise Damage("has a correlation that is none")
    if len(members.theta) % len(rho) or members.head.shape[1] != (0 if plain else q + 2):
        raise Damage(f"has {members.theta.shape} weights for {len(rho)} values of rho")
    return BinaryMixture(
        members, _scaling_of(state.inside("scaling"), p, q), weight, rho, state.plain("info")
    )


def _members(members) -> dict:
    return {"sizes": members.sizes, "theta": members.theta, "loss": members.loss}


def _members_of(state: Fields, inputs: int, outputs: tuple[int, ...] = (1,)) -> Members:
    sizes = state.items("sizes")
    if len(sizes) < 2 or not all(type(size) is int and size > 0 for size in sizes):
        raise Damage(f"has networks with layers {sizes!r:.40}")
    if sizes[0] != inputs or sizes[-1] not in outputs:
        raise Damage(f"has networks from {sizes[0]} to {sizes[-1]} numbers for {inputs} columns")
    theta = state.array("theta", (None, None))
    if not len(theta) or theta.shape[1] < parameter_count(sizes):
        raise Damage(f"has {theta.shape} weights for networks with layers {sizes!r:.40}")
    return Members(tuple(sizes), theta, state.array("loss", (len(theta),)))


def _scaling(scaling: Scaling) -> dict:
    return {name: getattr(scaling, name) for name in Scaling.__dataclass_fields__}


def _scaling_of(state: Fields, p: int, q: int) -> Scaling:
    return Scaling(
        x_centre=state.array("x_centre", (p,)),
        x_scale=state.array("x_scale", (p,), positive=True),
        w_centre=state.array("w_centre", (q,)),
        w_scale=state.array("w_scale", (q,), positive=True),
        y_centre=state.number("y_centre"),
        y_scale=state.number("y_scale", positive=True),
    )


# A new kind of fit is a pair of functions and a line here.
KINDS: dict[str, tuple[Callable, Callable]] = {
    "SelectionEnsemble": (_selection, _selection_of),
    "GaussianEnsemble": (_gaussian, _gaussian_of),
    "BesideProbit": (_beside, _beside_of),
    "RhoMixture": (_mixture, _mixture_of),
    "BinaryMixture": (_binary, _binary_of),
}
