"""Every law a predictive can have: one sweep, then special cases with a known answer."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import heckesel as hk
from heckesel.metrics import evaluate
from heckesel.predictive import (
    Predictive,
    mix_predictives,
    mixed_given_selection,
    mixed_normal,
    predict_given_selection,
    predict_shape,
    predict_student,
    transformed,
)
from heckesel.scales import TargetTransform, target_transform, transform_outcome

MEAN, TAU2 = np.array([-0.4, 0.3, 1.2]), np.array([0.01, 0.09, 0.2])
SIGMA, RHO, INDEX = np.full(3, 0.6), 0.8, np.array([-1.1, 0.2, 1.4])
WEIGHT, APART = np.array([0.5, 0.3, 0.2]), np.array([[0.0], [1.5], [-4.0]])
LOG, LOG1P = target_transform("log"), target_transform("log1p")
CUBE = target_transform((np.cbrt, lambda z: z**3))
FALLING = TargetTransform(functions=(lambda y: -y, lambda z: -z), increasing=False)


def normal():
    return Predictive.normal(MEAN, TAU2, SIGMA**2)


def selected():
    return predict_given_selection(MEAN, TAU2, SIGMA, RHO * SIGMA, INDEX)


def normals():
    return mixed_normal(WEIGHT, MEAN + APART, TAU2, 0.6)


def selecteds(sign=1.0):
    index = sign * (INDEX - 0.2 * APART)
    log_weight = np.log(WEIGHT)[:, None] + stats.norm.logcdf(index)
    shape = np.zeros((3, 3))
    return mixed_given_selection(
        log_weight,
        MEAN + APART,
        TAU2 + shape,
        0.6 + shape,
        sign * (0.5 - 0.1 * APART) * SIGMA,
        index,
    )


def student_selected():
    return predict_given_selection(MEAN, TAU2, SIGMA, RHO * SIGMA, INDEX, 9.0)


LAWS = {
    "normal": normal,
    "t": lambda: predict_student(MEAN, TAU2, SIGMA, 9.0),
    "normal given selection": selected,
    "t given selection": student_selected,
    "shape": lambda: predict_shape(MEAN, TAU2, SIGMA, 0.3, -0.2),
    "shape given selection": lambda: predict_shape(
        MEAN, TAU2, SIGMA, 0.3, -0.2, index=INDEX, atanh_rho=0.7
    ),
    "normals": normals,
    "normals given selection": selecteds,
    "normals given no selection": lambda: selecteds(-1.0),
    "of several families": lambda: mix_predictives([student_selected(), normals(), selecteds()]),
    "log of a normal": lambda: transformed(normal(), LOG),
    "log1p of a mixture given selection": lambda: transformed(selecteds(), LOG1P),
    "log of several families": lambda: transformed(
        mix_predictives([normal(), normals(), selecteds()]), LOG
    ),
    "cube of a normal given selection": lambda: transformed(selected(), CUBE),
    "minus a mixture": lambda: transformed(normals(), FALLING),
    "Yeo-Johnson": lambda: transformed(selected(), TargetTransform("yeo-johnson", 0.4)),
}
SWEEP = pytest.mark.parametrize("make", LAWS.values(), ids=LAWS)


@SWEEP
def test_the_density_is_the_slope_of_the_distribution_function(make):
    found, step = make(), 1e-5
    for p in (0.1, 0.47, 0.9):
        y = found.quantile(p)
        slope = (found.cdf(y + step) - found.cdf(y - step)) / (2 * step)
        np.testing.assert_allclose(np.exp(found.log_density(y)), slope, rtol=1e-4)  # steep near 0


@SWEEP
def test_quantile_and_distribution_function_undo_each_other(make):
    found, levels = make(), (1e-9, 0.003, 0.2, 0.5, 0.95, 1 - 1e-9)
    for p, y in zip(levels, found.quantile(levels), strict=True):
        np.testing.assert_allclose(found.cdf(y), p, rtol=1e-8, atol=1e-15)  # 1 - p rounds
    assert (np.diff(found.quantile(levels), axis=0) > 0).all()
    np.testing.assert_allclose(found.interval(0.8), found.quantile([0.1, 0.9]).T, rtol=1e-12)


@SWEEP
def test_draws_have_the_moments_and_the_distribution(make):
    found, size = make(), 40_000
    draws = found.sample(size, seed=1)
    assert draws.shape == (size, 3)
    error = draws.std(axis=0) / np.sqrt(size)
    assert (np.abs(draws.mean(axis=0) - found.mean) < 5 * error).all()
    square = (draws - found.mean) ** 2
    error = square.std(axis=0) / np.sqrt(size)
    assert (np.abs(square.mean(axis=0) - found.std**2) < 6 * error).all()
    np.testing.assert_allclose(found.std**2, found.epistemic + found.aleatoric, rtol=1e-12)
    for p in (0.1, 0.5, 0.9):
        share = (draws <= found.quantile(p)).mean(axis=0)
        np.testing.assert_allclose(share, p, atol=5 * np.sqrt(p * (1 - p) / size))
    assert np.abs(np.corrcoef(draws.T) - np.eye(3)).max() < 5 / np.sqrt(size)


@SWEEP
def test_points_can_be_taken_and_metrics_are_those_of_each_alone(make):
    whole, y = make(), make().sample(1, seed=3)[0]
    for rows in ([1], np.array([False, True, False]), slice(1, 2)):
        part = whole.take(rows)
        np.testing.assert_allclose(part.cdf(y[1:2]), whole.cdf(y)[1:2], rtol=1e-12)
        np.testing.assert_allclose(part.quantile(0.4), whole.quantile(0.4)[1:2], rtol=1e-11)
    alone = [evaluate(y[j : j + 1], whole.take([j]))["crps"] for j in range(3)]
    assert evaluate(y, whole)["crps"] == pytest.approx(np.mean(alone), rel=1e-9)


# Witnesses


def test_a_mixture_has_the_distribution_of_its_parts():
    y = np.array([0.1, 0.8, -2.7])
    scale = np.sqrt(TAU2 + SIGMA**2)
    np.testing.assert_allclose(normals().cdf(y), WEIGHT @ stats.norm.cdf(y, MEAN + APART, scale))
    parts = [normal(), normals(), selecteds()]
    log_weight = np.log(WEIGHT)[:, None] + np.zeros((3, 3))
    density = logsumexp([part.log_density(y) for part in parts] + log_weight, axis=0)
    np.testing.assert_allclose(mix_predictives(parts, log_weight).log_density(y), density)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mixture_given_selection_is_the_joint_distribution_over_models_and_units(sign):
    # P(y <= t, s = 1) = sum of w_j Phi_2; over P(s = 1) = sum of w_j Phi(index_j)
    found, y, scale = selecteds(sign), np.array([0.3, 0.4, -2.4]), np.sqrt(TAU2 + SIGMA**2)
    for m in range(3):
        below = total = 0.0
        for j in range(3):
            index = sign * (INDEX[m] - 0.2 * APART[j, 0])
            rho = sign * (0.5 - 0.1 * APART[j, 0]) * SIGMA[m] / scale[m]
            e = (y[m] - MEAN[m] - APART[j, 0]) / scale[m]
            pair = stats.multivariate_normal(cov=[[1, -rho], [-rho, 1]])
            below += WEIGHT[j] * pair.cdf([index, e])
            total += WEIGHT[j] * stats.norm.cdf(index)
        # scipy's bivariate normal is good to 1e-6 or so
        assert found.cdf(y)[m] == pytest.approx(below / total, abs=1e-5)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_log_of_a_normal_is_lognormal(shift):
    inner, outer = normal(), transformed(normal(), LOG1P if shift else LOG)
    witness = stats.lognorm(s=inner.std, scale=np.exp(inner.mean), loc=-shift)
    y = np.array([0.2, 1.5, 9.0])
    np.testing.assert_allclose(outer.mean, witness.mean(), rtol=1e-12)
    np.testing.assert_allclose(outer.std, witness.std(), rtol=1e-12)
    np.testing.assert_allclose(outer.log_density(y), witness.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(outer.quantile(0.9), witness.ppf(0.9), rtol=1e-12)
    assert (outer.cdf(np.full(3, -shift)) == 0).all()
    assert (outer.log_density(np.full(3, -shift - 1)) == -np.inf).all()


def several():
    return mix_predictives([normal(), normals(), selecteds()])


# the quadrature of the cube is for one family, whose quantile function does not jump
@pytest.mark.parametrize(
    ("make", "transform", "rtol"),
    [(make, LOG, 1e-8) for make in (normal, selected, normals, selecteds, several)]
    + [(normal, CUBE, 1e-9), (selected, CUBE, 1e-5)],
)
def test_moments_on_the_scale_of_y_are_those_by_brute_force(make, transform, rtol):
    inner = make()
    outer = transformed(inner, transform)
    for j in range(3):

        def integral(g, j=j):
            def integrand(z):
                y = transform.inverse(z)
                return g(y) * np.exp(inner.log_density(np.full(3, z))[j])

            return quad(integrand, -12, 12, limit=400, points=[-4, 0, 1], epsabs=1e-12)[0]

        mean = integral(lambda y: y)
        assert outer.mean[j] == pytest.approx(mean, rel=rtol)
        std = np.sqrt(integral(lambda y, mean=mean: (y - mean) ** 2))
        assert outer.std[j] == pytest.approx(std, rel=10 * rtol)


# Special cases


def test_a_mixture_of_equals_and_one_part_are_that_part():
    one = Predictive.student(MEAN, TAU2, SIGMA**2, df=5.0)
    for found in (mix_predictives([one, one]), mix_predictives([one])):
        np.testing.assert_allclose(found.quantile([1e-6, 0.3]), one.quantile([1e-6, 0.3]))
        np.testing.assert_allclose(found.std, one.std, rtol=1e-14)
    alone = mixed_normal(np.ones(1), MEAN[None], TAU2, SIGMA)
    np.testing.assert_allclose(alone.quantile(0.83), normal().quantile(0.83), rtol=1e-12)
    # log weights may have any constant
    given = MEAN, TAU2, SIGMA, RHO * SIGMA, INDEX
    alone = mixed_given_selection(np.full((1, 3), -2000.0), *(each[None] for each in given))
    np.testing.assert_allclose(alone.interval(), selected().interval(), atol=1e-9)


def test_quantiles_of_distant_parts_are_found():
    # Half of the mass 200 sd from the other half: the density between them is zero in float64.
    found = mixed_normal(np.array([0.5, 0.5]), np.array([[0.0], [200.0]]), np.zeros((2, 1)), 1.0)
    assert found.quantile([0.25, 0.75])[:, 0] == pytest.approx([0.0, 200.0], abs=1e-9)
    assert found.cdf(found.quantile(0.5))[0] == pytest.approx(0.5, abs=1e-12)
    # At index -60 and rho .95 all mass is 57 scales above the location.
    index, flat = np.full((2, 1), -60.0), np.zeros((2, 1))
    found = mixed_given_selection(np.log([[0.4], [0.6]]), flat, flat, 1.0, 0.95, index)
    alone = predict_given_selection(np.zeros(1), np.zeros(1), 1.0, 0.95, index[0])
    levels = [0.05, 0.5, 0.95]
    np.testing.assert_allclose(found.quantile(levels), alone.quantile(levels), rtol=1e-9)
    assert found.quantile(0.5)[0] > 56


def test_the_identity_changes_nothing():
    outer = transformed(selected(), TargetTransform(functions=(np.positive, np.positive)))
    np.testing.assert_allclose(outer.mean, selected().mean, rtol=1e-7)
    np.testing.assert_allclose(outer.epistemic, selected().epistemic, rtol=1e-5)
    inner = selected()
    assert transformed(inner, None) is inner


def test_a_mean_that_does_not_exist_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="of some of the points"):
        outer = transformed(normal(), target_transform((np.exp, np.log)))
    assert np.isnan(outer.mean).all()


def turning(y):
    return np.array([0.0, 2.0, 1.0])[np.asarray(y).astype(int)]


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: target_transform("cube"), "None, 'log', 'log1p', 'sqrt'"),
        (lambda: target_transform((np.log,)), "'auto' or two functions"),
        (
            lambda: transform_outcome(np.array([1.0, np.nan, 0.0]), LOG, "wage"),
            "the outcome 'wage' is 0 in row 2, and target_transform needs positive values",
        ),
        (
            lambda: transform_outcome(
                np.array([1.0, 4.0]), target_transform((np.sqrt, np.exp)), ""
            ),
            "is 1 in row 0, but inverse(forward(y)) is 2.71828",
        ),
        (
            lambda: transform_outcome(np.arange(3.0), target_transform((turning, turning)), "y"),
            "monotone",
        ),
        (lambda: normal().quantile(1.5), "must lie between 0 and 1, got 1.5"),
        (lambda: normal().cdf([1.0, 2.0]), "y has 2 values but there are 3 points"),
        (lambda: normal().sample(-1), "size must be a whole number of draws"),
        (lambda: normal().take([9]), "rows must select from the 3 points"),
    ],
)
def test_bad_use_is_one_sentence(call, fragment):
    with pytest.raises(hk.DataError) as caught:
        call()
    assert fragment in str(caught.value)


# Long tables
