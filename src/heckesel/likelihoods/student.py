r"""Bivariate t errors with a common nu, in the coordinates (index, e, atanh rho, log nu).

* unselected: log T_nu(-eta)
* selected:   log t_nu(e) + log T_{nu+1}(B sqrt((nu + 1)/(nu + e^2))),  B as in `normal`

(the caller adds the -log sigma of the density of y). sigma is the scale of the outcome error; its
standard deviation is sigma sqrt(nu/(nu - 2)). Both errors share one mixing variable, so at rho = 0
they are uncorrelated but not independent. As nu grows the model approaches `normal`.
"""

from heckesel.numerics.jet import Jet, chain_two, coordinates
from heckesel.numerics.student import log_cdf, log_density


def selected_units(index, e, atanh_rho: float, log_df: float) -> Jet:
    """log t_nu(e) + log T_{nu+1}(...) of each unit with derivatives in all four coordinates."""
    eta, residual, a, log_nu = coordinates(index, e, atanh_rho, log_df)
    nu = log_nu.exp()
    argument = 0.5 * (eta + residual) * a.exp() + 0.5 * (eta - residual) * (-a).exp()
    log_scale = 0.5 * ((nu + 1.0).log() - (nu + residual * residual).log())
    return _of(log_density, residual, nu) + _of(log_cdf, argument * log_scale.exp(), nu + 1.0)


def unselected_units(index, atanh_rho: float, log_df: float) -> Jet:
    """log T_nu(-index) with derivatives in (index, atanh rho, log nu); those in rho are zero."""
    eta, _, log_nu = coordinates(index, atanh_rho, log_df)
    return _of(log_cdf, -eta, log_nu.exp())


def _of(function, t: Jet, nu: Jet) -> Jet:
    at = function(t.value, float(nu.value[0]))
    return chain_two(t, nu, at.value, (at.d_t, at.d_nu), (at.d_t_t, at.d_t_nu, at.d_nu_nu))
