r"""Two or more instruments: do they agree?

If all are valid, the mean outcome of the selected is

.. math:: E[y|x, z, s = 1] = f(x) + g(w'\gamma, x)

for any distribution of the errors: the k instruments enter only through the index, so k - 1 other
directions of them, given x, have no effect. The test adds these directions to a regression of y
on smooth functions of x, the index t, its inverse Mills ratio lambda, lambda squared and lambda
times x (exact if sigma is linear in x). Since t is among the columns, it does not matter which of
the instruments is omitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import chdtri, chndtr

from heckesel.classical.covariance import inverse, meat, wald_test
from heckesel.classical.probit import probit_scores
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.special import inverse_mills, mills_delta
from heckesel.verdict.validity.detectable import smallest_effects
from heckesel.verdict.validity.validity_sample import ValiditySample, spanning, validity_sample

ALL = "all instruments together"
ROWS_PER_COLUMN = 10  # selected rows needed for each column of the regression
SEED = 20_792  # fixed, so that the same data always give the same verdict
LEAST_NEW = 1e-4  # share of a column's variance that others must not explain
ROUNDING = 1e-24  # of a squared length: what projections leave of a constant column


@dataclass(frozen=True)
class SecondStep:
    """Least squares of y among the selected, with the covariance that allows for estimated columns.

    coefficients : (c,), covariance : (c, c), residuals : (n1,)
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    residuals: np.ndarray


@dataclass(frozen=True)
class Overidentification:
    """Wald test that some directions of the instruments have no direct effect on the outcome.

    fit : y of the selected -> the regression, whose first coefficients are tested
    z : (n1, k) instruments of the selected, with unit variance over all units
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    fit: Callable[[np.ndarray], SecondStep]
    z: np.ndarray


@dataclass(frozen=True)
class JustIdentified:
    """The two-step estimate with one instrument excluded and the others in the outcome equation.

    instrument : `ALL` if every instrument is excluded
    lambda_coef : the coefficient of the inverse Mills ratio, rho sigma; NaN, with the others, where
    columns of the outcome equation explain the inverse Mills ratio
    """

    instrument: str
    lambda_coef: float
    se: float
    rho: float


def overidentification_test(sample: ValiditySample) -> Overidentification | None:
    """None if there are too few selected units, or x explains all but one of the instruments."""
    z = sample.z[sample.s] / sample.z_sd
    weakest_first = np.argsort(np.abs(sample.effects) * sample.z_sd)
    generated, slopes = selection_columns(sample)
    kept = weakest_first[
        new_columns(np.column_stack([sample.smooth, generated[:, :1]]), z[:, weakest_first])
    ]
    room = len(z) // ROWS_PER_COLUMN - sample.smooth.shape[1] - len(kept)
    if room < 2 or not len(kept):
        return None
    fixed = np.column_stack([z[:, kept], sample.smooth])
    chosen = new_columns(fixed, generated)[:room]
    fit = partial(second_step, sample, fixed, generated[:, chosen], slopes[:, chosen])
    step = fit(sample.y[sample.s])
    statistic, p = wald_test(*_first(step, len(kept)))
    return Overidentification(statistic, len(kept), p, fit, z) if np.isfinite(p) else None


def agreement(data: SelectionData) -> dict:
    """Evidence on whether two or more instruments contradict each other."""
    if len(data.instruments) < 2 or len(np.unique(data.y[data.s])) <= 2:
        return {}
    try:
        test = overidentification_test(validity_sample(data.take(data.weight > 0), SEED))
    except DataError:  # a random part may be collinear although all rows are not
        return {}
    if test is None or not np.isfinite(test.p_value):
        return {}
    return {"overidentification": test.statistic, "overidentification_p": test.p_value}


def detectable_by(
    test: Overidentification, sample: ValiditySample, level: float
) -> list[tuple[float, float]]:
    """For each instrument the smallest effects caught with 80 % probability, in sd of y per sd.

    By the noncentral chi-squared distribution. Its covariance is that of y with the effect, because
    a part of the effect follows the index and varies with its estimate.
    """
    y, df = sample.y[sample.s], test.degrees_of_freedom
    before, _ = _first(test.fit(y), df)
    critical = chdtri(df, level)

    def power(effect: float, z: np.ndarray) -> float:
        after, covariance = _first(test.fit(y + effect * sample.y_sd * z), df)
        return 1 - chndtr(critical, df, wald_test(after - before, covariance)[0])

    return [smallest_effects(partial(power, z=column)) for column in test.z.T]


def _first(step: SecondStep, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first coefficients and their covariance."""
    return step.coefficients[:count], step.covariance[:count, :count]


def just_identified(sample: ValiditySample) -> list[JustIdentified]:
    """Each instrument alone, then all of them."""
    index = sample.w[sample.s] @ sample.probit.gamma
    mills = inverse_mills(index)
    delta = mills_delta(index, mills)
    z, found = sample.z[sample.s], []
    alone = list(range(len(sample.instruments)))
    for excluded in [*alone, None]:
        rest = [] if excluded is None else [j for j in alone if j != excluded]
        fixed = spanning(np.column_stack([sample.smooth, z[:, rest]]))
        name = ALL if excluded is None else sample.instruments[excluded]
        if not new_columns(fixed, mills[:, None]):
            found.append(JustIdentified(name, np.nan, np.nan, np.nan))
            continue
        step = second_step(sample, fixed, mills[:, None], -delta[:, None], sample.y[sample.s])
        c = float(step.coefficients[-1])
        squares = step.residuals**2 + c**2 * delta
        sigma = np.sqrt(np.average(squares, weights=sample.weight[sample.s]))
        se = float(np.sqrt(step.covariance[-1, -1]))
        found.append(JustIdentified(name, c, se, float(c / sigma)))
    return found


def second_step(sample: ValiditySample, fixed, generated, slopes, y) -> SecondStep:
    r"""y on `fixed` and on functions of the estimated index, `generated` with these `slopes`.

    y : (n1,) of the selected

    With design d, residual r, A = sum d d' and probit scores, the influence of a unit is

    .. math:: A^{-1}\Big[\frac{d r}{1 - h} + \sum(r\,\dot d - d\,c'\dot d)\,w'\;I_\gamma^{-1}
              \text{score}\Big]

    where the dot is the derivative by the index and c are the coefficients. The leverage h makes
    the covariance that of a jackknife (HC3), which does not understate it if there are few rows.
    With groups of dependent units, their influences are added up first.
    """
    weight, w = sample.weight[sample.s], sample.w[sample.s]
    columns = np.column_stack([fixed, generated])
    scale = np.sqrt(np.mean(columns**2, axis=0))
    d = columns / scale
    moving = np.column_stack([np.zeros_like(fixed), slopes]) / scale
    bread = inverse(d.T @ (d * weight[:, None]))
    coefficients = bread @ (d.T @ (weight * y))
    r = y - d @ coefficients
    leverage = weight * np.sum((d @ bread) * d, axis=1)
    # a unit that alone determines a coefficient has residual 0, and adds nothing
    own = np.divide(r, 1 - leverage, out=np.zeros_like(r), where=leverage < 1 - 1e-8)
    slope = (moving * r[:, None] - d * (moving @ coefficients)[:, None]) * weight[:, None]
    first = probit_scores(sample.w, sample.s, sample.probit.gamma)
    influence = first @ inverse(-sample.probit.hessian) @ (w.T @ slope)
    influence[sample.s] += d * own[:, None]
    how = {"weight_kind": "probability", "clusters": sample.groups}
    middle = meat(influence, sample.weight, **how)
    covariance = bread @ middle @ bread / np.outer(scale, scale)
    return SecondStep(coefficients / scale, covariance, r)


def selection_columns(sample: ValiditySample) -> tuple[np.ndarray, np.ndarray]:
    """Functions of the index among the selected, the index first, and their derivatives by it."""
    index = sample.w[sample.s] @ sample.probit.gamma
    mills = inverse_mills(index)
    fall = -mills_delta(index, mills)  # the derivative of the inverse Mills ratio
    x = sample.x - sample.x.mean(axis=0)
    columns = [index, mills, mills**2, *(mills * x.T)]
    slopes = [np.ones_like(index), fall, 2 * mills * fall, *(fall * x.T)]
    return np.column_stack(columns), np.column_stack(slopes)


def new_columns(fixed, columns) -> list[int]:
    """Positions of the columns that `fixed` and earlier ones do not explain."""
    basis = np.linalg.qr(fixed)[0]
    kept: list[int] = []
    for j, column in enumerate(columns.T):
        left = column - basis @ (basis.T @ column)
        left = left - basis @ (basis.T @ left)  # again, for the digits that the first one lost
        size = float(left @ left)
        variation = float(np.sum((column - column.mean()) ** 2))
        if size > max(LEAST_NEW * variation, ROUNDING * float(column @ column)):
            kept.append(j)
            basis = np.column_stack([basis, left / np.sqrt(size)])
    return kept
