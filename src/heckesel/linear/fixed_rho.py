"""The whole model, fitted at given values of rho."""

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.estimates import Estimates, estimates_at
from heckesel.linear.joint import at_zero, solve_at
from heckesel.linear.sample.sample import standardised_sample


def estimates_over_rho(data: SelectionData, rho: np.ndarray) -> list[Estimates]:
    """Maximum likelihood with rho held at each value (j,), which are in ascending order.

    From rho = 0 outwards on both sides; each optimum is the start of the next.
    """
    sample, scalings = standardised_sample(data)
    found: dict[int, Estimates] = {}
    up, down = np.flatnonzero(rho >= 0), np.flatnonzero(rho < 0)[::-1]
    centre = solve_at(sample, 0.0, at_zero(sample))
    for side in (up, down):
        here = centre
        for position in side:
            a = float(np.arctanh(rho[position]))
            here = solve_at(sample, a, here.predict(a))
            found[int(position)] = estimates_at(here, sample, scalings)
    return [found[position] for position in range(len(rho))]
