"""Frequency weights and probability weights."""

from __future__ import annotations

import numpy as np


def kind_of_weights(weight_kind: str | None, weight) -> str:
    """The kind asked for; by default whole numbers are frequencies."""
    whole = (weight == np.round(weight)).all()
    if weight_kind is not None:
        return weight_kind
    return "frequency" if whole else "probability"


def scaled_weight(weight, weight_kind: str) -> np.ndarray:
    """Probability weights with an average of one, because their scale is arbitrary and
    likelihoods add them up; frequency weights as they are."""
    if weight_kind == "frequency":
        return weight
    return weight * np.count_nonzero(weight) / weight.sum()
