"""The layouts of fitted networks and of splines: what a file holds of each class."""

from __future__ import annotations

import numpy as np

from heckesel.errors import DataError
from heckesel.methods import METHODS, load_method
from heckesel.saving.codec import (
    Layout,
    Sizes,
    above_two,
    array,
    as_fields,
    layout_by_annotations,
    maybe,
    number,
    plain,
)
from heckesel.saving.member_layouts import MEMBERS, SCALING, networks, part
from heckesel.saving.mixture_layouts import (
    CURVE,
    FORM_MIXTURE,
    FORM_POINTS,
    LAST_LAYER,
    POINTS,
    RHO_MIXTURE,
    SPLINE,
    SPLINE_BASIS,
)
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.columns import Columns

ENSEMBLES = "heckesel.networks.ensembles"


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
    if kind not in known_kinds():
        raise DataError(f"a fit of kind {kind} cannot be saved; known: {', '.join(known_kinds())}")
    return {"kind": kind} | as_fields(layout_of(kind).write(fitted), _layout_of_class)


def restored(state: Fields, columns: Columns, *kinds: str):
    kind = state.text("kind", kinds or known_kinds())
    return layout_of(kind).read(state, {"p": len(columns.x_names), "q": len(columns.w_names)})


def known_kinds() -> tuple[str, ...]:
    """What a file may say its fit is: the shared kinds, and those of methods with their own."""
    of_methods = (method.fitted for method in METHODS.values() if method.fitted)
    return tuple(dict.fromkeys((*of_methods, *WHOLE)))


def layout_of(kind: str) -> Layout:
    if kind in LAYOUTS:
        return LAYOUTS[kind]
    name = next(name for name, method in METHODS.items() if method.fitted == kind)
    return layout_by_annotations(getattr(load_method(name), kind))


def _layout_of_class(kind: type) -> Layout | None:
    return LAYOUTS.get(kind.__name__) or PARTS_OF_FITS.get(kind.__name__)


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
        raise Damage("has a correlation that is none")
    head = fit.members.head.shape[1]
    if len(fit.members.loss) % len(fit.rho) or head != (0 if alone else sizes["q"] + 2):
        raise Damage(f"has {len(fit.members.loss)} networks for {len(fit.rho)} values of rho")


def _outcome_beside(state: Fields, name: str, sizes: Sizes):
    inner = state.inside(name)
    inner.text("kind", ("GaussianEnsemble",))
    return GAUSSIAN.read(inner, sizes)


TAIL_DF = maybe(above_two(number()))
SELECTION = Layout(
    f"{ENSEMBLES}.selection_ensemble",
    "SelectionEnsemble",
    {
        "members": networks("p", 1, 2),
        "scaling": part(SCALING),
        "sigma": array("k", positive=True),
        "covariance": array("k"),
        "gamma": array("indices", "q+1"),
        "info": plain,
        "spread": maybe(networks("p")),
        "df": maybe(above_two(array("k"))),
        "selection": maybe(networks("q")),
        "tail_df": TAIL_DF,
    },
    attributes={"spread": "noise_networks"},
    check=_check_selection,
)
OUTCOME = Layout(
    f"{ENSEMBLES}.outcome_ensemble",
    "OutcomeEnsemble",
    {
        "members": networks("p", 1, 2),
        "scaling": part(SCALING),
        "level": number(positive=True),
        "info": plain,
    },
    check=_check_outcome,
)
AVERAGED = Layout(
    f"{ENSEMBLES}.averaged",
    "AveragedEnsemble",
    {
        "two_step": part(SELECTION),
        "likelihood": part(OUTCOME),
        "spline": maybe(part(RHO_MIXTURE)),
        "info": plain,
    },
)
GAUSSIAN = Layout(
    f"{ENSEMBLES}.selection_ensemble",
    "GaussianEnsemble",
    {
        "members": networks("p", 2),
        "scaling": part(SCALING),
        "info": plain,
        "level": number(positive=True),
        "tail_df": TAIL_DF,
    },
)
BESIDE_PROBIT = Layout(
    "heckesel.methods.beside_probit",
    "BesideProbit",
    {"outcome": _outcome_beside, "gamma": maybe(array("q+1"))},
    split=lambda fit: {"outcome": fitted_state(fit.outcome), "gamma": fit.gamma},
)
BINARY = Layout(
    f"{ENSEMBLES}.binary_mixture",
    "BinaryMixture",
    {
        "members": networks("p"),
        "scaling": part(SCALING),
        "weight": array("values", positive=True),
        "rho": array("values", finite=False),
        "info": plain,
    },
    check=_check_binary,
)
LAYOUTS = {
    layout.name: layout
    for layout in (
        SELECTION,
        OUTCOME,
        AVERAGED,
        GAUSSIAN,
        BESIDE_PROBIT,
        BINARY,
        RHO_MIXTURE,
        FORM_MIXTURE,
    )
}
PARTS_OF_FITS = {
    layout.name: layout
    for layout in (
        MEMBERS,
        SCALING,
        POINTS,
        CURVE,
        LAST_LAYER,
        SPLINE_BASIS,
        SPLINE,
        FORM_POINTS,
    )
}
# Kinds of whole fits that no method of METHODS names.
WHOLE = ("BesideProbit", "BinaryMixture")
