r"""The likelihood of a unit under each error model, with exact first and second derivatives.

With the index eta = w'gamma, the standardised residual e = (y - f)/sigma and a = atanh rho, normal
errors have

* unselected: log Phi(-eta)
* selected:   log phi(e) + log Phi(B),  B = eta cosh a + e sinh a

(the caller adds the -log sigma of the density of y). B is the usual
(eta + rho e)/sqrt(1 - rho^2), written so that nothing divides by zero as rho approaches +-1.
t and shape errors have further parameters; `ERROR_MODELS` lists the family. `binary_units` is for
an outcome of two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from heckesel.math import student
from heckesel.math.bivariate import log_bivariate_cdf
from heckesel.math.special import LOG_2PI, log_ndtr_and_mills, mills_excess, namespace

ATANH_RHO_STOPS = np.array([0.15, 0.3, 0.5, 0.75, 1.0, 1.3, 1.7, 2.2, 2.8])
ATANH_RHO_END = 7.0  # as far as `ml.scan` goes
LOG_DF_START, LOG_DF_ENDS = np.log(8.0), (0.0, np.log(1e5))  # Cauchy, and practically normal
# Beyond these ends the shape hardly changes. At a skewness of 3 the short tail is an edge: on the
# way to 4 a thousand exponential errors gain .2 in log-likelihood and the slopes do not move. A
# tail of .2 has a kurtosis of thousands. Without the ends sigma could go to zero.
SKEWNESS_ENDS, LOG_TAIL_ENDS = (-3.0, 3.0), (-np.log(5.0), np.log(5.0))


@dataclass(frozen=True, eq=False)
class Jet:
    """Values of n units with their derivatives in k coordinates, by which the chain rule works.

    value : (n,), gradient : (k, n), hessian : (k, k, n); n is 1 for a shared number
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def chain(self, value, first, second) -> Jet:
        """f of this jet, given f, f' and f'' at its value."""
        outer = self.gradient[:, None] * self.gradient
        return Jet(value, first * self.gradient, second * outer + first * self.hessian)

    def exp(self) -> Jet:
        value = np.exp(self.value)
        return self.chain(value, value, value)

    def log(self) -> Jet:
        return self.chain(np.log(self.value), 1 / self.value, -1 / self.value**2)

    def with_other(self, other: Jet, value, first, second) -> Jet:
        """f(self, other), given f, (f_a, f_b) and (f_aa, f_ab, f_bb)."""
        mixed = self.gradient[:, None] * other.gradient
        hessian = (
            first[0] * self.hessian
            + first[1] * other.hessian
            + second[0] * (self.gradient[:, None] * self.gradient)
            + second[1] * (mixed + mixed.transpose(1, 0, 2))
            + second[2] * (other.gradient[:, None] * other.gradient)
        )
        return Jet(value, first[0] * self.gradient + first[1] * other.gradient, hessian)

    def __add__(self, other) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.gradient, self.hessian)
        gradient, hessian = self.gradient + other.gradient, self.hessian + other.hessian
        return Jet(self.value + other.value, gradient, hessian)

    def __mul__(self, other) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.gradient * other, self.hessian * other)
        gradient = self.gradient * other.value + self.value * other.gradient
        mixed = self.gradient[:, None] * other.gradient
        bend = self.hessian * other.value + self.value * other.hessian
        return Jet(self.value * other.value, gradient, bend + mixed + mixed.transpose(1, 0, 2))

    def __sub__(self, other) -> Jet:
        return self + other * -1.0

    __radd__, __rmul__ = __add__, __mul__


def coordinates(*values) -> list[Jet]:
    """The k coordinates as jets; numbers are shared by all units."""
    unit = np.eye(len(values))[..., None]
    none = np.zeros((len(values), len(values), 1))
    return [
        Jet(np.atleast_1d(value), *each)
        for value, *each in zip(values, unit, [none] * len(values), strict=True)
    ]


@dataclass(frozen=True)
class SelectedUnits:
    """The normal log-likelihood of selected units and its derivatives in (index, e, atanh_rho).

    Each is computed on access; for the formulas see `selected_units`. Arrays, or torch tensors.
    """

    e: np.ndarray
    cosh: float
    sinh: float
    argument: np.ndarray
    slope: np.ndarray
    log_cdf: np.ndarray
    mills: np.ndarray

    @cached_property
    def delta(self) -> np.ndarray:
        return self.mills * mills_excess(self.argument, self.mills)

    @property
    def value(self) -> np.ndarray:
        return self.log_cdf - 0.5 * self.e * self.e - 0.5 * LOG_2PI

    @cached_property
    def gradient(self) -> np.ndarray:
        """(3, n)"""
        by_e = self.mills * self.sinh - self.e
        return _stack([self.mills * self.cosh, by_e, self.mills * self.slope])

    @cached_property
    def hessian(self) -> np.ndarray:
        """(3, 3, n)"""
        mills, delta, cosh, sinh = self.mills, self.delta, self.cosh, self.sinh
        index_e = -delta * cosh * sinh
        index_a = mills * sinh - delta * cosh * self.slope
        e_a = mills * cosh - delta * sinh * self.slope
        a_a = mills * self.argument - delta * self.slope * self.slope
        return _stack(
            [
                _stack([-delta * cosh * cosh, index_e, index_a]),
                _stack([index_e, -1.0 - delta * sinh * sinh, e_a]),
                _stack([index_a, e_a, a_a]),
            ]
        )


def _stack(parts):
    return namespace(parts[0]).stack(parts)


def selected_units(index, e, atanh_rho) -> SelectedUnits:
    r"""Value, score and Hessian of log phi(e) + log Phi(B).

    With C = cosh a, S = sinh a, lambda and delta at B (`argument`) and
    D = dB/da = eta S + e C (`slope`, so that d^2B/da^2 = B again):

    .. math::
        \ell_\eta = \lambda C,\quad \ell_e = \lambda S - e,\quad \ell_a = \lambda D

        \ell_{\eta\eta} = -\delta C^2,\; \ell_{\eta e} = -\delta C S,\;
        \ell_{ee} = -1 - \delta S^2

        \ell_{\eta a} = \lambda S - \delta C D,\; \ell_{ea} = \lambda C - \delta S D,\;
        \ell_{aa} = \lambda B - \delta D^2

    B and D are computed from (eta + e) e^a and (eta - e) e^{-a}: for a = 20 the direct sum
    eta cosh a + e sinh a would lose every digit if eta is close to -e.
    """
    xp = namespace(atanh_rho)
    plus = (index + e) * (0.5 * xp.exp(atanh_rho))
    minus = (index - e) * (0.5 * xp.exp(-atanh_rho))
    argument = plus + minus
    log_cdf, mills = log_ndtr_and_mills(argument)
    shared = xp.cosh(atanh_rho), xp.sinh(atanh_rho)
    return SelectedUnits(e, *shared, argument, plus - minus, log_cdf, mills)


def unselected_units(index):
    """log Phi(-index) with its first and second derivative."""
    log_cdf, mills = log_ndtr_and_mills(-index)
    return log_cdf, -mills, -mills * mills_excess(-index, mills)


@dataclass(frozen=True)
class ErrorModel:
    """An error model, with its likelihood as jets in all arguments; this one is the normal.

    extra, extra_ends, extra_labels : start, range and name of its parameters besides atanh rho,
    which are the same for all units
    """

    name: str = "Gaussian"
    extra: tuple[float, ...] = ()
    extra_ends: tuple[tuple[float, float], ...] = ()
    extra_labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return 1 + len(self.extra)

    def room(self, shared) -> tuple[np.ndarray, np.ndarray]:
        """How far the shared parameters are from their lower (<= 0) and upper (>= 0) ends."""
        low, high = np.array([(-ATANH_RHO_END, ATANH_RHO_END), *self.extra_ends]).T
        return low - shared, high - shared

    def selected(self, index, e, atanh_rho, *extra):
        return selected_units(index, e, atanh_rho)

    def unselected(self, index, *shared) -> Jet:
        value, slope, bend = unselected_units(index)
        gradient, hessian = (
            np.zeros((1 + len(shared), len(index))),
            np.zeros((1 + len(shared),) * 2 + (len(index),)),
        )
        gradient[0], hessian[0, 0] = slope, bend
        return Jet(value, gradient, hessian)


class StudentErrors(ErrorModel):
    r"""Bivariate t errors with a common nu, in the coordinates (index, e, atanh rho, log nu).

    * unselected: log T_nu(-eta)
    * selected:   log t_nu(e) + log T_{nu+1}(B sqrt((nu + 1)/(nu + e^2)))

    sigma is the scale of the outcome error; its standard deviation is sigma sqrt(nu/(nu - 2)). Both
    errors share one mixing variable, so at rho = 0 they are uncorrelated but not independent.
    """

    def selected(self, index, e, atanh_rho, *extra):
        eta, residual, a, log_nu = coordinates(index, e, atanh_rho, *extra)
        nu = log_nu.exp()
        argument = 0.5 * (eta + residual) * a.exp() + 0.5 * (eta - residual) * (a * -1.0).exp()
        log_scale = 0.5 * ((nu + 1.0).log() - (nu + residual * residual).log())
        density = self._of(student.log_density, residual, nu)
        return density + self._of(student.log_cdf, argument * log_scale.exp(), nu + 1.0)

    def unselected(self, index, *shared) -> Jet:
        eta, _, log_nu = coordinates(index, *shared)
        return self._of(student.log_cdf, eta * -1.0, log_nu.exp())

    @staticmethod
    def _of(function, t: Jet, nu: Jet) -> Jet:
        at = function(t.value, float(nu.value[0]))
        second = (at.d_t_t, at.d_t_nu, at.d_nu_nu)
        return t.with_other(nu, at.value, (at.d_t, at.d_nu), second)


class ShapeErrors(ErrorModel):
    r"""Skewed and heavy-tailed outcome errors: sinh-arcsinh, with Gaussian dependence.

    With e = (y - f)/sigma, epsilon the skewness and delta the weight of the tails,

    .. math:: t = \delta\,\mathrm{asinh}\,e - \epsilon, \qquad q = \sinh t,

    (u, q) is standard bivariate normal with correlation rho. A selected unit contributes
    log phi(q) + log Phi(B) + log delta + log cosh t - log(1 + e^2)/2 with q in place of e in B.
    epsilon = 0, delta = 1 is the normal. Positive epsilon is a long right tail; delta < 1 are heavy
    tails, delta > 1 light ones.
    """

    def selected(self, index, e, atanh_rho, *extra):
        r"""Derivatives in (index, e, atanh rho, epsilon, log delta).

        Let M(eta, t, a) be the normal log-likelihood at q = sinh t plus log cosh t. Its derivatives
        follow from those of `selected_units`, with C = cosh t:

        .. math::
            M_t = \ell_q C + \tanh t,\quad M_{tt} = \ell_{qq} C^2 + \ell_q q + \mathrm{sech}^2 t

        and t is a function of e, epsilon and log delta with h = sqrt(1 + e^2):

        .. math::
            t_e = \delta/h,\; t_\epsilon = -1,\; t_{\log\delta} = \delta\,\mathrm{asinh}\,e,\;
            t_{ee} = -\delta e/h^3,\; t_{e\log\delta} = \delta/h
        """
        skewness, log_tail = extra
        tail = np.exp(log_tail)
        size = np.hypot(1.0, e)  # e^2 itself may overflow
        stretched = tail * np.arcsinh(e)
        t = stretched - skewness
        units = selected_units(index, np.sinh(t), atanh_rho)
        cosh, decay = np.cosh(t), np.exp(-2 * np.abs(t))
        d_index, d_q, d_a = units.gradient
        d_t = d_q * cosh + np.tanh(t)
        d_t_t = units.hessian[1, 1] * cosh**2 + d_q * units.e + 4 * decay / (1 + decay) ** 2
        d_index_t, d_t_a = units.hessian[[0, 1], [1, 2]] * cosh
        t_e, share = tail / size, e / size
        value = units.value + log_tail + np.abs(t) + np.log1p(decay) - np.log(2.0) - np.log(size)
        gradient, hessian = np.empty((5, len(value))), np.empty((5, 5, len(value)))
        gradient[0], gradient[2] = d_index, d_a
        gradient[1] = d_t * t_e - share / size
        gradient[3], gradient[4] = -d_t, d_t * stretched + 1.0
        hessian[np.ix_([0, 2], [0, 2])] = units.hessian[np.ix_([0, 2], [0, 2])]
        slopes = {1: t_e, 3: -1.0, 4: stretched}
        for i, slope in slopes.items():
            hessian[0, i] = hessian[i, 0] = d_index_t * slope
            hessian[2, i] = hessian[i, 2] = d_t_a * slope
            for j, other in slopes.items():
                hessian[i, j] = d_t_t * (slope * other)
        hessian[1, 1] -= d_t * t_e * share / size + ((1 / size) ** 2 - share**2) / size / size
        hessian[1, 4] += d_t * t_e
        hessian[4, 1] = hessian[1, 4]
        hessian[4, 4] += d_t * stretched
        return Jet(value, gradient, hessian)


GAUSSIAN = ErrorModel()
ERROR_MODELS: dict[str, ErrorModel] = {
    "normal": GAUSSIAN,
    "t": StudentErrors("Student t", (LOG_DF_START,), (LOG_DF_ENDS,), ("log_df",)),
    "shape": ShapeErrors(
        "Shape", (0.0, 0.0), (SKEWNESS_ENDS, LOG_TAIL_ENDS), ("skewness", "log_tail")
    ),
}


def binary_units(index, f, atanh_rho, sign) -> Jet:
    r"""log Phi_2(eta, t f; t a) of a selected unit with a binary outcome, t = +-1 its class.

    y = 1[f + eps > 0] is observed if s = 1[eta + u > 0] is one; both errors have variance one. The
    distribution function is log-concave, so at fixed a this is concave in (eta, f). With h = eta,
    k = t f, a = t atanh rho, C = cosh a, S = sinh a, K = k C - h S and H = h C - k S, all divided
    by Phi_2 = P:

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
