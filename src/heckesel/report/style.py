"""Small pictures as shapes in a plane of 400 units: what a template turns into inline SVG.

Colours and strokes are names of style classes, so that a picture follows the page into dark mode
and onto paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 400.0  # units; on a telephone of 360 pixels text of 13 units is still 10 pixels high


@dataclass(frozen=True)
class Line:
    points: str
    style: str


@dataclass(frozen=True)
class Area:
    points: str
    style: str


@dataclass(frozen=True)
class Mark:
    """shape : "circle" or "diamond" """

    shape: str
    x: float
    y: float
    style: str
    size: float = 5.0


@dataclass(frozen=True)
class Text:
    """anchor : "start", "middle" or "end" """

    x: float
    y: float
    text: str
    anchor: str = "start"
    style: str = "label"


@dataclass(frozen=True)
class Drawing:
    """parts : in drawing order; header, rows : the same in numbers, as text, for a table beside"""

    name: str
    title: str
    description: str
    height: float
    parts: tuple[Line | Area | Mark | Text, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    width: float = WIDTH

    @property
    def drawn(self) -> tuple[Line | Area | Mark | Text, ...]:
        """Parts with a place: a value that is not a number has none."""
        return tuple(
            part
            for part in self.parts
            if not (isinstance(part, Mark) and not math.isfinite(part.x + part.y))
        )


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on units from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)

    @property
    def ticks(self) -> list[float]:
        return nice_ticks(self.low, self.high)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between low and high, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [multiple * step for multiple in range(first, last + 1)]


def span(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """The finite values and some room; a single value gets a range of its own."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    room = margin * (high - low) or abs(low) * margin or 1.0
    return low - room, high + room


def path(xs, ys) -> str:
    pairs = zip(xs, ys, strict=True)
    return " ".join(f"{x:g},{y:g}" for x, y in pairs if math.isfinite(x + y))


def segment(x1: float, y1: float, x2: float, y2: float, style: str) -> Line:
    return Line(path((x1, x2), (y1, y2)), style)


def axes(x: Scale, y: Scale, *, x_label: str, y_label: str, x_text, y_text) -> list[Line | Text]:
    """Grid lines with their numbers; the label of y stands above it, level, to be read at once."""
    parts: list[Line | Text] = []
    for value in y.ticks:
        parts.append(segment(x.start, y(value), x.end, y(value), "grid"))
        parts.append(Text(x.start - 6, y(value) + 4, y_text(value), "end"))
    parts += x_axis(x, y.start, label=x_label, text=x_text)
    parts.append(Text(2, y.end - 10, y_label))
    return parts


def x_axis(x: Scale, at: float, *, label: str, text, top: float | None = None) -> list[Line | Text]:
    """The line at height `at` with its numbers below; with `top`, grid lines up to there."""
    parts: list[Line | Text] = [segment(x.start, at, x.end, at, "axis")]
    for value in x.ticks:
        if top is not None:
            parts.append(segment(x(value), at, x(value), top, "grid"))
        parts.append(segment(x(value), at, x(value), at + 4, "axis"))
        parts.append(Text(x(value), at + 17, text(value), "middle"))
    parts.append(Text((x.start + x.end) / 2, at + 36, label, "middle"))
    return parts
