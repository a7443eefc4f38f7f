r"""Bivariate normal errors and a binary outcome.

y = 1[f + eps > 0] is observed if s = 1[eta + u > 0] is one. Both errors have variance one and
correlation rho = tanh a. With t = +1 if y = 1 and -1 if y = 0:

* unselected: log Phi(-eta), see `normal.unselected_units`
* selected:   log Phi_2(eta, t f; t a)

The bivariate normal distribution function is log-concave, so at fixed a the log-likelihood is
concave in (eta, f).
"""

import numpy as np
from scipy.special import log_ndtr

from heckesel.numerics.bivariate import log_bivariate_cdf
from heckesel.numerics.jet import Jet
from heckesel.numerics.normal import LOG_2PI


def selected_units(index, f, atanh_rho, sign) -> Jet:
    r"""log Phi_2(h, k; a) at h = eta, k = t f, a = t atanh rho, by (index, f, atanh rho).

    With C = cosh a, S = sinh a, K = k C - h S and H = h C - k S, all divided by Phi_2 = P:

    .. math::
        P_h = \phi(h)\Phi(K),\quad P_k = \phi(k)\Phi(H),\quad P_a = q/C,\quad
        q = \phi(h)\phi(K) = \phi(k)\phi(H)

        P_{hh} = -h P_h - S q,\; P_{hk} = C q,\; P_{kk} = -k P_k - S q

        P_{ha} = -H q,\; P_{ka} = -K q,\; P_{aa} = (H K - S/C) P_a

    and the second derivatives of log P are P_xy/P - (P_x/P)(P_y/P). At the end each derivative in f
    and each one in a is multiplied by t.
    """
    h, k, a = index, sign * f, sign * atanh_rho
    up, down = np.exp(a), np.exp(-a)
    cosh, sinh = 0.5 * (up + down), 0.5 * (up - down)
    # k cosh a - h sinh a would cancel for rho near +-1
    given_h = 0.5 * ((k - h) * up + (k + h) * down)
    given_k = 0.5 * ((h - k) * up + (h + k) * down)
    value = log_bivariate_cdf(h, k, a)
    by_h = np.exp(log_ndtr(given_h) - 0.5 * h * h - 0.5 * LOG_2PI - value)
    by_k = np.exp(log_ndtr(given_k) - 0.5 * k * k - 0.5 * LOG_2PI - value)
    density = np.exp(-0.5 * (h * h + given_h * given_h) - LOG_2PI - value)
    by_a = density / cosh
    index_f = sign * (cosh * density - by_h * by_k)
    index_a = sign * (-given_k * density - by_h * by_a)
    f_a = -given_h * density - by_k * by_a
    a_a = (given_h * given_k - sinh / cosh) * by_a - by_a * by_a
    hessian = [
        [-h * by_h - sinh * density - by_h * by_h, index_f, index_a],
        [index_f, -k * by_k - sinh * density - by_k * by_k, f_a],
        [index_a, f_a, a_a],
    ]
    return Jet(value, np.array([by_h, sign * by_k, sign * by_a]), np.array(hessian))
