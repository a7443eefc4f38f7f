"""The layouts of fitted networks and of splines: what a file holds of each class."""

from __future__ import annotations

from functools import cache

import numpy as np

from heckesel.errors import DataError
from heckesel.methods import METHODS, load_method
from heckesel.saving.codec import (
    Layout,
    Reader,
    Sizes,
    above_two,
    array,
    as_fields,
    layout_by_annotations,
    maybe,
    number,
    plain,
)
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.columns import Columns

ENSEMBLES = "heckesel.networks.ensembles"
RHO = "heckesel.networks.rho"
TRAINING = "heckesel.networks.training"


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
    return _by_class_name().get(kind.__name__)


@cache
def _by_class_name() -> dict[str, Layout]:
    return {layout.name: layout for layout in LAYOUTS.values()}


def part(kind: str) -> Reader:
    """An object of that kind inside another."""
    return lambda state, name, sizes: LAYOUTS[kind].read(
        state.inside(name), {each: sizes[each] for each in "pq"}
    )


def networks(inputs: str, *outputs: int) -> Reader:
    """Members from so many columns to so many numbers, by default one."""

    def read(state: Fields, name: str, sizes: Sizes):
        found = part("Members")(state, name, sizes)
        first, last = found.sizes[0], found.sizes[-1]
        if first != sizes[inputs] or last not in (outputs or (1,)):
            raise Damage(f"has networks from {first} to {last} numbers for {sizes[inputs]} columns")
        return found

    return read


def _layers(state: Fields, name: str, sizes: Sizes) -> tuple[int, ...]:
    found = state.items(name)
    if len(found) < 2 or not all(type(size) is int and size > 0 for size in found):
        raise Damage(f"has networks with layers {found!r:.40}")
    return tuple(found)


def _check_members(members, sizes: Sizes) -> None:
    from heckesel.networks.training.layers import parameter_count

    if not len(members.loss) or members.theta.shape[1] < parameter_count(members.sizes):
        raise Damage(
            f"has {members.theta.shape} weights for networks with layers {members.sizes!r:.40}"
        )


def _check_selection(fit, sizes: Sizes) -> None:
    k = len(fit.members.loss)
    if len(fit.sigma) != k or len(fit.gamma) not in (1, k):
        raise Damage(f"has {len(fit.sigma)} sigmas and {len(fit.gamma)} indices for {k} members")
    if fit.spread is not None and len(fit.spread.loss) != k:
        raise Damage(f"has {len(fit.spread.loss)} networks of sigma for {k} members")


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
    return LAYOUTS[inner.text("kind", ("GaussianEnsemble",))].read(inner, sizes)


def _check_parts(parts, sizes: Sizes) -> None:
    if not len(parts.model) or not (parts.model >= 0).all():
        raise Damage("mixes no models, or one below the first")
    if not (np.abs(parts.rho) < 1).all():
        raise Damage("has a correlation beyond one")


def _prior(state: Fields, name: str, sizes: Sizes):
    from heckesel.networks.rho.rho_prior import RhoPrior

    ends = state.items(name)
    if len(ends) != 2 or not all(type(end) is float for end in ends):
        raise Damage(f"holds {ends!r:.40} for the ends of a prior")
    if not -1 <= ends[0] < ends[1] <= 1:
        raise Damage(f"has a prior from {ends[0]:g} to {ends[1]:g}")
    return RhoPrior(*ends)


def _split_curve(curve) -> dict:
    if curve.prior.density is not None:
        raise DataError("a prior that is a function cannot be saved")
    found = {name: getattr(curve, name) for name in LAYOUTS["Curve"].fields}
    return found | {"prior": [curve.prior.low, curve.prior.high]}


def _split_mixture(fit) -> dict:
    """The basis is not an object of the file: its tag and its fields are among the others."""
    basis = type(fit.basis).__name__
    if basis not in ("LastLayer", "SplineBasis"):
        raise DataError(f"a mixture over {basis} cannot be saved")
    own = LAYOUTS[basis].write(fit.basis)
    own = {"splines": own} if basis == "SplineBasis" else own
    shared = {name: getattr(fit, name) for name in ("scaling", "parts", "curve", "info")}
    return {"basis": basis} | own | shared


def _basis(state: Fields, name: str, sizes: Sizes):
    # Files that say nothing of a basis have networks.
    if state.has(name) and state.text(name, ("LastLayer", "SplineBasis")) == "SplineBasis":
        return part("SplineBasis")(state, "splines", sizes)
    return LAYOUTS["LastLayer"].read(state, sizes)


def _check_mixture(fit, sizes: Sizes) -> None:
    k = len(getattr(fit.basis, "axes", [None]))
    width, ridges = fit.basis.membership.shape
    parts, curve = fit.parts, fit.curve
    if not (parts.model < k).all():
        raise Damage(f"mixes models beyond the {k} it has")
    if parts.delta.shape[1] != width:
        raise Damage(f"has {parts.delta.shape[1]} coefficients for {width} columns")
    if curve.v.shape[1:] != (k, sizes["q"] + width + 2) or curve.ridge.shape[2] != ridges:
        raise Damage(f"has a curve over rho of {curve.v.shape} for {width} columns")


def _check_axes(basis, sizes: Sizes) -> None:
    k, sides = basis.axes.shape[:2]
    if not k or sides != -(-len(basis.members.loss) // k) * basis.members.sizes[-2]:
        raise Damage(f"has {k} x {sides} axes for {len(basis.members.loss)} members")


def _split_splines(basis) -> dict:
    """Surfaces as pairs of columns, and the small spline of a column once."""
    small = [None] * len(basis.curves)
    for i, j, one, other in basis.surfaces:
        small[i], small[j] = one, other
    pairs = np.array([surface[:2] for surface in basis.surfaces], np.int64).reshape(-1, 2)
    return {"curves": basis.curves, "small": small, "pairs": pairs, "membership": basis.membership}


def _join_splines(found: dict) -> dict:
    small, pairs = found["small"], found["pairs"].tolist()
    p = len(small)
    if not all(0 <= at < p for pair in pairs for at in pair) or any(i == j for i, j in pairs):
        raise Damage(f"has surfaces that are no two of its {p} columns")
    surfaces = tuple((i, j, small[i], small[j]) for i, j in pairs)
    return {name: found[name] for name in ("curves", "membership")} | {"surfaces": surfaces}


def _check_splines(basis, sizes: Sizes) -> None:
    def wiggles(spline) -> int:
        return spline.turn.shape[1] if spline else 0

    surfaces = ((1 + wiggles(one)) * (1 + wiggles(other)) for *_, one, other in basis.surfaces)
    width = 1 + sizes["p"] + sum(map(wiggles, basis.curves)) + sum(surfaces)
    if len(basis.membership) != width or not np.isin(basis.membership, (0, 1)).all():
        raise Damage(f"has ridges that do not belong to {width} columns")


def _each_spline(state: Fields, name: str, sizes: Sizes) -> tuple:
    items = state.items(name)
    if len(items) != sizes["p"]:
        raise Damage(f"has {len(items)} splines for {sizes['p']} columns in {name!r}")
    read = LAYOUTS["Spline"].read
    return tuple(
        None if item is None else read(Fields(item, f"{state.name}, {name} {j}"), sizes)
        for j, item in enumerate(items)
    )


def _check_spline(spline, sizes: Sizes) -> None:
    from heckesel.numerics.splines import DEGREE

    knots = spline.knots
    count = len(knots) - DEGREE - 1
    if count <= DEGREE or (np.diff(knots) < 0).any():
        raise Damage("has a spline whose knots do not ascend")
    first, last = knots[: DEGREE + 1], knots[count:]
    if np.ptp(first) or np.ptp(last) or not first[0] < last[0]:
        raise Damage("has a spline whose first or last knots are not repeated")
    if len(spline.turn) != count:
        raise Damage(f"has {len(spline.turn)} coefficients for {count} splines")


TAIL_DF = maybe(above_two(number()))
LAYOUTS = {
    "SelectionEnsemble": Layout(
        f"{ENSEMBLES}.selection_ensemble",
        "SelectionEnsemble",
        {
            "members": networks("p", 1, 2),
            "scaling": part("Scaling"),
            "sigma": array("k", positive=True),
            "covariance": array("k"),
            "gamma": array("indices", "q+1"),
            "info": plain,
            "spread": maybe(networks("p")),
            "df": maybe(above_two(array("k"))),
            "selection": maybe(networks("q")),
            "tail_df": TAIL_DF,
        },
        check=_check_selection,
    ),
    "OutcomeEnsemble": Layout(
        f"{ENSEMBLES}.outcome_ensemble",
        "OutcomeEnsemble",
        {
            "members": networks("p", 1, 2),
            "scaling": part("Scaling"),
            "level": number(positive=True),
            "info": plain,
        },
        check=_check_outcome,
    ),
    "AveragedEnsemble": Layout(
        f"{ENSEMBLES}.averaged",
        "AveragedEnsemble",
        {
            "two_step": part("SelectionEnsemble"),
            "likelihood": part("OutcomeEnsemble"),
            "spline": maybe(part("RhoMixture")),
            "info": plain,
        },
    ),
    "GaussianEnsemble": Layout(
        f"{ENSEMBLES}.selection_ensemble",
        "GaussianEnsemble",
        {
            "members": networks("p", 2),
            "scaling": part("Scaling"),
            "info": plain,
            "level": number(positive=True),
            "tail_df": TAIL_DF,
        },
    ),
    "BesideProbit": Layout(
        f"{ENSEMBLES}.beside_probit",
        "BesideProbit",
        {"outcome": _outcome_beside, "gamma": maybe(array("q+1"))},
        split=lambda fit: {"outcome": fitted_state(fit.outcome), "gamma": fit.gamma},
    ),
    "BinaryMixture": Layout(
        f"{ENSEMBLES}.binary_mixture",
        "BinaryMixture",
        {
            "members": networks("p"),
            "scaling": part("Scaling"),
            "weight": array("values", positive=True),
            "rho": array("values", finite=False),
            "info": plain,
        },
        check=_check_binary,
    ),
    "RhoMixture": Layout(
        f"{RHO}.rho_mixture",
        "RhoMixture",
        {
            "basis": _basis,
            "scaling": part("Scaling"),
            "parts": part("Parts"),
            "curve": part("Curve"),
            "info": plain,
        },
        check=_check_mixture,
        split=_split_mixture,
    ),
    "Parts": Layout(
        f"{RHO}.rho_mixture",
        "Parts",
        {
            "model": array("j", dtype="int64"),
            "weight": array("j", positive=True),
            "rho": array("j"),
            "gamma": array("j", "q+1"),
            "delta": array("j", "h"),
            "theta": array("j", positive=True),
            "spread": array("j", "h+1", "h+1"),
        },
        check=_check_parts,
    ),
    "Curve": Layout(
        f"{RHO}.rho_curve",
        "Curve",
        {
            "a": array("grid"),
            "log_evidence": array("grid"),
            "v": array("grid", "k", "size"),
            "ridge": array("grid", "k", "ridges"),
            "doubt": array("grid"),
            "weight": array("grid", "k"),
            "prior": _prior,
        },
        split=_split_curve,
    ),
    "LastLayer": Layout(
        f"{RHO}.last_layer",
        "LastLayer",
        {"members": networks("p"), "axes": array("sets", "d", "h")},
        check=_check_axes,
    ),
    "SplineBasis": Layout(
        "heckesel.methods.spline_joint",
        "SplineBasis",
        {
            "curves": _each_spline,
            "small": _each_spline,
            "pairs": array("surfaces", 2, dtype="int64"),
            "membership": array("columns", "ridges"),
        },
        check=_check_splines,
        split=_split_splines,
        join=_join_splines,
    ),
    "Spline": Layout(
        "heckesel.numerics.splines",
        "Spline",
        {"knots": array("knots"), "turn": array("count", "h"), "line": array(2, "h")},
        check=_check_spline,
    ),
    "Members": Layout(
        f"{TRAINING}.ensemble_training",
        "Members",
        {"sizes": _layers, "theta": array("k", "weights"), "loss": array("k")},
        check=_check_members,
    ),
    "Scaling": Layout(
        f"{TRAINING}.scaling",
        "Scaling",
        {
            "x_centre": array("p"),
            "x_scale": array("p", positive=True),
            "w_centre": array("q"),
            "w_scale": array("q", positive=True),
            "y_centre": number(),
            "y_scale": number(positive=True),
        },
    ),
}
# Kinds of whole fits that no method of METHODS names.
WHOLE = ("BesideProbit", "BinaryMixture")
