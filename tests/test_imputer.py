"""`HeckmanImputer` against its model, and Rubin's rules against formulas."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import kstest, t
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckesel as hk
from heckesel.imputer import draw_model
from tests import small_models

RHO = 0.6
DATA = Path(os.environ.get("HECKESEL_DATA", "nowhere")) / "thornton" / "thornton_hiv.csv"
TWO_STEP = hk.HeckmanRegressor(method="two-step")


def draw(n, seed):
    """A table with gaps and the outcomes of all rows, whose mean is 1."""
    x, z, u, v = np.random.default_rng([7, seed]).standard_normal((4, n))
    y = 1 + x + RHO * u + np.sqrt(1 - RHO**2) * v
    selected = 0.2 + 0.5 * x + z + u > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(selected, y, np.nan)}), y


@pytest.fixture(scope="module")
def table():
    return draw(600, 100)[0]


@pytest.fixture(scope="module")
def imputer(table):
    return hk.HeckmanImputer("y", instruments=["z"], estimator=TWO_STEP).fit(table)


def pooled_mean(tables, outcome="y"):
    n = len(tables[0])
    means = [each[outcome].mean() for each in tables]
    return hk.pool_estimates(means, [each[outcome].var() / n for each in tables], df=n - 1)


def test_only_gaps_are_filled_and_the_same_seed_fills_the_same(table, imputer):
    first, second = imputer.impute(table, m=2)
    gaps = table["y"].isna()
    for each in (first, second):
        pd.testing.assert_frame_equal(each[~gaps], table[~gaps])
        pd.testing.assert_frame_equal(each[["x", "z"]], table[["x", "z"]])
        assert each["y"].notna().all()
    assert (first["y"][gaps] != second["y"][gaps]).all()
    pd.testing.assert_frame_equal(imputer.transform(table), first)
    other = imputer.impute(table, m=1, seed=5)[0]
    assert (other["y"][gaps] != first["y"][gaps]).all()
    assert table["y"].isna().sum() == gaps.sum()  # the input is not changed


def test_frames_arrays_and_polars_get_the_same_numbers(table, imputer):
    expected = imputer.transform(table)["y"].to_numpy()
    filled = pl.from_pandas(table)
    again = hk.HeckmanImputer("y", instruments="z", estimator=TWO_STEP)
    np.testing.assert_array_equal(again.fit(filled).transform(filled)["y"], expected)
    array = table[["z", "y", "x"]].to_numpy()
    by_place = hk.HeckmanImputer(-2, instruments=[0], estimator=TWO_STEP).fit(array)
    np.testing.assert_allclose(by_place.transform(array)[:, 1], expected, rtol=1e-9)
    named = hk.HeckmanImputer(2, instruments=[1], estimator=TWO_STEP).fit(table)
    np.testing.assert_array_equal(named.transform(table)["y"], expected)


def test_draws_have_the_distribution_of_the_unselected():
    """On many rows parameters are known: imputed values of rows whose truth is known have the
    same distribution, given the mean; a probability integral transform with 1,600 values."""
    table, y = draw(4000, 3)
    imputer = hk.HeckmanImputer("y", instruments=["z"], estimator=TWO_STEP).fit(table)
    gaps = table["y"].isna().to_numpy()
    tables = np.stack([each["y"][gaps] for each in imputer.impute(table, m=60)])
    below = (tables < y[gaps]).mean(axis=0)
    rank = 60 / 61 * below + np.random.default_rng(0).uniform(0, 1 / 61, gaps.sum())
    assert kstest(rank, "uniform").pvalue > 0.01
    naive = y[~gaps].mean()
    assert tables.mean() < naive - 1  # the unselected lie far below


DEFAULT = hk.HeckmanRegressor(learner="linear", cv=4, rho_prior="uniform")


@pytest.mark.parametrize(
    ("estimator", "draws", "m", "fewest"),
    [(TWO_STEP, 60, 5, 48), pytest.param(DEFAULT, 40, 8, 31, marks=pytest.mark.slow)],
    ids=["two-step", "default"],
)
def test_rubins_intervals_cover_the_mean_of_the_population(estimator, draws, m, fewest):
    """90 % intervals with fewer hits have a probability of 1 %. The estimates vary as the standard
    errors say; the standard deviation of 60 values errs by 9 %, of 40 by 11 %."""
    hits, errors, ses = 0, [], []
    for seed in range(draws):
        table, _ = draw(300, seed)
        imputer = hk.HeckmanImputer("y", instruments=["z"], estimator=estimator).fit(table)
        pooled = pooled_mean(imputer.impute(table, m=m, seed=seed))
        low, high = pooled.interval(0.9)
        hits += low < 1 < high
        errors.append(pooled.estimate - 1)
        ses.append(pooled.se)
    assert hits >= fewest
    error = 0.3 if estimator is TWO_STEP else 0.4
    assert np.std(errors) == pytest.approx(np.sqrt(np.mean(np.square(ses))), rel=error)


def test_draws_of_the_default_method_have_the_mean_and_the_error_of_its_average():
    """100 draws: the standard deviation errs by 7 %. Both rho and the learner vary."""
    table, _ = draw(1500, 3)
    gaps = table["y"].isna()
    model = hk.HeckmanRegressor(learner="linear")
    imputer = hk.HeckmanImputer("y", instruments=["z"], estimator=model).fit(table)
    means = [each["y"][gaps].mean() for each in imputer.impute(table, m=100)]
    row = imputer.model_.average(table.loc[gaps, ["x", "z"]], "unselected").loc["all"]
    assert abs(np.mean(means) - row["mean"]) < 4 * np.std(means) / np.sqrt(100)
    noise = imputer.model_.fitted_.law.variance / gaps.sum()
    assert np.std(means) == pytest.approx(np.sqrt(row["se"] ** 2 + noise), rel=0.3)


def test_a_shift_moves_what_is_imputed_and_nothing_else(table, imputer):
    shifted = hk.HeckmanImputer("y", instruments=["z"], estimator=TWO_STEP, shift=-0.5)
    gaps = table["y"].isna()
    difference = shifted.fit(table).transform(table)["y"] - imputer.transform(table)["y"]
    np.testing.assert_allclose(difference[gaps], -0.5, atol=1e-12)
    assert (difference[~gaps] == 0).all()


def test_two_classes_are_drawn_as_labels():
    loans = hk.datasets.make_loans(1500, rho=-0.6, seed=0)
    labels = loans.frame["default"].map({0.0: "repaid", 1.0: "default"}).astype(object)
    table, gaps = loans.frame.assign(default=labels), labels.isna()
    imputer = hk.HeckmanImputer("default", instruments=["leniency"]).fit(table)
    assert isinstance(imputer.model_, hk.HeckmanClassifier)
    tables = imputer.impute(table, m=8)
    assert set(tables[0]["default"]) == {"repaid", "default"}
    imputed = [(each["default"][gaps] == "default").mean() for each in tables]
    expected = imputer.model_.predict_proba(table[gaps].drop(columns="default"), "unselected")
    # "repaid" is classes_[1]; the mean over draws has the standard error of the parameters
    error = np.std(imputed, ddof=1) / np.sqrt(8)
    assert abs(np.mean(imputed) - expected[:, 0].mean()) < 4 * error
    worse = hk.HeckmanImputer("default", instruments=["leniency"], shift=-10).fit(table)
    assert (worse.transform(table)["default"][gaps] == "default").all()


def test_values_that_stand_for_missing_ones_are_gaps_and_whole_numbers_become_floats(table):
    coded = table.assign(y=(100 * table["y"]).round().fillna(-9999).astype(int))
    model = hk.HeckmanRegressor(method="two-step", unobserved=-9999)
    filled = hk.HeckmanImputer("y", instruments=["z"], estimator=model).fit_transform(coded)
    assert filled["y"].dtype == float
    assert not (filled["y"] == -9999).any()


def test_a_transformed_outcome_is_drawn_on_its_scale(table):
    positive = table.assign(y=np.exp(table["y"]))
    model = hk.HeckmanRegressor(method="two-step", target_transform="log")
    filled = hk.HeckmanImputer("y", instruments=["z"], estimator=model).fit_transform(positive)
    plain = hk.HeckmanImputer("y", instruments=["z"], estimator=TWO_STEP).fit_transform(table)
    np.testing.assert_allclose(np.log(filled["y"]), plain["y"], rtol=1e-9)


def test_it_is_a_step_of_a_pipeline(table):
    steps = make_pipeline(
        hk.HeckmanImputer("y", instruments=["z"], estimator=TWO_STEP), StandardScaler()
    )
    assert np.isfinite(steps.fit_transform(table)).all()
    assert list(steps[0].get_feature_names_out()) == ["x", "z", "y"]


NETWORKS = ["two-step", "joint", "two-step on folds", "ensemble"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NETWORKS)
def test_draws_of_a_model_average_to_its_prediction(name):
    """The mean over parameters is the prediction, which holds the variance between them."""
    model = small_models.fitted(name)[0]
    rng, x = np.random.default_rng(0), model.columns_.x(small_models.X)[:20]
    draws = np.stack([draw_model(model, rng).predict(x).mean for _ in range(300)])
    predictive = model.fitted_.predict(x)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (abs(draws.mean(axis=0) - predictive.mean) < 4 * error).all()
    np.testing.assert_allclose(draws.var(axis=0), predictive.epistemic, rtol=0.5)
    one = draw_model(model, rng).predict(x)
    np.testing.assert_allclose(one.epistemic, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": "wage"}, "X has no column 'wage', the outcome"),
        ({"outcome": "y", "shift": "up"}, "shift must be a finite number, got 'up'"),
        ({"outcome": "y", "instruments": [2]}, "the outcome cannot be an instrument"),
        ({"outcome": "y", "estimator": StandardScaler()}, "must be an estimator of heckesel"),
        (
            {
                "outcome": "y",
                "instruments": "z",
                "estimator": hk.HeckmanRegressor("z", method="ml"),
            },
            "give instruments to the imputer or to its estimator, not to both",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(table, options, message):
    with pytest.raises(hk.DataError, match=message):
        hk.HeckmanImputer(**options).fit(table)


def test_what_cannot_be_imputed_is_refused(table, imputer):
    with pytest.raises(hk.DataError, match="m must be a positive whole number of tables, got 0"):
        imputer.impute(table, m=0)
    with pytest.raises(hk.DataError, match="is a name but X has none; give its position"):
        hk.HeckmanImputer("y").fit(table.to_numpy())
    complete = table.assign(y=1.0 + table["x"] + table["z"] ** 2)
    with pytest.warns(hk.IdentificationWarning, match="every unit was selected"):
        everyone = hk.HeckmanImputer("y", estimator=TWO_STEP).fit(complete)
    pd.testing.assert_frame_equal(everyone.transform(complete), complete)
    with pytest.raises(hk.DataError, match="no unselected unit"):
        everyone.transform(table)


@pytest.mark.skipif(not DATA.exists(), reason="needs the data of Thornton (2008)")
@pytest.mark.parametrize(("outcome", "level"), [("educ2004", 0.9), ("age", 0.9), ("hiv2004", 0.99)])
def test_the_mean_of_all_people_is_within_rubins_interval(outcome, level):
    """The truth of those who did not collect their result is known; the naive mean is outside the
    interval of schooling. For HIV the truth is just outside the 90 % interval."""
    x = ["male", "rumphi", "balaka", "simaverage", "distvct", "any", "tinc"]
    people = (
        pd.read_csv(DATA).replace({"hiv2004": {-1: np.nan}}).dropna(subset=["got", *x, outcome])
    )
    table = people[[*x, outcome]].assign(**{outcome: people[outcome].mask(people["got"] == 0)})
    imputer = hk.HeckmanImputer(outcome, instruments=["any", "tinc"]).fit(table)
    low, high = pooled_mean(imputer.impute(table, m=10), outcome).interval(level)
    assert low < people[outcome].mean() < high


# SAS/STAT 12.1 User's Guide, example 64.1: means of 31 men by multiple imputation (printed input).
OXYGEN = [47.0120, 47.2407, 47.4995, 47.1485, 47.0042]
OXYGEN_SE = np.array([0.95984, 0.93540, 1.00766, 0.95439, 0.96528])


def with_moments(m, mean, between):
    """m numbers of this mean and variance."""
    values = np.arange(m) - (m - 1) / 2
    return mean + values * np.sqrt(between / values.var(ddof=1))


def mice_df(m, b, t, dfcom):
    """`barnard.rubin` of the R package mice, in its own terms."""
    share = (1 + 1 / m) * b / t
    old = (m - 1) / share**2
    observed = (dfcom + 1) / (dfcom + 3) * dfcom * (1 - share)
    return old * observed / (old + observed)


def test_the_example_of_the_amos_manual_is_reproduced():
    """IBM SPSS Amos 21 User's Guide, example 31: m = 10, W = .0233, B = .0085, printed as
    T = .0326, standard error .1807, t = 6.49, 109 degrees of freedom without Barnard-Rubin."""
    pooled = hk.pool_estimates(with_moments(10, 1.172, 0.0085), np.full(10, 0.0233))
    assert pooled.se**2 == pytest.approx(0.0326, abs=1e-4)  # as W and B are rounded
    assert pooled.estimate / pooled.se == pytest.approx(6.49, abs=0.01)
    assert pooled.df == pytest.approx(109, abs=1)  # as is the effect of rounding on df
    assert pooled.p_values == pytest.approx(2 * t.sf(6.49, 109), rel=0.06)


def test_degrees_of_freedom_are_those_of_mice():
    pooled = hk.pool_estimates(OXYGEN, OXYGEN_SE**2, df=30)
    between, within = np.var(OXYGEN, ddof=1), np.mean(OXYGEN_SE**2)
    total = within + 1.2 * between
    assert pooled.df == pytest.approx(mice_df(5, between, total, 30), rel=1e-12)
    assert pooled.df < 30  # never more than with complete data
    low, high = pooled.interval(0.9)
    half = t.ppf(0.95, pooled.df) * np.sqrt(total)
    assert (low, high) == pytest.approx((np.mean(OXYGEN) - half, np.mean(OXYGEN) + half))


def test_without_missing_outcomes_it_is_the_complete_estimate():
    pooled = hk.pool_estimates([3.0] * 4, [0.25] * 4)
    assert (pooled.estimate, pooled.se, pooled.missing_information) == (3.0, 0.5, 0.0)
    assert pooled.df == np.inf
    finite = hk.pool_estimates([3.0] * 4, [0.25] * 4, df=30)
    assert finite.df == pytest.approx(30 * 31 / 33)  # the factor of Barnard and Rubin
    no_variance = hk.pool_estimates([1.0, 2.0], [0.0, 0.0], df=30)
    assert no_variance.missing_information == 1.0
    assert no_variance.df == 0.0  # nothing was observed


def test_series_keep_their_labels_and_may_come_in_any_order():
    first, second = pd.Series({"a": 1.0, "b": 5.0}), pd.Series({"b": 5.2, "a": 1.4})
    variance = pd.Series({"a": 0.1, "b": 0.2})
    pooled = hk.pool_estimates([first, second], [variance, variance[::-1]])
    alone = hk.pool_estimates([1.0, 1.4], [0.1, 0.1])
    assert pooled.estimate["a"] == alone.estimate
    assert pooled.df["a"] == pytest.approx(alone.df)
    assert pooled.p_values["a"] == pytest.approx(alone.p_values)
    np.testing.assert_allclose(pooled.interval()[0], alone.interval())
    arrays = hk.pool_estimates([first.to_numpy(), second[["a", "b"]]], [variance] * 2)
    np.testing.assert_array_equal(arrays.estimate, pooled.estimate)


@pytest.mark.parametrize(
    ("estimates", "variances", "options", "message"),
    [
        ([1.0], [1.0], {}, "at least two completed tables, got 1"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], {}, "estimates have shape"),
        ([1.0, 2.0], [1.0, -2.0], {}, "variances must not be negative or missing"),
        ([1.0, 2.0], [1.0, np.nan], {}, "variances must not be negative or missing"),
        ([1.0, 2.0], [1.0, 2.0], {"df": 0}, "df must be positive, got 0"),
    ],
)
def test_what_cannot_be_pooled_is_refused(estimates, variances, options, message):
    with pytest.raises(hk.DataError, match=message):
        hk.pool_estimates(estimates, variances, **options)
