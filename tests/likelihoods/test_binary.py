"""The likelihood of a binary outcome: its value by brute force, its derivatives by differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from heckesel.likelihoods.binary import selected_units

pytestmark = pytest.mark.arithmetic

POINTS = [
    (0.7, -1.3, 0.4),
    (-2.1, 0.6, -1.7),
    (-6.0, 2.0, 0.9),
    (3.3, -2.9, 2.6),
    (-4.0, -5.0, -1.0),
]
AXES = {"index": 0, "f": 1, "a": 2}
both_signs = pytest.mark.parametrize("sign", [1.0, -1.0])


def units_at(point, axis, step, sign):
    moved = list(point)
    moved[axis] += step
    return selected_units(*(np.array([value]) for value in moved), np.array([sign]))


@pytest.mark.parametrize("point", POINTS[:2])
def test_values_are_integrals_over_the_selection_error(point):
    index, f, a = point
    rho = np.tanh(a)

    def integrand(u, sign):
        return np.exp(-u * u / 2) * ndtr(sign * (f + rho * u) / np.sqrt(1 - rho**2))

    for sign in (1.0, -1.0):
        total = quad(integrand, -index, np.inf, (sign,), epsabs=1e-13)[0] / np.sqrt(2 * np.pi)
        assert units_at(point, 0, 0.0, sign).value[0] == pytest.approx(np.log(total), rel=1e-11)


@both_signs
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", AXES)
def test_first_derivatives_equal_differences(point, name, sign):
    step = 1e-5
    up, down = (units_at(point, AXES[name], way * step, sign).value[0] for way in (1, -1))
    analytic = units_at(point, 0, 0.0, sign).gradient[AXES[name], 0]
    # central differences err by step^2 f''' and by rounding, 1e-15 |f| / step
    np.testing.assert_allclose((up - down) / (2 * step), analytic, rtol=1e-6, atol=1e-8)


@both_signs
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("axis", AXES)
def test_second_derivatives_equal_differences(point, axis, sign):
    step = 1e-5
    up, down = (units_at(point, AXES[axis], way * step, sign).gradient[:, 0] for way in (1, -1))
    analytic = units_at(point, 0, 0.0, sign).hessian[AXES[axis], :, 0]
    np.testing.assert_allclose((up - down) / (2 * step), analytic, rtol=1e-6, atol=1e-7)


def test_without_dependence_it_is_two_probits():
    rng = np.random.default_rng(0)
    index, f = 2 * rng.standard_normal((2, 50))
    sign = rng.choice([-1.0, 1.0], 50)
    units = selected_units(index, f, 0.0, sign)
    np.testing.assert_allclose(units.value, log_ndtr(index) + log_ndtr(sign * f), rtol=1e-13)
    np.testing.assert_allclose(units.hessian[0, 1], 0.0, atol=1e-13)


def test_at_fixed_rho_every_unit_is_concave():
    rng = np.random.default_rng(1)
    index, f, a = rng.standard_normal((3, 2000)) * np.array([[2.0], [2.0], [0.8]])
    units = selected_units(index, f, a, rng.choice([-1.0, 1.0], 2000))
    d_index_index, d_f_f = units.hessian[0, 0], units.hessian[1, 1]
    determinant = d_index_index * d_f_f - units.hessian[0, 1] ** 2
    # second derivatives are differences of numbers up to 1e4, exact to 1e-16 of those
    assert (d_index_index < 1e-9).all()
    assert (determinant > -1e-9 * (1 + d_index_index * d_f_f)).all()
