"""Corrected against naive: trained alike, with an uncertainty, and in words only where clear."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.estimators.heckman_regressor import refit_alike
from heckesel.report.comparison import compare
from heckesel.report.contents import report_contents
from heckesel.report.formatting import Digits
from heckesel.report.naive_model import naive_fit, plain_ensemble
from heckesel.report.refits import Refits, refit_on_folds
from heckesel.report.report_data import read_report_data
from tests.report.test_page import linear_draw


@pytest.mark.parametrize(
    ("method", "decay", "members"),
    [("profile", 1e-3, 20), ("two-step", 1e-5, 10), ("averaged", 1e-5, 10)],
)
def test_the_plain_ensemble_has_the_options_that_the_model_used(method, decay, members):
    plain = plain_ensemble(hk.DeepHeckmanRegressor(["z"], method=method), 500)
    used = plain.get_params()
    assert (used["weight_decay"], used["n_members"], used["folds"]) == (decay, members, 5)
    assert used["tails"] == ("normal" if method == "profile" else "auto")


def test_the_plain_ensemble_shares_the_options_that_were_given():
    model = hk.DeepHeckmanRegressor(
        ["z"], method="profile", hidden=(8,), epochs=7, folds=3, weight_decay=0.5
    )
    plain = plain_ensemble(model, 500).get_params()
    assert plain["hidden"] == (8,)
    assert (plain["epochs"], plain["folds"], plain["instruments"]) == (7, 3, ["z"])
    assert plain["weight_decay"] == 0.5


def test_the_plain_ensemble_takes_the_weight_decay_that_was_chosen():
    X, y, _ = linear_draw(300)
    options = {"hidden": (4,), "epochs": 5, "n_members": 2, "folds": 2, "progress": False}
    model = hk.DeepHeckmanRegressor(
        ["z"], weight_decay="auto", **{"method": "two-step"} | options
    ).fit(X, y)
    plain = plain_ensemble(model, int(y.notna().sum()))
    assert plain.weight_decay == model.info_["weight_decay"]
    assert isinstance(plain.weight_decay, float)


def test_the_uncertainty_of_a_change_is_that_of_the_jackknife():
    """A mean of n numbers, without one of g groups: its jackknife sd is known."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(40)
    groups = values.reshape(8, 5)
    without = np.array([np.delete(groups, j, axis=0).mean() for j in range(8)])
    refits = Refits("", np.arange(3), np.tile(without[:, None], 3), np.empty(0), None)
    expected = groups.mean(axis=1).std(ddof=1) / np.sqrt(8)  # the sd of a mean of 8 groups
    t = 1.8945786  # the .95 quantile with seven degrees of freedom
    assert refits.uncertainty(np.arange(2), 0.9) == pytest.approx(t * expected, rel=1e-7)
    quarter = replace(refits, share=0.25)  # refits to a quarter of the rows have twice the sd
    assert quarter.uncertainty(np.arange(2), 0.9) == pytest.approx(0.5 * t * expected, rel=1e-7)


def test_what_both_models_share_cancels_in_the_change(fits):
    model, X, y = fits[0.7]
    table = read_report_data(model, X, y)
    refits = refit_on_folds(model, table, naive_fit(model, table, baseline=model))
    assert refits.uncertainty(np.arange(table.n), 0.9) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "ml"},
        {"method": "ml", "errors": "t", "scale": ["x"]},
        {"method": "two-step", "target_transform": "sqrt"},
        {"method": "auto"},
    ],
)
def test_a_refit_to_the_same_rows_predicts_the_same(options):
    X, y, _ = linear_draw(400)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 400)
    model = hk.HeckmanRegressor(["z"], **options).fit(X, y, sample_weight=weight)
    again = refit_alike(model, X, y, sample_weight=weight)
    for target in ("population", "selected"):
        one, other = (m.predict_distribution(X, target) for m in (model, again))
        np.testing.assert_allclose(other.interval(0.9), one.interval(0.9), rtol=1e-6, atol=1e-8)


def test_changes_of_simulated_data_lie_inside_their_uncertainty():
    """The mean change at fixed points over 40 draws, and how often an interval contains it."""
    points = linear_draw(300, seed=99)[0]
    changes, halves = [], []
    for seed in range(40):
        X, y, _ = linear_draw(300, rho=0.7, seed=seed)
        X, y = pd.concat([X, points]), pd.concat([y, pd.Series(np.nan, points.index)])
        X, y = X.reset_index(drop=True), y.reset_index(drop=True)
        given = np.arange(600) < 300
        weight = np.where(given, 1.0, 0.0)
        model = hk.HeckmanRegressor(["z"], method="two-step").fit(X, y, sample_weight=weight)
        table = read_report_data(model, X, y, sample_weight=weight)
        naive = naive_fit(model, table)
        refits = refit_on_folds(model, table, naive)
        found = compare(model, table, naive, refits)
        rows = np.flatnonzero(~given)
        changes.append((model.predict_distribution(X).mean - naive.mean)[rows].mean())
        halves.append(refits.uncertainty(rows, 0.9))
        assert found.everyone.known
    inside = np.mean(np.abs(np.array(changes) - np.mean(changes)) <= halves)
    # 90 % up to three Monte Carlo errors; two independent variances gave 100 %
    assert abs(inside - 0.9) <= 3 * np.sqrt(0.09 / 40)
    assert np.median(halves) < 3 * np.std(changes)


@pytest.fixture(scope="module")
def fits():
    """Clear selection, and none to speak of."""
    found = {}
    for rho in (0.7, 0.0):
        X, y, _ = linear_draw(1500, rho=rho)
        model = hk.HeckmanRegressor(["z"]).fit(X, y)
        found[rho] = model, X, y
    return found


def test_a_change_within_its_uncertainty_is_no_clear_difference(fits):
    contents = report_contents(*fits[0.0])
    assert contents.headline.startswith("No clear difference: in every group")
    assert "±" in contents.headline
    assert not any(word in contents.headline for word in ("lower", "higher"))
    assert {contents.in_words(g) for g in contents.comparison.regions} == {"no clear difference"}


def test_a_clear_change_has_a_direction(fits):
    contents = report_contents(*fits[0.7])
    seldom = contents.comparison.regions[0]
    assert abs(seldom.change) > seldom.uncertainty > 0
    assert contents.in_words(seldom) == "corrected is lower"
    assert "lower on average than the naive one" in contents.headline


def test_the_sentence_is_about_a_group_that_clearly_changed(fits):
    table = read_report_data(*fits[0.7])
    found = compare(fits[0.7][0], table, naive_fit(fits[0.7][0], table))
    wide, narrow = found.regions[0], found.regions[1]
    wide = replace(wide, corrected=wide.naive + 9, uncertainty=10.0)
    narrow = replace(narrow, corrected=narrow.naive + 1, uncertainty=0.5)
    assert replace(found, regions=(wide, narrow)).largest is narrow
    assert replace(found, regions=(wide,)).largest is wide


def test_a_change_without_uncertainty_is_shown_bare():
    assert Digits(2).change(-0.5, 0.1) == "−0.50\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.10"
    assert Digits(2).change(0.5, float("nan")) == "+0.50"


def test_a_baseline_that_was_given_is_compared_as_it_is(fits):
    model, X, y = fits[0.7]
    given = SimpleNamespace(predict_distribution=model.predict_distribution)
    contents = report_contents(model, X, y, baseline=given)
    assert contents.comparison.everyone.change == 0
    assert contents.headline.startswith("No clear difference")
