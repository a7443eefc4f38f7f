"""The layouts of fitted networks and of splines: the fields that a file holds for each class."""

from itertools import pairwise

import numpy as np

from heckesel.errors import DataError
from heckesel.fit_info import as_dictionary
from heckesel.methods import METHODS
from heckesel.saving import mixture_layouts
from heckesel.saving.codec import SPECIAL, Sizes, Special, array, as_fields, layout_of
from heckesel.saving.model_file import Damage, imported
from heckesel.saving.saved_fields import Fields
from heckesel.tables.columns import Columns

# Kinds of whole fits that METHODS does not name.
WHOLE = {
    "BesideProbit": "heckesel.methods.parts.beside_probit",
    "BinaryMixture": "heckesel.methods.binary_networks",
    "FormEnsemble": "heckesel.networks.ensembles.form_ensemble",
}


def state_of(model) -> dict:
    """The attributes that the fit set on `model`, other than those of all models."""
    values = {name: getattr(model, name) for name in ("rho_", "sigma_") if hasattr(model, name)}
    return {"fitted": fitted_state(model.fitted_)} | values


def restore(model, state: Fields, columns: Columns, *kinds: str) -> None:
    """Set the attributes of `model` that `state_of` returned; kinds : of fits, by default any."""
    model.fitted_ = restored(state.inside("fitted"), columns, *kinds)
    model.info_ = as_dictionary(model.fitted_.info)
    for name in ("rho_", "sigma_"):
        if state.has(name):
            setattr(model, name, state.array(name, (None,), finite=False))


def fitted_state(fitted) -> dict:
    kind = type(fitted).__name__
    if kind not in known_kinds():
        raise DataError(f"a fit of kind {kind} cannot be saved; known: {', '.join(known_kinds())}")
    return {"kind": kind} | as_fields(fitted)


def restored(state: Fields, columns: Columns, *kinds: str):
    known = known_kinds()
    kind = state.text("kind", kinds or tuple(known))
    sizes = {"p": len(columns.x_names), "q": len(columns.w_names)}
    return layout_of(getattr(imported(known[kind]), kind)).read(state, sizes)


def known_kinds() -> dict[str, str]:
    """Names of the kinds of fits in files -> the module with their class."""
    of_methods = {
        method.fitted: method.module or f"heckesel.methods.{name}"
        for name, method in METHODS.items()
        if method.fitted
    }
    return of_methods | WHOLE


def _layers(state: Fields, name: str, sizes: Sizes) -> tuple[int, ...]:
    found = state.items(name)
    if len(found) < 2 or not all(type(size) is int and size > 0 for size in found):
        raise Damage(f"has networks with layers {found!r:.40}")
    sizes["least weights"] = sum((low + 1) * high for low, high in pairwise(found))
    return tuple(found)


def _weights(state: Fields, name: str, sizes: Sizes) -> np.ndarray:
    found = array("k", "weights")(state, name, sizes)
    if not len(found) or found.shape[1] < sizes["least weights"]:
        raise Damage(f"has too few weights for its networks: {found.shape}")
    return found


def _check_selection(fit, sizes: Sizes) -> None:
    k = len(fit.members.loss)
    if len(fit.sigma) != k or len(fit.gamma) not in (1, k):
        raise Damage(f"has {len(fit.sigma)} sigmas and {len(fit.gamma)} indices for {k} members")
    if fit.noise_networks is not None and len(fit.noise_networks.loss) != k:
        raise Damage(f"has {len(fit.noise_networks.loss)} networks of sigma for {k} members")


def _check_outcome(fit, sizes: Sizes) -> None:
    from heckesel.networks.losses.outcome_selection import SCALARS, SHAPE

    shape = len(SHAPE) if fit.members.sizes[-1] == 2 else 0
    if fit.members.head.shape[1] != sizes["q"] + 1 + len(SCALARS) + shape:
        raise Damage(f"has {fit.members.head.shape[1]} parameters of selection")


def _check_binary(fit, sizes: Sizes) -> None:
    alone = len(fit.rho) == 1 and np.isnan(fit.rho).all()
    if not len(fit.rho) or not (alone or (np.abs(fit.rho) < 1).all()):
        raise Damage("has a correlation outside (-1, 1)")
    head = fit.members.head.shape[1]
    if len(fit.members.loss) % len(fit.rho) or head != (0 if alone else sizes["q"] + 2):
        raise Damage(f"has {len(fit.members.loss)} networks for {len(fit.rho)} values of rho")


def _outcome_beside(state: Fields, name: str, sizes: Sizes):
    from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble

    inner = state.inside(name)
    inner.text("kind", ("GaussianEnsemble",))
    return layout_of(GaussianEnsemble).read(inner, sizes)


SPECIAL |= mixture_layouts.LAYOUTS
SPECIAL |= {
    "DataScale": Special({"x_centre": array("p"), "x_scale": array("p", positive=True)}),
    "Members": Special({"sizes": _layers, "parameters": _weights}, {"parameters": "theta"}),
    "SelectionEnsemble": Special(names={"noise_networks": "spread"}, check=_check_selection),
    "OutcomeEnsemble": Special(check=_check_outcome),
    "BesideProbit": Special(
        {"outcome": _outcome_beside},
        split=lambda fit: {"outcome": fitted_state(fit.outcome), "gamma": fit.gamma},
    ),
    "BinaryMixture": Special(check=_check_binary),
}
