r"""Heckman's two-step estimator with its correct covariance.

Probit on all units, then least squares of y on x* = [x, lambda(w'gamma)] over the selected. Both
steps, and the covariance, are sums over blocks of standardised rows.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from heckesel.data import SelectionData
from heckesel.linear.covariance import inverse, meat_of_rows, sandwich
from heckesel.linear.newton import Optimum
from heckesel.linear.probit import ProbitFit, in_units, maximise_probit, probit_scores
from heckesel.linear.sample.sample import Rows, Sample, SampleScale, standardised_sample
from heckesel.numerics.normal import inverse_mills, mills_delta


@dataclass(frozen=True)
class TwoStepFit:
    """beta : (p,), gamma : (q,), lambda_coef = rho sigma; |rho| may exceed one, and is left so."""

    beta: np.ndarray
    gamma: np.ndarray
    lambda_coef: float
    sigma: float
    rho: float
    probit: ProbitFit


@dataclass(frozen=True)
class MillsColumn:
    """How lambda(w'gamma) becomes the last, standardised column of x*."""

    gamma: np.ndarray
    centre: float
    scale: float


@dataclass(frozen=True)
class SecondStage:
    """Sums over the selected, with x* = [x, (lambda - centre)/scale] and Delta = diag(delta).

    gram = X*'X*, gram_delta = X*'Delta X*, cross = X*'Delta W, all weighted
    coefficients : (p + 1,) of x*; squares = sum of weighted squared residuals
    """

    probit: Optimum
    mills: MillsColumn
    gram: np.ndarray
    gram_delta: np.ndarray
    cross: np.ndarray
    delta: float
    coefficients: np.ndarray
    squares: float
    mass: float

    @property
    def c(self) -> float:
        """The coefficient of lambda itself, for standardised y."""
        return float(self.coefficients[-1] / self.mills.scale)

    @property
    def variance(self) -> float:
        return (self.squares + self.c**2 * self.delta) / self.mass

    def back(self, scalings: SampleScale) -> np.ndarray:
        """(p + 1, p + 1) matrix that maps coefficients of x* to those of [x, lambda]."""
        p = len(self.coefficients) - 1
        matrix = scalings.y_scale * block_diag(scalings.x.back, [[1.0 / self.mills.scale]])
        constant = scalings.x.constant
        if constant is not None:
            shift = -scalings.y_scale * self.mills.centre / self.mills.scale
            matrix[constant, p] = shift / scalings.x.scale[constant]
        return matrix


def fit_two_step(data: SelectionData) -> TwoStepFit:
    """Both steps on rows in memory."""
    rows, scalings = standardised_sample(data)
    return in_user_units(two_steps(rows, scalings), scalings)


def two_steps(rows: Rows, scalings: SampleScale, start: np.ndarray | None = None) -> SecondStage:
    r"""beta and c by weighted least squares; then

    .. math:: \sigma^2 = \overline{r^2} + c^2\,\overline{\delta},\qquad \rho = c/\sigma

    with means over the selected (divisor n, as Stata and R have it). The normal equations are
    solved twice, the second time for the residuals of the first: this regains the digits that
    squaring the columns costs.

    start : of the probit, see `maximise_probit`
    """
    probit = maximise_probit(rows, start)
    centred = scalings.x.constant is not None
    mills = _mills_column(rows, probit.point, centred, in_passes=start is not None)
    gram, target, gram_delta, cross, delta = rows.sum(partial(_stage_sums, mills=mills))
    coefficients = _solve(gram, target)
    gradient, squares = rows.sum(partial(_residual_sums, mills=mills, coefficients=coefficients))
    step = _solve(gram, gradient)
    squares = float(squares - gradient @ step)
    return SecondStage(
        probit=probit,
        mills=mills,
        gram=gram,
        gram_delta=gram_delta,
        cross=cross,
        delta=float(delta),
        coefficients=coefficients + step,
        squares=squares,
        mass=rows.mass_selected,
    )


def _mills_column(rows: Rows, gamma, centred: bool, *, in_passes: bool) -> MillsColumn:
    """Centre and scale, which need not be exact: of a part of the rows, or by a pass over all."""
    if in_passes:
        mass, total, squares = rows.sum(partial(_mills_sums, gamma=gamma))
        centre = float(total / mass) if centred else 0.0
        scale = float(np.sqrt(max(squares / mass - centre**2, 0.0))) or 1.0
        return MillsColumn(gamma, centre, scale)
    some = inverse_mills(rows.part().w_selected @ gamma)
    centre = float(some.mean()) if centred else 0.0
    scale = float(np.sqrt(np.mean((some - centre) ** 2))) or 1.0
    return MillsColumn(gamma, centre, scale)


def _mills_sums(block: Sample, *, gamma) -> tuple:
    ratio, mass = inverse_mills(block.w_selected @ gamma), block.weight_selected
    return mass.sum(), mass @ ratio, mass @ ratio**2


def in_user_units(stage: SecondStage, scalings: SampleScale) -> TwoStepFit:
    coefficients = stage.back(scalings) @ stage.coefficients
    constant = scalings.x.constant
    if constant is not None:
        coefficients[constant] += scalings.y_centre / scalings.x.scale[constant]
    probit = in_units(stage.probit, scalings.w.back)
    c, sigma = float(coefficients[-1]), float(np.sqrt(stage.variance)) * scalings.y_scale
    return TwoStepFit(coefficients[:-1], probit.gamma, c, sigma, c / sigma, probit)


def _solve(gram, target) -> np.ndarray:
    return np.linalg.lstsq(gram, target, rcond=None)[0]


def second_stage(block: Sample, mills: MillsColumn):
    """x* (n1, p + 1) of the selected in a block, and delta (n1,)."""
    index = block.w_selected @ mills.gamma
    ratio = inverse_mills(index)
    columns = -block.residual_columns  # the last column, y, makes room for lambda
    columns[:, -1] = (ratio - mills.centre) / mills.scale
    return columns, mills_delta(index, ratio)


def _stage_sums(block: Sample, *, mills) -> tuple:
    columns, delta = second_stage(block, mills)
    mass = block.weight_selected
    weighted, thinned = columns * mass[:, None], columns * (mass * delta)[:, None]
    return (
        columns.T @ weighted,
        block.residual_columns[:, -1] @ weighted,
        columns.T @ thinned,
        thinned.T @ block.w_selected,
        mass @ delta,
    )


def _residual_sums(block: Sample, *, mills, coefficients) -> tuple:
    columns, _ = second_stage(block, mills)
    residual = block.residual_columns[:, -1] - columns @ coefficients
    weighted = block.weight_selected * residual
    return weighted @ columns, weighted @ residual


def two_step_covariance(
    rows: Rows, scalings: SampleScale, stage: SecondStage, kind: str, **meat
) -> np.ndarray:
    """(p + 1 + q, p + 1 + q) covariance of (beta, lambda, gamma), as the parameters are listed.

    meat : options of `meat_of_rows`
    """
    model = kind == "information"
    joint = _model_covariance(stage) if model else _stacked_sandwich(rows, stage, **meat)
    transform = block_diag(stage.back(scalings), scalings.w.back)
    return transform @ joint @ transform.T


def _model_covariance(stage: SecondStage) -> np.ndarray:
    r"""Under the model, with G = (X*'X*)^-1:

    .. math:: V_\beta = \sigma^2 G\,[X^{*\prime}(I - \rho^2\Delta)X^* +
              \rho^2 (X^{*\prime}\Delta W) V_\gamma (W'\Delta X^*)]\,G

    The first bracket is selection's heteroskedasticity, the second the first stage. Under the
    model the second stage's own error is uncorrelated with the probit's, so the block between
    them is what the first stage passes on: c G X*'Delta W V_gamma.
    """
    v_gamma, gram = inverse(-stage.probit.hessian), inverse(stage.gram)
    own = stage.variance * stage.gram - stage.c**2 * stage.gram_delta
    cross = stage.c * stage.cross
    v_beta = gram @ (own + cross @ v_gamma @ cross.T) @ gram
    v_cross = gram @ cross @ v_gamma
    return np.block([[v_beta, v_cross], [v_cross.T, v_gamma]])


def _stacked_sandwich(rows: Rows, stage: SecondStage, **meat) -> np.ndarray:
    """Both stages as one set of moment conditions: x* r and probit scores."""
    middle, units = meat_of_rows(rows, partial(_unit_moments, **_at(stage)), **meat)
    return sandwich(_stacked_bread(rows, stage), middle, units)


def lambda_influence(sample: Sample, stage: SecondStage) -> np.ndarray:
    """(n,) by how much each unit, selected units first, moves the coefficient of lambda."""
    row = _stacked_bread(sample, stage)[len(stage.gram) - 1]
    return _unit_moments(sample, **_at(stage)) @ row / stage.mills.scale


def _at(stage: SecondStage) -> dict:
    return {"mills": stage.mills, "coefficients": stage.coefficients}


def _stacked_bread(rows: Rows, stage: SecondStage) -> np.ndarray:
    r"""The inverse of the derivative of all moments. Those of the second stage move with gamma
    through lambda, in the residual and in the column itself:

    .. math:: \partial(x^* r)/\partial\gamma' = c\,\delta\,x^* w' - \delta\,r\,e_\lambda w'
    """
    k, q = len(stage.gram), rows.q
    slope = stage.c * stage.cross
    (own,) = rows.sum(partial(_lambda_slope, **_at(stage)))
    slope[-1] -= own / stage.mills.scale
    derivative = np.zeros((k + q, k + q))
    derivative[:k, :k] = stage.gram
    derivative[:k, k:] = -slope
    derivative[k:, k:] = -stage.probit.hessian
    return np.linalg.inv(derivative)


def _lambda_slope(block: Sample, *, mills, coefficients) -> tuple:
    columns, delta = second_stage(block, mills)
    residual = block.residual_columns[:, -1] - columns @ coefficients
    return ((block.weight_selected * delta * residual) @ block.w_selected,)


def _unit_moments(block: Sample, *, mills, coefficients) -> np.ndarray:
    """(n, p + 1 + q) moments of each unit, selected units first."""
    columns, _ = second_stage(block, mills)
    n1, k = columns.shape
    moments = np.zeros((block.n, k + block.q))
    moments[:n1, :k] = columns * (block.residual_columns[:, -1] - columns @ coefficients)[:, None]
    moments[:n1, k:] = probit_scores(block.w_selected, np.ones(n1, bool), mills.gamma)
    moments[n1:, k:] = probit_scores(block.w_unselected, np.zeros(block.n - n1, bool), mills.gamma)
    return moments
