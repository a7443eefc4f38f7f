"""Results as values that can be written as JSON."""

import math


def plain(value):
    """`value` with lists in place of tuples, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
