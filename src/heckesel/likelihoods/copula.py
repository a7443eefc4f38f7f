r"""Normal errors with a Frank, Clayton or Gumbel copula.

C is the copula of U and V, the ranks of the selection error and the outcome error. With
u = Phi(-eta) and v = Phi(e) a unit is selected if U > u, so its log-likelihood is

* unselected: log Phi(-eta)
* selected:   log phi(e) + log P(U > u | V = v),  P(U <= u | V = v) = h(u, v) = dC(u, v)/dv

Clayton has dependence in the lower tail, Gumbel in the upper tail. A rotation reflects the errors:
the copula rotated by

*  90 is that of (-u, eps), v - C(1 - u, v)
* 180 is that of (-u, -eps)
* 270 is that of (u, -eps), u - C(u, 1 - v)

so 90 and 270 degrees have negative dependence. Everything is computed from log(-log Phi), which is
finite for any index and residual. For the Gaussian copula see `normal`.
"""

import numpy as np
from scipy.special import expit, exprel, log_ndtr, ndtr

from heckesel.numerics.jet import Jet, coordinates
from heckesel.numerics.normal import LOG_2PI, inverse_mills, log_ndtr_and_mills, mills_excess

ROTATIONS = (0, 90, 180, 270)
# From here on 1 - Phi is below 1e-15 and log(-log Phi(a)) is log Phi(-a) to rounding.
UPPER_TAIL = 8.0
LARGEST_EXPONENT = 700.0
SMALL = 0.05  # below it 1/x terms cancel and a series replaces them


def selected_units(index, e, parameter: float, *, family: str, rotation: int = 0) -> Jet:
    """log phi(e) + log P(U > u | V = v) with derivatives in (index, e, parameter).

    parameter: theta for Frank, log theta for Clayton, log(theta - 1) for Gumbel.
    """
    eta, residual, shared = coordinates(index, e, parameter)
    turn_u, turn_v = rotation in (90, 180), rotation in (180, 270)
    # U > u is reflected to U < 1 - u, and Phi(eta) = 1 - u
    above = FAMILIES[family](
        eta if turn_u else -eta, -residual if turn_v else residual, shared, upper=not turn_u
    )
    return above + -0.5 * (residual * residual + LOG_2PI)


def _frank(a: Jet, b: Jet, theta: Jet, *, upper: bool) -> Jet:
    r"""log h, or with `upper` log(1 - h), at u = Phi(a), v = Phi(b).

    .. math:: \mathrm{logit}\, h = \log\frac{1 - e^{-\theta u}}{1 - e^{-\theta (1-u)}}
              + \theta (u - v)
    """
    u, not_u, v = (_chain(_ndtr, t) for t in (a, -a, b))
    logit = _chain(_log_ndtr, a) - _chain(_log_ndtr, -a) + theta * (u - v)
    logit = logit + _chain(_log_exprel, -(theta * u)) - _chain(_log_exprel, -(theta * not_u))
    return -_chain(_softplus, logit if upper else -logit)


def _clayton(a: Jet, b: Jet, log_theta: Jet, *, upper: bool) -> Jet:
    r""".. math:: -\log h = (1 + 1/\theta)\log(1 + v^\theta (u^{-\theta} - 1))"""
    theta_x, theta_y = (log_theta + _chain(_log_neg_log_ndtr, t) for t in (a, b))
    log_odds = _chain(_log_expm1_exp, theta_x) - theta_y.exp()
    log_z = _chain(_log_softplus, log_odds) + _chain(_softplus, -log_theta)
    return _chain(_log_one_minus_exp, log_z) if upper else -log_z.exp()


def _gumbel(a: Jet, b: Jet, log_excess: Jet, *, upper: bool) -> Jet:
    r"""With x = -log u, y = -log v and :math:`L = \log(1 + (x/y)^\theta)/\theta`

    .. math:: -\log h = y\,(e^L - 1) + (\theta - 1) L
    """
    log_x, log_y = (_chain(_log_neg_log_ndtr, t) for t in (a, b))
    theta = log_excess.exp() + 1.0
    log_l = _chain(_log_softplus, theta * (log_x - log_y)) - theta.log()
    weight = log_y + _chain(_log_exprel, log_l.exp()) - log_excess
    log_z = log_l + log_excess + _chain(_softplus, weight)
    return _chain(_log_one_minus_exp, log_z) if upper else -log_z.exp()


FAMILIES = {"Frank": _frank, "Clayton": _clayton, "Gumbel": _gumbel}


def _chain(function, jet: Jet) -> Jet:
    return jet.chain(*function(jet.value))


# Functions of one number with their first two derivatives.


def _ndtr(t):
    density = np.exp(-0.5 * (t * t + LOG_2PI))
    return ndtr(t), density, -t * density


def _log_ndtr(t):
    value, mills = log_ndtr_and_mills(t)
    return value, mills, -mills * mills_excess(t, mills)


def _log_neg_log_ndtr(t):
    """log(-log Phi(t)); with g = lambda/(-log Phi) the derivatives are -g and -g (g - t - lambda).

    For large t -log Phi is Phi(-t), and g is lambda(-t).
    """
    value, mills = log_ndtr_and_mills(np.minimum(t, UPPER_TAIL))
    far = t > UPPER_TAIL
    ratio = np.where(far, inverse_mills(-np.abs(t)), mills / -value)
    excess = np.where(
        far, mills_excess(-np.abs(t)), ratio - mills_excess(np.minimum(t, UPPER_TAIL), mills)
    )
    return np.where(far, log_ndtr(-np.abs(t)), np.log(-value)), -ratio, -ratio * excess


def _softplus(t):
    """log(1 + e^t)"""
    slope = expit(t)
    return np.logaddexp(0.0, t), slope, slope * expit(-t)


def _log_softplus(t):
    """log log(1 + e^t), which for t far below zero is t."""
    deep = t < -30.0
    decay = np.exp(np.where(deep, t, -30.0))
    plus, share, _ = _softplus(np.where(deep, -30.0, t))
    slope = np.where(deep, 1.0 - 0.5 * decay, share / plus)
    bend = np.where(deep, -0.5 * decay, slope * (1.0 - share - slope))
    return np.where(deep, t - 0.5 * decay, np.log(plus)), slope, bend


def _log_expm1_exp(t):
    """log(e^p - 1), p = e^t."""
    p = np.exp(t)
    slope = 1.0 / exprel(-p)
    bounded = exprel(np.minimum(p, LARGEST_EXPONENT))
    value = np.where(p < 1.0, t + np.log(bounded), p + np.log1p(-np.exp(-np.maximum(p, 1.0))))
    return value, slope, slope * (1.0 - 1.0 / bounded)


def _log_one_minus_exp(t):
    """log(1 - e^-p), p = e^t."""
    p = np.exp(t)
    slope, up = 1.0 / exprel(np.minimum(p, LARGEST_EXPONENT)), exprel(-p)
    value = np.where(p < 1.0, t + np.log(up), np.log1p(-np.exp(-np.maximum(p, 1.0))))
    return value, slope, slope * (1.0 - 1.0 / up)


def _log_exprel(t):
    """log((e^t - 1)/t); the slope is 1/(1 - e^-t) - 1/t."""
    bounded = np.clip(t, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    far = np.where(np.abs(bounded) < SMALL, SMALL, bounded)
    square = np.minimum(t * t, SMALL**2)
    series = 0.5 + np.clip(t, -SMALL, SMALL) * (1 / 12 - square * (1 / 720 - square / 30240))
    slope = np.where(np.abs(t) < SMALL, series, -1 / np.expm1(-far) - 1 / far)
    bend = np.where(
        np.abs(t) < SMALL,
        1 / 12 - square * (1 / 240 - square / 6048),
        1 / far**2 - 0.25 / np.sinh(0.5 * far) ** 2,
    )
    value = np.log(exprel(bounded)) + np.where(
        t > LARGEST_EXPONENT, t - bounded - np.log(np.maximum(t, 1.0) / LARGEST_EXPONENT), 0.0
    )
    return value, slope, bend
