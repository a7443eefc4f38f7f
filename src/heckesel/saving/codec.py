"""Fitted objects as plain fields and arrays, and back, by a layout for each class.

A layout lists the fields of a file, each with a reader that checks its kind and shape. It comes
from the annotations of a dataclass and the metadata of its fields (`heckesel.on_disk`); SPECIAL
adds what these do not state. Arrays without metadata are finite and may have any shape.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.fit_info import as_dictionary, from_dictionary
from heckesel.on_disk import KEY, OnDisk
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields

Sizes = dict[str, int]
Reader = Callable[[Fields, str, Sizes], Any]


@dataclass(frozen=True)
class Special:
    """The part of the layout of a class that its annotations and metadata do not state.

    readers : of some attributes; names : attribute -> field, if the file has an older name
    fields : all fields, if those of the file differ from those of the class
    check : (object, sizes) -> raises `Damage` if fields contradict each other
    split, join : object -> attributes by field, and values by field -> arguments of the class, for
        a class whose fields in the file differ
    """

    readers: Mapping[str, Reader] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    fields: dict[str, Reader] | None = None
    check: Callable[[Any, Sizes], None] | None = None
    split: Callable[[Any], dict] | None = None
    join: Callable[[dict], dict] | None = None


@dataclass(frozen=True)
class Layout:
    """How a file holds the objects of a class.

    kind : the class
    fields : field of the file -> reader
    attributes : field of the file -> attribute, if the names differ
    """

    kind: type
    fields: dict[str, Reader]
    special: Special
    attributes: Mapping[str, str] = field(default_factory=dict)

    def write(self, value) -> dict:
        """The fields of an object."""
        if self.special.split is not None:
            return self.special.split(value)
        return {name: getattr(value, self.attributes.get(name, name)) for name in self.fields}

    def read(self, state: Fields, sizes: Sizes):
        """The object; sizes : of the names "p" and "q"."""
        known = dict(sizes)
        found = {name: reader(state, name, known) for name, reader in self.fields.items()}
        if self.special.join is not None:
            given = self.special.join(found)
        else:
            given = {self.attributes.get(name, name): value for name, value in found.items()}
        made = self.kind(**given)
        if self.special.check is not None:
            self.special.check(made, sizes)
        return made


SPECIAL: dict[str, Special] = {}  # by class; modules with layouts add theirs


def layout_of(kind: type) -> Layout:
    """The layout of a class, from SPECIAL, annotations and metadata."""
    special, hints = SPECIAL.get(kind.__name__, Special()), get_type_hints(kind)
    fields, attributes = dict(special.fields or {}), {}
    for one in () if special.fields else dataclasses.fields(kind):
        how = one.metadata.get(KEY, OnDisk())
        if how.kept:
            name = special.names.get(one.name, one.name)
            reader = special.readers.get(one.name) or _reader_of(one.name, hints[one.name], how)
            fields[name], attributes[name] = reader, one.name
    return Layout(kind, fields, special, attributes)


def _reader_of(name: str, hint, how: OnDisk) -> Reader:
    options = [one for one in get_args(hint) if one is not NoneType]
    if get_origin(hint) is tuple and is_dataclass(options[0]):
        return several(options[0])
    if NoneType in get_args(hint):
        return maybe(_reader_of(name, options[0] if len(options) == 1 else hint, how))
    if how.inputs is not None:
        return networks(how.inputs, how.outputs)
    if is_dataclass(hint):
        return info(hint) if name == "info" else part(hint)
    limits: dict[str, Any] = {"positive": how.positive, "finite": how.finite}
    if hint is float:
        return above(how.above, number(**limits))
    if hint is np.ndarray and how.shape:
        return above(how.above, array(*how.shape, dtype=how.dtype, **limits))
    if hint not in READERS:
        raise DataError(f"a field of type {hint} cannot be saved")
    return READERS[hint]


def as_fields(value):
    """`value` with all its dataclasses and pandas objects as plain fields and arrays."""
    if isinstance(value, pd.Series | pd.DataFrame):
        return value.to_numpy()
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, list | tuple):
        return [as_fields(each) for each in value]
    if isinstance(value, dict):
        return {
            name: as_dictionary(each) if name == "info" and is_dataclass(each) else as_fields(each)
            for name, each in value.items()
        }
    if is_dataclass(value):
        return as_fields(layout_of(type(value)).write(value))
    return value


def part(kind: Any) -> Reader:
    """An object inside another."""
    return lambda state, name, sizes: layout_of(kind).read(
        state.inside(name), {each: sizes[each] for each in "pq"}
    )


def several(kind: Any) -> Reader:
    """A tuple of objects, which may refer to the sizes of the object they are in."""
    return lambda state, name, sizes: tuple(
        layout_of(kind).read(Fields(each, f"{state.name}, {name} {j}"), sizes)
        for j, each in enumerate(state.items(name))
    )


def networks(inputs: str, outputs: tuple[int, ...]) -> Reader:
    """Networks from this number of columns to one of these numbers of outputs."""

    def read(state: Fields, name: str, sizes: Sizes):
        from heckesel.networks.training.ensemble_training import Members

        found = part(Members)(state, name, sizes)
        first, last = found.sizes[0], found.sizes[-1]
        if first != sizes[inputs] or last not in outputs:
            raise Damage(f"has networks from {first} to {last} numbers for {sizes[inputs]} columns")
        return found

    return read


def array(*shape: str | int, **checks) -> Reader:
    """An array of these lengths; checks : options of `Fields.array`."""

    def read(state: Fields, name: str, sizes: Sizes) -> np.ndarray:
        value = state.array(name, tuple(_lengths(shape, sizes)), **checks)
        for length, found in zip(shape, value.shape, strict=True):
            if isinstance(length, str) and "+" not in length:
                sizes[length] = found
        return value

    return read


def _lengths(shape: tuple[str | int, ...], sizes: Sizes) -> Iterator[int | None]:
    for length in shape:
        if isinstance(length, int):
            yield length
            continue
        base, _, more = length.partition("+")
        yield sizes[base] + int(more or 0) if base in sizes else None


def number(**checks) -> Reader:
    return lambda state, name, sizes: state.number(name, **checks)


def text(*among: str) -> Reader:
    return lambda state, name, sizes: state.text(name, among or None)


def _taken(take: Callable[[Fields, str], Any]) -> Reader:
    return lambda state, name, sizes: take(state, name)


whole, flag = _taken(Fields.integer), _taken(Fields.truth)


def info(kind: Any) -> Reader:
    """The summary of a fit."""

    def read(state: Fields, name: str, sizes: Sizes):
        try:
            return from_dictionary(kind, state.plain(name))
        except ValueError as error:
            raise Damage(f"holds {error} of {state.name}, {name}") from None

    return read


def maybe(reader: Reader) -> Reader:
    """An optional field: None if the file does not have it."""
    return lambda state, name, sizes: reader(state, name, sizes) if state.has(name) else None


def above(least: float | None, reader: Reader) -> Reader:
    """Values that exceed `least`, such as degrees of freedom of a t that has a variance."""

    def read(state: Fields, name: str, sizes: Sizes):
        value = reader(state, name, sizes)
        if least is not None and not np.all(value > least):
            raise Damage(f"has values that are not above {least:g} in {name!r}")
        return value

    return read


READERS: dict[Any, Reader] = {
    float: number(),
    int: whole,
    str: text(),
    bool: flag,
    tuple[str, ...]: _taken(Fields.strings),
    dict: _taken(Fields.plain),
    np.ndarray: _taken(Fields.array),
}
