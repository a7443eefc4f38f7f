"""The page on reject inference runs, in order, and says what its comments say."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import heckesel as hk
from heckesel.linear.results.probit_prediction import probit_index
from heckesel.tables.array_design import with_intercept

PAGE = Path(__file__).parents[2] / "docs" / "loans.md"


@pytest.mark.filterwarnings("ignore:.*still improving")
def test_the_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it saves a model
    scope: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, "loans.md", "exec"), scope)
    rates = [scope[name] for name in ("naive_rate", "corrected_rate", "true_rate")]
    assert [f"{100 * rate:.0f} %" for rate in rates] == ["12 %", "36 %", "39 %"]
    assert "identified by an instrument" in capsys.readouterr().out
    # "within its own uncertainty": the delta method for the mean over the rejected, and the
    # binomial noise of how many of them defaulted
    model, rows = scope["model"], scope["X"][~scope["granted"]]
    x, w = with_intercept(model.columns_.x(rows)), with_intercept(model.columns_.w(rows))
    z, gradient = probit_index(model.result_, x, w, "unselected")
    slope = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)) @ gradient / len(z)
    variance = slope @ model.result_.cov.to_numpy() @ slope + 0.25 / len(z)
    assert abs(rates[1] - rates[2]) < 2 * np.sqrt(variance)


def test_without_dependence_both_answers_are_right():
    loans = hk.datasets.make_loans(4000, rho=0.0, seed=0)
    frame = loans.frame
    granted = frame["default"].notna()
    naive = hk.probit("default ~ log_income + debt + tenure", frame[granted])
    columns = frame.drop(columns="default")
    model = hk.HeckmanClassifier(["leniency"]).fit(columns, frame["default"])
    true = loans.truth.y[~granted].mean()
    assert naive.predict(frame[~granted]).mean() == pytest.approx(true, abs=0.03)
    low, high = model.result_.interval("rho", level=0.99)
    assert low < 0 < high


def test_loans_are_drawn_as_their_page_says():
    loans = hk.datasets.make_loans(200_000, rho=-0.6, seed=2)
    frame, truth = loans.frame, loans.truth
    granted = frame["default"].notna().to_numpy()
    noise = 4 * 0.5 / np.sqrt(len(frame))  # four standard errors of a share
    assert truth.f0.mean() == pytest.approx(truth.y.mean(), abs=noise)
    assert truth.propensity.mean() == pytest.approx(granted.mean(), abs=noise)
    assert truth.propensity_x.mean() == pytest.approx(granted.mean(), abs=noise)
    np.testing.assert_array_equal(frame["default"][granted], truth.y[granted])
    # the errors' correlation, by the orthant where both latent indices are at their middle
    z, index = ndtri(truth.f0), ndtri(truth.propensity)
    middle = (np.abs(z) < 0.3) & (np.abs(index) < 0.3)
    both = truth.y[middle].astype(bool) & granted[middle]
    expected = 0.25 + np.arcsin(-0.6) / (2 * np.pi) + (ndtr(z) + ndtr(index) - 1)[middle].mean() / 2
    assert both.mean() == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(middle.sum()))
    assert frame["tenure"].min() == 0.0
    again = hk.datasets.make_loans(200, rho=-0.6, seed=2).frame
    assert again.equals(hk.datasets.make_loans(200, rho=-0.6, seed=2).frame)
    with pytest.raises(hk.DataError, match="rho is 1"):
        hk.datasets.make_loans(200, rho=1)
