"""`model.save(path)` and `hk.load(path)`: a fitted estimator as one file that is safe to open.

The file contains everything that predictions need, the verdict and the summary of the fit. It
contains no rows of the data and no code: functions given as `target_transform` or `rho_prior`
cannot be saved.
"""

from dataclasses import asdict, replace
from importlib import import_module

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.diagnostics.profile_curve import ProfileCurve
from heckesel.diagnostics.verdict import VERDICTS, Identification
from heckesel.errors import DataError, HeckeselError
from heckesel.predictive.scales import NAMES, YEO_JOHNSON, named_transform
from heckesel.saving.model_file import Damage, as_read, imported, read_model, refusing, write_model
from heckesel.saving.saved_fields import Fields
from heckesel.saving.saved_plan import plan_of_fields
from heckesel.tables.columns import Columns
from heckesel.tables.preparation.column_plan import ColumnPlan

# Class -> its module, and the module of `saving` with its `state_of` and `restore`.
Classes = dict[str, tuple[str, str]]


def save_model(model, path, classes: Classes) -> None:
    """`model`, fitted, as the file `path`, which is replaced in one step."""
    check_is_fitted(model)
    name = type(model).__name__
    if name not in classes:
        raise DataError(f"a {name} cannot be saved; known: {', '.join(classes)}")
    content = {
        "class": name,
        "parameters": _parameters(model),
        "columns": _columns(model.columns_),
        "outcome": model.outcome_name_,
        "groups": getattr(model, "groups_name_", None),
        "transform": getattr(_transform(model), "name", None),
        "identification": asdict(model.identification_),
        "state": import_module(classes[name][1]).state_of(model),
    }
    if model.columns_.plan is not None:
        content["plan"] = asdict(model.columns_.plan)
    parameter = getattr(_transform(model), "parameter", None)
    if parameter is not None:
        content["transform_parameter"] = parameter
    try:  # a file that could not be read back is not written
        _restored(Fields(as_read(content)), classes)
    except Damage as damage:
        raise HeckeselError(f"this fit cannot be saved: it {damage}") from None
    write_model(path, content)


def load_model(path, classes: Classes):
    """The model that `save` wrote to `path`; its predictions are the same to the last bit.

    No code from the file is executed. A file that is damaged, altered, of a newer version or not
    a model raises a `DataError`.
    """
    content = read_model(path)
    with refusing(path):
        return _restored(Fields(content), classes)


def _restored(fields: Fields, classes: Classes):
    name = fields.text("class")
    if name not in classes:
        raise Damage(f"holds a {name[:60]!r}, a class that this version of heckesel does not have")
    home, states = (imported(module) for module in classes[name])
    model = _with_parameters(getattr(home, name), fields.plain("parameters"))
    model.columns_ = _columns_of(fields.inside("columns"))
    if fields.has("plan"):
        model.columns_ = _with_plan(model.columns_, plan_of_fields(fields.inside("plan")))
    model.plan_ = model.columns_.plan
    model.outcome_name_ = fields.text("outcome")
    model.groups_name_ = fields.text("groups") if fields.has("groups") else None
    if "target_transform" in model.get_params(deep=False):
        model.transform_ = None
    if fields.has("transform"):
        model.transform_ = _restored_transform(fields)
    model.n_features_in_ = len(model.columns_.given_names)
    if model.columns_.from_frame:
        model.feature_names_in_ = np.array(model.columns_.given_names, dtype=object)
    model.identification_ = _identification_of(fields.inside("identification"))
    states.restore(model, fields.inside("state"), model.columns_)
    return model


def _restored_transform(fields: Fields):
    name = fields.text("transform", NAMES)
    given = fields.has("transform_parameter")
    parameter = fields.number("transform_parameter") if given else None
    if (name == YEO_JOHNSON) != given or not 0 <= (parameter or 0.0) <= 2:
        raise Damage(f"holds a scale {name!r} with the parameter {parameter}")
    return named_transform(name, parameter)


def _identification_of(state: Fields) -> Identification:
    found = Identification(
        verdict=state.text("verdict", VERDICTS),
        sentence=state.text("sentence"),
        evidence=state.plain("evidence"),
        profile=_profile_of(state.inside("profile")) if state.has("profile") else None,
    )
    try:
        found.details()
    except (TypeError, ValueError, LookupError, AttributeError):
        raise Damage(f"holds evidence for {found.verdict!r} that cannot be read") from None
    return found


def _profile_of(state: Fields) -> ProfileCurve:
    pairs = [state.items("interval"), *_lists(state, "modes")]
    if len(pairs) < 2 or not all(len(p) == 2 and all(type(v) is float for v in p) for p in pairs):
        raise Damage("holds a likelihood over rho whose modes or interval are not numbers")
    rho = state.array("rho", (None,))
    selected = state.integer("selected") if state.has("selected") else 0  # older files: the best
    if not 0 <= selected < len(pairs) - 1:
        raise Damage(f"uses mode {selected} of the {len(pairs) - 1} modes over rho")
    return ProfileCurve(
        rho=rho,
        loglik=state.array("loglik", rho.shape, finite=False),
        modes=tuple((at, height) for at, height in pairs[1:]),
        interval=(pairs[0][0], pairs[0][1]),
        level=state.number("level", positive=True),
        rows=state.integer("rows"),
        selected=selected,
    )


def _transform(model):
    return getattr(model, "transform_", None)  # classifiers have no scale


def _parameters(model) -> dict:
    given = model.get_params(deep=False)
    transform = _transform(model)
    if transform is not None and transform.name is None:
        raise DataError(
            "target_transform is made of functions, which cannot be saved; use 'log', or "
            "transform y before the fit"
        )
    if callable(given.get("rho_prior")):
        raise DataError("rho_prior is a function, which cannot be saved; use a sign or an interval")
    for name, value in given.items():
        value = value.tolist() if isinstance(value, np.ndarray) else value
        parts = value if isinstance(value, list | tuple) else [value]
        if not all(part is None or isinstance(part, PLAIN) for part in parts):
            raise DataError(
                f"{name} is a {type(value).__name__}, which cannot be saved; use "
                f"{'an integer' if name == 'random_state' else 'plain numbers or strings'}"
            )
        given[name] = {"tuple": value} if isinstance(value, tuple) else value
    return given


PLAIN = (str, bool, int, float, np.integer, np.floating, np.bool_)


def _with_parameters(kind, parameters: dict):
    known = kind().get_params(deep=False)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise Damage(f"holds a parameter {unknown[0][:60]!r}, which {kind.__name__} does not have")
    tuples = {
        name: tuple(Fields(value, name).items("tuple"))
        for name, value in parameters.items()
        if isinstance(value, dict)
    }
    return kind(**parameters | tuples)


def _columns(columns: Columns) -> dict:
    for name, levels in columns.levels.items():
        odd = [level for level in levels if not isinstance(level, PLAIN)]
        if odd:
            raise DataError(
                f"column {name!r} has levels of type {type(odd[0]).__name__}, which cannot be "
                "saved; convert them to strings before the fit"
            )
    pairs = {"levels": list(columns.levels.items()), "fill": list(columns.fill.items())}
    fields = asdict(replace(columns, plan=None)) | pairs
    del fields["plan"]  # a separate part of the file
    return fields


def _columns_of(state: Fields) -> Columns:
    names, instruments = state.strings("names"), state.strings("instruments")
    _check_names(names, None)
    _check_names(instruments, names)
    if len(instruments) == len(names):
        raise Damage("has no columns but instruments")
    levels = {name: tuple(values) for name, values in _pairs(state, "levels", names)}
    if not all(isinstance(level, PLAIN) for values in levels.values() for level in values):
        raise Damage("has a category that is neither a string nor a number")
    if not all(len(set(values)) == len(values) > 0 for values in levels.values()):
        raise Damage("has a category twice, or a column with none")
    fill = dict(_pairs(state, "fill", names, kind=float))
    if not all(
        np.isnan(value) if name in levels else np.isfinite(value) for name, value in fill.items()
    ):
        raise Damage("imputes a missing value with something that is not a number")
    indicators = tuple(tuple(group) for group in _lists(state, "indicators"))
    for group in indicators:
        _check_names(group, tuple(fill))
    return Columns(
        names=names,
        instruments=instruments,
        levels=levels,
        from_frame=state.truth("from_frame"),
        linear=state.truth("linear"),
        fill=fill,
        indicators=indicators,
    )


def _with_plan(columns: Columns, plan: ColumnPlan) -> Columns:
    """The columns with the plan that makes them."""
    made = {step.name: step for step in plan.steps}
    if tuple(made) != columns.names or plan.clean_instruments != columns.instruments:
        raise Damage("has a plan for other columns than those of the fit")
    categories = {name: step.levels for name, step in made.items() if step.is_category}
    if categories != columns.levels or columns.fill:
        raise Damage("has a plan for other levels than those of the fit")
    return replace(columns, plan=plan)


def _lists(state: Fields, field: str) -> list:
    items = state.items(field)
    if not all(isinstance(item, list) and item for item in items):
        raise Damage(f"holds something other than lists in {field!r} of {state.name}")
    return items


def _pairs(state: Fields, field: str, names, kind: type = list) -> list:
    pairs = _lists(state, field)
    if not all(len(pair) == 2 and isinstance(pair[1], kind) for pair in pairs):
        raise Damage(f"holds something other than pairs in {field!r} of {state.name}")
    _check_names(tuple(name for name, _ in pairs), names)
    return pairs


def _check_names(found: tuple, among) -> None:
    """Distinct strings which, if `among` is given, are elements of it."""
    for name in found:
        if not isinstance(name, str) or (among is not None and name not in among):
            raise Damage(f"names a column {name!r:.60} that it does not have")
    if len(set(found)) != len(found) or (among is None and not found):
        raise Damage("has a column twice, or no columns")
