"""Reads the fields of a saved model, each checked for what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heckesel.saving.model_file import Damage


@dataclass(frozen=True)
class Fields:
    """The fields of one object in a file; `name` says which, for messages."""

    content: object
    name: str = "the model"

    def __post_init__(self):
        if not isinstance(self.content, dict):
            raise Damage(f"holds no fields for {self.name}")

    def take(self, field: str):
        """The value of `field` as it stands."""
        assert isinstance(self.content, dict)
        if field not in self.content:
            raise Damage(f"lacks {field!r} of {self.name}")
        return self.content[field]

    def has(self, field: str) -> bool:
        """Whether `field` is there and not None."""
        assert isinstance(self.content, dict)
        return self.content.get(field) is not None

    def inside(self, field: str) -> Fields:
        return Fields(self.take(field), f"{self.name}, {field}")

    def text(self, field: str, among: Sequence[str] | None = None) -> str:
        value = self.take(field)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self._wrong(field, value)
        return value

    def truth(self, field: str) -> bool:
        value = self.take(field)
        if not isinstance(value, bool):
            raise self._wrong(field, value)
        return value

    def integer(self, field: str, *, least: int = 0) -> int:
        value = self.take(field)
        if type(value) is not int or value < least:
            raise self._wrong(field, value)
        return value

    def number(self, field: str, *, finite: bool = True, positive: bool = False) -> float:
        value = self.take(field)
        good = type(value) in (int, float) and not (finite and not np.isfinite(value))
        if not good or (positive and not value > 0):
            raise self._wrong(field, value)
        return float(value)

    def items(self, field: str) -> list:
        value = self.take(field)
        if not isinstance(value, list):
            raise self._wrong(field, value)
        return value

    def strings(self, field: str) -> tuple[str, ...]:
        value = self.items(field)
        if not all(isinstance(item, str) for item in value):
            raise self._wrong(field, value)
        return tuple(value)

    def plain(self, field: str) -> dict:
        """A dict for people to read: the training summary, the evidence of a verdict."""
        value = self.take(field)
        if not isinstance(value, dict):
            raise self._wrong(field, value)
        return value

    def array(
        self,
        field: str,
        shape: Sequence[int | None],
        *,
        finite: bool = True,
        positive: bool = False,
        dtype: str = "float64",
    ) -> np.ndarray:
        """An array of this shape, None where any length will do."""
        value = self.take(field)
        label = f"{field!r} of {self.name}"
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise Damage(f"holds no {dtype} tensor for {label}")
        fits = len(shape) == value.ndim and all(
            expected in (None, found) for expected, found in zip(shape, value.shape, strict=True)
        )
        if not fits:
            expected = tuple("any" if size is None else size for size in shape)
            raise Damage(f"has shape {value.shape} for {label}, where {expected} is expected")
        if finite and not np.isfinite(value).all():
            raise Damage(f"has values that are not finite in {label}")
        if positive and not (value > 0).all():
            raise Damage(f"has values that are not positive in {label}")
        return value

    def _wrong(self, field: str, value) -> Damage:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
        return Damage(f"holds {shown} for {field!r} of {self.name}")
