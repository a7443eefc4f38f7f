"""Words of the page and of the demo that must fit the case at hand."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import heckesel as hk
from heckesel.cli.demo import _rand_hie
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.report import write_report
from heckesel.report.figures import truth_figure
from tests.report.test_page import check_page, linear_draw


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The page of a fit in which every case has an outcome."""
    X, _, truth = linear_draw(300)
    with pytest.warns(hk.IdentificationWarning):
        model = hk.HeckmanRegressor(["z"]).fit(X, truth)
    path = tmp_path_factory.mktemp("pages") / "page.html"
    return write_report(model, X, truth, path).read_text(encoding="utf-8")


def test_a_page_without_selection_does_not_mention_unobserved_cases(complete):
    check_page(complete)
    for phrase in ("nothing selected", "Unobserved outcomes cannot be", "mean, without", "both eq"):
        assert phrase not in complete
    assert "every unit has an outcome" in complete
    assert "observed in\nevery row." in complete
    assert ">not used</td>" in complete  # the instrument


def test_a_page_with_selection_describes_the_unobserved_cases(tmp_path):
    X, y, _ = linear_draw(300)
    page = write_report(hk.HeckmanRegressor(["z"]).fit(X, y), X, y, tmp_path / "p.html").read_text()
    assert "Unobserved outcomes cannot be\nchecked" in page
    assert "mean, without" in page
    assert "ρ = 0 outcomes are missing at random given the columns" in page


def test_the_band_of_the_known_truth_is_in_the_legend_and_the_caption():
    x = np.linspace(-1, 1, 5)
    ends = np.column_stack([x - 1, x + 1])
    drawn = truth_figure(x, x, x, x, ends, seen=([0.0], [0.0]), column="x", outcome="y")
    assert "corrected 90 % interval" in re.findall("<text.*?>(.*?)</text>", drawn.svg)
    assert "the band is the corrected 90 % interval" in drawn.description


def test_the_interval_of_the_demo_has_its_level(monkeypatch):
    forms = SimpleNamespace(flips=(), forms=[SimpleNamespace(name="Student t")])
    monkeypatch.setattr(HeckmanFit, "functional_form", lambda self: forms)
    said = []
    with pytest.warns(hk.IdentificationWarning):
        _rand_hie(SimpleNamespace(print=lambda text, **_: said.append(text)))
    assert any("95 % profile-likelihood interval of rho: 0.641 to 0.797" in text for text in said)
