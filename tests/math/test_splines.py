"""Splines whose ridge is their roughness."""

import numpy as np
import pytest

from heckesel.classical.spline_profile import SURFACE_KNOTS, spline_basis
from heckesel.math.splines import INNER_KNOTS, spline_of

RNG = np.random.default_rng(0)
DRAWS = {
    "even": RNG.uniform(-2, 2, size=500),
    "normal": RNG.normal(size=500),
    "far tail": np.exp(2 * RNG.normal(size=800)),
    "ties": RNG.integers(0, 7, size=300).astype(float),
    "five values": np.repeat([0.0, 1.0, 2.0, 5.0, 9.0], 20),
}
EACH = pytest.mark.parametrize("x", DRAWS.values(), ids=DRAWS)


@EACH
@pytest.mark.parametrize("inner_knots", [SURFACE_KNOTS, INNER_KNOTS])
def test_the_wiggly_part_has_all_directions_but_the_straight_lines(x, inner_knots):
    spline = spline_of(x, inner_knots)
    knots = len(np.unique(spline.knots)) - 2
    assert knots == inner_knots
    assert spline.turn.shape == (knots + 4, knots + 2)
    columns = spline.columns(x)
    assert columns.shape == (len(x), knots + 2)
    straight = np.column_stack([np.ones_like(x), x / np.abs(x).max()])
    # Columns have a mean square of 1/h; rounding is judged against that.
    assert np.abs(straight.T @ columns).max() / len(x) < 1e-9
    assert np.mean(columns**2) * columns.shape[1] == pytest.approx(1)


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


@pytest.mark.parametrize("name", ["even", "normal", "far tail"])
def test_any_cubic_spline_on_the_knots_is_a_line_and_the_columns(name):
    # (x - c)^2 is in the span whatever the knots are: with unlike ones, too.
    x = DRAWS[name]
    spline = spline_of(x)
    design = np.column_stack([np.ones_like(x), x, spline.columns(x)])
    target = (x - x.mean()) ** 2
    design, target = design / np.linalg.norm(design, axis=0), target / np.linalg.norm(target)
    fitted = design @ np.linalg.lstsq(design, target, rcond=1e-14)[0]
    assert np.abs(fitted - target).max() < 1e-6


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


def test_each_curve_and_each_surface_has_a_ridge_of_its_own_and_lines_have_none():
    x = np.column_stack([DRAWS["even"], np.arange(500) % 2, DRAWS["normal"]])
    basis = spline_basis(x, "all")
    columns = basis.columns(x)
    wiggles, small = INNER_KNOTS + 2, SURFACE_KNOTS + 2
    surfaces = [small + 1, (small + 1) ** 2, small + 1]  # pairs (0, 1), (0, 2), (1, 2)
    widths = [4, wiggles, wiggles, *surfaces]
    assert columns.shape == (500, sum(widths))
    assert basis.membership.shape == (sum(widths), 5)
    np.testing.assert_array_equal(basis.membership.sum(axis=0), widths[1:])
    np.testing.assert_array_equal(basis.membership.sum(axis=1), np.arange(sum(widths)) >= 4)
    np.testing.assert_array_equal(columns[:, :4], np.column_stack([np.ones(500), x]))
    first = 4 + 2 * wiggles
    np.testing.assert_allclose(columns[:, first], x[:, 0] * x[:, 1])
    chosen = spline_basis(x, [(2, 0)])
    np.testing.assert_allclose(chosen.columns(x)[:, first], x[:, 2] * x[:, 0])
