"""Networks for two classes: special cases, invariances and simulation."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import heckesel as hk
from heckesel.methods.binary_networks import RhoPoint, held_out_loglik, shares
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.ensemble_training import Members
from heckesel.verdict.profile_curve import held_out_profile

SMALL = {
    "outcome": "network",
    "n_members": 3,
    "folds": 3,
    "hidden": (8,),
    "epochs": 60,
    "learning_rate": 0.03,
    "device": "cpu",
    "dtype": "float64",
    "progress": False,
}
pytestmark = pytest.mark.filterwarnings("ignore:.*still improving")
TARGETS = ("population", "selected", "unselected")


def draw(n, rho, seed, alpha=1.0):
    """x bends the outcome, which no linear probit follows; z moves selection alone."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, n), rng.standard_normal(n)
    e, u = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n).T
    f = 1.5 * np.cos(2 * x)
    s = 0.2 - 0.7 * x + alpha * z + u > 0
    y = np.where(f + e > 0, 1.0, 0.0)
    frame = pd.DataFrame({"x": x, "z": z})
    return frame, pd.Series(np.where(s, y, np.nan), name="paid"), f, y


X, Y, F, TRUTH = draw(500, 0.6, 0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    MODEL = hk.HeckmanClassifier(["z"], **SMALL).fit(X, Y)


@pytest.mark.parametrize("target", TARGETS)
def test_probabilities_are_weighted_means_of_bivariate_normal_probabilities(target):
    few = X.iloc[:4]
    fitted, way = MODEL.fitted_, {"selected": 1.0, "unselected": -1.0}.get(target, 0.0)
    f = fitted.members.outputs(fitted.scaling.x(few[["x"]].to_numpy()))[..., 0]
    w = np.column_stack([fitted.scaling.w(few.to_numpy()), np.ones(4)])
    above = below = np.zeros(4)
    for part, (rho, weight) in enumerate(zip(fitted.rho, fitted.weight, strict=True)):
        for j in range(3 * part, 3 * part + 3):
            if not way:
                above, below = above + weight * ndtr(f[j]), below + weight
                continue
            eta = way * (w @ fitted.members.head[j, :-1])
            law = multivariate_normal(cov=[[1, way * rho], [way * rho, 1]])
            above = above + weight * law.cdf(np.column_stack([eta, f[j]]))
            below = below + weight * ndtr(eta)
    found = MODEL.predict_proba(few, target)
    np.testing.assert_allclose(found[:, 1], above / below, rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_the_law_of_total_probability_holds():
    share = ndtr(MODEL.fitted_.index(X.to_numpy()))[:, None]
    mixed = share * MODEL.predict_proba(X, "selected")
    mixed += (1 - share) * MODEL.predict_proba(X, "unselected")
    np.testing.assert_allclose(mixed, MODEL.predict_proba(X), rtol=1e-9)


def test_the_likelihood_is_that_of_the_two_probabilities():
    index, p = MODEL.fitted_.index(X.to_numpy()), MODEL.predict_proba(X, "selected")
    unit = np.where(Y == 1, p[:, 1], p[:, 0]) * ndtr(index)
    unit = np.where(Y.isna(), ndtr(-index), unit)
    assert MODEL.log_likelihood(X, Y) == pytest.approx(np.log(unit).mean(), rel=1e-9)


def test_intervals_contain_the_member_mean_and_widen_with_the_level():
    for target in TARGETS:
        narrow, wide = (MODEL.predict_proba_interval(X, level, target) for level in (0.5, 0.95))
        assert ((wide[:, 0] >= 0) & (wide[:, 0] < narrow[:, 0])).all()
        assert ((narrow[:, 0] < narrow[:, 1]) & (narrow[:, 1] < wide[:, 1])).all()
    with pytest.raises(hk.DataError, match="level"):
        MODEL.predict_proba_interval(X, 1.5)


def test_with_one_rho_the_interval_is_the_jackknife_t_interval():
    one = replace(
        MODEL.fitted_,
        members=replace(MODEL.fitted_.members, parameters=MODEL.fitted_.members.parameters[:3]),
        weight=np.ones(1),
        rho=MODEL.fitted_.rho[:1],
    )
    x = X[["x"]].to_numpy()[:5]
    z = one.members.outputs(one.scaling.x(x))[..., 0]
    half = 2.9199856 * np.sqrt(2 / 3 * ((z - z.mean(axis=0)) ** 2).sum(axis=0))  # t(2) at .95
    expected = ndtr(np.column_stack([z.mean(axis=0) - half, z.mean(axis=0) + half]))
    np.testing.assert_allclose(one.interval(x, None, "population", 0.9), expected, rtol=1e-6)


def test_the_same_seed_gives_the_same_fit_and_another_seed_another_fit():
    again = clone(MODEL).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), MODEL.predict_proba(X))
    other = clone(MODEL).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(other.predict_proba(X), MODEL.predict_proba(X))


def test_rescaling_columns_does_not_change_probabilities():
    scaled = clone(MODEL).fit(X.assign(x=1e4 * X.x - 3e3, z=1e-3 * X.z), Y)
    rows = X.assign(x=1e4 * X.x - 3e3, z=1e-3 * X.z)
    # training multiplies the rounding of the standardised columns
    np.testing.assert_allclose(
        scaled.predict_proba(rows, "unselected"), MODEL.predict_proba(X, "unselected"), atol=1e-6
    )


def test_swapping_the_labels_turns_the_sign_of_rho():
    assert np.sign(clone(MODEL).fit(X, 1 - Y).rho_[0]) == -np.sign(MODEL.rho_[0])


def test_a_prior_gives_excluded_values_of_rho_no_weight():
    model = clone(MODEL).set_params(rho_prior="negative").fit(X, Y)
    assert (model.fitted_.rho <= 0).all()
    assert model.predict_proba(X)[:, 1].mean() != MODEL.predict_proba(X)[:, 1].mean()


def members_with(validation):
    k = len(validation)
    return Members((1, 1), np.zeros((k, 2)), np.zeros(k), np.array(validation))


def test_held_out_likelihood_adds_up_over_folds():
    """Two folds of 3 and 1 units, means 0.5 and 2: 3.5 in all; two members of one fold average."""
    cell = Batch(
        x=None,
        y=None,
        weight=np.full(2, 0.25),
        weight_unselected=np.full(2, 0.25),
        fold=np.array([0, 1]),
        fold_unselected=np.array([0, 0]),
    )
    ones = np.ones(4)
    assert held_out_loglik(members_with([0.5, 2.0]), cell, ones) == pytest.approx(-3.5)
    assert held_out_loglik(members_with([0.4, 2.0, 0.6]), cell, ones) == pytest.approx(-3.5)
    assert held_out_loglik(members_with([0.5]), cell, ones) == pytest.approx(-2.0)
    assert held_out_loglik(members_with([0.5, 2.0]), cell, 3 * ones) == pytest.approx(-10.5)
    assert held_out_loglik(members_with([0.5, 2.0]), cell, 0.7 * ones) == pytest.approx(-3.5)


def test_the_weight_of_rho_is_likelihood_times_prior_mass():
    points = [RhoPoint(a, members_with([0.0]), h) for a, h in ((-0.5, 0.0), (0.0, 1.0), (0.9, 2.0))]
    rho = np.tanh([-0.5, 0.0, 0.9])
    edges = np.array([-1, rho[0] / 2, rho[2] / 2, 1])
    expected = np.exp([0.0, 1.0, 2.0]) * np.diff(edges)
    found = shares(points, rho_prior(None))
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)
    assert shares(points, rho_prior("positive"))[0] == 0


def test_the_profile_of_held_out_heights_has_their_modes_and_an_interval():
    curve = held_out_profile([-0.9, -0.5, 0.0, 0.5, 0.9], [-9.0, -3.0, -8.0, 0.0, -1.0], 100)
    assert [round(rho, 12) for rho, _ in curve.modes] == [0.5, -0.5]
    assert [height for _, height in curve.modes] == [0.0, -3.0]
    assert 0.0 < curve.interval[0] < 0.5
    assert curve.interval[1] == 1.0  # it has not fallen by 1.35 where the grid ends
    assert not curve.uninformative


def test_the_verdict_has_the_wald_test_and_the_profile():
    assert MODEL.identification_.verdict == "supported by the instrument"
    assert MODEL.identification_.evidence["rho"] == MODEL.rho_[0]
    with pytest.warns(hk.IdentificationWarning):
        alone = clone(MODEL).set_params(instruments=None).fit(X[["x"]], Y)
    assert alone.identification_.verdict in ("mostly prior", "mostly prior")


def test_without_selection_it_is_an_ensemble_of_probit_networks():
    with pytest.warns(hk.IdentificationWarning, match="a plain ensemble"):
        model = clone(MODEL).fit(X, TRUTH)
    assert model.identification_.verdict == "nothing to correct"
    assert np.isnan(model.rho_).all()
    np.testing.assert_array_equal(model.predict_proba(X, "selected"), model.predict_proba(X))
    with pytest.raises(hk.DataError, match="no unselected unit"):
        model.predict_proba(X, "unselected")
    assert model.log_likelihood(X, Y) == -np.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": "forest"}, "outcome must be one of linear, network"),
        ({"covariance": "robust"}, "covariance needs outcome='linear'"),
        ({"weight_kind": "frequency"}, "weight_kind needs outcome='linear'"),
        ({"folds": None}, "estimates rho on held-out folds"),
        ({"folds": 400}, "cannot be split into 400 folds"),
        ({"rho_prior": "maybe"}, "rho_prior must be one of"),
        ({"outcome": "linear", "rho_prior": "positive"}, "rho_prior is for outcome='network'"),
    ],
)
def test_incompatible_options_are_refused_by_name(options, message):
    with pytest.raises(hk.DataError, match=message):
        clone(MODEL).set_params(**options).fit(X, Y)


def test_one_member_has_no_interval():
    model = clone(MODEL).set_params(n_members=1, epochs=3).fit(X, Y)
    with pytest.raises(hk.DataError, match="at least two members"):
        model.predict_proba_interval(X)


def test_it_trains_where_only_numpy_scipy_and_torch_can_be_imported():
    code = """
import sys
import warnings
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "sklearn", "formulaic", "narwhals", "rich", "click"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import numpy as np
from heckesel.data import selection_data
from heckesel.networks.training.config import NetworkConfig
from heckesel.methods.binary_networks import BinaryConfig, fit
rng = np.random.default_rng(0)
w = rng.standard_normal((60, 2))
y = np.where(w.sum(axis=1) > -0.5, (rng.random(60) > 0.5) * 1.0, np.nan)
data = selection_data(w[:, :1], w, y, x_names=("a",), w_names=("a", "z"), y_name="y")
config = BinaryConfig(NetworkConfig(hidden=(3,), n_members=2, folds=2, epochs=2))
print(fit(data, seed=0, config=config).probabilities(w[:, :1]).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(60, 2)", done.stderr


def test_nonlinear_indices_are_fitted_and_intervals_cover_at_their_level():
    """Three draws of 600, all the epochs of the default: 90 % intervals at 200 points. Points of
    one draw move together, so that a draw counts for about two; the mean over six has an error of
    .3/sqrt(6), and 2.5 of them below .9 is .59."""
    covered, errors, linear_errors = [], [], []
    for seed in range(3):
        columns, y, _, _ = draw(600, 0.6, 10 + seed)
        model = hk.HeckmanClassifier(["z"], **{**SMALL, "epochs": 1500, "hidden": (16,)})
        model.fit(columns, y)
        points = pd.DataFrame({"x": np.linspace(-1.9, 1.9, 200), "z": 0.0})
        truth = ndtr(1.5 * np.cos(2 * points.x))
        low, high = model.predict_proba_interval(points).T
        covered.append(np.mean((low <= truth) & (truth <= high)))
        errors.append(np.mean((model.predict_proba(points)[:, 1] - truth) ** 2))
        linear = hk.HeckmanClassifier(["z"]).fit(columns, y)
        linear_errors.append(np.mean((linear.predict_proba(points)[:, 1] - truth) ** 2))
    assert np.mean(covered) > 0.59
    assert np.mean(errors) < 0.25 * np.mean(linear_errors)


def test_too_few_epochs_raise_a_warning():
    with pytest.warns(ConvergenceWarning, match="3 of 3 members were still improving after 4"):
        model = clone(MODEL).set_params(epochs=4).fit(X, Y)
    assert model.info_["unfinished"] == 3
