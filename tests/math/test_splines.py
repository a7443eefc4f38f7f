"""Splines whose ridge is their roughness."""

import numpy as np
import pytest

from heckesel.math.splines import spline_of

RNG = np.random.default_rng(0)
DRAWS = {
    "even": RNG.uniform(-2, 2, size=500),
    "normal": RNG.normal(size=500),
    "far tail": np.exp(2 * RNG.normal(size=800)),
    "ties": RNG.integers(0, 7, size=300).astype(float),
    "five values": np.repeat([0.0, 1.0, 2.0, 5.0, 9.0], 20),
}


def second_derivatives(spline, at):
    """(m, h) by differences: exact inside a piece of a cubic, but for rounding."""
    step = 1e-3 * np.diff(np.unique(spline.knots)).min()
    up, here, down = (spline.columns(at + shift) for shift in (step, 0.0, -step))
    return (up - 2 * here + down) / step**2


@pytest.mark.parametrize("name", ["even", "ties"])
def test_the_ridge_is_the_integrated_squared_second_derivative_up_to_its_unit(name):
    spline = spline_of(DRAWS[name], 6)
    pieces = np.unique(spline.knots)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    total = 0.0
    for left, right in zip(pieces[:-1], pieces[1:], strict=True):
        at = 0.5 * (left + right) + 0.5 * (right - left) * nodes
        bends = second_derivatives(spline, at)
        total = total + 0.5 * (right - left) * (bends * weights[:, None]).T @ bends
    unit = np.trace(total) / len(total)
    # Second differences with a step of 1e-3 keep five or six digits.
    np.testing.assert_allclose(total / unit, np.eye(len(total)), atol=2e-4)


def test_a_smooth_function_is_reproduced():
    x = np.linspace(-3, 3, 400)
    spline = spline_of(x)
    f = np.sin(1.5 * x) + x / 2
    design = np.column_stack([np.ones_like(x), x, spline.columns(x)])
    fitted = design @ np.linalg.lstsq(design, f, rcond=None)[0]
    # A cubic spline errs by 5/384 h^4 max|f''''| at most: h = 6/19 and 1.5^4 make 7e-4.
    assert np.abs(fitted - f).max() < 7e-4


def test_units_of_the_column_do_not_matter():
    x = DRAWS["normal"]
    one, other = spline_of(x), spline_of(1000 * x + 5)
    first, second = one.columns(x), other.columns(1000 * x + 5)
    # The columns themselves are known up to sign; what a ridge sees is their products.
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-8)


def test_beyond_the_range_the_wiggly_part_stays_at_its_end():
    x = DRAWS["even"]
    spline = spline_of(x)
    ends = np.array([x.min(), x.max()])
    beyond = spline.columns(ends + np.array([-7.0, 0.5]))
    np.testing.assert_array_equal(beyond, spline.columns(ends))
    inside = spline.columns(ends + np.array([1e-9, -1e-9]))
    np.testing.assert_allclose(beyond, inside, atol=1e-6)  # and it arrives there without a jump


@pytest.mark.parametrize("values", [[3.0], [0.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
def test_a_column_of_few_values_has_no_spline(values):
    assert spline_of(np.tile(values, 30)) is None
