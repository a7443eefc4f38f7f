"""Outcomes that columns tell apart: a fit with a status, the limit of the likelihood, no errors."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.svm import LinearSVC

import heckesel as hk
from heckesel.classical.checks import fit_separated
from heckesel.classical.probit import fit_probit
from heckesel.math.bivariate import log_bivariate_cdf

RNG = np.random.default_rng(0)
N = 400
A, B, Z = RNG.normal(size=(3, N))
DUMMY = (RNG.random(N) < 0.1).astype(float)
U, E = RNG.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], N).T
S = 0.5 + A + Z + U > 0
X = np.column_stack([A, B, DUMMY, Z])
QUASI = np.where(S, (A - B + E > 0) | (DUMMY == 1), np.nan)  # everyone with the dummy is a 1
APART = np.where(S, A - B > 0, np.nan)


def fitted(y, columns=X, **options):
    model = hk.HeckmanClassifier([columns.shape[1] - 1], method="ml", **options)
    with pytest.warns(hk.IdentificationWarning, match="perfectly"):
        return model.fit(columns, y)


def test_a_level_at_which_all_are_alike_gives_the_supremum_of_the_likelihood():
    """In the limit rows with the dummy contribute log Phi(eta), and x is without it elsewhere."""
    fit = fitted(QUASI).result_
    rest, told = S & (DUMMY == 0), S & (DUMMY == 1)
    x, w = np.column_stack([np.ones(N), A, B]), np.column_stack([np.ones(N), X])
    sign = np.where(QUASI == 1, 1.0, -1.0)

    def loss(point):
        f, index, a = x @ point[:3], w @ point[3:8], point[8]
        units = log_bivariate_cdf(index[rest], (sign * f)[rest], sign[rest] * a)
        return -(units.sum() + log_ndtr(index[told]).sum() + log_ndtr(-index[~S]).sum())

    found = minimize(loss, np.append(np.zeros(8), 0.3), method="BFGS")
    params = fit.params.to_numpy()
    kept = np.delete(params, 3)  # the dummy's coefficient, which is infinite there
    # BFGS by differences stops at gradients of 1e-5; curvatures are above 10
    np.testing.assert_allclose(kept, found.x, atol=2e-4)
    assert fit.loglik == pytest.approx(-found.fun, abs=1e-5)
    assert fit.status == "separated"
    assert params[3] > 5
    # second differences of the same function, at steps of 1e-4
    ends = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    steps = 1e-4 * np.eye(9)
    hessian = [
        [sum(i * j * loss(found.x + i * a + j * b) for i, j in ends) for a in steps] for b in steps
    ]
    expected = np.sqrt(np.diag(np.linalg.inv(np.array(hessian) / 4e-8)))
    np.testing.assert_allclose(np.delete(fit.se.to_numpy(), 3), expected, rtol=2e-3)
    assert np.isnan(fit.se.iloc[3])


def test_perfectly_separated_classes_have_no_rho_and_a_probit_of_selection():
    model = fitted(APART)
    fit = model.result_
    selection = fit_probit(np.column_stack([np.ones(N), X]), S)
    assert np.isnan(fit.rho)
    assert fit.loglik == pytest.approx(selection.loglik, abs=0.01)  # the classes cost nothing
    np.testing.assert_allclose(fit.params["select"], selection.gamma, rtol=1e-9)
    assert model.score(X, APART) == 1.0
    np.testing.assert_array_equal(model.predict(X[S]), APART[S])
    for target in ("selected", "unselected"):
        np.testing.assert_array_equal(model.predict_proba(X, target), model.predict_proba(X))
    assert model.identification_.verdict == "mostly prior"
    assert np.isfinite(model.log_likelihood(X, APART))


def test_the_direction_is_that_of_the_widest_margin():
    """A support vector machine without slack is the independent witness."""
    x = np.array([[0.0, 1.0], [1.0, 3.0], [-1.0, 0.5], [2.0, -1.0], [3.0, 1.0], [2.5, -2.0]])
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    happened = np.array([True, True, True, False, False, False])
    columns = np.column_stack([np.ones(6), scaled])
    ours = fit_separated(columns, happened).gamma
    machine = LinearSVC(loss="hinge", C=1e4, fit_intercept=False, tol=1e-8, max_iter=10**6)
    theirs = machine.fit(columns, happened).coef_[0]
    cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
    assert cosine > 1 - 0.01  # log Phi falls as a square, so it gets there as 1/|gamma|^2
