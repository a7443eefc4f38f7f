r"""t errors with four degrees of freedom in both equations: a family with one form.

(u, e) is bivariate t: a common random factor multiplies both errors, a dependence that no
distribution of e alone can produce. A selected unit contributes

.. math:: \log t_\nu(e) + \log T_{\nu+1}(A), \quad A = (\eta\cosh a + e\sinh a)\,K, \quad
          K = \sqrt{(\nu+1)/(\nu+e^2)} ,

an unselected one :math:`\log T_\nu(-\eta)`, with :math:`\nu = 4`. Distribution functions with 4 and
5 degrees of freedom are elementary; tails between these and normal ones are approximated by the
weights of the two forms.
"""

import math

import torch

from heckesel.networks.rho.form_likelihood import Moments, UnitSlopes

DF = 4  # degrees of freedom
FAR, TERMS = 30.0, 6  # beyond it the tail is a series in 1/t^2, of as many terms
LOG_CONSTANT = {
    df: math.lgamma(0.5 * df + 0.5) - math.lgamma(0.5 * df) - 0.5 * math.log(math.pi * df)
    for df in (DF, DF + 1)
}


def selected(index, e, epsilon, log_d, a):
    argument, _ = _argument(index, e, a)
    return _log_density(e, DF) + _log_cdf(argument, DF + 1)


def slopes(index, e, epsilon, log_d, a) -> UnitSlopes:
    argument, factor = _argument(index, e, a)
    total = DF + e.square()
    by_i, falling = factor * torch.cosh(a), e / total
    by_e = factor * torch.sinh(a) - argument * falling
    by_ee = -(factor * torch.sinh(a) + by_e) * falling - argument * (DF - e.square()) / total**2
    log_cdf, mills, bend = _log_cdf_and_slopes(argument, DF + 1)
    none = torch.zeros_like(e)
    return UnitSlopes(
        value=_log_density(e, DF) + log_cdf,
        by_i=mills * by_i,
        by_e=mills * by_e - (DF + 1) * falling,
        by_s=none,
        by_l=none,
        by_ii=-bend * by_i.square(),
        by_ie=-bend * by_i * by_e - mills * by_i * falling,
        by_is=none,
        by_il=none,
        by_ee=mills * by_ee - bend * by_e.square() - (DF + 1) * (DF - e.square()) / total**2,
        by_es=none,
        by_el=none,
        by_ss=none,
        by_sl=none,
        by_ll=none,
    )


def unselected(index):
    return _log_cdf_and_slopes(-index, DF)


def moments(epsilon, log_d) -> Moments:
    none = torch.zeros_like(epsilon)
    return Moments(none, none + DF / (DF - 2), none, none)


def _argument(index, e, a):
    factor = torch.sqrt((DF + 1) / (DF + e.square()))
    return (index * torch.cosh(a) + e * torch.sinh(a)) * factor, factor


def _log_density(t, df: int):
    return LOG_CONSTANT[df] - 0.5 * (df + 1) * torch.log1p(t.square() / df)


def _log_cdf_and_slopes(t, df: int):
    """log T(t), its slope and minus its second derivative."""
    log_cdf = _log_cdf(t, df)
    mills = torch.exp(_log_density(t, df) - log_cdf)
    return log_cdf, mills, mills * (mills + (df + 1) * t / (df + t.square()))


def _log_cdf(t, df: int):
    r"""Of 4 or 5 degrees of freedom, from the angle with :math:`\tan\theta = t/\sqrt\nu`."""
    near = t.clamp(min=-FAR)
    root = torch.rsqrt(df + near.square())
    sine, square = near * root, df * root.square()  # and the square of the cosine
    if df == 4:
        centre = 0.5 + 0.5 * sine * (1 + 0.5 * square)
    else:
        cosine, angle = math.sqrt(df) * root, torch.atan(near / math.sqrt(df))
        centre = 0.5 + (angle + sine * cosine * (1 + 2 / 3 * square)) / math.pi
    far = t.clamp(max=-FAR)
    return torch.where(t < -FAR, _log_tail(far, df), torch.log(centre))


def _log_tail(t, df: int):
    r"""For t < -FAR: :math:`\log c \int_{|t|}^\infty s^{-\nu-1} (1 + \nu/s^2)^{-(\nu+1)/2}\,ds`
    with the binomial series, term by term."""
    inverse = df / t.square()
    series, term = torch.zeros_like(t), torch.ones_like(t)
    half = 0.5 * (df + 1)
    for power in range(TERMS):
        series = series + term * df / (df + 2 * power)
        term = term * -(half + power) / (power + 1) * inverse
    constant = LOG_CONSTANT[df] + half * math.log(df) - math.log(df)
    return constant - df * torch.log(-t) + torch.log(series)
