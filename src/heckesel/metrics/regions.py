"""Regions of the population by the true probability of selection given x."""

import numpy as np

from heckesel.numeric_input import numeric

AGAINST_BELOW = 0.3
WELL_FROM = 0.7
# Metrics of a region with fewer points depend more on the draw than on the method.
FEWEST_POINTS = 10


def regions(propensity_x: np.ndarray) -> dict[str, np.ndarray]:
    """Split points into regions by their probability of selection.

    Parameters
    ----------
    propensity_x : array-like of shape (m,)
        True P(s = 1 | x). Because it does not depend on a fitted model, every method is evaluated
        on the same points.

    Returns
    -------
    dict of str to ndarray
        Row numbers of the regions ``"against"`` (below .3), ``"mid"`` (from .3 to .7) and
        ``"well"`` (.7 and above). A region with fewer than ten points has no key.

    Examples
    --------
    >>> import numpy as np
    >>> {name: len(rows) for name, rows in regions(np.linspace(0, 1, 101)).items()}
    {'against': 30, 'mid': 40, 'well': 31}
    """
    propensity_x = numeric(propensity_x, "propensity_x")
    against, well = propensity_x < AGAINST_BELOW, propensity_x >= WELL_FROM
    members = {"against": against, "mid": ~against & ~well, "well": well}
    rows = {name: np.flatnonzero(member) for name, member in members.items()}
    return {name: index for name, index in rows.items() if len(index) >= FEWEST_POINTS}
