"""Copulas of normal errors against 60-digit arithmetic, integrals and finite differences."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from heckesel.likelihoods import normal
from heckesel.likelihoods.copula import FAMILIES, ROTATIONS, selected_units
from heckesel.linear.forms.error_models import FORMS, GAUSSIAN, tau_elliptical, tau_frank

CASES = [(family, rotation) for family in FAMILIES for rotation in ROTATIONS]
PARAMETERS = [-2.3, 0.7, 2.1]
POINTS = [(0.3, -0.4), (-1.7, 2.2), (3.1, 1.9), (-2.3, -2.9)]


def copula(family, u, v, parameter):
    """C(u, v) as the textbooks print it."""
    if family == "Frank":
        theta = mp.mpf(parameter)
        product = mp.expm1(-theta * u) * mp.expm1(-theta * v)
        return -mp.log1p(product / mp.expm1(-theta)) / theta
    if family == "Clayton":
        theta = mp.exp(parameter)
        return (u**-theta + v**-theta - 1) ** (-1 / theta)
    theta = 1 + mp.exp(parameter)
    return mp.exp(-(((-mp.log(u)) ** theta + (-mp.log(v)) ** theta) ** (1 / theta)))


def rotated(family, rotation, u, v, parameter):
    if rotation == 90:
        return v - copula(family, 1 - u, v, parameter)
    if rotation == 180:
        return u + v - 1 + copula(family, 1 - u, 1 - v, parameter)
    if rotation == 270:
        return u - copula(family, u, 1 - v, parameter)
    return copula(family, u, v, parameter)


def exact(family, rotation, index, e, parameter):
    with mp.workdps(60):
        u, v = mp.ncdf(-mp.mpf(index)), mp.ncdf(mp.mpf(e))
        below = mp.diff(lambda t: rotated(family, rotation, u, t, parameter), v)
        return float(mp.log(mp.npdf(mp.mpf(e))) + mp.log(1 - below))


@pytest.mark.parametrize(("family", "rotation"), CASES)
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_values_are_the_derivative_of_the_copula(family, rotation, parameter):
    index, e = np.array(POINTS).T
    ours = selected_units(index, e, parameter, family=family, rotation=rotation).value
    expected = [exact(family, rotation, *point, parameter) for point in POINTS]
    np.testing.assert_allclose(ours, expected, rtol=1e-10)  # mpmath differences keep 1e-12


@pytest.mark.parametrize(("family", "rotation"), CASES)
@pytest.mark.parametrize("point", [(0.3, -0.4, 0.6), (-1.7, 2.2, -1.1), (2.4, 1.3, 1.2)])
def test_derivatives_equal_differences(family, rotation, point):
    def at(axis, step):
        moved = list(point)
        moved[axis] += step
        index, e = np.array([moved[0]]), np.array([moved[1]])
        return selected_units(index, e, moved[2], family=family, rotation=rotation)

    here, step = at(0, 0.0), 1e-5
    for axis in range(3):
        up, down = at(axis, step), at(axis, -step)
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.gradient[axis], rtol=1e-6, atol=1e-8)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(bend, here.hessian[axis], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("family", "rotation"), CASES)
def test_nothing_overflows_in_the_tails(family, rotation):
    far = np.array([-45.0, -38.0, -9.0, -7.9, -1e-9, 0.0, 0.5, 8.1, 20.0, 45.0])
    index, e = (part.ravel() for part in np.meshgrid(far, far))
    for parameter in (-100.0, -1e-8, 0.0, 5.0, 100.0) if family == "Frank" else (-7, 0.0, 4.2):
        units = selected_units(index, e, parameter, family=family, rotation=rotation)
        for part in (units.value, units.gradient, units.hessian):
            assert np.isfinite(part).all()


def test_far_down_the_tail_the_value_is_exact():
    """Clayton at index -12: u is 1 - 2e-33, which a plain formula takes for 1."""
    ours = selected_units(np.array([-12.0]), np.array([0.4]), 0.3, family="Clayton").value[0]
    with mp.workdps(80):
        theta, log_u = mp.exp(mp.mpf("0.3")), mp.log(mp.ncdf(12))
        v = mp.ncdf(mp.mpf("0.4"))
        h = (1 + v**theta * mp.expm1(-theta * log_u)) ** (-(1 + 1 / theta))
        expected = mp.log(mp.npdf(mp.mpf("0.4"))) + mp.log(1 - h)
    assert ours == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("family", "rotation"), CASES)
def test_selected_outcomes_integrate_to_the_chance_of_selection(family, rotation):
    def density(e):
        unit = selected_units(np.array([0.4]), np.array([e]), 0.9, family=family, rotation=rotation)
        return float(np.exp(unit.value[0]))

    assert quad(density, -9, 9, limit=200)[0] == pytest.approx(ndtr(0.4), abs=1e-8)


@pytest.mark.parametrize(
    ("family", "parameter"), [("Frank", 0.0), ("Clayton", -30), ("Gumbel", -30)]
)
def test_without_dependence_the_errors_are_two_normals(family, parameter):
    index, e = np.array([-1.2, 0.8]), np.array([0.5, -2.0])
    ours = selected_units(index, e, parameter, family=family).value
    np.testing.assert_allclose(ours, normal.selected_units(index, e, 0.0).value, rtol=1e-11)


def test_the_gaussian_form_is_the_normal_likelihood():
    index, e = np.random.default_rng(5).normal(0, 2, (2, 50))
    ours, known = GAUSSIAN.selected(index, e, 0.8), normal.selected_units(index, e, 0.8)
    assert (ours.value == known.value).all()
    assert (ours.gradient == known.gradient).all()
    assert (ours.hessian == known.hessian).all()
    assert (GAUSSIAN.unselected(index, 0.8).value == normal.unselected_units(index).value).all()


def conditional_tau(family, rotation, parameter, nodes=200):
    """1 - 4 int int C_u C_v: both derivatives from the unit likelihood, C is exchangeable."""
    point, weight = np.polynomial.legendre.leggauss(nodes)
    z, mass = 7.0 * point, 7.0 * weight * np.exp(-24.5 * point**2) / np.sqrt(2 * np.pi)
    a, b = (part.ravel() for part in np.meshgrid(z, z))

    def below(u_at, v_at, turned):  # P(U <= u | V = v)
        log_phi = -0.5 * v_at**2 - 0.5 * np.log(2 * np.pi)
        value = selected_units(-u_at, v_at, parameter, family=family, rotation=turned).value
        return 1 - np.exp(value - log_phi)

    swapped = {0: 0, 90: 270, 180: 180, 270: 90}[rotation]
    product = below(a, b, rotation) * below(b, a, swapped)
    return 1 - 4 * mass @ product.reshape(nodes, nodes) @ mass


COPULAS = [form for form in FORMS if form.name.split()[0] in ("Frank", "Clayton", "Gumbel")]


@pytest.mark.parametrize("form", COPULAS, ids=lambda form: form.name)
def test_kendalls_tau_is_that_of_the_copula(form):
    family, _, turn = form.name.partition(" ")
    expected = conditional_tau(family, int(turn or 0), 0.6)
    # the copula's corner, where it is not smooth, limits the rule to about 1e-5
    assert form.tau(form.theta(0.6)) == pytest.approx(expected, abs=2e-4)


def test_taus_of_special_cases():
    assert tau_elliptical(np.arctanh(0.5)) == pytest.approx(1 / 3)
    assert tau_frank(-5.736283) == pytest.approx(-0.5, abs=1e-6)
    assert tau_frank(9e-4) == pytest.approx(1e-4, rel=1e-6)
    assert tau_frank(1.1e-3) == pytest.approx(1.1e-3 / 9, rel=1e-6)
