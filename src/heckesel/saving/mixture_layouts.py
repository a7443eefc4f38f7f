"""The layouts of mixtures over rho: over last layers or over splines."""

import numpy as np

from heckesel.errors import DataError
from heckesel.saving.codec import Reader, Sizes, Special, array, info, layout_of, part
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields

BASES = ("LastLayer", "SplineBasis")


def _check_points(points, sizes: Sizes) -> None:
    if not len(points.model) or not (points.model >= 0).all():
        raise Damage("has no models to mix, or a negative model number")
    if not (np.abs(points.rho) < 1).all():
        raise Damage("has a correlation outside (-1, 1)")


def _prior(state: Fields, name: str, sizes: Sizes):
    from heckesel.networks.rho.rho_prior import RhoPrior

    ends = state.items(name)
    if len(ends) != 2 or not all(type(end) is float for end in ends):
        raise Damage(f"holds {ends!r:.40} as the limits of a prior")
    if not -1 <= ends[0] < ends[1] <= 1:
        raise Damage(f"has a prior from {ends[0]:g} to {ends[1]:g}")
    return RhoPrior(*ends)


def _split_curve(curve) -> dict:
    if curve.prior.density is not None:
        raise DataError("a prior that is a function cannot be saved")
    layout = layout_of(type(curve))
    found = {name: getattr(curve, layout.attributes[name]) for name in layout.fields}
    return found | {"prior": [curve.prior.low, curve.prior.high]}


def _split_mixture(fit) -> dict:
    """The basis is not a separate object in the file: its tag and its fields are among those of the
    mixture."""
    basis = type(fit.basis).__name__
    if basis not in BASES:
        raise DataError(f"a mixture over {basis} cannot be saved")
    own = layout_of(type(fit.basis)).write(fit.basis)
    own = {"splines": own} if basis == "SplineBasis" else own
    shared = {"scaling": fit.scaling, "parts": fit.points, "curve": fit.curve, "info": fit.info}
    return {"basis": basis} | own | shared


def _basis(state: Fields, name: str, sizes: Sizes):
    from heckesel.networks.rho.last_layer import LastLayer

    # Files without a basis have networks.
    if state.has(name) and state.text(name, BASES) == "SplineBasis":
        return _spline_basis("p")(state, "splines", sizes)
    return layout_of(LastLayer).read(state, sizes)


def _check_mixture(fit, sizes: Sizes) -> None:
    k = len(getattr(fit.basis, "axes", [None]))
    width, ridges = fit.basis.membership.shape
    points, curve = fit.points, fit.curve
    if not (points.model < k).all():
        raise Damage(f"refers to models beyond the {k} that it contains")
    if points.delta.shape[1] != width:
        raise Damage(f"has {points.delta.shape[1]} coefficients for {width} columns")
    if curve.v.shape[1:] != (k, sizes["q"] + width + 2) or curve.ridge.shape[2] != ridges:
        raise Damage(f"has a curve over rho of {curve.v.shape} for {width} columns")


def _check_axes(basis, sizes: Sizes) -> None:
    k, sides = basis.axes.shape[:2]
    if not k or sides != -(-len(basis.members.loss) // k) * basis.members.sizes[-2]:
        raise Damage(f"has {k} x {sides} axes for {len(basis.members.loss)} members")


def _split_splines(basis) -> dict:
    """Surfaces as pairs of columns; the small spline of a column is saved once."""
    small = [None] * len(basis.curves)
    for i, j, one, other in basis.surfaces:
        small[i], small[j] = one, other
    pairs = np.array([surface[:2] for surface in basis.surfaces], np.int64).reshape(-1, 2)
    return {"curves": basis.curves, "small": small, "pairs": pairs, "membership": basis.membership}


def _join_splines(found: dict) -> dict:
    small, pairs = found["small"], found["pairs"].tolist()
    p = len(small)
    if not all(0 <= at < p for pair in pairs for at in pair) or any(i == j for i, j in pairs):
        raise Damage(f"has a surface that does not belong to two of its {p} columns")
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
    from heckesel.numerics.splines import Spline

    read = layout_of(Spline).read
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


def _spline_basis(columns: str) -> Reader:
    """Splines of the columns of x ("p") or w ("q")."""

    def read(state: Fields, name: str, sizes: Sizes):
        from heckesel.methods.spline_joint import SplineBasis

        return part(SplineBasis)(state, name, sizes | {"p": sizes[columns]})

    return read


def _model(state: Fields, name: str, sizes: Sizes) -> np.ndarray:
    """Files without the column set of each point contain mixtures with a single set."""
    if not state.has(name):
        return np.zeros(len(array("j")(state, "weight", sizes)), dtype=int)
    return array("j", dtype="int64")(state, name, sizes)


def _form_basis(state: Fields, name: str, sizes: Sizes):
    from heckesel.networks.rho.last_layer import LastLayer

    if state.inside(name).has("axes"):
        return part(LastLayer)(state, name, sizes)
    return _spline_basis("p")(state, name, sizes)


def _form_info(state: Fields, name: str, sizes: Sizes):
    """A mixture over rho has modes, one over members does not."""
    from heckesel.fit_info import RhoInfo, SelectionInfo

    return info(RhoInfo if "modes" in state.plain(name) else SelectionInfo)(state, name, sizes)


def _check_form_points(points, sizes: Sizes) -> None:
    from heckesel.networks.rho.fitted_points import FORMS

    if not (np.abs(points.rho) < 1).all():
        raise Damage("has a correlation outside (-1, 1)")
    if not ((points.form >= 0) & (points.form < len(FORMS))).all():
        raise Damage("has an error model that does not exist")


def _check_form_mixture(fit, sizes: Sizes) -> None:
    sets = len(getattr(fit.basis, "axes", [None]))
    if not ((fit.points.model >= 0) & (fit.points.model < sets)).all():
        raise Damage(f"refers to models beyond the {sets} that it contains")
    width, index = len(fit.basis.membership), len(fit.index_basis.membership)
    points, size = fit.points, len(fit.basis.membership) + 1 + sizes["p"] + 2
    if points.delta.shape[1] != width or points.gamma.shape[1] != index:
        raise Damage(f"has {points.delta.shape[1]} coefficients for {width} columns")
    if points.root.shape[1] != size:
        raise Damage(f"has a covariance of {points.root.shape[1]} for {size} coefficients")


LAYOUTS = {
    "Spline": Special(check=_check_spline),
    "SplineBasis": Special(
        fields={
            "curves": _each_spline,
            "small": _each_spline,
            "pairs": array("surfaces", 2, dtype="int64"),
            "membership": array("columns", "ridges"),
        },
        check=_check_splines,
        split=_split_splines,
        join=_join_splines,
    ),
    "LastLayer": Special(check=_check_axes),
    "MixturePoints": Special(names={"cholesky_factor": "spread"}, check=_check_points),
    "Curve": Special({"prior": _prior}, {"variance_factor": "doubt"}, split=_split_curve),
    "RhoMixture": Special(
        {"basis": _basis}, {"points": "parts"}, check=_check_mixture, split=_split_mixture
    ),
    "FormPoints": Special({"model": _model}, check=_check_form_points),
    "FormMixture": Special(
        {"basis": _form_basis, "index_basis": _spline_basis("q")}, check=_check_form_mixture
    ),
    "FormEnsemble": Special({"info": _form_info}),
}
