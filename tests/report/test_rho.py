"""The page names the rho that its predictions rest on, apart from that of the verdict's model."""

import re

import numpy as np
import pytest

import heckesel as hk
from heckesel.datasets.controlled import make_controlled
from heckesel.report import write_report
from heckesel.report.formatting import ends, minus, significant
from heckesel.report.rho_section import evidence_on_rho, own_rho
from tests.report.test_page import check_page, linear_draw

SMALL = {"hidden": (8,), "epochs": 40, "n_members": 3, "progress": False}


def words(page):
    """The text of a page without its options, whose values are code."""
    page = re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
    page = page[: page.index('id="made"')]
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


@pytest.fixture(scope="module")
def networks():
    frame = make_controlled(300, rho=-0.8, alpha=1.0, seed=2).frame
    X, y = frame[["x", "z"]], frame["y"]
    return {
        method: (hk.DeepHeckmanRegressor(["z"], method=method, **SMALL).fit(X, y), X, y)
        for method in ("two-step", "profile")
    }


def test_the_report_states_the_mean_and_range_of_rho_over_members(networks):
    model, *_ = networks["two-step"]
    found = own_rho(model)
    assert found.value == pytest.approx(np.mean(model.rho_))
    assert significant(found.value, 3) in found.sentence
    assert f"3 members, which range from {ends((min(model.rho_), max(model.rho_)))}" in (
        found.sentence
    )


def test_the_report_states_the_best_rho_and_the_interval_of_a_profile(networks):
    model, *_ = networks["profile"]
    found = own_rho(model)
    assert found.value == model.info_["modes"][0]["rho"]
    assert f"between {ends(model.info_['rho_interval']).replace(' to ', ' and ')}" in found.sentence
    assert not evidence_on_rho(model).whose


def test_the_own_rho_stands_before_that_of_the_splines_and_the_splines_are_named(
    networks, tmp_path
):
    model, X, y = networks["two-step"]
    page = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    check_page(page)
    text = words(page)
    own, other = (
        text.index("This model estimates ρ as"),
        text.index("The curve below is that of the model behind the verdict"),
    )
    assert own < other < text.index("Maxima of the curve of the spline model")
    assert "are those of a spline model, not of the networks" in text


def test_one_kind_of_minus_stands_on_the_page(networks, tmp_path):
    X, y, _ = linear_draw(rho=-0.7)
    linear = hk.HeckmanRegressor(["z"]).fit(X, y)
    for model, *given in ((linear, X, y), networks["two-step"], networks["profile"]):
        assert any("-0." in line for line in model.identification_.details())
        page = write_report(model, *given, tmp_path / "page.html").read_text(encoding="utf-8")
        text = words(page)
        assert "−0." in text
        assert not re.findall(r".{20}(?<!\w)-\d.{9}", text)


def test_only_signs_before_numbers_become_minus_signs():
    text = minus("rho -0.23 to 0.01 (-1.5), two-step, 1e-05, x-1, chi2(4)")
    assert text == "rho −0.23 to 0.01 (−1.5), two-step, 1e-05, x-1, chi2(4)"


def test_the_report_states_rho_of_a_linear_model(tmp_path):
    X, y, _ = linear_draw()
    model = hk.HeckmanRegressor(["z"]).fit(X, y)
    assert own_rho(model).sentence == f"This model estimates ρ as {significant(model.rho_, 3)}."
