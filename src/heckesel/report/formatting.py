"""Numbers as strings for readers: with a minus sign, and no more digits than the data have."""

import math
import re
from dataclasses import dataclass

import numpy as np

from heckesel.display import p_text

NONE = "–"
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Digits:
    """Formats numbers with a fixed number of decimals, so that columns align."""

    decimals: int

    def __call__(self, value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return NONE
        text = f"{value:,.{self.decimals}f}"
        if not text.strip("-0.,"):
            text = text.removeprefix("-")
        return text.replace("-", "−")

    def signed(self, value: float) -> str:
        text = self(value)
        return text if text.startswith("−") or text == NONE else f"+{text}"

    def change(self, value: float, uncertainty: float) -> str:
        """With its uncertainty, if that is finite."""
        if not math.isfinite(uncertainty):
            return self.signed(value)
        return f"{self.signed(value)}{NO_BREAK}±{NO_BREAK}{self(uncertainty)}"

    def interval(self, ends) -> str:
        return _from_to(ends, self)


def _from_to(ends, text) -> str:
    """Both ends, or a single dash if there is neither."""
    if ends is None or not any(end is not None and math.isfinite(end) for end in ends):
        return NONE
    return f"{text(ends[0])} to {text(ends[1])}"


def digits_for(values: np.ndarray) -> Digits:
    """Three digits of the standard deviation of the values."""
    sd = float(np.nanstd(values)) if np.isfinite(values).any() else 1.0
    if not (math.isfinite(sd) and sd > 0):
        sd = 1.0
    return Digits(int(np.clip(2 - math.floor(math.log10(sd)), 0, 12)))


def significant(value: float | None, digits: int = 4) -> str:
    """With `digits` significant digits, for coefficients on different scales."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -5 <= size < 7:
        return Digits(max(0, digits - 1 - size))(value)
    return f"{value:.{digits - 1}e}".replace("-", "−")


def ends(interval) -> str:
    """An interval with three significant digits."""
    return _from_to(interval, lambda value: significant(value, 3))


def minus(text: str) -> str:
    """A sentence with minus signs in place of the hyphens before its numbers."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text)


def percent(share: float, decimals: int = 0) -> str:
    return f"{100 * share:.{decimals}f} %"


def p_value(p: float) -> str:
    return p_text(p) if math.isfinite(p) else NONE
