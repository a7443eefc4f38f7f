"""The held-out check: every method can be refitted for it, and what it says is true."""

import re

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.datasets.controlled import make_controlled
from heckesel.diagnostics.verdict import DO_NOT_USE, IDENTIFIED, Identification
from heckesel.metrics.calibration import LEVELS, half_band, reliability
from heckesel.plots.predictions_of import has_t_errors
from heckesel.report import write_report
from heckesel.report.comparison import compare
from heckesel.report.held_out_check import HeldOutCheck, calibration, check_held_out
from heckesel.report.naive_model import naive_fit
from heckesel.report.refits import NotChecked, refit_on_folds, smaller
from heckesel.report.report_data import read_report_data
from heckesel.report.verdict_box import TONES, verdict_box
from tests.report.test_page import check_page

SMALL = {"hidden": (8,), "epochs": 20, "progress": False}


def draw(n=300):
    frame = make_controlled(n, rho=0.9, alpha=1.0, seed=1).frame
    return frame[["x", "z"]], frame["y"]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"method": "profile", "folds": 5}, 5),
        ({"method": "profile", "folds": 3, "n_members": 4}, 3),
        ({"method": "averaged", "folds": 5}, 5),
        ({"method": "two-step", "folds": 5, "n_members": 2}, 2),
        ({"method": "two-step", "folds": None}, 2),
        ({"method": "two-step", "folds": None, "n_members": 1}, 1),
        ({"method": "two-step", "folds": 3, "selection": "network"}, 3),
    ],
)
def test_every_method_can_be_refitted_for_the_check_whatever_its_folds(options, size):
    X, y = draw()
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | options, **SMALL).fit(X, y)
    table = read_report_data(model, X, y)
    found = check_held_out(refit_on_folds(model, table), table)
    assert isinstance(found, HeldOutCheck)
    assert f"as an ensemble of {size}," in found.how


def test_members_of_the_refit_see_the_share_of_rows_that_those_of_the_model_saw():
    model = hk.DeepHeckmanRegressor(["z"], method="two-step")  # on folds from 100 selected rows on
    assert (smaller(model, 500).folds, smaller(model, 50).folds) == (5, None)
    assert model.folds == "auto"


@pytest.mark.parametrize("errors", ["t", "auto"])
def test_t_errors_are_seen_where_they_were_chosen_too(errors, monkeypatch):
    X, y = draw()
    options = SMALL | {"method": "joint", "errors": "t", "n_members": 2, "tails": "normal"}
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | options).fit(X, y)
    model.errors = errors  # "auto" that chose t leaves the same fit
    assert has_t_errors(model)
    table = read_report_data(model, X, y)
    found = check_held_out(refit_on_folds(model, table), table)
    assert isinstance(found, NotChecked)
    assert "t errors" in found.reason
    assert compare(model, table, naive_fit(model, table, model)).unselected is None


def test_a_prediction_that_fails_is_not_taken_for_one_that_is_not_there(monkeypatch):
    X, y = draw()
    model = hk.HeckmanRegressor(["z"]).fit(X, y)
    predict = hk.HeckmanRegressor.predict_distribution

    def broken(self, X, target="population"):
        if target == "unselected":
            raise hk.DataError("a column is gone")
        return predict(self, X, target=target)

    table = read_report_data(model, X, y)
    naive = naive_fit(model, table)
    monkeypatch.setattr(hk.HeckmanRegressor, "predict_distribution", broken)
    with pytest.raises(hk.DataError, match="a column is gone"):
        compare(model, table, naive)


@pytest.mark.parametrize("m", [50, 400])
def test_99_of_100_right_models_have_all_points_inside_the_band(m):
    half, right = half_band(m), np.random.default_rng(4).random((1500, m))
    inside = np.mean([(np.abs(reliability(u) - LEVELS) <= half).all() for u in right])
    # four errors of this simulation, and one of the band's own width
    assert abs(inside - 0.99) < 4 * np.sqrt(0.99 * 0.01 / 1500) + 0.001


def test_the_band_narrows_with_the_root_of_the_cases():
    few, many = half_band(1000), half_band(4000)
    np.testing.assert_allclose(few, 2 * many, rtol=0.02)  # both quantiles are drawn, to 1 %


def test_a_failed_check_is_described_with_its_largest_gap():
    u = (np.arange(400) + 0.5) / 400
    assert "The check passed: all 19 points" in calibration(u, "").sentence
    failed = calibration(u**2, "")
    assert not failed.passed
    expected = np.sqrt(failed.level)
    outside = np.abs(expected - failed.level) > failed.high - np.array(failed.level)
    assert failed.outside == outside.sum() > 0
    assert failed.worst == (0.25, 0.5)  # sqrt(p) - p is largest at a quarter
    assert f"failed: {failed.outside} of 19 points lie outside" in failed.sentence
    assert "50.0 % of the outcomes lie below a value that 25 % were predicted" in failed.sentence


def test_a_gap_that_only_many_cases_show_does_not_fail_the_check():
    u = (np.arange(100_000) + 0.5) / 100_000
    found = calibration(u**1.03, "")  # off by .011 at most
    assert found.outside > 0
    assert found.passed
    assert "does not matter in practice" in found.sentence
    assert not calibration(u**1.1, "").passed


def test_with_a_caveat_the_verdict_box_is_not_green():
    found = Identification(IDENTIFIED, "z moves selection.", {"caveats": ["rows are copies"]})
    box = verdict_box(found, boundary=None)
    assert (box.tone, box.heading) == ("caution", f"{IDENTIFIED}, with caveats")
    assert "can be used for everyone" not in box.advice


def test_after_a_failed_check_the_verdict_box_is_not_green():
    found = Identification(IDENTIFIED, "z moves selection.", {})
    assert verdict_box(found, boundary=None).tone == "good"
    box = verdict_box(found, boundary=None, passed=False)
    assert (box.tone, box.heading) == ("caution", f"{IDENTIFIED}, but the held-out check failed")
    assert "can be used for everyone" not in box.advice
    assert "held-out check failed" in box.reasons[1]
    for verdict, tone in TONES.items():
        box = verdict_box(Identification(verdict, "", {}), boundary=None, passed=False)
        assert box.tone == ("bad" if tone == "bad" else "caution")


def heavy_tails(n=600):
    """A strong instrument and heavy tails, those of a t with two degrees of freedom."""
    rng = np.random.default_rng(5)
    x, z, u = rng.standard_normal((3, n))
    y = 1 + 2 * x + 0.5 * u + rng.standard_t(2, n)
    X = pd.DataFrame({"x": x, "z": z})
    return X, pd.Series(np.where(0.5 + 2 * z + u > 0, y, np.nan), name="pay")


def test_heavy_tails_show_beside_a_strong_instrument(tmp_path):
    X, y = heavy_tails()
    model = hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    assert model.identification_.verdict == DO_NOT_USE
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    check_page(text)
    assert re.search("Student t errors fit better .* by [0-9,]+ AIC units", text)
    assert 'class="verdict bad"' in text
    assert "The check failed" in text
    assert "can be used for everyone" not in text
    model = hk.HeckmanRegressor(["z"]).fit(X, y)  # chooses errors with heavy tails
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    check_page(text)
    assert "with skewed or heavy-tailed errors" in text
    assert "The check failed" not in text
    assert re.search("better than (the )?shape errors", text)
    assert "normal errors of this model" not in text


def test_a_linear_model_from_a_file_has_a_page_too(tmp_path):
    X, y = draw()
    hk.HeckmanRegressor(["z"]).fit(X, y).save(tmp_path / "model")
    model = hk.load(tmp_path / "model")
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    check_page(text)
    assert "Other error models were not tried: a saved model" in text
    assert "which a saved model does not contain" in text
