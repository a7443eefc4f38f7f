r"""The distribution of an outcome error given selection, under normal and t errors.

(u, e) is standard bivariate normal with correlation rho (extended skew-normal), or bivariate t
with nu degrees of freedom, and the unit was selected: u > -index. nu is infinite for the normal.
"""

from functools import partial

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp, stdtr, stdtrit

from heckesel.math import student
from heckesel.math.bivariate import in_blocks, log_conditional_cdf
from heckesel.math.special import LOG_2PI, inverse_mills, mills_delta

# Where Newton's method leaves the bracket it is halved, and 80 halvings bring any bracket below one
# ulp.
QUANTILE_STEPS = 80
# Steps so small end the search: after one of Newton's method the error is about its square.
LAST_STEP, LAST_HALVING = 1e-6, 1e-13
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)
LEAST_GAP = 1e-10  # a narrower boundary layer contributes less than rounding


def cdf_given_selection(e, index, rho, nu: float = np.inf):
    r"""P(E <= e | U > -index), with an error of about 1e-14 however unlikely selection is.

    .. math:: \Phi_2(\text{index}, e; -\rho) / \Phi(\text{index})

    For t errors see `_student_cdf`.
    """
    if nu < np.inf:
        return in_blocks(partial(_student_cdf, nu=nu), e, index, rho)
    with np.errstate(divide="ignore"):  # rho = +-1 is at infinity
        atanh_rho = np.arctanh(rho)
    return np.exp(log_conditional_cdf(e, index, -atanh_rho))


def _student_cdf(e, h, rho, nu: float):
    r"""T_2(h, e; r)/T(h) with r = -rho. By Plackett's identity T_2 is an integral from r = 1 or
    -1, where it is known. For r > 0 and k = e

    .. math:: T_2 = T(\min(h, k)) - \frac{1}{2\pi}\int_0^{\arccos r}
              \Big(1 + \frac{(h-k)^2 + 4hk\sin^2(\phi/2)}{\nu\sin^2\phi}\Big)^{-\nu/2} d\phi

    For r < 0 take k = -e and add the integral to max(0, T(h) - T(k)). The integrand has a
    boundary layer of width |h - k| at 0, which phi = |h - k| sinh x resolves.
    """
    k = np.where(rho < 0, e, -e)
    end = np.arccos(np.abs(rho))
    gap = np.maximum(np.abs(h - k), LEAST_GAP)
    reach = 0.5 * np.arcsinh(end / gap)
    x = reach[:, None] * (1 + NODES)
    phi = gap[:, None] * np.sinh(x)
    distance = (h - k)[:, None] ** 2 + 4 * (h * k)[:, None] * np.sin(0.5 * phi) ** 2
    with np.errstate(divide="ignore", over="ignore"):
        height = np.exp(-0.5 * nu * np.log1p(distance / (nu * np.sin(phi) ** 2)))
    integral = reach * gap * ((height * np.cosh(x)) @ NODE_WEIGHTS) / (2 * np.pi)
    selected = stdtr(nu, h)
    joint = np.where(
        rho < 0,
        stdtr(nu, np.minimum(h, k)) - integral,
        np.maximum(selected - stdtr(nu, k), 0.0) + integral,
    )
    return np.clip(joint / selected, 0.0, 1.0)  # rounding alone can pass 0 or 1


def log_density_given_selection(e, index, rho, nu: float = np.inf):
    r"""log of phi(e) Phi((index + rho e)/sqrt(1 - rho^2)) / Phi(index); with t errors of
    :math:`t_\nu(e)\,T_{\nu+1}(\cdot)/T_\nu(\text{index})`, see `classical.likelihood`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho))
        if nu < np.inf:
            share = np.log(stdtr(nu + 1, argument * np.sqrt((nu + 1) / (nu + e * e))))
            return student.log_density(e, nu).value + share - np.log(stdtr(nu, index))
    return -0.5 * e**2 - 0.5 * LOG_2PI + log_ndtr(argument) - log_ndtr(index)


def moments_given_selection(index, rho):
    """Mean and variance of E given U > -index under normal errors: rho lambda, 1 - rho^2 delta."""
    mills = inverse_mills(index)
    return rho * mills, 1.0 - rho**2 * mills_delta(index, mills)


def mean_of_selection(index, nu: float):
    r"""E[U | U > -h] with its derivatives in h and log nu; nu > 1.

    .. math:: m(h) = \frac{t_\nu(h)}{T_\nu(h)}\,\frac{\nu + h^2}{\nu - 1}
    """
    density, cdf = student.log_density(index, nu), student.log_cdf(index, nu)
    total = nu + index**2
    mean = cdf.d_t * total / (nu - 1)
    d_index = mean * (density.d_t - cdf.d_t + 2 * index / total)
    d_log_nu = nu * mean * (density.d_nu - cdf.d_nu + 1 / total - 1 / (nu - 1))
    return mean, d_index, d_log_nu


def noise_given_selection(index, nu: float):
    r"""E[(nu + U^2)/(nu - 1) | U > -h], the variance of E around rho U at rho = 0; nu > 2.

    .. math:: \frac{\nu}{\nu - 2}\,T_{\nu-2}\big(h\sqrt{(\nu-2)/\nu}\big)\,/\,T_\nu(h)
    """
    return nu / (nu - 2) * stdtr(nu - 2, index * np.sqrt((nu - 2) / nu)) / stdtr(nu, index)


def variance_given_selection(index, rho, nu: float):
    """Var(E | U > -index) = rho^2 Var(U) + (1 - rho^2) noise; infinite for nu <= 2."""
    if nu <= 2:
        return np.full(np.shape(index), np.inf)
    mean, _, _ = mean_of_selection(index, nu)
    noise = noise_given_selection(index, nu)
    variance_u = (nu - 1) * noise - nu - mean**2
    return rho**2 * variance_u + (1 - rho) * (1 + rho) * noise


def quantile_given_selection(p, index, rho, nu: float = np.inf):
    """The e with P(E <= e | U > -index) = p, by Newton's method inside a shrinking bracket."""
    p, index, rho = (
        part.ravel()
        for part in np.broadcast_arrays(*(np.asarray(v, float) for v in (p, index, rho)))
    )
    if nu < np.inf:  # P(E <= e | ...) is at most T(e)/T(h), and likewise above e
        selected = stdtr(nu, index)
        low, high = stdtrit(nu, p * selected), -stdtrit(nu, (1 - p) * selected)
        start = 0.5 * (low + high)
    else:  # a log-concave density falls at least exponentially: all but 1e-17 is within 40 sd
        mean, variance = moments_given_selection(index, rho)
        sd = np.sqrt(variance)
        low, high = mean - 40 * sd, mean + 40 * sd
        start = np.clip(mean + sd * ndtri(p), low, high)

    def cdf_and_density(e, at):
        given = e, index[at], rho[at], nu
        return cdf_given_selection(*given), np.exp(log_density_given_selection(*given))

    return invert_cdf(p, cdf_and_density, start, (low, high))


def invert_cdf(p, cdf_and_density, start, bracket):
    r"""The e with F(e, at) = p[at], by Newton's method inside a shrinking bracket.

    The steps are those for :math:`\Phi^{-1}(F(e)) = \Phi^{-1}(p)`, which is nearly straight where
    F is nearly normal, so that three of them are enough.

    cdf_and_density : function of e and of the positions it belongs to
    """
    e, (low, high) = start, bracket
    active, target = np.arange(len(e)), ndtri(p)
    for _ in range(QUANTILE_STEPS):
        here = e[active]
        cdf, density = cdf_and_density(here, active)
        low[active] = np.where(cdf < p[active], here, low[active])
        high[active] = np.where(cdf > p[active], here, high[active])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            probit = ndtri(cdf)
            slope = density * np.exp(0.5 * probit**2) * np.sqrt(2 * np.pi)
            newton = here + (target[active] - probit) / slope
        # a step that rounds to zero stays at an end of the bracket and has not left it
        inside = (newton >= low[active]) & (newton <= high[active])
        moved = np.where(inside, newton, 0.5 * (low[active] + high[active]))
        moved = np.where(cdf == p[active], here, moved)
        e[active] = moved
        near = np.where(inside, LAST_STEP, LAST_HALVING) * (1 + np.abs(here))
        active = active[np.abs(moved - here) > near]
        if not len(active):
            break
    return e


def sample_given_selection(size, index, rho, rng, nu: float = np.inf):
    """(size, m) draws of E: a truncated U by inversion, then E given U (a t with nu + 1 df)."""
    index, rho = np.asarray(index, float), np.asarray(rho, float)
    share = rng.random((size, len(index)))
    rest = (1 - rho) * (1 + rho)
    if nu < np.inf:
        u = -stdtrit(nu, (1.0 - share) * stdtr(nu, index))
        noise = rng.standard_t(nu + 1, (size, len(index)))
        return rho * u + np.sqrt(rest * (nu + u * u) / (nu + 1)) * noise
    u = -ndtri_exp(np.log1p(-share) + log_ndtr(index))
    return rho * u + np.sqrt(rest) * rng.standard_normal((size, len(index)))
