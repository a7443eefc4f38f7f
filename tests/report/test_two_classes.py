"""The report on a model for two classes."""

import re

import numpy as np
import pytest

import heckesel as hk
from heckesel.metrics.calibration import class_half_band
from heckesel.plots.calibration_curve import class_shares
from heckesel.report import write_report
from heckesel.report.contents import report_contents
from heckesel.report.held_out_check import class_calibration
from heckesel.report.naive_model import PLAIN_PROBIT, TRAINED_ALIKE, naive_fit
from heckesel.report.report_data import read_report_data
from tests.report.test_page import check_page


@pytest.fixture(scope="module")
def loans():
    draw = hk.datasets.make_loans(1500, seed=0)
    X, y = draw.frame.drop(columns="default"), draw.frame["default"]
    words = y.map({0.0: "repaid", 1.0: "default"}).rename("outcome")
    words = words.mask(words.isna(), "unknown")  # a label that stands for none
    return X, words, draw.truth.y


@pytest.fixture(scope="module")
def model(loans):
    X, y, _ = loans
    return hk.HeckmanClassifier(["leniency"], unobserved="unknown").fit(X, y)


def test_the_page_has_the_pictures_of_a_probability(model, loans, tmp_path):
    X, y, _ = loans
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    page = check_page(text)
    for name in ("regions", "strips", "rho", "calibration"):
        assert f"{name}-title" in page.ids
    assert "A probit with sample selection and a linear index for the class" in text
    assert "probability of outcome = repaid" in text
    assert "observed share of the class" in text
    assert '<th scope="col">probit</th>' in text
    assert "Other error models" not in text


def test_the_naive_fit_is_a_probit_of_the_observed_classes(model, loans):
    import statsmodels.api as sm

    X, y, _ = loans
    table = read_report_data(model, X, y)
    naive = naive_fit(model, table)
    seen = y != "unknown"
    x = sm.add_constant(X.drop(columns="leniency"))
    expected = sm.Probit((y == "repaid").astype(float)[seen], x[seen]).fit(disp=0)
    assert naive.what == PLAIN_PROBIT
    assert naive.coefficients["debt"] == pytest.approx(expected.params["debt"], rel=1e-5)
    np.testing.assert_allclose(naive.mean, expected.predict(x), rtol=1e-5)


def test_the_correction_moves_towards_the_rate_of_all(model, loans):
    X, y, truth = loans
    contents = report_contents(model, X, y)
    everyone = contents.comparison.everyone
    rate = 1 - truth.mean()  # of "repaid", the second class
    assert abs(everyone.corrected - rate) < 0.5 * abs(everyone.naive - rate)
    assert everyone.clear
    assert everyone.uncertainty < 0.1
    assert contents.headline.startswith("For the ")
    assert "the corrected probability of outcome = repaid is" in contents.headline
    assert contents.calibration.passed
    observed = (y == "repaid").sum() / (y != "unknown").sum()
    assert contents.calibration.covered == pytest.approx(observed)


def test_networks_for_two_classes_have_a_page(loans, tmp_path):
    X, y, _ = loans
    rows = np.arange(400)
    X, y = X.iloc[rows], y.iloc[rows]
    options = {"outcome": "network", "hidden": (4,), "n_members": 2, "folds": 2, "epochs": 20}
    model = hk.HeckmanClassifier(["leniency"], unobserved="unknown", progress=False, **options)
    text = write_report(model.fit(X, y), X, y, tmp_path / "p.html").read_text(encoding="utf-8")
    check_page(text)
    assert TRAINED_ALIKE in text
    assert "held-out log-likelihood" in text
    assert "This model averages over ρ" in text


def test_at_most_one_of_100_right_models_leaves_the_band():
    rng = np.random.default_rng(0)
    p = np.sort(rng.beta(1, 6, 800))
    level, _, count = class_shares(p, p)
    half, left = class_half_band(level, count), 0
    for _ in range(1500):
        y = (rng.random(800) < p).astype(float)
        left += (np.abs(class_shares(y, p)[1] - level) > half).any()
    assert left / 1500 <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 1500)
    wrong = class_calibration((rng.random(800) < p).astype(float), 2 * p.clip(0, 0.5), "")
    assert not wrong.passed
    assert re.search("the class was observed in .* of the cases for which", wrong.sentence)


def test_the_band_has_the_width_of_a_binomial():
    few = class_half_band(np.full(10, 0.3), np.full(10, 100))
    many = class_half_band(np.full(10, 0.3), np.full(10, 400))
    np.testing.assert_allclose(few, 2 * many, rtol=0.04)  # counts are whole numbers
    # the .99 quantile of the largest of ten |normal| values is 3.29
    np.testing.assert_allclose(many, 3.29 * np.sqrt(0.21 / 400), rtol=0.05)
