"""Draws for X5: five columns, with or without an instrument, and five error distributions.

Four columns are normal and one is a category with three levels, which enters as two dummies. Both
errors have mean 0, and that of the outcome is independent of x except with `varying`. The outcome
function is therefore the mean of the outcome. numpy and scipy are enough to draw.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2, t

from heckesel.data import SelectionData, selection_data

INSTRUMENTS = {"strong": 1.0, "weak": 0.12, "none": 0.0}  # coefficient of z in the index
STRENGTHS = INSTRUMENTS | {"moderate": 0.5}  # those of X5, and one in between
ERRORS = ("normal", "skewed", "heavy-tailed", "mixture", "varying")
RHOS = (-0.9, -0.5, 0.0, 0.5, 0.9)
OUTCOMES = ("linear", "smooth", "interactions")
SELECTIONS = ("linear", "quadratic")
SIZES = (500, 2000)
TEST = 1500
SIGMA = 0.5
DF = {"skewed": 3, "heavy-tailed": 4}
OUTLIERS, OUTLIER_SD = 0.1, 3.0  # share of outliers, and their sd relative to the others
LOG_SIGMA = (0.4, -0.2)  # slopes of log sigma(x) in the first two columns, with `varying`
NAMES = ("x1", "x2", "x3", "x4", "level1", "level2")
QUADRATURE = 40  # nodes over z


@dataclass(frozen=True)
class Draw:
    """A pool, and test points with their truth; x : (m, 6), the others (m,)

    propensity_x : P(s = 1 | x), with z and the error of selection integrated out
    """

    data: SelectionData
    x: np.ndarray
    y: np.ndarray
    f0: np.ndarray
    propensity_x: np.ndarray


def draw_regime(
    instrument: str, errors: str, rho: float, outcome: str, selection: str, n: int, seed: int
) -> Draw:
    """n units and TEST further ones to predict. Each setting has different random numbers."""
    places = STRENGTHS, ERRORS, RHOS, OUTCOMES, SELECTIONS
    setting = instrument, errors, rho, outcome, selection
    numbers = [list(known).index(value) for known, value in zip(places, setting, strict=True)]
    numbers.append(SIZES.index(n) if n in SIZES else n)
    rng = np.random.default_rng([seed, *numbers])
    size, alpha = n + TEST, STRENGTHS[instrument]
    numeric, level = rng.normal(size=(size, 4)), rng.integers(0, 3, size)
    x = np.column_stack([numeric, level == 1, level == 2])
    z = rng.normal(size=size)
    u, e = draw_errors(errors, rho, x, rng)
    f0, index = outcome_function(outcome, x), selection_index(selection, x)
    selected, y = index + alpha * z + u > 0, f0 + SIGMA * e
    has_instrument = instrument != "none"
    w = np.column_stack([x, z]) if has_instrument else x
    data = selection_data(
        x[:n],
        w[:n],
        np.where(selected, y, np.nan)[:n],
        x_names=NAMES,
        w_names=(*NAMES, "z") if has_instrument else NAMES,
    )
    return Draw(data, x[n:], y[n:], f0[n:], propensity(index[n:], alpha, errors))


def draw_errors(kind: str, rho: float, x: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """u of selection and e of the outcome, both (n,) with variance 1; where sigma varies with x,
    e has the variance sigma(x)^2/SIGMA^2.

    rho is the correlation of the two normal variables that u and e are made from.
    """
    u, other = rng.normal(size=(2, len(x)))
    e = rho * u + np.sqrt(1 - rho**2) * other
    if kind == "skewed":  # a normal copula
        df = DF[kind]
        e = (chi2.ppf(ndtr(e), df) - df) / np.sqrt(2 * df)
    elif kind == "heavy-tailed":  # a common factor in both errors: a bivariate t
        factor = np.sqrt((DF[kind] - 2) / rng.chisquare(DF[kind], len(x)))
        u, e = factor * u, factor * e
    elif kind == "mixture":
        wide = rng.random(len(x)) < OUTLIERS
        e = np.where(wide, OUTLIER_SD, 1.0) * e / np.sqrt(1 + OUTLIERS * (OUTLIER_SD**2 - 1))
    elif kind == "varying":
        e = e * np.exp(x[:, : len(LOG_SIGMA)] @ LOG_SIGMA)
    return u, e


def outcome_function(kind: str, x: np.ndarray) -> np.ndarray:
    x1, x2, x3, x4, level1, _ = x.T
    if kind == "linear":
        curves = 0.8 * x1 - 0.5 * x2 + 0.3 * x3 + 0.2 * x4
    elif kind == "smooth":
        curves = np.sin(1.5 * x1) + 0.5 * x1 + 0.4 * x2**2
    else:
        curves = np.sin(x1 * x2) + 0.6 * x3 * x4 + 0.5 * x1
    return curves + 0.3 * level1


def selection_index(kind: str, x: np.ndarray) -> np.ndarray:
    x1, x2, _, _, _, level2 = x.T
    index = -0.9 * x1 + 0.3 * x2 + 0.3 * level2
    return index + 0.5 * (x2**2 - 1) if kind == "quadratic" else index


def propensity(index: np.ndarray, alpha: float, errors: str) -> np.ndarray:
    """P(index + alpha z + u > 0) with z standard normal and u of variance 1, (m,)."""
    if errors != "heavy-tailed":
        return ndtr(index / np.sqrt(1 + alpha**2))
    df = DF[errors]
    nodes, weight = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    at = (index[:, None] + alpha * nodes) * np.sqrt(df / (df - 2))
    return t.cdf(at, df) @ weight / weight.sum()
