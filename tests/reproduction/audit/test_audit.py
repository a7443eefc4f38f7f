"""Published fits: printed log-likelihoods are found again, and no listed best one is below them."""

from pathlib import Path

import numpy as np
import pytest

from heckesel.errors import DataError
from reproduction.audit import tables
from reproduction.audit.audit_page import audit_md, read_audit
from reproduction.audit.r_random import RRandom
from reproduction.audit.refit import PUBLISHED_FITS, audit_row

RESULTS = Path(__file__).parents[3] / "results"
FITS = {published.name: published for published in PUBLISHED_FITS}


@pytest.fixture(scope="module")
def rows():
    return read_audit(RESULTS)


def test_random_numbers_are_those_of_r():
    """What R prints for set.seed(0); runif(3) and for set.seed(1); rnorm(3)."""
    uniform, normal = RRandom(0).uniform(3), RRandom(1).normal(3)
    np.testing.assert_allclose(uniform, [0.8966972, 0.2655087, 0.3721239], atol=5e-8)
    np.testing.assert_allclose(normal, [-0.6264538, 0.1836433, -0.8356286], atol=5e-8)


def test_simulated_tables_select_as_many_units_as_were_printed():
    counts = [tables.vignette(example)["y"].notna().sum() for example in range(3)]
    counts += [tables.guide_normal()["y"].notna().sum(), tables.guide_events()["y"].notna().sum()]
    assert counts == [328, 328, 253, 504, 261]


def test_the_best_mode_is_never_below_a_printed_log_likelihood(rows):
    for row in rows:
        assert row["best_loglik"] == max(mode["loglik"] for mode in row["modes"])
        short = float(row["printed_loglik"]) - row["best_loglik"]
        assert short <= FITS[row["name"]].tolerance, row["name"]


def test_printed_fits_are_modes(rows):
    """BHHH stopped .0013 below its maximum; all others agree in every printed digit, up to what
    data with rounded digits and a program's stopping rule leave."""
    for row in rows:
        mode = row["modes"][row["printed_mode"]]
        assert abs(mode["loglik"] - float(row["printed_loglik"])) < 0.002
        assert mode["status"] == "converged"


@pytest.mark.parametrize("name", ["vignette, without one", "simulated event study (Nguyen)"])
def test_an_audited_fit_is_reproduced(rows, name):
    (before,) = [row for row in rows if row["name"] == name]
    after = audit_row(FITS[name])
    assert after["printed_is"] == before["printed_is"]
    assert after["verdict"] == before["verdict"]
    for key in ("best_loglik", "coefficient", "shape_loglik"):
        assert after[key] == pytest.approx(before[key], rel=1e-6)


def test_the_error_for_a_missing_table_names_its_publisher(monkeypatch):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    with pytest.raises(DataError, match=r"source distribution of the Python package statspai"):
        tables.stata_design()


def test_the_page_counts_a_model_once_that_was_printed_twice(rows):
    page = audit_md(rows)
    assert f"{len(rows)} maximum likelihood fits" in page
    assert page.count("| Mroz, wage (vignette) |") == 1
    assert page.count("| Mroz, wage (Greene) |") == 2
