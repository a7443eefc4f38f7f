"""What weights count: rows, or nothing in particular."""

from __future__ import annotations

import numpy as np


def kind_of_weights(weight_kind: str | None, weight) -> str:
    """As asked for; otherwise whole weights count rows."""
    whole = (weight == np.round(weight)).all()
    if weight_kind is not None:
        return weight_kind
    return "frequency" if whole else "probability"


def scaled_weight(weight, weight_kind: str) -> np.ndarray:
    """Probability weights have no scale of their own: here they are one on average, so that a
    likelihood may add them up."""
    if weight_kind == "frequency":
        return weight
    return weight * np.count_nonzero(weight) / weight.sum()
