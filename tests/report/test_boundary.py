"""What the report says of a fit that ran to rho = +-1, where the model mostly does not fit."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import heckesel as hk
from heckesel.diagnostics.verdict import IDENTIFIED, NO_SELECTION, Identification
from heckesel.fit_info import RhoInfo, RhoMode
from heckesel.report import write_report
from heckesel.report.verdict_box import boundary_reached, verdict_box
from tests.report.test_page import check_page


@pytest.fixture(scope="module")
def wages(tmp_path_factory):
    """The page of a power of wages, so skewed that the likelihood has no interior maximum."""
    df = hk.datasets.load_mroz()
    instruments = ["age", "kidslt6", "kidsge6", "nwifeinc"]
    X, y = df[["educ", "exper", "expersq", *instruments]], np.exp(1.5 * df["lwage"])
    model = hk.HeckmanRegressor(instruments, method="ml").fit(X, y)
    assert model.result_.status == "boundary"
    assert model.identification_.evidence["at_boundary"]
    path = tmp_path_factory.mktemp("pages") / "wages.html"
    return write_report(model, X, y, path).read_text(encoding="utf-8")


def test_a_fit_at_the_boundary_is_not_recommended(wages):
    check_page(wages)
    assert 'class="verdict bad"' in wages
    assert "can be used for everyone" not in wages
    assert (
        wages.count(
            "The estimate is ρ = +1, the end of the range, which usually means that the model"
        )
        == 1
    )
    assert "target_transform=&#34;log&#34;" in wages
    assert "Do not use the corrected predictions as they are." in wages
    assert "Do not use the corrected predictions. The numbers below only show what" in wages
    assert "Corrected mean (do not use)" in wages
    assert "corrected is higher" not in wages
    assert "corrected (do not use)</text>" in wages  # in the picture, which is grey
    assert "P-values and intervals are\nthose of the profile likelihood" in wages
    assert "does not include the uncertainty about ρ itself" in wages


def test_intervals_that_do_not_exist_are_one_sign_and_the_page_says_why(wages):
    assert "– to –" not in wages
    assert "At ρ = ±1 there are no standard errors" in wages


def network_model(rho, info=None, *, verdict=IDENTIFIED):
    found, fitted = SimpleNamespace(verdict=verdict, evidence={}), SimpleNamespace(info=info)
    return SimpleNamespace(identification_=found, rho_=np.array(rho), fitted_=fitted)


def modes(*rho, end=False):
    return RhoInfo([RhoMode(value, 1.0, 1.0, 0.0, end) for value in rho], [-1.0, 1.0], {})


@pytest.mark.parametrize(
    ("model", "edge"),
    [
        (network_model([0.9, 0.99]), None),
        (network_model([-1.0, -0.9995]), -1.0),
        (network_model([0.997], modes(0.997, end=True)), 1.0),
        (network_model([0.5], modes(0.5, end=True)), None),  # where a prior ends
        (network_model([0.2, -1.0], modes(0.2, -1.0)), None),  # the lesser mode
        (network_model([np.nan], verdict=NO_SELECTION), None),
    ],
)
def test_networks_are_at_the_boundary_by_what_they_predict_with(model, edge):
    assert boundary_reached(model) == edge


def test_two_steps_beyond_one_are_at_the_boundary():
    result = SimpleNamespace(status="converged")
    model = hk.HeckmanRegressor(method="two-step")
    model.result_, model.rho_ = result, -1.2
    model.identification_ = SimpleNamespace(verdict=IDENTIFIED)
    assert boundary_reached(model) == -1.0
    model.rho_ = -0.8
    assert boundary_reached(model) is None


def test_a_verdict_whose_own_likelihood_ran_to_the_boundary_is_not_green():
    found = Identification(IDENTIFIED, "z moves selection.", {"at_boundary": True, "rho": 0.995})
    box = verdict_box(found, boundary=None)
    assert (box.tone, box.heading) == ("caution", IDENTIFIED)
    assert "peaks near ρ = ±1" in box.reasons[1]
    assert (
        verdict_box(replace(found, evidence={"at_boundary": False}), boundary=None).tone == "good"
    )


def test_an_interior_fit_reports_no_boundary():
    df = hk.datasets.load_mroz()
    model = hk.HeckmanRegressor(["age"]).fit(df[["educ", "age"]], df["lwage"])
    assert boundary_reached(model) is None


def test_an_interval_with_one_end_keeps_it():
    from heckesel.report.formatting import Digits, ends

    assert ends((0.5, float("nan"))) == "0.500 to –"
    assert ends((float("nan"),) * 2) == Digits(2).interval((float("nan"),) * 2) == "–"
    assert re.fullmatch(r"−1\.00 to 2\.00", ends((-1.0, 2.0)))
