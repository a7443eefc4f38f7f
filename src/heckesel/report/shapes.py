"""Shapes of small figures, which a template turns into inline SVG 400 units wide.

Colours and strokes are CSS classes, so that a figure follows the page into dark mode and print.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from heckesel.report.formatting import ticks_text

WIDTH = 400.0  # units; on a phone 360 pixels wide, text of 13 units is still 10 pixels high


@dataclass(frozen=True)
class Line:
    """tag : "polyline", or "polygon" for the area inside"""

    points: str
    style: str
    tag: str = "polyline"


@dataclass(frozen=True)
class Mark:
    """tag : "circle" or "diamond" """

    tag: str
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
    tag: ClassVar = "text"


Shape = Line | Mark | Text


@dataclass(frozen=True)
class Drawing:
    """shapes : in drawing order; header, rows : a table of the numbers behind the figure"""

    name: str
    title: str
    description: str
    height: float
    shapes: tuple[Shape, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    width: float = WIDTH

    @property
    def drawn(self) -> tuple[Shape, ...]:
        """The shapes without marks of values that are not finite."""
        return tuple(
            shape
            for shape in self.shapes
            if not (isinstance(shape, Mark) and not math.isfinite(shape.x + shape.y))
        )


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` to units from `start` to `end`.

    text : formats the numbers on the axis; by default with the decimals that the ticks need
    """

    low: float
    high: float
    start: float
    end: float
    text: Callable[[float], str] | None = None

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)

    @property
    def ticks(self) -> list[float]:
        return nice_ticks(self.low, self.high)

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The position and the number of each tick."""
        text = self.text or ticks_text(self.ticks)
        return [(self(value), text(value)) for value in self.ticks]


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between low and high; about `about` of them."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [multiple * step for multiple in range(first, last + 1)]


def span(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """The range of the finite values with a margin; never empty."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    room = margin * (high - low) or abs(low) * margin or 1.0
    return low - room, high + room


def path(xs, ys) -> str:
    pairs = zip(xs, ys, strict=True)
    return " ".join(f"{x:g},{y:g}" for x, y in pairs if math.isfinite(x + y))


def segment(x1: float, y1: float, x2: float, y2: float, style: str) -> Line:
    return Line(path((x1, x2), (y1, y2)), style)


def band(xs, low, high) -> Line:
    """The area between two curves."""
    return Line(path([*xs, *xs[::-1]], [*low, *high[::-1]]), "band", "polygon")


def legend(y: float, *entries: tuple[str, str, str]) -> list[Shape]:
    """A row of (mark, style, text); the mark "line" is a stroke."""
    shapes: list[Shape] = []
    x = 8.0
    for mark, style, text in entries:
        if mark == "line":
            shapes.append(segment(x - 4, y - 4, x + 14, y - 4, style))
            x += 10
        else:
            shapes.append(Mark(mark, x, y - 4, style))
        shapes.append(Text(x + 10, y, text))
        x += 26 + 6.6 * len(text)
    return shapes


def axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[Shape]:
    """Grid lines with their numbers; the label of y is horizontal, above its axis."""
    shapes: list[Shape] = []
    for height, number in y.labels:
        shapes.append(segment(x.start, height, x.end, height, "grid"))
        shapes.append(Text(x.start - 6, height + 4, number, "end"))
    return [*shapes, *x_axis(x, y.start, x_label), Text(2, y.end - 10, y_label)]


def x_axis(x: Scale, at: float, label: str, *, top: float | None = None) -> list[Shape]:
    """The axis at height `at` with its numbers below and, with `top`, grid lines up to there."""
    shapes: list[Shape] = [segment(x.start, at, x.end, at, "axis")]
    for place, number in x.labels:
        if top is not None:
            shapes.append(segment(place, at, place, top, "grid"))
        shapes.append(segment(place, at, place, at + 4, "axis"))
        shapes.append(Text(place, at + 17, number, "middle"))
    return [*shapes, Text((x.start + x.end) / 2, at + 36, label, "middle")]
