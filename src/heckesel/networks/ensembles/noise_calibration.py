r"""The level of the noise, estimated on rows that a member held out.

Residuals of training rows are too small, and so is a sigma computed from them. The residual
:math:`r_{ij}` of row i under a member j that held it out is not too small, but a member has a
larger error than the ensemble. With :math:`\sigma^2` the variance of the noise and of the error
that all members share, and :math:`v_i` the variance of the error that is specific to a member,

.. math:: E\,r_{ij}^2 = \sigma^2 + v_i, \qquad
          E\,(y - \bar f)^2 = \sigma^2 + v_i/k ,

while the ensemble will predict with the aleatoric variance and the variance between its k
members, which is :math:`v_i(1 - 1/k)` on average. For the sum to equal the second expression, the
aleatoric variance must be :math:`E\,r_{ij}^2 - 2 v_i(1 - 1/k)`: plain residuals would count the
members' own errors twice. So its level maximises the likelihood of

.. math:: r_{ij} \sim N(0,\ \text{aleatoric} + 2 (1 - 1/k)\,v_i) .

:math:`v_i` is the variance between members at row i. Most members were trained on that row, so they
agree on it more than on new rows. On rows that two or more members held out, the variance between
these members alone is computed, too, and all :math:`v_i` are multiplied by the ratio of its mean to
the mean of :math:`v_i` on these rows.

Residuals of real outcomes often have heavier tails than a normal. A normal with the same variance
is then too wide outside the tails. With tails "auto" the shape is calibrated as well: a t with the
same variance is used if it gains more held-out log-likelihood than the log-unit that a parameter
costs (AIC).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, log_ndtr, ndtri, stdtr

from heckesel.classical.likelihood import LOG_TAIL_ENDS, SKEWNESS_ENDS
from heckesel.math.sinh_arcsinh import population_moments
from heckesel.math.special import HALF_LOG_2PI
from heckesel.math.student_torch import (
    degrees_of_freedom,
    log_cdf_and_slopes,
    log_density_and_slopes,
)
from heckesel.networks.rho import form_shape
from heckesel.networks.rho.form_optima import SKEWNESS_SD, TAIL_SD
from heckesel.predictive import RHO_LIMIT

# At two degrees of freedom a t has no variance, and below three the few largest residuals determine
# its standard deviation, which is the level.
LEAST_TAIL_DF = 3.0
# Initial steps in log level, shift, skewness and log tail: the usual error of members.
STEPS = np.diag([0.1, 0.1, 0.3, 0.1])


@dataclass(frozen=True)
class Pairs:
    """Every row with every member that held it out, r pairs in all.

    mean, noise_factor : (r,) f and the factor on sigma that the member predicts for the row
    doubt : (r,) 2 (1 - 1/k) v, the variance that a member's error adds to its residual
    member, row : (r,); weight : (r,) adding up to 1
    """

    mean: np.ndarray
    noise_factor: np.ndarray
    doubt: np.ndarray
    weight: np.ndarray
    member: np.ndarray
    row: np.ndarray

    @property
    def rows(self) -> float:
        """The effective number of rows, fewer than there are if weights differ."""
        return float(1 / np.sum(np.bincount(self.row, self.weight) ** 2))


def pairs_of(mean, noise_factor, weight, out) -> Pairs:
    """mean, noise_factor : (k, n); weight : (n,); out : (k, n) True where a row was held out."""
    k = len(mean)
    own = own_variance(mean, out, weight) if k > 1 else np.zeros(mean.shape[1])
    doubt = 2 * (1 - 1 / k) * own
    member, row = np.nonzero(out & (weight > 0))
    total = weight[row]
    return Pairs(
        mean=mean[member, row],
        noise_factor=noise_factor[member, row],
        doubt=doubt[row],
        weight=total / total.sum(),
        member=member,
        row=row,
    )


def own_variance(mean, out, weight) -> np.ndarray:
    """(n,) variance between members, scaled to the variance between members that held a row out."""
    everyone = mean.var(axis=0, ddof=1)
    several = out.sum(axis=0) > 1
    if not (several & (weight > 0) & (everyone > 0)).any():
        return everyone
    chosen, counts = out[:, several], out[:, several].sum(axis=0)
    apart = mean[:, several]
    centre = np.where(chosen, apart, 0.0).sum(axis=0) / counts
    unseen = np.where(chosen, apart - centre, 0.0) ** 2
    unseen = unseen.sum(axis=0) / (counts - 1)
    return everyone * (unseen @ weight[several]) / (everyone[several] @ weight[several])


def normal_loss(residual, variance):
    """-log density of N(0, variance)."""
    return 0.5 * (np.log(variance) + residual**2 / variance) + HALF_LOG_2PI


def tailed_loss(residual, variance, df: float | None):
    r"""-log density of a t with that variance, scale :math:`\sqrt{v(\nu-2)/\nu}`; df None is the
    normal."""
    if df is None:
        return normal_loss(residual, variance)
    square = variance * (df - 2)
    constant = gammaln(df / 2) - gammaln((df + 1) / 2) + 0.5 * np.log(np.pi)
    return constant + 0.5 * (np.log(square) + (df + 1) * np.log1p(residual**2 / square))


def two_step_loss(residual, level, c, delta, pairs: Pairs, df: float | None = None):
    r"""(r,) of residuals given selection, with :math:`\sigma_i` = level times the noise_factor and
    :math:`\rho` = c/level: mean 0, variance :math:`\sigma_i^2(1 - \rho^2\delta) + \tau_i^2`.

    In a two-step c may exceed the level, which no pair of errors allows; |rho| is then set just
    below one.
    """
    rho_square = np.minimum((c / level) ** 2, RHO_LIMIT**2)
    sigma_square = (level * pairs.noise_factor) ** 2
    return tailed_loss(residual, sigma_square * (1 - rho_square * delta) + pairs.doubt, df)


def joint_loss(y, level, rho, index, pairs: Pairs, df: float | None = None):
    r"""(r,) of y and selection under the joint likelihood, at `_with_doubt`.

    With df the error of y is a t of that variance, tied to selection by the same normal copula: in
    :math:`\Phi((\eta + \rho q)/\sqrt{1-\rho^2})` its normal score :math:`q = \Phi^{-1}(T_\nu(e))`
    replaces e.
    """
    e, rho, total = _with_doubt(y, level, rho, pairs)
    score = e if df is None else normal_score(e * np.sqrt(df / (df - 2)), df)
    argument = (index + rho * score) / np.sqrt((1 - rho) * (1 + rho))
    return tailed_loss(y - pairs.mean, total**2, df) - log_ndtr(argument)


def normal_score(e, df: float):
    """The standard normal quantile at the probability of e under a t, from the nearer tail."""
    return -np.sign(e) * ndtri(stdtr(df, -np.abs(e)))


def student_loss(y, level, rho, index, df, pairs: Pairs):
    """(r,) the same with t errors of df degrees of freedom."""
    e, rho, total = _with_doubt(y, level, rho, pairs)
    argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho)) * np.sqrt((df + 1) / (df + e**2))
    freedom = torch.tensor([[df]], dtype=torch.float64)
    log_density = log_density_and_slopes(torch.as_tensor(e)[None], freedom)[0][0].numpy()
    log_cdf = log_cdf_and_slopes(torch.as_tensor(argument)[None], freedom + 1)[0][0].numpy()
    return np.log(total) - log_density - log_cdf


def form_loss(y, level, skewness, log_tail, rho, index, pairs: Pairs):
    r"""(r,) the same with sinh-arcsinh errors. The error of a member widens them around their mean:
    :math:`\sigma'^2 = \sigma_i^2 + \tau_i^2/\mathrm{Var}(e)`."""
    moments = population_moments(skewness, log_tail)
    sigma = level * pairs.noise_factor
    wider = np.sqrt(1 + pairs.doubt / (sigma**2 * moments.variance))
    e = ((y - pairs.mean) / sigma - moments.mean) / wider + moments.mean
    given = (index, e, skewness, log_tail, np.arctanh(rho / wider))
    value = form_shape.selected(*(torch.as_tensor(each, dtype=torch.float64) for each in given))
    return np.log(sigma * wider) - value.numpy()


def _with_doubt(y, level, rho, pairs):
    r"""(e, rho', sigma') with :math:`\sigma'^2 = \sigma_i^2 + \tau_i^2` and
    :math:`\rho' = \rho\sigma_i/\sigma'`."""
    sigma = level * pairs.noise_factor
    total = np.sqrt(sigma**2 + pairs.doubt)
    return (y - pairs.mean) / total, rho * sigma / total, total


def calibrated_level(loss: Callable[[float], np.ndarray], weight) -> tuple[float, float]:
    """The level of sigma with the least mean loss over the pairs, and that loss."""
    found = minimize_scalar(
        lambda log_level: float(weight @ loss(np.exp(log_level))), bracket=(-1.0, 0.0)
    )
    return float(np.exp(found.x)), float(found.fun)


def calibrated_tails(
    loss: Callable[[float, float], np.ndarray], weight, *, least: float = 2.0
) -> tuple[float, float, float]:
    """The level and the degrees of freedom with the least mean loss over the pairs, and that loss.

    loss : (level, df) -> (r,), df > least. The degrees of freedom of the members are not used,
    because members stop before these have converged.
    """

    def freedom(free):
        return float(degrees_of_freedom(free)) - 2.0 + least

    found = minimize(
        lambda point: float(weight @ loss(np.exp(point[0]), freedom(point[1]))),
        x0=[-0.5, 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-3, "fatol": 1e-7},
    )
    return float(np.exp(found.x[0])), freedom(found.x[1]), float(found.fun)


@dataclass(frozen=True)
class Calibration:
    """level of sigma; df of its tails, None for a normal; loss : the mean over the pairs"""

    level: float
    df: float | None
    loss: float


@dataclass(frozen=True)
class FormCalibration:
    """level of sigma; shift of the mean; skewness, log_tail; loss : the mean over the pairs"""

    level: float
    shift: float
    skewness: float
    log_tail: float
    loss: float


def calibrated_form(
    y, rho, index, pairs: Pairs, shape: tuple[float, float] | None
) -> FormCalibration:
    """The level with the least `form_loss`. Given first values of skewness and log tail, also their
    most likely values under the priors of the profile (`form_optima`).

    Where errors are skewed, f is not their mean, so a change of shape also shifts f.
    """

    def mean_loss(log_level, shift=0.0, skewness=0.0, log_tail=0.0) -> float:
        moved = replace(pairs, mean=pairs.mean + shift)
        each = form_loss(y, np.exp(log_level), skewness, log_tail, rho, index, moved)
        return float(pairs.weight @ each)

    found = minimize_scalar(mean_loss, bracket=(-1.0, 0.0))
    if shape is None:
        return FormCalibration(float(np.exp(found.x)), 0.0, 0.0, 0.0, float(found.fun))

    def penalty(skewness, log_tail) -> float:
        square = (skewness / SKEWNESS_SD) ** 2 + (log_tail / TAIL_SD) ** 2
        return 0.5 * float(square) / pairs.rows

    first = np.array([found.x, 0.0, *shape])
    found = minimize(
        lambda point: mean_loss(*point) + penalty(*point[2:]),
        x0=first,
        method="Nelder-Mead",
        bounds=[(None, None), (None, None), SKEWNESS_ENDS, LOG_TAIL_ENDS],
        options={
            "xatol": 1e-3,
            "fatol": 1e-7,
            "maxiter": 2000,
            "initial_simplex": first + np.vstack([np.zeros(4), STEPS]),
        },
    )
    log_level, shift, skewness, log_tail = map(float, found.x)
    loss = mean_loss(log_level, shift, skewness, log_tail)
    return FormCalibration(float(np.exp(log_level)), shift, skewness, log_tail, loss)


def calibrated_shape(loss: Callable[..., np.ndarray], pairs: Pairs, tails: str) -> Calibration:
    """The level and, with tails "auto", the degrees of freedom that the pairs prefer.

    loss : (level, df) -> (r,), normal where df is None
    """
    level, value = calibrated_level(lambda level: loss(level, None), pairs.weight)
    if tails == "auto":
        wide, df, tailed = calibrated_tails(loss, pairs.weight, least=LEAST_TAIL_DF)
        if (value - tailed) * pairs.rows > 1:
            return Calibration(wide, df, tailed)
    return Calibration(level, None, value)
