"""Fitted objects as plain fields and arrays, and back, by a layout declared for each class.

A layout lists the fields of a file, each with a reader that checks its kind and shape. Lengths have
names: "p" and "q" are the columns of x and w, "q+1" one more than that, and any other name stands
for the length that is found first, which later fields of the object must have, too. A class without
a layout is read by its annotations, all arrays finite and of any shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields

Sizes = dict[str, int]
Reader = Callable[[Fields, str, Sizes], Any]


@dataclass(frozen=True)
class Layout:
    """Where a class lives, and how a file holds it.

    module, name : of the class
    fields : field of the file -> reader
    attributes : field of the file -> attribute, where the two differ
    check : (object, sizes) -> raises `Damage` where fields do not fit one another
    split, join : object -> attributes by field, and values by field -> arguments of the class, for
        a class whose file looks different
    """

    module: str
    name: str
    fields: dict[str, Reader]
    attributes: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Any, Sizes], None] | None = None
    split: Callable[[Any], dict] | None = None
    join: Callable[[dict], dict] | None = None

    @property
    def kind(self) -> type:
        return getattr(import_module(self.module), self.name)

    def write(self, value) -> dict:
        """The fields of an object."""
        if self.split is not None:
            return self.split(value)
        return {name: getattr(value, self.attributes.get(name, name)) for name in self.fields}

    def read(self, state: Fields, sizes: Sizes):
        """The object; sizes : of the names "p" and "q"."""
        known = dict(sizes)
        found = {name: reader(state, name, known) for name, reader in self.fields.items()}
        if self.join is not None:
            given = self.join(found)
        else:
            given = {self.attributes.get(name, name): value for name, value in found.items()}
        made = self.kind(**given)
        if self.check is not None:
            self.check(made, sizes)
        return made


def layout_by_annotations(kind: type) -> Layout:
    """The layout of a dataclass that says no more than the types of its fields."""
    hints = get_type_hints(kind)
    fields = {one.name: _reader_of(hints[one.name]) for one in dataclasses.fields(kind)}
    return Layout(kind.__module__, kind.__name__, fields)


def _reader_of(hint) -> Reader:
    options = [one for one in get_args(hint) or (hint,) if one is not NoneType]
    if NoneType in get_args(hint) and len(options) == 1:
        return maybe(_reader_of(options[0]))
    if hint not in READERS:
        raise DataError(f"a field of type {hint} cannot be saved")
    return READERS[hint]


def as_fields(value, layout_of: Callable[[type], Layout | None]):
    """`value` with every object of a known class, and every pandas object, made plain."""
    if isinstance(value, pd.Series | pd.DataFrame):
        return value.to_numpy()
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, list | tuple):
        return [as_fields(each, layout_of) for each in value]
    if isinstance(value, dict):
        return {name: as_fields(each, layout_of) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and (layout := layout_of(type(value))) is not None:
        return as_fields(layout.write(value), layout_of)
    return value


def array(*shape: str | int, **checks) -> Reader:
    """An array of these lengths; checks : as `Fields.array` has them."""

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


def whole(state: Fields, name: str, sizes: Sizes) -> int:
    return state.integer(name)


def flag(state: Fields, name: str, sizes: Sizes) -> bool:
    return state.truth(name)


def plain(state: Fields, name: str, sizes: Sizes) -> dict:
    return state.plain(name)


def any_array(state: Fields, name: str, sizes: Sizes) -> np.ndarray:
    value = state.take(name)
    return state.array(name, value.shape if isinstance(value, np.ndarray) else ())


def maybe(reader: Reader) -> Reader:
    """None where the file has nothing."""
    return lambda state, name, sizes: reader(state, name, sizes) if state.has(name) else None


def above_two(reader: Reader) -> Reader:
    """Degrees of freedom of a t that has a variance."""

    def read(state: Fields, name: str, sizes: Sizes):
        value = reader(state, name, sizes)
        if not np.all(value > 2):
            raise Damage(f"has degrees of freedom that are not above 2 in {name!r}")
        return value

    return read


READERS: dict[Any, Reader] = {
    float: number(),
    int: whole,
    str: text(),
    bool: flag,
    dict: plain,
    np.ndarray: any_array,
}
