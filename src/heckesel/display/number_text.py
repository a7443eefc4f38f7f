"""Estimates and p-values as text."""

import math


def number_text(value: float, digits: int = 4) -> str:
    """With `digits` decimals, or in scientific notation where these would show nothing."""
    if not math.isfinite(value):
        return f"{value}"
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e5):
        return f"{value:.{max(digits - 2, 1)}e}"
    return f"{value:.{digits}f}"


def p_text(p: float) -> str:
    """With three decimals, and "< 0.001" below that."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equation(p: float) -> str:
    """As a part of a sentence, such as "p = 0.012" or "p < 0.001"."""
    return f"p {p_text(p)}" if p < 0.001 else f"p = {p_text(p)}"
