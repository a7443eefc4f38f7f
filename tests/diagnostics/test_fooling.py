"""Cases that look identified by their instrument alone. To add one, write a row of `CASES`."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import heckesel as hk
from heckesel.data import selection_data
from heckesel.diagnostics.row_evidence import linearity_test, repeated_rows
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
def test_wrong_errors_that_change_estimates_give_do_not_use(case):
    assert row_of(case, draws=4)["levels"].get(UNUSABLE, 0) >= 3


def test_a_valid_instrument_with_normal_errors_is_supported():
    """Tests at 1 in 1000 leave room for one draw of ten."""
    assert row_of(VALID, draws=10)["levels"].get(SUPPORTED, 0) >= 9


def test_wages_in_levels_give_do_not_use_with_a_reason():
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


def curved(name="the outcome lacks a curve and a product"):
    return CASES[name](np.random.default_rng(3))


@pytest.mark.parametrize("options", [{"errors": "shape"}, {"method": "two-step"}])
def test_other_estimators_are_tested_for_linearity_too(options):
    with pytest.warns(hk.IdentificationWarning, match="not linear in its columns"):
        fit = hk.heckman("y ~ x1 + x2", "~ x1 + x2 + z", curved(), **options)
    assert fit.identification.level != SUPPORTED
    assert fit.identification.evidence["linearity_p"] < 1e-10


def test_an_outcome_that_has_the_curve_and_the_product_is_linear_in_them():
    fit = hk.heckman("y ~ x1 * x2 + I(x1**2)", "~ x1 + x2 + z", curved())
    assert fit.identification.level == SUPPORTED


@pytest.mark.parametrize(
    ("kind", "strength"), [("normal", None), ("exponential", 1.0), ("sigma depends on x", 1.0)]
)
def test_the_test_of_linearity_keeps_its_level(strength, kind):
    """Whatever the errors: at 5 %, 80 draws, three Monte Carlo standard errors above it."""
    draws, n, rejected = 80, 600, 0
    for seed in range(draws):
        rng = np.random.default_rng([11, seed])
        x, (z, u, v) = rng.normal(size=(n, 2)), rng.normal(size=(3, n))
        e = 0.6 * u + 0.8 * v
        e = {"normal": e, "exponential": -norm.logsf(e)}.get(kind, e * np.exp(0.4 * x[:, 0]))
        s = 0.5 * x[:, 0] - 0.3 * x[:, 1] + (strength or 0.0) * z + u > 0
        w, names = (x, ("a", "b")) if strength is None else (np.column_stack([x, z]), tuple("abz"))
        y = np.where(s, x.sum(axis=1) + e, np.nan)
        data = selection_data(x, w, y, x_names=("a", "b"), w_names=names)
        rejected += linearity_test(data)["linearity_p"] < 0.05
    assert rejected / draws < 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


def test_outcomes_with_few_values_are_not_counted_as_copies():
    rng = np.random.default_rng(4)
    x, s = rng.integers(0, 3, size=(500, 1)) * 1.0, rng.random(500) < 0.7
    exact = np.where(s, rng.normal(size=500), np.nan)
    data = selection_data(x, x, exact, x_names=("x",), w_names=("x",))
    assert repeated_rows(data) == {}
    twice = data.take(np.repeat(np.arange(500), 2))
    assert repeated_rows(twice) == {"repeated_rows": int(s.sum())}
    assert repeated_rows(replace(data, y=np.round(exact))) == {}


def test_identify_has_a_caveat_for_exact_copies():
    table = curved("each row five times")
    found = hk.identify(table[["x1", "x2", "z"]], table["y"], instruments=["z"])
    assert found.level != SUPPORTED
    assert "are exact copies of other rows" in found.caveat


def test_a_two_step_rho_beyond_one_is_a_caveat():
    rng = np.random.default_rng(9)
    x, u = rng.normal(size=(2, 500))
    table = pd.DataFrame({"x": x, "y": np.where(0.3 + 0.5 * x + u > 0, 1 + x + u, np.nan)})
    with pytest.warns(hk.IdentificationWarning):
        fit = hk.heckman("y ~ x", "~ x", table, method="two-step")
    assert abs(fit.rho) > 1
    assert "which is not a possible correlation" in fit.identification.sentence
