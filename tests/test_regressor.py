"""`HeckmanRegressor(method="auto")`: the correction, its interval and its verdict."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import heckesel as hk
from heckesel.correction.prior import RHO, RhoPrior, spike_and_slab


def draw(n=1500, rho=0.8, alpha=1.0, seed=0, levels=None):
    """x, z and y with y = x + sin 2x + e; z is normal, or has this number of levels."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.normal(size=n)
    if levels is not None:
        z = rng.integers(0, levels, n) - (levels - 1) / 2
    u, other = rng.normal(size=(2, n))
    y = x + np.sin(2 * x) + rho * u + np.sqrt(1 - rho**2) * other
    selected = -0.5 * x + alpha * z + u > 0
    X = pd.DataFrame({"x": x, "z": z})
    return X, np.where(selected, y, np.nan), y, selected


def fit(X, y, **options):
    return hk.HeckmanRegressor(["z"], **({"learner": "splines"} | options)).fit(X, y)


def test_the_estimate_of_rho_is_centred_on_the_truth():
    for rho in (0.0, 0.6, -0.6):
        found = [fit(*draw(rho=rho, seed=seed)[:2]) for seed in range(12)]
        values = np.array([each.identification_.evidence["normal_rho"] for each in found])
        errors = np.array([each.identification_.evidence["normal_rho_error"] for each in found])
        # three standard errors of the mean of twelve estimates
        assert abs(values.mean() - rho) < 3 * errors.mean() / np.sqrt(12)
        # and their spread is what the errors say: chi2(11) lies in this range in 99.8 %
        assert 0.17 < np.mean(((values - values.mean()) / errors) ** 2) < 2.6


def test_a_strong_instrument_corrects_most_of_the_bias_of_the_unselected():
    X, y, truth, selected = draw(n=4000, rho=0.8)
    model = fit(X, y)
    naive = fit(X, y, rho_prior=1e-6)
    hidden = X[~selected]
    errors = [
        abs(m.average(hidden, target="unselected").loc["all", "mean"] - truth[~selected].mean())
        for m in (model, naive)
    ]
    assert errors[0] < 0.35 * errors[1]
    row = model.average(hidden, target="unselected").loc["all"]
    assert row["low"] < truth[~selected].mean() < row["high"]
    assert model.identification_.verdict == "supported by the instrument"


@pytest.mark.parametrize("levels", [None, 2, 4])
def test_population_predictions_do_not_depend_on_z(levels):
    X, y, *_ = draw(levels=levels)
    model = fit(X, y)
    moved = X.assign(z=X["z"].sample(frac=1.0, random_state=0).to_numpy())
    np.testing.assert_array_equal(model.predict(X), model.predict(moved))
    np.testing.assert_array_equal(model.predict(X), model.predict(X[["x"]]))
    assert np.ptp(model.predict(X, target="unselected") - model.predict(moved, target="unselected"))


def test_without_an_instrument_the_prior_alone_speaks():
    X, y, *_ = draw()
    with pytest.warns(hk.IdentificationWarning, match="no instrument"):
        model = hk.HeckmanRegressor(learner="splines").fit(X[["x"]], y)
    assert model.identification_.verdict == "mostly prior"
    assert model.rho_ == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(model.predict(X[["x"]]), model.predict(X[["x"]], target="selected"))
    row = model.average(X[["x"]], target="unselected").loc["all"]
    assert row["high"] - row["low"] > 0.2  # and the interval shows it


def test_an_arm_in_which_nobody_is_selected_says_nothing():
    X, y, *_ = draw(levels=2)
    y = np.where(X["z"] > 0, y, np.nan)
    model = fit(X, y)
    assert model.identification_.verdict == "mostly prior"
    assert "rho_error" not in model.identification_.evidence
    assert model.rho_ == pytest.approx(0, abs=1e-9)
    assert np.isfinite(model.predict_interval(X, target="unselected")).all()


def test_a_prior_replaces_the_default():
    X, y, *_ = draw(rho=0.8)
    scale, uniform = (fit(X, y, rho_prior=prior) for prior in (1e-6, "uniform"))
    assert abs(scale.rho_) < 1e-4
    assert uniform.rho_ > fit(X, y).rho_ - 0.02
    density = fit(X, y, rho_prior=lambda rho: float(rho < 0))
    assert density.rho_ < 0
    for bad in (-1.0, "flat", lambda rho: -1.0, float("nan"), True):
        with pytest.raises(hk.DataError, match="rho_prior"):
            fit(X, y, rho_prior=bad)


@pytest.mark.parametrize(
    "outcome",
    [
        lambda y: (y > 0).astype(float),
        lambda y: np.clip(np.round(y), -1, 3),
        lambda y: np.maximum(y, 0.0),  # a spike at 0
        lambda y: np.exp(y),
        lambda y: 1 / (1 + np.exp(-y)),
    ],
)
@pytest.mark.parametrize("target", ["population", "selected", "unselected"])
def test_no_prediction_leaves_the_range_of_the_outcome(outcome, target):
    X, y, truth, _ = draw(rho=0.9)
    values = outcome(truth)
    model = fit(X, np.where(np.isnan(y), np.nan, values))
    found = model.predict_distribution(X, target=target)
    low, high = values.min(), np.inf if values.max() > 10 else max(values.max(), 1.0)
    for numbers in (found.mean, found.interval(0.99), found.sample(3, seed=1)):
        assert np.isfinite(numbers).all()
        assert (numbers >= min(low, 0) - 1e-12).all()
        assert (numbers <= high + 1e-12).all()
    if len(np.unique(values)) <= 12:
        assert set(np.unique(found.sample(2, seed=0))) <= set(np.unique(values))
        np.testing.assert_allclose(found.cdf(values.max()), 1.0)
        # a tilted law has the mean that it was asked for
        points = found.distribution
        np.testing.assert_allclose(points.probability @ points.values, found.mean, atol=1e-8)


def test_intervals_cover_the_hidden_outcomes():
    covered = []
    for seed in range(6):
        X, y, truth, selected = draw(n=2000, rho=0.8, seed=seed)
        ends = fit(X, y).predict_interval(X[~selected], target="unselected")
        covered.append(np.mean((truth[~selected] >= ends[:, 0]) & (truth[~selected] <= ends[:, 1])))
    # about 6,000 outcomes: three standard errors are .012, and the prior costs some
    assert 0.86 < np.mean(covered) < 0.94


@pytest.mark.parametrize(
    "learner",
    [
        LinearRegression(),
        RandomForestRegressor(20, random_state=0),
        make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
        make_pipeline(make_column_transformer((StandardScaler(), [0])), Ridge()),
    ],
)
def test_any_regressor_is_a_learner(learner):
    X, y, *_ = draw(n=600)
    model = fit(X, y, learner=learner)
    assert np.isfinite(model.predict(X)).all()
    assert model.learner_ == type(learner).__name__


def test_copied_rows_in_groups_are_no_more_evidence():
    X, y, *_ = draw(n=800)
    once = fit(X, y).identification_.evidence["normal_rho_error"]
    both, groups = pd.concat([X, X]), np.tile(np.arange(len(X)), 2)
    model = hk.HeckmanRegressor(["z"], learner="splines")
    twice = model.fit(both, np.tile(y, 2), groups=groups).identification_.evidence
    assert twice["normal_rho_error"] == pytest.approx(once, rel=0.1)
    naive = model.fit(both, np.tile(y, 2)).identification_.evidence["normal_rho_error"]
    assert naive < 0.8 * once


def test_all_selected_leaves_nothing_to_correct():
    X, _, truth, _ = draw(n=400)
    with pytest.warns(hk.IdentificationWarning, match="nothing to correct"):
        model = fit(X, truth)
    assert model.identification_.verdict == "nothing to correct"
    assert np.isfinite(model.predict_interval(X)).all()
    with pytest.raises(hk.DataError, match="no unselected unit"):
        model.predict(X, target="unselected")


def test_few_selected_rows_are_fitted_or_refused():
    X, y, *_ = draw(n=400)
    seen = np.flatnonzero(~np.isnan(y))
    y[seen[12:]] = np.nan
    assert np.isfinite(fit(X, y).predict_interval(X)).all()
    y[seen[3:]] = np.nan
    with pytest.raises(hk.DataError, match="3 rows have an outcome"):
        fit(X, y)


def test_a_constant_outcome_is_predicted():
    X, y, *_ = draw(n=300)
    found = fit(X, np.where(np.isnan(y), np.nan, 2.0)).predict_distribution(X)
    np.testing.assert_allclose(found.mean, 2.0)
    np.testing.assert_allclose(found.interval(), 2.0)


@pytest.mark.parametrize("learner", ["linear", "splines", "boosting"])
def test_a_saved_model_predicts_the_same(tmp_path, learner):
    X, y, *_ = draw(n=900, levels=3)
    model = fit(X, y, learner=learner)
    model.save(tmp_path / "model.heckesel")
    loaded = hk.load(tmp_path / "model.heckesel")
    for target in ("population", "selected", "unselected"):
        for level in (0.5, 0.9):
            np.testing.assert_array_equal(
                model.predict_interval(X, level, target), loaded.predict_interval(X, level, target)
            )
    assert loaded.identification_ == model.identification_
    pd.testing.assert_frame_equal(model.average(X), loaded.average(X))


def test_the_same_seed_gives_the_same_numbers_on_any_number_of_workers():
    X, y, *_ = draw(n=700)
    one, two = (fit(X, y, learner="boosting", n_jobs=jobs).predict(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_scikit_learn_accepts_the_estimator():
    check_estimator(hk.HeckmanRegressor(learner="linear"))


def test_verbose_names_the_stages(capsys):
    X, y, *_ = draw(n=300)
    fit(X, y, verbose=True)
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) == 3
    assert "on 10 folds" in printed.err
    assert printed.out == ""


def test_intervals_of_the_mean_are_quantiles_of_the_posterior_of_rho():
    """In one reading the mean is monotone in rho, so its interval is that of rho, carried over."""
    only_normal = RhoPrior(spike_and_slab(), 0.05, 1.0, "one reading")
    frame = hk.datasets.make_controlled(6000, rho=0.0, alpha=0.3, seed=4).frame
    X = frame[["x", "z"]]
    model = hk.HeckmanRegressor(["z"], learner="linear", rho_prior=only_normal)
    model.fit(X, frame["y"])
    hidden = X[frame["y"].isna()]
    low, high = model.average(hidden, "unselected")[["low", "high"]].iloc[0]
    fitted = model.fitted_
    x, w = model.columns_.x(hidden), model.columns_.w(hidden)
    g = fitted.outcome.predict_members(x).mean(axis=0)
    per_theta = fitted.shift(x, w, "unselected", g)[0].mean()
    theta = np.interp(model.rho_interval_, RHO, fitted.rho.theta)
    ends = np.sort(g.mean() + per_theta * theta)
    # the error of g adds a little; equal bins of the posterior would add a fifth
    np.testing.assert_allclose([low, high], ends, atol=0.08 * (ends[1] - ends[0]))


def test_boosting_starts_where_splines_end():
    """Where splines are right, trees alone are a quarter worse."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    y = np.sin(1.5 * x["a"]) + 0.4 * x["b"] ** 2 + 0.5 * rng.normal(size=1500)
    x["z"] = rng.normal(size=1500)
    model = hk.HeckmanRegressor(["z"]).fit(x, y.where(x["z"] + rng.normal(size=1500) > 0))
    assert model.losses_["boosting"] < 1.04 * model.losses_["splines"]


def test_classes_of_the_rejected_are_calibrated():
    """Rare defaults: a shift of the probability, the same for all, would predict too few."""
    loans = hk.datasets.make_loans(6000, rho=-0.6, seed=1)
    X, y = loans.frame.drop(columns="default"), loans.frame["default"]
    rejected, truth = X[y.isna()], loans.truth.y[y.isna()]
    model = hk.HeckmanClassifier(["leniency"]).fit(X, y)
    mean, low, high = model.average(rejected, "unselected")[["mean", "low", "high"]].iloc[0]
    assert low < truth.mean() < high
    assert mean == pytest.approx(truth.mean(), abs=0.06)
    likelihood = hk.HeckmanClassifier(["leniency"], method="ml").fit(X, y)
    score = [
        np.mean((each.predict_proba(rejected, "unselected")[:, 1] - truth) ** 2)
        for each in (model, likelihood)
    ]
    assert score[0] < score[1] + 0.005


def test_averages_are_on_the_scale_of_a_transformed_outcome():
    """E[exp(a + e)] with e standard normal: the average of predictions, near the truth."""
    X, log_y, _, _ = draw(n=3000, rho=0.5, seed=3)
    model = fit(X, np.exp(log_y), learner="splines", target_transform="log")
    found = model.average(X).iloc[0]
    assert found["mean"] == pytest.approx(model.predict(X).mean(), rel=1e-9)
    assert found["low"] < np.exp(X["x"] + np.sin(2 * X["x"]) + 0.5).mean() < found["high"]
    plain = fit(X, log_y).average(X).iloc[0]
    assert 0.5 < (found["se"] / found["mean"]) / plain["se"] < 2  # the delta method


def test_the_mean_of_logs_does_not_consist_of_assumed_tails():
    """One row with a standard deviation of logs of 5 would have a mean beyond all outcomes."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 1000))
    log_y = rng.standard_t(4, size=1000) * np.exp(0.3 * x)
    X = pd.DataFrame({"x": x, "z": z})
    y = np.where(z + rng.normal(size=1000) > 0, np.exp(log_y), np.nan)
    model = fit(X, y, target_transform="log")
    assert model.predict(X, target="selected").max() < 10 * np.nanmax(y)


def test_a_handful_of_events_says_nothing_about_rho():
    X, _, _, selected = draw(n=1500)
    y = np.where(selected, 0.0, np.nan)
    y[np.flatnonzero(selected)[:4]] = 1.0
    with pytest.warns(hk.IdentificationWarning):
        model = hk.HeckmanClassifier(["z"], learner="linear").fit(X, y)
    assert model.identification_.verdict == "mostly prior"


def test_effects_of_boosting_are_differences_over_half_a_standard_deviation():
    """Trees have no derivative: tiny steps give 0 or a jump."""
    X, y, _, _ = draw(n=2500, rho=0.0)
    trees = fit(X, y, learner=HistGradientBoostingRegressor(max_iter=60))
    found = trees.margins(X).loc["x"]
    up, down = (X.assign(x=X["x"] + step * X["x"].std(ddof=0)) for step in (0.5, -0.5))
    slope = (trees.predict(up) - trees.predict(down)).mean() / X["x"].std(ddof=0)
    assert found["effect"] == pytest.approx(slope, rel=1e-9)
