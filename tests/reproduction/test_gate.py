"""A-E0: the estimators reproduce published digits before any experiment may run."""

import json

import numpy as np
import pytest
import statsmodels.api as sm
from click.testing import CliRunner
from scipy.special import log_ndtr

import heckesel as hk
from reproduction import e0_gate
from reproduction.command import reproduce

pytestmark = pytest.mark.arithmetic


@pytest.mark.parametrize("cell", e0_gate.cells(), ids=lambda c: f"{c.data}-{c.method}")
def test_every_cell_of_the_gate_passes(cell):
    row = e0_gate.run_cell(cell)
    assert row["passed"] == 1.0, row


def test_ml_meets_the_full_precision_values_far_below_the_gate():
    row = e0_gate.run_cell(e0_gate.Cell("rand_hie", "ml"))
    assert row["largest_full_deviation"] < 1e-7
    assert row["loglik"] == pytest.approx(-10170.1104405, abs=e0_gate.LOGLIK_TOLERANCE)
    assert row["macro_deviation"] == pytest.approx(5.0e-7, abs=0.05e-7)


def test_a_two_step_composed_from_statsmodels_is_matched():
    """Greene's Mroz specification: Probit, Mills ratio, OLS, each by statsmodels."""
    df = hk.datasets.load_mroz()
    df["kids"] = (df.kidslt6 + df.kidsge6 > 0).astype(float)
    w = sm.add_constant(np.column_stack([df.age, df.age**2, df.faminc / 1e4, df.kids, df.educ]))
    probit = sm.Probit(df.inlf.to_numpy(), w).fit(disp=0, tol=1e-14, maxiter=200)
    index = w @ probit.params
    mills = np.exp(-0.5 * index**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(index))
    works = df.inlf.to_numpy() == 1
    x = sm.add_constant(np.column_stack([df.exper, df.exper**2, df.educ, df.city, mills]))
    ols = sm.OLS(df.wage[works].to_numpy(), x[works]).fit()
    fit = hk.heckman(
        "wage ~ exper + I(exper**2) + educ + city",
        "~ age + I(age**2) + I(faminc/1e4) + kids + educ",
        df,
        method="two-step",
    )
    np.testing.assert_allclose(fit.params["select"], probit.params, rtol=1e-8, atol=1e-8)
    ours = [*fit.params["outcome"], fit.params["mills", "lambda"]]
    np.testing.assert_allclose(ours, ols.params, rtol=1e-8, atol=1e-8)


def test_the_command_writes_the_results_and_the_committed_file_agrees(tmp_path):
    run = CliRunner().invoke(reproduce, ["e0", "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "gate: 10 of 10 cells passed" in run.output
    fresh = json.loads((tmp_path / "e0_gate.json").read_text())
    assert fresh["schema"] == 1
    assert len(fresh["data"]) == 2
    assert all(row["metrics"]["passed"] == 1.0 for row in fresh["rows"])
    assert (tmp_path / "e0_gate.times.json").exists()
    assert not list(tmp_path.glob("*.part"))


def test_nothing_runs_unless_the_gate_passes(tmp_path, monkeypatch):
    def broken(cell):
        raise RuntimeError("no luck")

    monkeypatch.setattr(e0_gate, "run_cell", broken)
    run = CliRunner().invoke(reproduce, ["e1", "--quick", "--out", str(tmp_path)])
    assert isinstance(run.exception, hk.HeckeselError)
    assert "nothing else is run" in str(run.exception)
    assert not list(tmp_path.iterdir())
