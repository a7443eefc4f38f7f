"""X6: outcomes are hidden as the protocol says, and means and intervals are what they claim."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from reproduction.pages.beyond_paper import x6_page
from reproduction.pages.rows import Results, flat
from reproduction.truth import x6_truth
from reproduction.truth.sources import KnownOutcome
from reproduction.truth.unselected_mean import (
    Mean,
    bootstrap_mean,
    least_squares_mean,
    likelihood_mean,
)


def known(x, y, instruments, truth):
    everyone = np.ones(len(truth), dtype=bool)
    return KnownOutcome("drawn", "y", x, y, instruments, None, truth, everyone)


@pytest.fixture(scope="module")
def drawn():
    """Two covariates and an instrument; rho is .7."""
    rng = np.random.default_rng(3)
    a, b, z, u, v = rng.normal(size=(5, 1500))
    y, selected = 1 + a + 0.7 * u + 0.7 * v, 0.2 + 0.3 * a + z + u > 0
    x = pd.DataFrame({"a": a, "b": b, "z": z})
    hidden = pd.Series(np.where(selected, y, np.nan), name="y")
    return known(x, hidden, ["z"], y[~selected])


def test_least_squares_in_one_group_is_its_mean_with_its_own_variance():
    """With a dummy the fit is saturated, and HC1 is the sum of squares over n1^2, times n/(n-2)."""
    y = pd.Series([1.0, 2.0, 6.0, 10.0, 14.0, np.nan, np.nan])
    x = pd.DataFrame({"d": [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]})
    found = least_squares_mean(known(x, y, [], np.zeros(2)), 0.9)
    assert found.value == pytest.approx(10.0)
    error = np.sqrt(5 / 3 * 32 / 9)
    assert found.high - found.value == pytest.approx(1.6448536269514722 * error)


@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_means_are_those_of_the_fit_s_own_predictions(drawn, method):
    model = hk.HeckmanRegressor(["z"], method=method).fit(drawn.x, drawn.y)
    predicted = model.predict_distribution(drawn.x[drawn.hidden], target="unselected").mean
    fit = model.result_
    found = (
        likelihood_mean(fit, drawn, 0.9) if method == "ml" else bootstrap_mean(fit, drawn, 50, 0.9)
    )
    assert found.value == pytest.approx(predicted.mean(), rel=1e-10)
    assert found.low < found.value < found.high
    assert abs(found.value - drawn.truth.mean()) < 2 * (found.high - found.low)


def test_the_bootstrap_interval_is_as_wide_as_that_of_the_delta_method(drawn):
    """5 % and 95 % quantiles of 400 replicates have a Monte Carlo error of 10 % of the width."""
    fit = hk.HeckmanRegressor(["z"], method="two-step").fit(drawn.x, drawn.y).result_
    drawn_interval, delta = bootstrap_mean(fit, drawn, 400, 0.9), likelihood_mean(fit, drawn, 0.9)
    ratio = (drawn_interval.high - drawn_interval.low) / (delta.high - delta.low)
    assert 0.7 < ratio < 1.3


def test_an_interval_is_widened_by_the_error_of_the_truth():
    found = Mean(0.0, -3.0, 1.0)
    assert x6_truth.covers(found, -2.9, 0.0)
    assert not x6_truth.covers(found, 1.5, 0.0)
    assert x6_truth.covers(found, 1.5, 1.2 / x6_truth.HALF_WIDTH)  # sqrt(1 + 1.44) = 1.56


def test_a_refusal_is_recorded_and_shown(drawn, monkeypatch):
    """The instrument separates: nobody with z = 0 is selected."""
    z = drawn.y.notna().astype(float)
    separated = replace(drawn, x=drawn.x.assign(z=z))
    monkeypatch.setattr(x6_truth, "load_outcome", lambda source, outcome: separated)
    methods = ("evidence", "bounds", "naive", "likelihood")
    cells = [x6_truth.Cell("HIV tests", "age", method) for method in methods]
    found = dict(zip(methods, x6_truth.run_chunk(cells), strict=True))
    assert found["likelihood"] == {"refused": 1.0}
    assert "verdict" not in found["evidence"]
    assert found["naive"]["estimate"] == pytest.approx(least_squares_mean(drawn, 0.9).value)
    others = [m for m in x6_truth.METHODS if m not in methods]
    found |= {name: {"refused": 1.0} for name in others}
    rows = [
        {"cell": {"source": "HIV tests", "outcome": "age", "method": m}, "metrics": metrics}
        for m, metrics in found.items()
    ]
    parts = x6_page.parts(Results(x6=flat(rows)))
    assert "| refused | refused | refused | refused |" in parts["estimates"]
    assert "| HIV tests | age | refused |" in parts["evidence"]


def page_rows(covered: float, error: float) -> Results:
    """One randomised, identified outcome; the naive error is -1."""
    cell = {"source": "HIV tests", "outcome": "age"}
    known = {"verdict": 0.0, "truth": 10.0, "truth_se": 0.1, "truth_sd": 2.0, "n_hidden": 5.0}
    known |= {"selected_mean": 11.0, "wald_p": 0.01, "validity": 1.0, "validity_p": 0.5}
    rows = [{"cell": cell | {"method": "evidence"}, "metrics": known}]
    bounds = {"low": 0.0, "high": 20.0, "truth_all": 10.5, "covered": 1.0}
    rows += [{"cell": cell | {"method": "bounds"}, "metrics": bounds}]
    for method in x6_truth.METHODS:
        off = -1.0 if method == "naive" else error
        metrics = {"estimate": 10 + off, "low": 9.0, "high": 12.0, "error": off}
        metrics |= {"standardised_error": off / 2, "covered": covered}
        rows += [{"cell": cell | {"method": method}, "metrics": metrics}]
    return Results(x6=flat(rows))


def test_the_page_marks_what_does_not_cover_and_compares_with_the_naive_error():
    good, bad = page_rows(1.0, 0.5), page_rows(0.0, 1.5)
    kinds = {row.target[:10] + row.method: row.kind for row in x6_page.targets(good)}
    assert kinds["randomisedauto"] == kinds["identifiedauto"] == "met"
    assert kinds["randomisednaive"] == "shown"
    kinds = {row.target[:10] + row.method: row.kind for row in x6_page.targets(bad)}
    assert kinds["randomisedauto"] == kinds["identifiedlinear auto"] == "missed"
    assert "| 10.50 (9.00 to 12.00) |" in x6_page.parts(good)["estimates"]
    assert "| **11.50 (9.00 to 12.00)** |" in x6_page.parts(bad)["estimates"]
    assert (
        "| randomised instrument | 1 | auto | 0.0 % | 0.75 | 0.75 | 0.0 % |"
        in (x6_page.parts(bad)["summary"])
    )
