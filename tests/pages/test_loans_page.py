"""Simulated loans: a special case with a known answer, and draws that are what their page says."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import heckesel as hk


def test_without_dependence_both_answers_are_right():
    loans = hk.datasets.make_loans(4000, rho=0.0, seed=0)
    frame = loans.frame
    granted = frame["default"].notna()
    naive = hk.probit("default ~ log_income + debt + tenure", frame[granted])
    columns = frame.drop(columns="default")
    model = hk.HeckmanClassifier(["leniency"], method="ml").fit(columns, frame["default"])
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
