"""Cases that look identified by their instrument alone. To add one, write a row of `CASES`."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.diagnostics.verdict import DO_NOT_USE, SUPPORTED, UNUSABLE
from heckesel.linear.sample.sample import standardised_sample
from heckesel.linear.two_step import fit_two_step, lambda_influence, two_steps
from reproduction.simulations.fooling import CASES, fit_of, row_of

VALID = "normal errors, a valid instrument"


@pytest.mark.parametrize("case", [name for name in CASES if name != VALID])
def test_no_case_is_called_supported(case):
    levels = row_of(case, draws=4)["levels"]
    assert SUPPORTED not in levels


@pytest.mark.parametrize("case", ["exponential errors", "log-normal errors", "sigma depends on x"])
def test_wrong_errors_that_move_the_answer_are_not_to_be_used(case):
    assert row_of(case, draws=4)["levels"].get(UNUSABLE, 0) >= 3


def test_a_valid_instrument_with_normal_errors_is_supported():
    """Tests at 1 in 1000 leave room for one draw of ten."""
    assert row_of(VALID, draws=10)["levels"].get(SUPPORTED, 0) >= 9


def test_wages_in_levels_are_not_to_be_used_and_the_reason_is_given():
    women = hk.datasets.load_mroz()
    with pytest.warns(hk.IdentificationWarning, match="do not use"):
        fit = hk.heckman(
            "wage ~ educ + exper + expersq", "~ educ + exper + expersq + age + kidslt6", women
        )
    assert fit.identification.verdict == DO_NOT_USE
    assert "errors='shape'" in fit.identification.sentence
    assert abs(fit.identification.evidence["contrast"]) > 3


def test_both_estimators_agree_within_their_standard_error_under_the_model():
    fits = [fit_of(CASES[VALID](np.random.default_rng(100 + seed))) for seed in range(40)]
    contrasts = [fit.identification.evidence["contrast"] for fit in fits]
    # 40 draws: four Monte Carlo standard errors of a mean, and of a standard deviation
    assert abs(np.mean(contrasts)) < 4 / np.sqrt(40)
    assert abs(np.std(contrasts) - 1) < 4 / np.sqrt(80)


def test_a_part_of_a_long_table_is_enough():
    """Beyond 50,000 rows 20,000 are looked at, where the optimum of all rows is not the optimum."""
    rng = np.random.default_rng(2)
    x, z, u, v = rng.normal(size=(4, 60_000))
    y = np.where(0.3 + z + u > 0, 1 + x + 0.5 * u + v, np.nan)
    fit = hk.heckman("y ~ x", "~ x + z", pd.DataFrame({"x": x, "z": z, "y": y}))
    assert fit.identification.level == SUPPORTED
    assert abs(fit.identification.evidence["contrast"]) < 3


def test_the_influence_of_a_unit_is_what_leaving_it_out_changes():
    fit = fit_of(CASES[VALID](np.random.default_rng(5)))
    data = fit.data
    sample, scalings = standardised_sample(data)
    influence = lambda_influence(sample, two_steps(sample, scalings)) * scalings.y_scale
    order = np.argsort(~data.s, kind="stable")  # selected units first
    largest = int(np.argmax(np.abs(influence)))
    kept = np.arange(data.n) != order[largest]
    change = fit_two_step(data).lambda_coef - fit_two_step(data.take(kept)).lambda_coef
    assert change == pytest.approx(influence[largest], rel=0.1)
