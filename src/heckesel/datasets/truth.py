"""What a generator knows about its units and an analyst would not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Truth:
    """One entry per row of the frame it comes with.

    y : (n,) outcome of every unit, selected or not
    f0 : (n,) E[y | x]; None where it is unknown
    propensity : (n,) P(s = 1 | x, z); None where no z was drawn
    propensity_x : (n,) P(s = 1 | x), by which regions of the population are told apart
    """

    y: np.ndarray
    f0: np.ndarray | None
    propensity: np.ndarray | None
    propensity_x: np.ndarray
