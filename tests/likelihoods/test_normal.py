"""The bivariate normal likelihood against 40-digit arithmetic and finite differences."""

import itertools

import mpmath as mp
import numpy as np
import pytest

from heckesel.likelihoods.normal import selected_units, unselected_units

pytestmark = pytest.mark.arithmetic

mp.mp.dps = 40
FAR_OUT = float(np.arctanh(1 - 1e-12))  # the largest |rho| the formulas promise


def exact_selected(index, e, a):
    index, e, a = (mp.mpf(v) for v in (index, e, a))
    rho = mp.tanh(a)
    argument = (index + rho * e) / mp.sqrt(1 - rho**2)
    return mp.log(mp.npdf(e)) + mp.log(mp.erfc(-argument / mp.sqrt(2)) / 2)


@pytest.mark.parametrize("a", [0.0, 0.37, -1.9, 5.0, FAR_OUT, -FAR_OUT])
def test_selected_values_have_twelve_digits(a):
    grid = list(itertools.product([-40.0, -7.3, -0.2, 1.1, 40.0], [-39.0, -1.1, 0.3, 2.5, 40.0]))
    index, e = np.array(grid).T
    exact = [float(exact_selected(*point, a)) for point in grid]
    np.testing.assert_allclose(selected_units(index, e, a).value, exact, rtol=1e-12)


def test_selected_score_has_eleven_digits_at_large_correlation():
    index, e, a = 1.3, -1.2999, 9.0
    units = selected_units(np.array([index]), np.array([e]), a)
    exact = [
        float(mp.diff(exact_selected, (index, e, a), order))
        for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    np.testing.assert_allclose(units.gradient[:, 0], exact, rtol=1e-11)


def test_unselected_values_have_twelve_digits():
    index = np.array([-40.0, -3.0, 0.0, 2.0, 40.0])
    exact = [float(mp.log(mp.erfc(mp.mpf(t) / mp.sqrt(2)) / 2)) for t in index]
    np.testing.assert_allclose(unselected_units(index).value, exact, rtol=1e-12)


POINTS = [(0.7, -1.3, 0.4), (-2.1, 0.6, -1.7), (-9.0, 2.0, 0.9), (3.3, -2.9, 2.6)]
FIRST = {"index": 0, "e": 1, "a": 2}


def shifted(point, axis, step):
    moved = list(point)
    moved[axis] += step
    return selected_units(np.array([moved[0]]), np.array([moved[1]]), moved[2])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives_equal_differences(point, name):
    step = 1e-5
    up, down = (shifted(point, FIRST[name], sign * step).value[0] for sign in (1, -1))
    analytic = shifted(point, 0, 0.0).gradient[FIRST[name], 0]
    # central differences err by step^2 f''' and by rounding, 1e-16 |f| / step
    np.testing.assert_allclose((up - down) / (2 * step), analytic, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("axis", FIRST)
def test_second_derivatives_equal_differences(point, axis):
    step = 1e-5
    up, down = (shifted(point, FIRST[axis], sign * step).gradient[:, 0] for sign in (1, -1))
    analytic = shifted(point, 0, 0.0).hessian[FIRST[axis], :, 0]
    np.testing.assert_allclose((up - down) / (2 * step), analytic, rtol=1e-7, atol=1e-8)


def test_unselected_derivatives_equal_differences():
    index, step = np.array([-6.0, -0.4, 1.7, 8.0]), 1e-5
    up, down = unselected_units(index + step), unselected_units(index - step)
    here = unselected_units(index)
    np.testing.assert_allclose((up.value - down.value) / (2 * step), here.d_index, rtol=1e-8)
    np.testing.assert_allclose(
        (up.d_index - down.d_index) / (2 * step), here.d_index_index, rtol=1e-8, atol=1e-9
    )
