"""Checks whether an outcome is continuous, so that it has a density."""

import numpy as np

# A density is unsuitable if one value has more than this share of the outcomes, or if there are at
# most this many values. An age in years, for example, has no value with a share of a tenth.
SPIKE, FEW_VALUES = 0.1, 12


def unsuited_to_density(y: np.ndarray, weight: np.ndarray) -> str | None:
    """Why the outcome has no smooth density, or None."""
    values, place = np.unique(y, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    if len(values) <= FEW_VALUES:
        return f"the outcome has only {len(values)} distinct values"
    if share.max() > SPIKE:
        return f"{share.max():.0%} of the outcomes equal {values[share.argmax()]:g}"
    return None
