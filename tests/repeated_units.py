"""Several rows per unit: each unit has effects on selection and on the outcome, and each row has
noise."""

import numpy as np
import pandas as pd


def repeated_units(
    seed: int, *, units: int, rows: int, curved: bool = True
) -> tuple[pd.DataFrame, pd.Series]:
    """g0, g1, g2 are constant in a unit, and its effect has 64 % of the variance of the errors.

    y is missing where it was not selected; z is the instrument. curved : whether E[y | x] is a
    curve in g1, or linear
    """
    X, y, selected = all_outcomes(seed, units=units, rows=rows, curved=curved)
    return X, y.where(selected)


def all_outcomes(
    seed: int, *, units: int, rows: int, curved: bool = True
) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """As `repeated_units`, with all outcomes, and which rows are selected."""
    rng = np.random.default_rng(seed)
    n, own = units * rows, np.repeat(np.arange(units), rows)
    g, x, z = rng.normal(size=(units, 3))[own], rng.normal(size=n), rng.normal(size=n)
    of_selection, of_outcome = rng.normal(size=(2, units))
    u = 0.6 * of_selection[own] + 0.8 * rng.normal(size=n)
    unit = 0.5 * of_selection + np.sqrt(0.75) * of_outcome
    row = 0.5 * u + np.sqrt(0.75) * rng.normal(size=n)
    of_g1 = np.sin(2 * g[:, 1]) if curved else 0.0
    y = g[:, 0] + of_g1 + x + 0.8 * unit[own] + 0.6 * row
    X = pd.DataFrame({"g0": g[:, 0], "g1": g[:, 1], "g2": g[:, 2], "x": x, "z": z, "id": own})
    return X, pd.Series(y, name="y"), 0.5 + z + u > 0
