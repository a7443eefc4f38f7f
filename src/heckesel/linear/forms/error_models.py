"""Error models of a linear fit, each with one dependence parameter.

`selected(index, e, *shared)` and `unselected(index, *shared)` are log-likelihoods of units as jets
in all of their arguments; shared[0] is the dependence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import exprel

from heckesel.likelihoods import copula, normal, shape, student
from heckesel.numerics.jet import Jet

# Kendall's tau at the stops of the walk away from independence, and its two limits: closer to zero
# no sample distinguishes a copula from independence; beyond .97 the errors are nearly equal.
TAU_STOPS = np.array([0.03, 0.12, 0.25, 0.4, 0.55, 0.7, 0.82, 0.91])
TAU_ENDS = np.array([1e-3, 0.97])
FRANK_STOPS = np.array([0.5, 1.5, 3.0, 5.0, 8.0, 13.0, 22.0, 45.0])
FRANK_END = 130.0
ATANH_RHO_STOPS = np.array([0.15, 0.3, 0.5, 0.75, 1.0, 1.3, 1.7, 2.2, 2.8])
ATANH_RHO_END = 7.0  # as far as `profile` scans
LOG_DF_START, LOG_DF_ENDS = np.log(8.0), (0.0, np.log(1e5))  # Cauchy, and practically normal
DEBYE_NODES, DEBYE_WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Form:
    """A form: an error model with its free parameters, a dependence and extra ones.

    stops: values of the dependence, from near independence outwards; ends: its limits
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


def _unselected_normal(index, *shared) -> Jet:
    """log Phi(-index), which depends on neither the dependence nor the outcome error."""
    units, size = normal.unselected_units(index), 1 + len(shared)
    gradient, hessian = np.zeros((size, len(index))), np.zeros((size, size, len(index)))
    gradient[0], hessian[0, 0] = units.d_index, units.d_index_index
    return Jet(units.value, gradient, hessian)


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


GAUSSIAN = Form(
    name="Gaussian",
    selected=normal.selected_units,
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
    selected=student.selected_units,
    unselected=student.unselected_units,
    extra=(LOG_DF_START,),
    extra_ends=(LOG_DF_ENDS,),
    extra_labels=("log_df",),
)
SHAPE = replace(
    GAUSSIAN,
    name="Shape",
    selected=shape.selected_units,
    extra=(0.0, 0.0),
    extra_ends=(shape.SKEWNESS_ENDS, shape.LOG_TAIL_ENDS),
    extra_labels=("skewness", "log_tail"),
)
FRANK = replace(
    GAUSSIAN,
    name="Frank",
    selected=partial(copula.selected_units, family="Frank"),
    stops=FRANK_STOPS,
    ends=(-FRANK_END, FRANK_END),
    tau=tau_frank,
    label="theta",
)


def _one_sided(family: str, rotation: int) -> Form:
    """A Clayton copula, tau = theta/(theta + 2), or a Gumbel copula, tau = 1 - 1/theta."""
    sign = -1.0 if rotation in (90, 270) else 1.0
    factor, theta_zero = (2.0, 0.0) if family == "Clayton" else (1.0, 1.0)

    def parameter(tau):
        return np.log(factor * tau / (1 - tau))

    def tau(theta):
        size = theta / (theta + 2) if family == "Clayton" else 1 - 1 / theta
        return sign * size if size else 0.0

    low, high = parameter(TAU_ENDS)
    return replace(
        FRANK,
        name=f"{family} {rotation}" if rotation else family,
        selected=partial(copula.selected_units, family=family, rotation=rotation),
        stops=parameter(TAU_STOPS),
        ends=(float(low), float(high)),
        two_sided=False,
        theta=lambda dependence: theta_zero + float(np.exp(dependence)),
        theta_zero=theta_zero,
        tau=tau,
    )


ONE_SIDED = [
    _one_sided(family, turn) for family in ("Clayton", "Gumbel") for turn in copula.ROTATIONS
]
FORMS = (GAUSSIAN, STUDENT, SHAPE, FRANK, *ONE_SIDED)
ERROR_MODELS = {"normal": GAUSSIAN, "t": STUDENT, "shape": SHAPE}  # the `errors=` of `hk.heckman`
