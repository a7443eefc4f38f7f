"""Where selection reached and where it did not: regions by the true P(s = 1 | x)."""

from __future__ import annotations

import numpy as np

from heckesel.data import numeric

AGAINST_BELOW = 0.3
WELL_FROM = 0.7
# The shares and means of a region with fewer points say more about the draw than the method.
FEWEST_POINTS = 10


def regions(propensity_x: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of each region: against < .3 <= mid < .7 <= well.

    Regions of fewer than ten points are left out. The probability is the true one, given x
    alone, so that the same points are compared whatever a method believed.
    """
    propensity_x = numeric(propensity_x, "propensity_x")
    against, well = propensity_x < AGAINST_BELOW, propensity_x >= WELL_FROM
    members = {"against": against, "mid": ~against & ~well, "well": well}
    rows = {name: np.flatnonzero(member) for name, member in members.items()}
    return {name: index for name, index in rows.items() if len(index) >= FEWEST_POINTS}
