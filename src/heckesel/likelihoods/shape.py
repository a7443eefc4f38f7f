r"""Skewed and heavy-tailed outcome errors: sinh-arcsinh, with Gaussian dependence.

With e = (y - f)/sigma, epsilon the skewness and delta the weight of the tails,

.. math:: t = \delta\,\mathrm{asinh}\,e - \epsilon, \qquad q = \sinh t,

(u, q) is standard bivariate normal with correlation rho. A unit contributes

* unselected: log Phi(-eta)
* selected:   log phi(q) + log Phi(B) + log delta + log cosh t - log(1 + e^2)/2,
  B = eta cosh a + q sinh a,  a = atanh rho

(the -log sigma of the density of y is added where sigma is known). epsilon = 0, delta = 1 is
`normal`. Positive epsilon is a long right tail; delta < 1 are heavy tails, delta > 1 light ones.
"""

import numpy as np

from heckesel.likelihoods import normal
from heckesel.numerics.jet import Jet

# Beyond these ends the shape hardly changes. At a skewness of 3 the short tail is an edge: on the
# way to 4 a thousand exponential errors gain .2 in log-likelihood and the slopes do not move. A
# tail of .2 has a kurtosis of thousands. Without the ends sigma could go to zero.
SKEWNESS_ENDS, LOG_TAIL_ENDS = (-3.0, 3.0), (-np.log(5.0), np.log(5.0))


def selected_units(index, e, atanh_rho: float, skewness: float, log_tail: float) -> Jet:
    r"""Log-likelihood of each unit with derivatives in (index, e, atanh rho, epsilon, log delta).

    Let M(eta, t, a) be the normal log-likelihood at q = sinh t plus log cosh t. Its derivatives
    follow from those of `normal`, with C = cosh t:

    .. math::
        M_t = \ell_q C + \tanh t,\quad M_{tt} = \ell_{qq} C^2 + \ell_q q + \mathrm{sech}^2 t

    and t is a function of e, epsilon and log delta with h = sqrt(1 + e^2):

    .. math::
        t_e = \delta/h,\; t_\epsilon = -1,\; t_{\log\delta} = \delta\,\mathrm{asinh}\,e,\;
        t_{ee} = -\delta e/h^3,\; t_{e\log\delta} = \delta/h
    """
    tail = np.exp(log_tail)
    size = np.hypot(1.0, e)  # e^2 itself may overflow
    stretched = tail * np.arcsinh(e)
    t = stretched - skewness
    units = normal.selected_units(index, np.sinh(t), atanh_rho)
    cosh, decay = np.cosh(t), np.exp(-2 * np.abs(t))
    d_index, d_q, d_a = units.gradient
    d_t = d_q * cosh + np.tanh(t)
    d_t_t = units.hessian[1, 1] * cosh**2 + d_q * units.e + 4 * decay / (1 + decay) ** 2
    d_index_t, d_t_a = units.hessian[[0, 1], [1, 2]] * cosh

    t_e, share = tail / size, e / size
    value = units.value + log_tail + np.abs(t) + np.log1p(decay) - np.log(2.0) - np.log(size)
    n = len(value)
    gradient, hessian = np.empty((5, n)), np.empty((5, 5, n))
    gradient[0], gradient[2] = d_index, d_a
    gradient[1] = d_t * t_e - share / size
    gradient[3], gradient[4] = -d_t, d_t * stretched + 1.0

    hessian[np.ix_([0, 2], [0, 2])] = units.hessian[np.ix_([0, 2], [0, 2])]
    slopes = {1: t_e, 3: -1.0, 4: stretched}
    for i, slope in slopes.items():
        hessian[0, i] = d_index_t * slope
        hessian[2, i] = d_t_a * slope
        for j, other in slopes.items():
            hessian[i, j] = d_t_t * (slope * other)
    hessian[1, 1] -= d_t * t_e * share / size + ((1 / size) ** 2 - share**2) / size / size
    hessian[1, 4] += d_t * t_e
    hessian[4, 1] = hessian[1, 4]
    hessian[4, 4] += d_t * stretched
    for i in (1, 3, 4):
        hessian[i, 0], hessian[i, 2] = hessian[0, i], hessian[2, i]
    return Jet(value, gradient, hessian)
