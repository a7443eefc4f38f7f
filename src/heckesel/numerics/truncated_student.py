r"""The distribution of an outcome error given selection, under bivariate t errors.

(u, e) is standard bivariate t with nu degrees of freedom and correlation rho, and the unit was
selected: u > -index. The normal twin is `truncated`.
"""

from functools import partial

import numpy as np
from scipy.special import stdtr, stdtrit

from heckesel.numerics.bivariate import in_blocks
from heckesel.numerics.student import log_cdf, log_density
from heckesel.numerics.truncated import invert_cdf

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)
LEAST_GAP = 1e-10  # a narrower boundary layer contributes less than rounding


def cdf_given_selection(e, index, rho, nu: float):
    r"""P(E <= e | U > -index).

    With r = -rho this is T_2(h, e; r)/T(h). By Plackett's identity T_2 is an integral from r = 1 or
    -1, where it is known. For r > 0 and k = e

    .. math:: T_2 = T(\min(h, k)) - \frac{1}{2\pi}\int_0^{\arccos r}
              \Big(1 + \frac{(h-k)^2 + 4hk\sin^2(\phi/2)}{\nu\sin^2\phi}\Big)^{-\nu/2} d\phi

    For r < 0 take k = -e and add the integral to max(0, T(h) - T(k)). The integrand has a
    boundary layer of width |h - k| at 0, which phi = |h - k| sinh x resolves.
    """
    return in_blocks(partial(_cdf, nu=nu), e, index, rho)


def _cdf(e, h, rho, nu: float):
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


def log_density_given_selection(e, index, rho, nu: float):
    """log of t_nu(e) T_{nu+1}(...) / T_nu(index), the argument as in `likelihoods.student`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho))
        share = np.log(stdtr(nu + 1, argument * np.sqrt((nu + 1) / (nu + e * e))))
    return log_density(e, nu).value + share - np.log(stdtr(nu, index))


def mean_of_selection(index, nu: float):
    r"""E[U | U > -h] with its derivatives in h and log nu; nu > 1.

    .. math:: m(h) = \frac{t_\nu(h)}{T_\nu(h)}\,\frac{\nu + h^2}{\nu - 1}
    """
    density, cdf = log_density(index, nu), log_cdf(index, nu)
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


def quantile_given_selection(p, index, rho, nu: float):
    """The e with P(E <= e | U > -index) = p.

    P(E <= e | ...) is at most T(e)/T(h), and likewise above e, which gives a bracket.
    """
    p, index, rho = (
        part.ravel()
        for part in np.broadcast_arrays(*(np.asarray(v, float) for v in (p, index, rho)))
    )
    selected = stdtr(nu, index)
    low, high = stdtrit(nu, p * selected), -stdtrit(nu, (1 - p) * selected)
    return invert_cdf(
        p,
        lambda e, at: (
            cdf_given_selection(e, index[at], rho[at], nu),
            np.exp(log_density_given_selection(e, index[at], rho[at], nu)),
        ),
        0.5 * (low + high),
        (low, high),
    )


def sample_given_selection(size, index, rho, nu: float, rng):
    """(size, m) draws of E: a truncated U by inversion, then E given U, a t with nu + 1 df."""
    index, rho = np.asarray(index, float), np.asarray(rho, float)
    share = 1.0 - rng.random((size, len(index)))
    u = -stdtrit(nu, share * stdtr(nu, index))
    noise = rng.standard_t(nu + 1, (size, len(index)))
    return rho * u + np.sqrt((1 - rho) * (1 + rho) * (nu + u * u) / (nu + 1)) * noise
