"""Reads and validates the fields of a saved model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckesel.saving.model_file import Damage


@dataclass(frozen=True)
class Fields:
    """The fields of one object in a file; `name` identifies it in messages."""

    content: object
    name: str = "the model"

    def __post_init__(self):
        if not isinstance(self.content, dict):
            raise Damage(f"holds no fields for {self.name}")

    def take(self, field: str):
        """The value of `field`, unchanged."""
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
        return self._checked(
            field, lambda value: isinstance(value, str) and (among is None or value in among)
        )

    def truth(self, field: str) -> bool:
        return self._checked(field, lambda value: isinstance(value, bool))

    def integer(self, field: str) -> int:
        return self._checked(field, lambda value: type(value) is int and value >= 0)

    def number(self, field: str, *, finite: bool = True, positive: bool = False) -> float:
        def good(value) -> bool:
            known = type(value) in (int, float) and not (finite and not np.isfinite(value))
            return known and (value > 0 or not positive)

        return float(self._checked(field, good))

    def items(self, field: str) -> list:
        return self._checked(field, lambda value: isinstance(value, list))

    def strings(self, field: str) -> tuple[str, ...]:
        self.items(field)
        return tuple(self._checked(field, lambda value: all(isinstance(one, str) for one in value)))

    def plain(self, field: str) -> dict:
        """A dict for people to read: the training summary, the evidence of a verdict."""
        return self._checked(field, lambda value: isinstance(value, dict))

    def array(
        self,
        field: str,
        shape: Sequence[int | None] | None = None,
        *,
        finite: bool = True,
        positive: bool = False,
        dtype: str = "float64",
    ) -> np.ndarray:
        """An array of this shape; None allows any length, or any shape."""
        value = self.take(field)
        label = f"{field!r} of {self.name}"
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise Damage(f"holds no {dtype} tensor for {label}")
        shape = value.shape if shape is None else shape
        if len(shape) != value.ndim or any(
            expected not in (None, found)
            for expected, found in zip(shape, value.shape, strict=True)
        ):
            expected = tuple("any" if size is None else size for size in shape)
            raise Damage(f"has shape {value.shape} for {label}, where {expected} is expected")
        if finite and not np.isfinite(value).all():
            raise Damage(f"has values that are not finite in {label}")
        if positive and not (value > 0).all():
            raise Damage(f"has values that are not positive in {label}")
        return value

    def _checked(self, field: str, good: Callable[[Any], bool]):
        value = self.take(field)
        if not good(value):
            shown = repr(value)
            shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
            raise Damage(f"holds {shown} for {field!r} of {self.name}")
        return value
