"""Densities of predictives, and outcomes fitted on another scale."""

import numpy as np
import pytest
from scipy import integrate, stats

import heckesel as hk
from heckesel.predictive import (
    Predictive,
    mix_predictives,
    mixed_given_selection,
    mixed_normal,
    predict_given_selection,
    transformed,
)
from heckesel.scales import (
    TargetTransform,
    target_transform,
    transform_outcome,
)

MEAN, TAU2 = np.array([-0.4, 0.3, 1.2]), np.array([0.01, 0.09, 0.2])
SIGMA, RHO, INDEX = 0.6, 0.8, np.array([-1.1, 0.2, 1.4])
LOG = target_transform("log")
ROOT = (np.sqrt, np.square)
CUBE = (np.cbrt, lambda z: z**3)
FALLING = TargetTransform(functions=(lambda y: -y, lambda z: -z), increasing=False)


def population():
    return Predictive.normal(MEAN, TAU2, SIGMA**2)


def selected():
    return predict_given_selection(MEAN, TAU2, SIGMA, RHO * SIGMA, INDEX)


INNER = {"population": population, "selected": selected}


def moments_by_brute_force(inner, inverse):
    """Mean and sd of inverse(z) at each point, by adaptive quadrature over the density of z."""
    found = []
    for j in range(3):

        def integral(g, j=j):
            def integrand(z):
                return g(inverse(z)) * np.exp(inner.log_density(np.full(3, z))[j])

            return integrate.quad(integrand, -9, 11, limit=400, epsabs=1e-13, epsrel=1e-11)[0]

        mean = integral(lambda y: y)
        found.append((mean, np.sqrt(integral(lambda y, mean=mean: (y - mean) ** 2))))
    return np.array(found).T


@pytest.mark.parametrize("name", INNER)
def test_the_density_is_the_slope_of_the_distribution_function(name):
    inner, y, step = INNER[name](), np.array([-0.9, 0.8, 2.1]), 1e-5
    slope = (inner.cdf(y + step) - inner.cdf(y - step)) / (2 * step)
    # differences at this step err by 1e-10 and cut off at 1e-16/1e-5
    np.testing.assert_allclose(np.exp(inner.log_density(y)), slope, rtol=1e-8)


def two_normals():
    return mixed_normal(np.array([0.3, 0.7]), np.stack([MEAN, MEAN + 0.8]), TAU2, SIGMA)


def two_selected():
    means, indices = np.stack([MEAN, MEAN + 0.8]), np.stack([INDEX, INDEX - 0.4])
    log_weight = np.log([[0.3], [0.7]]) + np.zeros((2, 3))
    doubt = np.stack([TAU2, TAU2])
    return mixed_given_selection(log_weight, means, doubt, SIGMA, RHO * SIGMA, indices)


def pool():
    return mix_predictives([population(), two_normals(), two_selected()])


@pytest.mark.parametrize("make", [population, selected, two_normals, two_selected, pool])
def test_the_mean_on_the_original_scale_of_a_log_fit_is_exact(make):
    inner = make()
    outer = transformed(inner, LOG)
    mean, std = moments_by_brute_force(inner, np.exp)
    np.testing.assert_allclose(outer.mean, mean, rtol=1e-9)  # quad's own error
    np.testing.assert_allclose(outer.std, std, rtol=1e-8)


def test_the_log_of_a_pool_with_a_t_has_no_formula():
    heavy = Predictive.student(MEAN, TAU2, SIGMA**2, df=30.0)
    one = transformed(mix_predictives([heavy, two_normals()]), LOG)
    other = transformed(mix_predictives([heavy, two_normals()]), target_transform((np.log, np.exp)))
    np.testing.assert_array_equal(one.mean, other.mean)  # by quadrature, as any function


def test_the_log_of_a_normal_is_lognormal():
    inner, outer = population(), transformed(population(), LOG)
    witness = stats.lognorm(s=inner.std, scale=np.exp(inner.mean))
    y = np.array([0.2, 1.5, 9.0])
    np.testing.assert_allclose(outer.mean, np.exp(inner.mean + inner.std**2 / 2), rtol=1e-14)
    np.testing.assert_allclose(outer.std, witness.std(), rtol=1e-12)
    np.testing.assert_allclose(outer.log_density(y), witness.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(outer.cdf(y), witness.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(outer.quantile(0.9), witness.ppf(0.9), rtol=1e-12)
    assert (outer.cdf(np.array([-1.0, 0.0, -3.0])) == 0).all()
    assert (outer.log_density(np.array([-1.0, 0.0, -3.0])) == -np.inf).all()


@pytest.mark.parametrize("name", INNER)
def test_quadrature_serves_any_other_pair_of_functions(name):
    inner = INNER[name]()
    outer = transformed(inner, target_transform(CUBE))
    mean, std = moments_by_brute_force(inner, CUBE[1])
    # for a normal the rule is exact; given selection the quantile function is smooth, not cubic
    rtol = 1e-9 if name == "population" else 1e-5
    np.testing.assert_allclose(outer.mean, mean, rtol=rtol)
    np.testing.assert_allclose(outer.std, std, rtol=rtol)


@pytest.mark.parametrize("name", INNER)
def test_quadrature_and_the_exact_formula_agree_on_the_log(name):
    inner = INNER[name]()
    exact, by_rule = transformed(inner, LOG), transformed(inner, target_transform((np.log, np.exp)))
    np.testing.assert_allclose(by_rule.mean, exact.mean, rtol=1e-6)
    np.testing.assert_allclose(by_rule.std, exact.std, rtol=1e-4)
    y = np.array([0.5, 1.4, 4.0])
    # the slope of exp by differences over 1e-4 sd errs by 1e-9
    np.testing.assert_allclose(by_rule.log_density(y), exact.log_density(y), atol=1e-8)


@pytest.mark.parametrize("transform", [LOG, target_transform(CUBE), FALLING])
@pytest.mark.parametrize("name", INNER)
def test_quantiles_distribution_function_and_draws_belong_together(name, transform):
    outer = transformed(INNER[name](), transform)
    for p in (0.05, 0.5, 0.8):
        np.testing.assert_allclose(outer.cdf(outer.quantile(p)), p, rtol=1e-9)
    assert (np.diff(outer.interval(0.9), axis=1) > 0).all()
    draws = outer.sample(40_000, seed=0)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - outer.mean) < 4.5 * error).all()
    np.testing.assert_allclose(outer.std**2, outer.epistemic + outer.aleatoric, rtol=1e-12)


def test_the_identity_changes_nothing():
    inner, outer = (
        selected(),
        transformed(selected(), TargetTransform(functions=(np.positive, np.positive))),
    )
    np.testing.assert_allclose(outer.mean, inner.mean, rtol=1e-7)
    np.testing.assert_allclose(outer.epistemic, inner.epistemic, rtol=1e-5)
    assert transformed(inner, None) is inner


def test_a_mean_that_does_not_exist_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="of some of the points"):
        outer = transformed(population(), target_transform((np.exp, np.log)))
    assert np.isnan(outer.mean).all()


CASES = {
    "a word it does not know": (lambda: target_transform("cube"), "None, 'log', 'log1p', 'sqrt'"),
    "one function": (lambda: target_transform((np.log,)), "'auto' or two functions"),
    "log of zero": (
        lambda: transform_outcome(np.array([1.0, np.nan, 0.0]), LOG, "wage"),
        "the outcome 'wage' is 0 in row 2, and target_transform needs positive values",
    ),
    "root of a negative": (
        lambda: transform_outcome(np.array([1.0, -2.0]), target_transform(ROOT), "y"),
        "is -2 in row 1, and target_transform makes it nan",
    ),
    "functions that do not undo each other": (
        lambda: transform_outcome(np.array([1.0, 4.0]), target_transform((np.sqrt, np.exp)), "y"),
        "is 1 in row 0, but inverse(forward(y)) is 2.71828",
    ),
    "a function that turns": (
        lambda: transform_outcome(
            np.array([0.0, 1.0, 2.0]),
            TargetTransform(functions=2 * (lambda y: np.array([0.0, 2.0, 1.0])[y.astype(int)],)),
            "y",
        ),
        "monotone",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_use_is_one_sentence(name):
    call, fragment = CASES[name]
    with pytest.raises(hk.DataError) as caught:
        call()
    assert fragment in str(caught.value)
