r"""Heckman's two-step estimator with its correct covariance.

Probit on all units, then least squares of y on x* = [x, lambda(w'gamma)] over the selected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from heckesel.classic.covariance import inverse, sandwich
from heckesel.classic.probit import ProbitFit, fit_probit, probit_scores
from heckesel.classic.standardise import scaling_of
from heckesel.data import SelectionData
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


def fit_two_step(data: SelectionData) -> TwoStepFit:
    r"""beta and c by weighted least squares; then

    .. math:: \sigma^2 = \overline{r^2} + c^2\,\overline{\delta},\qquad \rho = c/\sigma

    with means over the selected (divisor n, as Stata and R have it).
    """
    probit = fit_probit(data.w, data.s, data.weight)
    columns, delta = second_stage(data, probit.gamma)
    y, mass = data.y[data.s], data.weight[data.s]
    scaling = scaling_of(columns)
    root = np.sqrt(mass)[:, None]
    standardised = np.linalg.lstsq(scaling.apply(columns) * root, y * root[:, 0], rcond=None)[0]
    coefficients = scaling.back @ standardised
    residual = y - columns @ coefficients
    c = float(coefficients[-1])
    sigma = float(np.sqrt(np.average(residual**2 + c**2 * delta, weights=mass)))
    return TwoStepFit(coefficients[:-1], probit.gamma, c, sigma, c / sigma, probit)


def second_stage(data: SelectionData, gamma):
    """x* = [x, lambda] over the selected (n1, p + 1), and delta (n1,)."""
    index = data.w[data.s] @ gamma
    mills = inverse_mills(index)
    return np.column_stack([data.x[data.s], mills]), mills_delta(index, mills)


def two_step_covariance(data, fit, kind, *, weight_kind="frequency", clusters=None):
    """(p + 1 + q, p + 1 + q) covariance of (beta, lambda, gamma), as the parameters are listed."""
    columns, delta = second_stage(data, fit.gamma)
    scaling = scaling_of(columns)
    # Work with standardised second-stage columns; T maps their coefficients back.
    standardised, back = scaling.apply(columns), scaling.back
    if kind == "information":
        joint = _model_covariance(data, fit, standardised, delta)
    else:
        joint = _stacked_sandwich(data, fit, columns, standardised, delta, weight_kind, clusters)
    transform = block_diag(back, np.eye(len(fit.gamma)))
    return transform @ joint @ transform.T


def _model_covariance(data, fit, columns, delta):
    r"""Under the model, with G = (X*'X*)^-1:

    .. math:: V_\beta = \sigma^2 G\,[X^{*\prime}(I - \rho^2\Delta)X^* +
              \rho^2 (X^{*\prime}\Delta W) V_\gamma (W'\Delta X^*)]\,G

    The first bracket is selection's heteroskedasticity, the second the first stage. Under the
    model the second stage's own error is uncorrelated with the probit's, so the block between
    them is what the first stage passes on: c G X*'Delta W V_gamma.
    """
    mass = data.weight[data.s][:, None]
    w = data.w[data.s]
    v_gamma = inverse(-fit.probit.hessian)
    gram = inverse(columns.T @ (columns * mass))
    variance = fit.sigma**2 - fit.lambda_coef**2 * delta  # sigma^2 (1 - rho^2 delta)
    own = columns.T @ (columns * (mass[:, 0] * variance)[:, None])
    cross = fit.lambda_coef * columns.T @ (w * (mass[:, 0] * delta)[:, None])
    v_beta = gram @ (own + cross @ v_gamma @ cross.T) @ gram
    v_cross = gram @ cross @ v_gamma
    return np.block([[v_beta, v_cross], [v_cross.T, v_gamma]])


def _stacked_sandwich(data, fit, columns, standardised, delta, weight_kind, clusters):
    r"""Both stages as one set of moment conditions: probit scores and x* r.

    The second set moves with gamma through lambda, in the residual and in the column itself:

    .. math:: \partial(x^* r)/\partial\gamma' = c\,\delta\,x^* w' - \delta\,r\,e_\lambda w'
    """
    s, mass = data.s, data.weight[data.s]
    coefficients = np.append(fit.beta, fit.lambda_coef)
    residual = data.y[s] - columns @ coefficients
    k, q = columns.shape[1], len(fit.gamma)
    moments = np.zeros((data.n, k + q))
    moments[s, :k] = standardised * residual[:, None]
    moments[:, k:] = probit_scores(data.w, s, fit.gamma)
    w = data.w[s]
    slope = fit.lambda_coef * standardised.T @ (w * (mass * delta)[:, None])
    slope[-1] -= (mass * delta * residual) @ w / scaling_of(columns).scale[-1]
    derivative = np.zeros((k + q, k + q))
    derivative[:k, :k] = standardised.T @ (standardised * mass[:, None])
    derivative[:k, k:] = -slope
    derivative[k:, k:] = -fit.probit.hessian
    bread = np.linalg.inv(derivative)
    return sandwich(bread, moments, data.weight, weight_kind=weight_kind, clusters=clusters)
