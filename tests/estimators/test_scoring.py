"""The joint log-likelihood, which the naive model does not win, and its scorer."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckesel as hk

SMALL = hk.Networks(n_members=2, hidden=(32, 32), epochs=300, device="cpu")
QUICK = hk.Networks(n_members=2, hidden=(32, 32), epochs=20, device="cpu")
DRAW = hk.datasets.make_controlled(400, rho=0.6, alpha=1.0, seed=0)
X, Y = DRAW.frame[["x", "z"]], DRAW.frame["y"]
LINEAR = hk.HeckmanRegressor(["z"], method="ml")
SCORER = hk.joint_log_likelihood_scorer


def test_the_joint_log_likelihood_is_that_of_the_bivariate_normal():
    model = clone(LINEAR).fit(X, Y)
    index = model.fitted_.index(X.to_numpy())
    doubt = model.predict_distribution(X, "selected").epistemic
    scale = np.sqrt(model.sigma_**2 + doubt)
    rho = model.rho_ * model.sigma_ / scale  # doubt about f widens the outcome's error alone
    e = (Y.to_numpy() - model.predict(X)) / scale
    given_e = stats.norm.logsf(-index, loc=rho * e, scale=np.sqrt(1 - rho**2))
    units = np.where(
        Y.notna(),
        stats.norm.logpdf(e) - np.log(scale) + given_e,
        stats.norm.logcdf(-index),
    )
    assert model.log_likelihood(X, Y) == pytest.approx(units.mean(), rel=1e-10)
    weight = np.random.default_rng(0).integers(0, 3, 400)
    weighted = model.log_likelihood(X, Y, sample_weight=weight)
    assert weighted == pytest.approx(np.average(units, weights=weight), rel=1e-10)
    # the doubt costs half a unit of the maximum for each of 3 parameters of f, some .004 here
    assert model.log_likelihood(X, Y) == pytest.approx(model.result_.loglik / 400, abs=0.01)


@pytest.mark.parametrize(
    "model",
    [
        LINEAR,
        hk.HeckmanRegressor(["z"], target_transform="log", method="ml"),
        hk.HeckmanRegressor(["z"], target_transform=(np.log, np.exp), method="ml"),
        hk.DeepHeckmanRegressor(["z"], networks=QUICK),
        hk.DeepEnsembleRegressor(["z"], networks=QUICK),
    ],
    ids=["linear", "log", "pair", "deep", "ensemble"],
)
def test_the_probabilities_of_all_events_of_a_unit_sum_to_one(model):
    level = np.exp(Y) if getattr(model, "target_transform", None) else Y
    model = clone(model).fit(X, level)
    row = X.iloc[[5]]

    def density(y):
        return np.exp(model.log_likelihood(row, np.array([y])))

    unselected = np.exp(model.log_likelihood(row, np.array([np.nan])))
    ends = (1e-9, 200) if level.min() > 0 else (-12, 12)
    spots = [0.2, 1.0, 3.0]
    seen = integrate.quad(density, *ends, points=spots, limit=300, epsabs=1e-9)[0]
    assert seen + unselected == pytest.approx(1.0, abs=1e-6)  # mass beyond the ends


@pytest.mark.slow
def test_the_naive_ensemble_wins_on_observed_rows_but_not_by_joint_likelihood():
    # 2 networks and 300 epochs; over seeds 0 to 2 the differences are at least .03 in R2 of the
    # population mean, .01 in the score and .03 in the log-likelihood
    draws = [hk.datasets.make_controlled(1000, rho=0.9, alpha=1.0, seed=s) for s in (0, 10_000)]
    (table, y), (new, new_y) = ((d.frame[["x", "z"]], d.frame["y"].to_numpy()) for d in draws)
    seen = ~np.isnan(new_y)
    naive = hk.DeepEnsembleRegressor(["z"], networks=SMALL).fit(table, y)
    right = hk.DeepHeckmanRegressor(["z"], networks=SMALL).fit(table, y)
    naive_r2, right_r2 = (r2_score(new_y[seen], m.predict(new)[seen]) for m in (naive, right))
    assert naive_r2 > right_r2  # the trap
    assert right.score(new, new_y) > naive.score(new, new_y)
    assert right.log_likelihood(new, new_y) > naive.log_likelihood(new, new_y)
    truth = draws[1].truth.y
    assert r2_score(truth, right.predict(new)) > r2_score(truth, naive.predict(new))


def test_the_scorer_works_in_search_and_cross_validation_with_missing_outcomes():
    cv = KFold(3, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(LINEAR))
    scores = cross_val_score(pipeline, X, Y, cv=cv, scoring=SCORER)
    plain = cross_val_score(LINEAR, X, Y, cv=cv, scoring=SCORER)
    np.testing.assert_allclose(scores, plain, rtol=1e-6)  # the likelihood knows no units of x
    search = GridSearchCV(
        clone(LINEAR), {"target_transform": [None, "log"]}, scoring=SCORER, cv=cv
    ).fit(X, np.exp(Y))
    assert search.best_params_ == {"target_transform": "log"}  # the scale on which it is normal
    assert SCORER(search, X, np.exp(Y)) == search.best_estimator_.log_likelihood(X, np.exp(Y))


def test_a_fold_without_an_outcome_suggests_shuffling():
    model = clone(LINEAR).fit(X, Y)
    with pytest.raises(hk.DataError, match=r"has an outcome to score; .*KFold\(5, shuffle=True\)"):
        model.score(X[Y.isna()], Y[Y.isna()])


def test_a_model_without_a_likelihood_is_refused():
    other = LinearRegression().fit(X, DRAW.truth.y)
    with pytest.raises(hk.DataError, match="LinearRegression has no log_likelihood"):
        SCORER(other, X, Y)
    with pytest.raises(hk.DataError, match="X has 400 rows but y has 3"):
        clone(LINEAR).fit(X, Y).log_likelihood(X, Y[:3])
