"""The likelihood of a unit under every error model: values, differences, integrals, limits."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from heckesel.classical.likelihood import (
    ERROR_MODELS,
    GAUSSIAN,
    binary_units,
    selected_units,
    unselected_units,
)

pytestmark = pytest.mark.arithmetic

mp.mp.dps = 40
FAR_OUT = float(np.arctanh(1 - 1e-12))  # the largest |rho| the formulas promise
# (index, e, atanh rho) and the parameters of each error model, none special
PLACES = [(0.7, -1.3, 0.4), (-2.1, 0.6, -1.7), (-9.0, 2.0, 0.9), (3.3, -6.9, 2.6)]
EXTRA = {
    "normal": [()] * 4,
    "t": [(1.1,), (2.3,), (3.9,), (0.3,)],
    "shape": [(0.6, -0.3), (-0.8, 0.2), (0.1, -0.9), (-0.4, 0.5)],
}
CASES = [
    (name, (*place, *more))
    for name in EXTRA
    for place, more in zip(PLACES, EXTRA[name], strict=True)
]
CASES += [("shape", (0.2, 40.0, 0.5, 1.4, -0.6)), ("shape", (-1.0, -0.02, -3.0, 2.0, -1.2))]
SHAPE_FAR_OUT = [
    (0.3, 1e8, 0.8, -0.3, 0.6),
    (-30.0, -1e200, 1.2, 0.5, -2.0),
    (5.0, 2.0, 20.0, 0.3, 0.1),
]


def units_at(name, point):
    index, e, *shared = point
    return ERROR_MODELS[name].selected(np.array([index]), np.array([e]), *shared)


def exact(point):
    """Normal errors, or shape errors if there are five coordinates, in 40 digits."""
    eta, e, a, epsilon, log_delta = map(mp.mpf, (*point, 0.0, 0.0)[:5])
    t = mp.exp(log_delta) * mp.asinh(e) - epsilon
    q = mp.sinh(t)
    argument = eta * mp.cosh(a) + q * mp.sinh(a)
    log_cdf = mp.log(mp.erfc(-argument / mp.sqrt(2)) / 2)
    density = -q * q / 2 - mp.log(2 * mp.pi) / 2 + mp.log(mp.cosh(t)) - mp.log(1 + e * e) / 2
    return density + log_delta + log_cdf


def check_derivatives(units, point, rtol, atol):
    """units : point -> jets of one unit; central differences err by step^2 f''' and by rounding."""
    here, step = units(point), 1e-5
    for axis in range(len(point)):
        move = step * np.eye(len(point))[axis]
        up, down = units(point + move), units(point - move)
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.gradient[axis], rtol=rtol, atol=1e-8)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(bend, here.hessian[axis], rtol=rtol, atol=atol)


@pytest.mark.parametrize("a", [0.0, 0.37, -1.9, 5.0, FAR_OUT, -FAR_OUT])
def test_normal_values_have_twelve_digits(a):
    grid = list(itertools.product([-40.0, -7.3, -0.2, 1.1, 40.0], [-39.0, -1.1, 0.3, 2.5, 40.0]))
    index, e = np.array(grid).T
    expected = [float(exact((*point, a))) for point in grid]
    np.testing.assert_allclose(selected_units(index, e, a).value, expected, rtol=1e-12)


def test_the_normal_score_has_eleven_digits_at_large_correlation():
    point = (1.3, -1.2999, 9.0)
    orders = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    expected = [float(mp.diff(lambda *p: exact(p), point, order)) for order in orders]
    np.testing.assert_allclose(units_at("normal", point).gradient[:, 0], expected, rtol=1e-11)


def test_unselected_units_have_twelve_digits_and_their_derivatives_equal_differences():
    index, step = np.array([-40.0, -6.0, -0.4, 1.7, 8.0, 40.0]), 1e-5
    expected = [float(mp.log(mp.erfc(mp.mpf(t) / mp.sqrt(2)) / 2)) for t in index]
    value, slope, bend = unselected_units(index)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    up, down = unselected_units(index + step), unselected_units(index - step)
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), slope, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), bend, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("point", [point for name, point in CASES if len(point) == 5])
def test_shape_values_have_twelve_digits(point):
    # q = sinh t turns an error of 1e-16 in t, here up to 30, into one of 3e-15 in q
    assert units_at("shape", point).value[0] == pytest.approx(float(exact(point)), rel=1e-12)


@pytest.mark.parametrize("point", SHAPE_FAR_OUT)
def test_shape_slopes_far_out_have_nine_digits(point):
    here = units_at("shape", point)
    assert here.value[0] == pytest.approx(float(exact(point)), rel=1e-12)
    for axis in range(5):
        slope = mp.diff(
            lambda v, k=axis: exact([v if j == k else c for j, c in enumerate(point)]),
            mp.mpf(point[axis]),
            h=mp.mpf(10) ** -15 * max(1, abs(point[axis])),
        )
        assert here.gradient[axis, 0] == pytest.approx(float(slope), rel=1e-9, abs=1e-300)
    assert np.isfinite(here.hessian).all()
    np.testing.assert_array_equal(here.hessian, here.hessian.transpose(1, 0, 2))


@pytest.mark.parametrize(("name", "point"), CASES)
def test_selected_derivatives_equal_differences(name, point):
    check_derivatives(lambda at: units_at(name, at), np.array(point), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", EXTRA)
def test_unselected_derivatives_equal_differences(name):
    model, extra = ERROR_MODELS[name], EXTRA[name][0]

    def units(at):
        return model.unselected(np.array([at[0]]), *at[1:])

    for index in (0.7, -5.0, 2.6):
        check_derivatives(units, np.array([index, 0.3, *extra]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", EXTRA)
@pytest.mark.parametrize(("index", "a"), [(-1.4, -1.1), (0.6, 0.5)])
def test_the_density_integrates_to_the_probability_of_selection(name, index, a):
    model, extra = ERROR_MODELS[name], EXTRA[name][1]
    pieces = [-np.inf, -5.0, 0.0, 5.0, np.inf]
    mass = sum(
        quad(lambda e: np.exp(units_at(name, (index, e, a, *extra)).value[0]), *ends, epsabs=1e-12)[
            0
        ]
        for ends in itertools.pairwise(pieces)
    )
    unselected = model.unselected(np.array([index]), a, *extra).value[0]
    assert mass + np.exp(unselected) == pytest.approx(1.0, abs=1e-8)  # quad promises 1.5e-8


@pytest.mark.parametrize(
    ("name", "extra", "atol"),
    [
        ("shape", (0.0, 0.0), 1e-9),  # sinh(asinh e) rounds to e within 1e-15, magnified by exp(9)
        ("t", (np.log(1e8),), 1e-3),  # they differ by terms of order e^4/nu
    ],
)
def test_normal_tails_are_the_normal_model(name, extra, atol):
    index, e = 1.5 * np.random.default_rng(5).standard_normal((2, 200))
    for a in (-2.0, 0.0, 0.7):
        found = ERROR_MODELS[name].selected(index, e, a, *extra)
        normal = GAUSSIAN.selected(index, e, a)
        np.testing.assert_allclose(found.value, normal.value, rtol=atol, atol=atol)
        np.testing.assert_allclose(found.gradient[:3], normal.gradient, rtol=atol, atol=atol)
        np.testing.assert_allclose(found.hessian[0, 1], normal.hessian[0, 1], atol=atol)


def test_tensors_give_the_same_as_arrays():
    torch = pytest.importorskip("torch")
    index, e = np.random.default_rng(2).normal(0, 3, (2, 40))
    a = torch.tensor(0.8, dtype=torch.float64)
    found = selected_units(torch.tensor(index), torch.tensor(e), a)
    expected = selected_units(index, e, 0.8)
    for name in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-11)


# (index, f, atanh rho) of a binary outcome
BINARY = [
    (0.7, -1.3, 0.4),
    (-2.1, 0.6, -1.7),
    (-6.0, 2.0, 0.9),
    (3.3, -2.9, 2.6),
    (-4.0, -5.0, -1.0),
]


def binary_at(point, sign):
    return binary_units(*(np.array([value]) for value in point), np.array([sign]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("point", BINARY)
def test_binary_derivatives_equal_differences(point, sign):
    check_derivatives(lambda at: binary_at(at, sign), np.array(point), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("point", BINARY[:2])
def test_binary_values_are_integrals_over_the_selection_error(point, sign):
    index, f, a = point
    rho = np.tanh(a)

    def integrand(u):
        return np.exp(-u * u / 2) * ndtr(sign * (f + rho * u) / np.sqrt(1 - rho**2))

    total = quad(integrand, -index, np.inf, epsabs=1e-13)[0] / np.sqrt(2 * np.pi)
    assert binary_at(point, sign).value[0] == pytest.approx(np.log(total), rel=1e-11)


def test_binary_units_are_two_probits_without_dependence():
    rng = np.random.default_rng(0)
    index, f = 2 * rng.standard_normal((2, 50))
    sign = rng.choice([-1.0, 1.0], 50)
    units = binary_units(index, f, 0.0, sign)
    np.testing.assert_allclose(units.value, log_ndtr(index) + log_ndtr(sign * f), rtol=1e-13)
    np.testing.assert_allclose(units.hessian[0, 1], 0.0, atol=1e-13)
