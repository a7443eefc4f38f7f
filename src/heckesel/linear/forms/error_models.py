"""Error models of a linear fit, each with one dependence parameter.

`selected(index, e, shared)` and `unselected(index, shared)` are log-likelihoods of units as jets in
(index, e, *shared) and (index, *shared); shared[0] is the dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import exprel

from heckesel.likelihoods import copula, normal, shape, student
from heckesel.numerics.jet import Jet

# Kendall's tau of the stops on the way out from independence, and of its two ends: nearer to
# zero no sample tells a copula from independence, and beyond .97 one error is the other.
TAU_STOPS = np.array([0.03, 0.12, 0.25, 0.4, 0.55, 0.7, 0.82, 0.91])
TAU_ENDS = np.array([1e-3, 0.97])
FRANK_STOPS = np.array([0.5, 1.5, 3.0, 5.0, 8.0, 13.0, 22.0, 45.0])
FRANK_END = 130.0
ATANH_RHO_STOPS = np.array([0.15, 0.3, 0.5, 0.75, 1.0, 1.3, 1.7, 2.2, 2.8])
ATANH_RHO_END = 7.0  # as far as `profile` scans
# Beyond these ends the shape hardly changes. At a skewness of 3 the short tail is an edge: on the
# way to 4 a thousand exponential errors gain .2 in log-likelihood and the slopes do not move. A
# tail of .2 has a kurtosis of thousands. Without the ends sigma could go to zero.
SKEWNESS_ENDS, LOG_TAIL_ENDS = (-3.0, 3.0), (-np.log(5.0), np.log(5.0))
LOG_DF_START, LOG_DF_ENDS = np.log(8.0), (0.0, np.log(1e5))  # Cauchy, and as good as normal
DEBYE_NODES, DEBYE_WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Form:
    """stops: the dependence from next to independence outward; ends: where it must stay.

    two_sided: whether the dependence has both signs, with independence at 0
    extra, extra_ends, extra_labels: start, range and name of shared parameters besides the
    dependence
    theta: the dependence in the family's own terms; its limit at independence is theta_zero
    """

    name: str
    selected: Callable
    unselected: Callable
    stops: np.ndarray
    ends: tuple[float, float]
    two_sided: bool
    theta: Callable
    theta_zero: float
    tau: Callable
    label: str = "theta"
    extra: tuple[float, ...] = ()
    extra_ends: tuple[tuple[float, float], ...] = ()
    extra_labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return 1 + len(self.extra)

    def room(self, shared) -> tuple[np.ndarray, np.ndarray]:
        """How far the shared parameters are from their lower (<= 0) and upper (>= 0) ends."""
        low, high = np.array([self.ends, *self.extra_ends]).T
        return low - shared, high - shared


def _unselected_normal(index, shared) -> Jet:
    """log Phi(-index), which no copula touches."""
    units, size = normal.unselected_units(index), 1 + len(shared)
    gradient, hessian = np.zeros((size, len(index))), np.zeros((size, size, len(index)))
    gradient[0], hessian[0, 0] = units.d_index, units.d_index_index
    return Jet(units.value, gradient, hessian)


def _selected_normal(index, e, shared) -> Jet:
    u = normal.selected_units(index, e, shared[0])
    hessian = np.array(
        [
            [u.d_index_index, u.d_index_e, u.d_index_a],
            [u.d_index_e, u.d_e_e, u.d_e_a],
            [u.d_index_a, u.d_e_a, u.d_a_a],
        ]
    )
    return Jet(u.value, np.array([u.d_index, u.d_e, u.d_a]), hessian)


def _selected_student(index, e, shared) -> Jet:
    return student.selected_units(index, e, *shared)


def _unselected_student(index, shared) -> Jet:
    """The dependence does not enter: its row is zero."""
    units = student.unselected_units(index, shared[1])
    kept = np.ix_([0, 2], [0, 2])
    gradient, hessian = np.zeros((3, len(index))), np.zeros((3, 3, len(index)))
    gradient[[0, 2]], hessian[kept] = units.gradient, units.hessian
    return Jet(units.value, gradient, hessian)


def _selected_shape(index, e, shared) -> Jet:
    return shape.selected_units(index, e, *shared)


def _selected_copula(index, e, shared, *, family: str, rotation: int) -> Jet:
    return copula.selected_units(index, e, shared[0], family=family, rotation=rotation)


def tau_elliptical(atanh_rho: float) -> float:
    """Kendall's tau of a Gaussian or t dependence: 2/pi asin rho."""
    return float(2 / np.pi * np.arcsin(np.tanh(atanh_rho)))


def tau_frank(theta: float) -> float:
    r"""Kendall's tau of a Frank copula.

    .. math:: 1 - \frac{4}{\theta}\Big(1 - \frac1\theta\int_0^\theta\frac{t}{e^t - 1}\,dt\Big)
    """
    if abs(theta) < 1e-3:  # the two ones cancel; the series is theta/9 - theta^3/900
        return theta / 9
    half = 0.5 * theta
    debye = 0.5 * float(DEBYE_WEIGHTS @ (1 / exprel(half * (1 + DEBYE_NODES))))
    return 1 - 4 / theta * (1 - debye)


def _clayton(rotation: int) -> Form:
    """tau = theta/(theta + 2)"""
    return _one_sided("Clayton", rotation, lambda tau: np.log(2 * tau / (1 - tau)), 0.0)


def _gumbel(rotation: int) -> Form:
    """tau = 1 - 1/theta"""
    return _one_sided("Gumbel", rotation, lambda tau: np.log(tau / (1 - tau)), 1.0)


def _one_sided(family: str, rotation: int, parameter: Callable, theta_zero: float) -> Form:
    sign = -1.0 if rotation in (90, 270) else 1.0

    def tau(theta):
        size = theta / (theta + 2) if family == "Clayton" else 1 - 1 / theta
        return sign * size if size else 0.0

    low, high = parameter(TAU_ENDS)
    return Form(
        name=f"{family} {rotation}" if rotation else family,
        selected=partial(_selected_copula, family=family, rotation=rotation),
        unselected=_unselected_normal,
        stops=parameter(TAU_STOPS),
        ends=(float(low), float(high)),
        two_sided=False,
        theta=lambda dependence: theta_zero + float(np.exp(dependence)),
        theta_zero=theta_zero,
        tau=tau,
    )


GAUSSIAN = Form(
    name="Gaussian",
    selected=_selected_normal,
    unselected=_unselected_normal,
    stops=ATANH_RHO_STOPS,
    ends=(-ATANH_RHO_END, ATANH_RHO_END),
    two_sided=True,
    theta=float,
    theta_zero=0.0,
    tau=tau_elliptical,
    label="atanh_rho",
)
STUDENT = replace(
    GAUSSIAN,
    name="Student t",
    selected=_selected_student,
    unselected=_unselected_student,
    extra=(LOG_DF_START,),
    extra_ends=(LOG_DF_ENDS,),
    extra_labels=("log_df",),
)
SHAPE = replace(
    GAUSSIAN,
    name="Shape",
    selected=_selected_shape,
    extra=(0.0, 0.0),
    extra_ends=(SKEWNESS_ENDS, LOG_TAIL_ENDS),
    extra_labels=("skewness", "log_tail"),
)
FRANK = Form(
    name="Frank",
    selected=partial(_selected_copula, family="Frank", rotation=0),
    unselected=_unselected_normal,
    stops=FRANK_STOPS,
    ends=(-FRANK_END, FRANK_END),
    two_sided=True,
    theta=float,
    theta_zero=0.0,
    tau=tau_frank,
)
FORMS = (
    GAUSSIAN,
    STUDENT,
    SHAPE,
    FRANK,
    *(_clayton(rotation) for rotation in copula.ROTATIONS),
    *(_gumbel(rotation) for rotation in copula.ROTATIONS),
)
ERROR_MODELS = {"normal": GAUSSIAN, "t": STUDENT, "shape": SHAPE}  # those `hk.heckman` can fit
