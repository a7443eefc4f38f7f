"""Fitted networks as plain fields and arrays, and back: one pair of functions for each class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heckesel.errors import DataError
from heckesel.estimators.network_options import BesideProbit
from heckesel.networks.ensembles.averaged import AveragedEnsemble
from heckesel.networks.ensembles.binary_mixture import BinaryMixture
from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble, SelectionEnsemble
from heckesel.networks.losses.outcome_selection import SCALARS, SHAPE
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.saving.saved_members import (
    members_from,
    members_state,
    scaling_from,
    scaling_state,
)
from heckesel.saving.saved_mixture import mixture_from, mixture_state
from heckesel.tables.columns import Columns


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
        "members": members_state(fit.members),
        "scaling": scaling_state(fit.scaling),
        "sigma": fit.sigma,
        "covariance": fit.covariance,
        "gamma": fit.gamma,
        "info": fit.info,
        "spread": None if fit.spread is None else members_state(fit.spread),
        "df": fit.df,
        "selection": None if fit.selection is None else members_state(fit.selection),
        "tail_df": fit.tail_df,
    }


def _selection_of(state: Fields, p: int, q: int) -> SelectionEnsemble:
    members = members_from(state.inside("members"), p, outputs=(1, 2))
    k = len(members.parameters)
    gamma = state.array("gamma", (None, q + 1))
    if len(gamma) not in (1, k):
        raise Damage(f"has {len(gamma)} rows of gamma for {k} members")
    spread = members_from(state.inside("spread"), p) if state.has("spread") else None
    if spread is not None and len(spread.parameters) != k:
        raise Damage(f"has {len(spread.parameters)} networks of spread for {k} members")
    df = state.array("df", (k,)) if state.has("df") else None
    if df is not None and not (df > 2).all():
        raise Damage("has degrees of freedom that are not above 2")
    return SelectionEnsemble(
        members=members,
        scaling=scaling_from(state.inside("scaling"), p, q),
        sigma=state.array("sigma", (k,), positive=True),
        covariance=state.array("covariance", (k,)),
        gamma=gamma,
        info=state.plain("info"),
        spread=spread,
        df=df,
        selection=members_from(state.inside("selection"), q) if state.has("selection") else None,
        tail_df=_tail_df_of(state),
    )


def _outcome(fit: OutcomeEnsemble) -> dict:
    return {
        "members": members_state(fit.members),
        "scaling": scaling_state(fit.scaling),
        "level": fit.level,
        "info": fit.info,
    }


def _outcome_of(state: Fields, p: int, q: int) -> OutcomeEnsemble:
    members = members_from(state.inside("members"), p, outputs=(1, 2))
    shape = len(SHAPE) if members.sizes[-1] == 2 else 0
    if members.head.shape[1] != q + 1 + len(SCALARS) + shape:
        raise Damage(f"has {members.head.shape[1]} parameters of selection for {q} columns")
    return OutcomeEnsemble(
        members=members,
        scaling=scaling_from(state.inside("scaling"), p, q),
        level=state.number("level", positive=True),
        info=state.plain("info"),
    )


def _averaged(fit: AveragedEnsemble) -> dict:
    return {
        "two_step": _selection(fit.two_step),
        "likelihood": _outcome(fit.likelihood),
        "spline": None if fit.spline is None else mixture_state(fit.spline),
        "info": fit.info,
    }


def _averaged_of(state: Fields, p: int, q: int) -> AveragedEnsemble:
    return AveragedEnsemble(
        two_step=_selection_of(state.inside("two_step"), p, q),
        likelihood=_outcome_of(state.inside("likelihood"), p, q),
        spline=mixture_from(state.inside("spline"), p, q) if state.has("spline") else None,
        info=state.plain("info"),
    )


def _gaussian(fit: GaussianEnsemble) -> dict:
    return {
        "members": members_state(fit.members),
        "scaling": scaling_state(fit.scaling),
        "info": fit.info,
        "level": fit.level,
        "tail_df": fit.tail_df,
    }


def _gaussian_of(state: Fields, p: int, q: int) -> GaussianEnsemble:
    return GaussianEnsemble(
        members=members_from(state.inside("members"), p, outputs=(2,)),
        scaling=scaling_from(state.inside("scaling"), p, q),
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


def _binary(fit: BinaryMixture) -> dict:
    return {
        "members": members_state(fit.members),
        "scaling": scaling_state(fit.scaling),
        "weight": fit.weight,
        "rho": fit.rho,
        "info": fit.info,
    }


def _binary_of(state: Fields, p: int, q: int) -> BinaryMixture:
    members = members_from(state.inside("members"), p)
    weight = state.array("weight", (None,), positive=True)
    rho = state.array("rho", weight.shape, finite=False)
    plain = len(rho) == 1 and np.isnan(rho).all()
    if not len(rho) or not (plain or (np.abs(rho) < 1).all()):
        raise Damage("has a correlation that is none")
    if len(members.parameters) % len(rho) or members.head.shape[1] != (0 if plain else q + 2):
        raise Damage(f"has {members.parameters.shape} weights for {len(rho)} values of rho")
    return BinaryMixture(
        members, scaling_from(state.inside("scaling"), p, q), weight, rho, state.plain("info")
    )


# A new kind of fit is a pair of functions and a line here.
KINDS: dict[str, tuple[Callable, Callable]] = {
    "SelectionEnsemble": (_selection, _selection_of),
    "AveragedEnsemble": (_averaged, _averaged_of),
    "GaussianEnsemble": (_gaussian, _gaussian_of),
    "BesideProbit": (_beside, _beside_of),
    "RhoMixture": (mixture_state, mixture_from),
    "BinaryMixture": (_binary, _binary_of),
}
