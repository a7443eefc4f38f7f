"""Corrected against naive: trained alike, with an uncertainty, and in words only where clear."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import heckesel as hk
from heckesel.predictive.distribution import Predictive
from heckesel.report.comparison import compare, plain_ensemble, uncertainty_of_change
from heckesel.report.contents import report_contents
from heckesel.report.formatting import Digits
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


def test_the_doubt_of_a_change_bounds_that_of_a_mean():
    """A line through x with doubt about its slope alone: the doubt of the mean is known."""
    x = np.array([1.0, 2.0, 3.0])
    one = Predictive.normal(x, (0.3 * x) ** 2, 1.0)
    other = Predictive.normal(x, (0.4 * x) ** 2, 1.0)
    # sd of either slope .3 and .4, of their difference .5, and so .5 times the mean of x
    expected = 1.6449 * 0.5 * 2.0
    assert uncertainty_of_change(one, other, np.arange(3)) == pytest.approx(expected, rel=1e-4)
    assert uncertainty_of_change(one, other, np.array([2])) == pytest.approx(1.6449 * 1.5, rel=1e-4)


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
    found = compare(fits[0.7][0], read_report_data(*fits[0.7]))
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
