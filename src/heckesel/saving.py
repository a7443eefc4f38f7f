"""Fitted objects as files that are safe to open: one codec for all classes.

A file is a safetensors file. Its metadata has two keys: `heckesel`, JSON with everything that is
not an array, and `sha256`, the hash of that text and of the name, type, shape and bytes of every
array. The hash detects damage, not manipulation, because anyone can compute it. Therefore nothing
in a file is executed: a file names classes of this library, and lists their fields. A field is a
number, a string, None, a tuple, a list, a dict, an array, a pandas object, another frozen dataclass
or estimator, or a boosting model of scikit-learn as the arrays of its nodes. Fields are checked
against the annotations of the class.

A class of this library is saved if it is a frozen dataclass or an estimator; `register` admits a
class from elsewhere. Four names on a class change what happens:

- `to_saved(self)` returns the object that is saved in its place, such as a summary of rows;
- `unsaved` lists attributes of an estimator that are not saved, such as one number per row;
- `saved_properties` lists cached properties to save, such as those that need the rows;
- `check_loaded(self)` raises an exception if the fields contradict each other.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from heckesel import __version__
from heckesel.errors import DataError, HeckeselError, cannot_import, imported, printable
from heckesel.io import write_atomically

FORMAT = 1
LARGEST_HEADER = 2**24  # bytes; the JSON of a fit with ten thousand columns takes less than half
NUMERIC = "biuf"  # kinds of arrays that are tensors
OBJECT, BOOSTING, SKOPS = "$object", "$boosting", "$skops"
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
REGISTERED: dict[str, type] = {}  # classes from elsewhere


class Damage(Exception):
    """The defect of a file, as the end of a sentence that begins with its name."""


def register(kind: type) -> type:
    """Admit a class from outside this library to files; a decorator.

    It must be a frozen dataclass or a scikit-learn estimator, and be registered again before a file
    with it is loaded.
    """
    if not _is_savable(kind):
        raise TypeError(f"{kind.__name__} is neither a frozen dataclass nor an estimator")
    REGISTERED[_name_of(kind)] = kind
    return kind


def save(model, path) -> None:
    """Write a fitted object to the file `path`, which is replaced in one step."""
    if hasattr(model, "get_params"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
    writer = _Writer()
    try:
        content = writer.encode(model, "")
    except RecursionError:
        raise DataError(f"a {type(model).__name__} that contains itself cannot be saved") from None
    try:
        _Reader(dict(writer.tensors), writer.skops).decode(content)
    except Damage as damage:
        raise DataError(f"this {type(model).__name__} cannot be saved: the file {damage}") from None
    write_content(path, content, writer.tensors)


class Savable:
    """Something fitted that can be saved; a mixin."""

    def save(self, path) -> None:
        """Save the fit to one file, which `hk.load` reads.

        Parameters
        ----------
        path : str or path
            File to write, such as "loans.heckesel". It holds coefficients and summaries, but no
            pickle and no rows of the data.

        Raises
        ------
        DataError
            If the file cannot be written, or the fit cannot be saved.
        """
        save(self, path)


def write_content(path, content, tensors: dict[str, np.ndarray]) -> None:
    """The opposite of `read_content`."""
    text = json.dumps({"format": FORMAT, "version": __version__, "model": content}, allow_nan=False)
    saved = safetensors.numpy.save(tensors, {"heckesel": text, "sha256": _digest(text, tensors)})
    header = int.from_bytes(saved[:8], "little")
    if header > LARGEST_HEADER:
        raise DataError(
            f"the columns and categories of this model take {header:,} bytes, and a model file "
            f"holds at most {LARGEST_HEADER:,}; merge rare categories"
        )
    write_atomically(path, saved)


def load(path, *, trusted: Iterable[str] = ()):
    """Load a model that `save` wrote.

    No code from the file is executed. Predictions are bit-identical to those of the saved model.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str, optional
        Full names of the classes of other packages that the file may contain, such as
        ``"sklearn.linear_model._ridge.Ridge"``, if its learner is neither one of this library nor
        gradient boosting of scikit-learn. Loading them can run code, so name them only if you know
        where the file comes from.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    DataError
        If the file is damaged, altered, of a newer version or not a model.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> model.save("model.heckesel")
    >>> bool((hk.load("model.heckesel").predict(frame[["x"]]) == model.predict(frame[["x"]])).all())
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path must be the name of a file, got {path!r}")
    path = Path(path)
    try:  # every error that a hostile file, or a name too long for the system, can cause
        if not path.is_file():
            state = "is a folder" if path.is_dir() else "is not a regular file"
            state = state if path.exists() else "does not exist"
            raise DataError(f"{path} {state}; pass the file that save() wrote")
        content, tensors = read_content(path)
        reader = _Reader(tensors, tuple([trusted] if isinstance(trusted, str) else trusted))
        model = reader.decode(content)
        if tensors:
            raise Damage(f"has a tensor {next(iter(tensors))!r} that no field uses")
        if not isinstance(content, dict) or not {OBJECT, BOOSTING, SKOPS} & content.keys():
            raise Damage("is not a model saved by heckesel: it holds no object")
    except Damage as damage:
        raise DataError(f"{path} {damage}") from None
    except (RecursionError, MemoryError, OverflowError) as error:
        kind = type(error).__name__
        raise DataError(f"{path} is not a model saved by heckesel ({kind})") from None
    except OSError as error:
        raise HeckeselError(f"{path} cannot be read: {error.strerror or error}") from None
    return model


def read_content(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """The JSON of the object in a file, and its arrays by name."""
    with open(path, "rb") as file:
        start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > path.stat().st_size - 8:
        raise Damage("is not a model saved by heckesel, or is truncated")
    if length > LARGEST_HEADER:
        raise Damage(
            f"is not a model saved by heckesel: its header has {length:,} bytes, but that of a "
            f"model has at most {LARGEST_HEADER:,}"
        )
    try:
        with safe_open(path, "numpy") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise Damage(
            "is not a model saved by heckesel, is truncated, or something was appended to it "
            f"({_first_line(error)})"
        ) from None
    text = metadata.get("heckesel")
    if text is None:
        raise Damage("is not a model saved by heckesel")
    try:
        head = json.loads(text, parse_constant=lambda name: json.loads(""))
    except ValueError:
        raise Damage("is not a model saved by heckesel: its header is not JSON") from None
    found = head.get("format") if isinstance(head, dict) else None
    if type(found) is not int or found < 1:
        raise Damage("is not a model saved by heckesel: it has no format number")
    if found > FORMAT:
        raise Damage(
            f"was saved by heckesel {printable(str(head.get('version')))} in format {found}, "
            f"but this version, {__version__}, reads formats up to {FORMAT}; upgrade heckesel"
        )
    if _digest(text, tensors) != metadata.get("sha256"):
        raise Damage("was altered after it was saved: its checksum does not match")
    return head.get("model"), tensors


def _digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    found = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\0{name}\0{tensor.dtype}\0{tensor.shape}\0".encode())
        found.update(tensor.tobytes())
    return found.hexdigest()


# Classes


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_estimator(kind) -> bool:
    return hasattr(kind, "get_params") and hasattr(kind, "set_params")


def _is_savable(kind) -> bool:
    if not isinstance(kind, type):
        return False
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return frozen or _is_estimator(kind)


def _class_of(name) -> type:
    """The class that a file names: one of this library, or a registered one."""
    if isinstance(name, str) and name in REGISTERED:
        return REGISTERED[name]
    kind = None
    if isinstance(name, str) and re.fullmatch(r"heckesel(\.[a-z]\w*)+:[A-Z]\w*", name):
        module, _, last = name.partition(":")
        try:
            kind = getattr(import_module(module), last, None)
        except ImportError as error:
            missing = error.name or "a package"
            if missing.partition(".")[0] != "heckesel":
                raise HeckeselError(
                    "this model holds networks and needs "
                    + cannot_import(missing, error, "pip install 'heckesel[deep]'")
                ) from None
    if not _is_savable(kind) or _name_of(kind) != name:  # type: ignore[arg-type]
        shown = printable(str(name))[:80]
        raise Damage(f"holds a {shown!r}, a class that this version of heckesel does not have")
    return kind  # type: ignore[return-value]


@cache
def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # of a class that is imported for type checkers alone
        return {}


def _fits(value, hint) -> bool:
    """Whether a value has the annotated type, as far as that can be checked."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is None or kind is NoneType:
        return value is None
    if kind is Literal:
        return value in parts
    if kind is float:
        return type(value) in (float, int)
    if kind in (int, bool):
        return type(value) is kind
    if (
        kind in (Any, Callable)
        or not isinstance(kind, type)
        or getattr(kind, "_is_protocol", False)
    ):
        return True
    if kind is tuple and isinstance(value, tuple) and parts:
        each = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        return len(each) == len(value) and all(map(_fits, value, each))
    if not isinstance(value, kind):
        return False
    if isinstance(value, Mapping) and issubclass(kind, Mapping) and parts:
        return all(_fits(k, parts[0]) and _fits(v, parts[1]) for k, v in value.items())
    if isinstance(value, Sequence) and issubclass(kind, Sequence) and parts and kind is not tuple:
        return all(_fits(each, parts[0]) for each in value)
    return True


# Objects -> JSON and arrays


class _Writer:
    """tensors : the arrays found so far, by name; skops : classes of user learners"""

    def __init__(self):
        self.tensors: dict[str, np.ndarray] = {}
        self.skops: tuple[str, ...] = ()

    def encode(self, value, name: str):
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"$float": str(value)}
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, list):
            return [self.encode(item, f"{name}.{j}") for j, item in enumerate(value)]
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"$tuple": self.encode(list(value), name)}
        if isinstance(value, dict):
            encoded = {key: self.encode(item, f"{name}.{key}") for key, item in value.items()}
            if all(isinstance(key, str) and not key.startswith("$") for key in encoded):
                return encoded
            return {"$dict": [[self.encode(key, name), item] for key, item in encoded.items()]}
        if type(value).__module__.partition(".")[0] == "pandas":
            return self._pandas(value, name)
        return self._object(value, name)

    def _array(self, value: np.ndarray, name: str):
        if value.dtype.kind in NUMERIC and value.dtype.itemsize <= 8:
            self.tensors[name] = np.ascontiguousarray(value).reshape(value.shape)
            return {"$tensor": name}
        if value.dtype.kind not in "UO":
            raise DataError(f"{name} is an array of {value.dtype}, which cannot be saved")
        kind = "object" if value.dtype.kind == "O" else "str"
        items = self.encode(value.ravel().tolist(), name)
        return {"$array": items, "kind": kind, "shape": list(value.shape)}

    def _pandas(self, value, name: str):
        if isinstance(value, pd.Index):
            items = self.encode(value.tolist(), name)
            return {"$index": items, "names": self.encode(list(value.names), name)}
        if isinstance(value, pd.Series):
            inside: dict = {"values": value.to_numpy(), "index": value.index, "name": value.name}
            return {"$series": self.encode(inside, name)}
        if isinstance(value, pd.DataFrame):
            columns = [value.iloc[:, j].to_numpy() for j in range(value.shape[1])]
            inside = {"values": columns, "index": value.index, "columns": value.columns}
            return {"$frame": self.encode(inside, name)}
        return _refuse(value, name)

    def _object(self, value, name: str):
        kind = type(value)
        if hasattr(value, "to_saved") and (found := value.to_saved()) is not value:
            return self.encode(found, name)
        known = kind.__module__.partition(".")[0] == "heckesel" and "<locals>" not in _name_of(kind)
        if _is_savable(kind) and (known or _name_of(kind) in REGISTERED):
            return {OBJECT: _name_of(kind)} | self._fields(value, f"{name}." if name else "")
        if kind.__module__.startswith("sklearn.") and hasattr(value, "_raw_predict"):
            state = _boosting_state(value)
            if state is not None:
                return {BOOSTING: kind.__name__, "state": self.encode(state, name)}
        if _is_estimator(kind) and not known and kind.__module__ != "__main__" and name:
            why = f"saving {name}, a {kind.__name__}, needs skops"
            skops = imported("skops.io", why, "skops")
            content, learner = skops.dumps(value), f"{kind.__module__}.{kind.__qualname__}"
            self.skops += (learner, *skops.get_untrusted_types(data=content))
            self.tensors[name] = np.frombuffer(content, np.uint8)
            return {SKOPS: name, "class": learner}
        return _refuse(value, name)

    def _fields(self, value, start: str) -> dict:
        kind = type(value)
        if _is_estimator(kind):
            given = value.get_params(deep=False)
            for parameter, each in given.items():
                if isinstance(each, np.random.RandomState | np.random.Generator):
                    _refuse(each, parameter, "; use an integer")
            hidden = {*given, *getattr(kind, "unsaved", ())}
            return {
                "parameters": {k: self.encode(each, start + k) for k, each in given.items()},
                "fitted": {
                    k: self.encode(each, start + k)
                    for k, each in vars(value).items()
                    if k.endswith("_") and not k.startswith("_") and k not in hidden
                },
            }
        named = [each.name for each in _saved_fields(kind)]
        inside = {each: self.encode(getattr(value, each), start + each) for each in named}
        extra = getattr(kind, "saved_properties", ())
        more = {each: self.encode(getattr(value, each), start + each) for each in extra}
        return {"fields": inside} | ({"properties": more} if more else {})


def _saved_fields(kind: type) -> list:
    return [each for each in fields(kind) if each.init and each.metadata.get("saved", True)]


def _refuse(value, name: str, advice: str = ""):
    what = "function" if callable(value) and not _is_savable(type(value)) else type(value).__name__
    where = f"{name} is a {what}, which" if name else f"a {what}"
    raise DataError(f"{where} cannot be saved{advice}")


# JSON and arrays -> objects


class _Reader:
    """tensors : arrays that are not used yet; trusted : classes of other packages"""

    def __init__(self, tensors: dict[str, np.ndarray], trusted: tuple[str, ...] = ()):
        self.tensors, self.trusted = tensors, trusted

    def decode(self, value):
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next((key for key in value if key.startswith("$")), None)
        if tag is None:
            return {key: self.decode(item) for key, item in value.items()}
        read = getattr(self, f"_read_{tag[1:]}", None) if tag[1:].isalpha() else None
        if read is None:
            raise Damage(f"holds {printable(tag)[:40]!r}, which is no kind of value")
        return read(value, value[tag])

    def _read_float(self, value, given):
        if not isinstance(given, str) or given not in FLOATS:
            raise Damage(f"holds {given!r:.40} in place of a number")
        return FLOATS[given]

    def _read_tuple(self, value, given):
        return tuple(self._list(given))

    def _read_dict(self, value, given):
        pairs = self._list(given)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise Damage("holds a dict that does not consist of pairs")
        return _made(dict, pairs)

    def _read_tensor(self, value, given):
        if not isinstance(given, str) or given not in self.tensors:
            raise Damage(f"lacks the tensor {given!r:.80}")
        return np.array(self.tensors.pop(given))  # a copy, since bytes of a file are read-only

    def _read_array(self, value, given):
        items, shape, kind = self._list(given), value.get("shape"), value.get("kind")
        if kind == "str" and not all(isinstance(item, str) for item in items):
            raise Damage("has an array of strings with other values")
        found = np.empty(len(items), object)
        found[:] = items
        return _made((found.astype(str) if kind == "str" else found).reshape, shape)

    def _read_index(self, value, given):
        names, items = self._list(value.get("names")), self._list(given)
        if items and all(isinstance(item, tuple) for item in items):
            return _made(pd.MultiIndex.from_tuples, items, names=names)
        return _made(pd.Index, items, name=names[0] if names else None)

    def _read_series(self, value, given):
        inside = self._fields_of(given, ("values", "index", "name"))
        return _made(pd.Series, inside["values"], inside["index"], name=inside["name"])

    def _read_frame(self, value, given):
        inside = self._fields_of(given, ("values", "index", "columns"))
        found = _made(lambda columns: pd.DataFrame(dict(enumerate(columns))), inside["values"])
        return _made(lambda: found.set_axis(inside["index"]).set_axis(inside["columns"], axis=1))

    def _read_object(self, value, given):
        kind = _class_of(given)
        make = self._estimator if _is_estimator(kind) else self._dataclass
        made = make(kind, value)
        if hasattr(made, "check_loaded"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _made(made.check_loaded, of=kind)
        return made

    def _dataclass(self, kind: type, value):
        found, hints = self._fields_of(value.get("fields")), _hints(kind)
        known = {each.name: each for each in _saved_fields(kind)}
        for name, each in known.items():
            if name not in found and each.default is each.default_factory is MISSING:
                raise Damage(f"lacks {name!r} of {kind.__name__}")
        for name, each in found.items():
            if name not in known:
                raise Damage(f"has a field {name!r:.60} that {kind.__name__} does not have")
            if not _fits(each, hints.get(name, Any)):
                raise Damage(f"holds {printable(repr(each))[:40]} for {name!r} of {kind.__name__}")
        made = _made(kind, **found, of=kind)
        for name, each in self._fields_of(value.get("properties", {})).items():
            if name not in getattr(kind, "saved_properties", ()):
                raise Damage(f"has a field {name!r:.60} that {kind.__name__} does not have")
            made.__dict__[name] = each
        return made

    def _estimator(self, kind: type, value):
        given = self._fields_of(value.get("parameters"))
        known = _made(kind, of=kind).get_params(deep=False)
        for name in given:
            if name not in known:
                raise Damage(f"holds a parameter {name!r:.60} that {kind.__name__} does not have")
        model = _made(kind, **given, of=kind)
        for name, each in self._fields_of(value.get("fitted")).items():
            if not re.fullmatch(r"[a-z]\w*_", name) or name in known or hasattr(kind, name):
                raise Damage(f"has a field {name!r:.60} that {kind.__name__} does not have")
            setattr(model, name, each)
        return model

    def _read_boosting(self, value, given):
        return _made(_boosting_of, given, self._fields_of(value.get("state")), of="boosting model")

    def _read_skops(self, value, given):
        kind, content = value.get("class"), self._read_tensor(value, given)
        if kind not in self.trusted:
            raise Damage(
                f"holds a learner of another package, {printable(str(kind))[:80]}; if you trust "
                "the file, name its class in trusted="
            )
        skops = imported("skops.io", "this model holds a learner that needs skops", "skops")
        try:
            return skops.loads(content.tobytes(), trusted=list(self.trusted))
        except Exception as error:
            raise Damage(f"holds a learner that cannot be loaded ({_first_line(error)})") from None

    def _list(self, value) -> list:
        if not isinstance(value, list):
            raise Damage(f"holds {value!r:.40} in place of a list")
        return self.decode(value)

    def _fields_of(self, value, needed: Iterable[str] = ()) -> dict:
        found = self.decode(value)
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise Damage(f"holds {found!r:.40} in place of fields")
        for name in needed:
            if name not in found:
                raise Damage(f"lacks {name!r}")
        return found


def _made(make: Callable, *args, of: type | str | None = None, **given):
    """What `make` returns; contradictory fields can raise anything there."""
    try:
        return make(*args, **given)
    except (Damage, MemoryError, RecursionError, OverflowError):
        raise
    except Exception as error:
        what = getattr(of or make, "__name__", str(of))
        raise Damage(f"has fields that do not form a {what} ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return printable((str(error).strip() or type(error).__name__).splitlines()[0])[:200]


# Boosting of scikit-learn

KINDS = ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
FITTED = ("train_score_", "validation_score_", "do_early_stopping_", "n_features_in_", "classes_")


def _boosting_state(model) -> dict | None:
    """A HistGradientBoosting model as arrays; None if it needs more than these, which are
    categories, columns with names, or a loss that is an object."""
    import sklearn

    state = {"version": sklearn.__version__, "parameters": model.get_params(deep=False)}
    if not hasattr(model, "_predictors"):
        return state
    named = hasattr(model, "feature_names_in_") or model._preprocessor is not None
    if named or not isinstance(model.loss, str):
        return None
    trees = [tree.nodes for each in model._predictors for tree in each]
    nodes = np.concatenate(trees)
    return state | {
        "nodes": {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names or ()},
        "sizes": np.array([len(each) for each in trees], np.int64),
        "baseline": model._baseline_prediction,
        "weighted": bool(getattr(model, "_fitted_with_sw", False)),
        "fitted": {name: getattr(model, name) for name in FITTED if hasattr(model, name)},
    }


def _boosting_of(name: str, state: dict):
    """The model; every index that scikit-learn follows without a check is checked here."""
    import sklearn
    from sklearn import ensemble
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    if name not in KINDS:
        raise Damage(f"holds {name!r:.60}, which is no boosting model")
    if state.get("version") != sklearn.__version__:
        raise Damage(
            f"holds gradient boosting of scikit-learn {printable(str(state.get('version')))[:20]}, "
            f"which only that version reads, and this is {sklearn.__version__}"
        )
    model = getattr(ensemble, name)(**state["parameters"])
    if "nodes" not in state:
        return model
    for each in FITTED:
        if each in state["fitted"]:
            setattr(model, each, state["fitted"][each])
    nodes = np.zeros(len(state["nodes"]["value"]), PREDICTOR_RECORD_DTYPE)
    for field in PREDICTOR_RECORD_DTYPE.names:
        nodes[field] = state["nodes"][field]
    width, sizes, baseline = model.n_features_in_, state["sizes"], state["baseline"]
    if (sizes < 1).any() or sizes.sum() != len(nodes) or type(width) is not int or width < 1:
        raise ValueError("nodes that do not form trees")
    if nodes["is_categorical"].any() or not np.isfinite(nodes["value"]).all():
        raise ValueError("a node with a category, or a leaf without a number")
    none = np.zeros((0, 8), np.uint32)  # sets of categories
    trees = []
    for tree in np.split(nodes, np.cumsum(sizes)[:-1]):
        place = np.flatnonzero(tree["is_leaf"] == 0)
        inner = tree[place]
        # children come after their parent, so that every row reaches a leaf
        for side in ("left", "right"):
            if not ((inner[side] > place) & (inner[side] < len(tree))).all():
                raise ValueError("a node with a child that the tree does not have")
        if not ((inner["feature_idx"] >= 0) & (inner["feature_idx"] < width)).all():
            raise ValueError("a node with a column that the table does not have")
        trees.append(TreePredictor(np.ascontiguousarray(tree), none, none))
    classes = len(getattr(model, "classes_", ()))
    per = classes if classes > 2 else 1
    if baseline.shape != (1, per) or len(trees) % per or (name == KINDS[1]) != (classes > 1):
        raise ValueError("trees that do not form iterations")
    model._bin_mapper = _BinMapper(n_bins=model.max_bins + 1)
    model._bin_mapper.is_categorical_ = np.zeros(width, np.uint8)
    model._bin_mapper.bin_thresholds_ = []  # of categories
    model._preprocessor = model._is_categorical_remapped = model.is_categorical_ = None
    model._predictors = [trees[at : at + per] for at in range(0, len(trees), per)]
    model._baseline_prediction, model.n_trees_per_iteration_ = baseline, per
    model._n_features, model._fitted_with_sw = width, bool(state["weighted"])
    model._loss = model._get_loss(sample_weight=None)
    return model
