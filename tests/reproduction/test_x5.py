"""X5: what the draws are drawn from, the settings of the grid, and one chunk end to end."""

import subprocess
import sys
from collections import Counter
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kurtosis, skew, spearmanr

from heckesel.fit_info import AutoInfo, Candidate
from reproduction import x5_regimes as x5
from reproduction.draws import regime_draws as draws

ROOT = Path(__file__).parents[2]
MANY = 200_000


def errors(kind, rho=0.5):
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(MANY, 4)), np.zeros((MANY, 2))])
    return x, *draws.draw_errors(kind, rho, x, rng)


@pytest.mark.parametrize(
    ("kind", "correlation"),
    [
        ("normal", 0.5),
        ("heavy-tailed", 0.5),
        # E of the factor over its root mean square: 1.2 / sqrt(1.8)
        ("mixture", 0.5 * 1.2 / np.sqrt(1.8)),
        # E exp(v) over the root of E exp(2 v), where v has variance .4^2 + .2^2
        ("varying", 0.5 * np.exp(-0.1)),
    ],
)
def test_the_errors_have_the_correlation_and_mean_they_should(kind, correlation):
    _, u, e = errors(kind)
    assert np.corrcoef(u, e)[0, 1] == pytest.approx(correlation, abs=0.02)
    assert [u.mean(), e.mean()] == pytest.approx([0, 0], abs=0.02)
    assert u.var() == pytest.approx(1, abs=0.05)
    if kind != "varying":
        assert e.var() == pytest.approx(1, abs=0.05)


def test_skewed_errors_are_chi_squared_with_a_normal_copula():
    _, u, e = errors("skewed")
    assert skew(e) == pytest.approx(np.sqrt(8 / 3), abs=0.05)
    assert e.min() > -3 / np.sqrt(6)
    assert [e.mean(), e.var()] == pytest.approx([0, 1], abs=0.03)
    # the rank correlation of a normal copula
    assert spearmanr(u, e)[0] == pytest.approx(6 / np.pi * np.arcsin(0.25), abs=0.01)


def test_outliers_are_those_of_the_outcome_and_heavy_tails_are_common():
    _, u, e = errors("mixture")
    assert kurtosis(e) == pytest.approx(3 * (0.9 + 0.1 * 81) / 1.8**2 - 3, rel=0.1)
    assert kurtosis(u) == pytest.approx(0, abs=0.05)
    _, u, e = errors("heavy-tailed", rho=0.0)
    assert np.corrcoef(abs(u), abs(e))[0, 1] > 0.1


def test_sigma_varies_with_two_columns():
    x, _, e = errors("varying")
    slopes = np.linalg.lstsq(np.column_stack([np.ones(MANY), x[:, :4]]), np.log(e**2) / 2)[0]
    assert slopes[1:] == pytest.approx([0.4, -0.2, 0, 0], abs=0.02)


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed"])
@pytest.mark.parametrize("instrument", draws.INSTRUMENTS)
def test_the_probability_of_selection_given_x_is_that_of_a_simulation(kind, instrument):
    _, u, _ = errors(kind)
    z = np.random.default_rng(2).normal(size=MANY)
    alpha, index = draws.INSTRUMENTS[instrument], np.array([-2.0, -0.4, 0.0, 1.1])
    simulated = [(at + alpha * z + u > 0).mean() for at in index]
    assert draws.propensity(index, alpha, kind) == pytest.approx(simulated, abs=0.005)


@pytest.mark.parametrize("setting", x5.settings()[::23])
def test_a_draw_has_a_pool_and_a_region_that_is_selected_against(setting):
    drawn = draws.draw_regime(*astuple(setting), seed=3)
    assert drawn.data.n == setting.n
    assert drawn.data.instruments == (() if setting.instrument == "none" else ("z",))
    assert len(drawn.x) == len(drawn.y) == draws.TEST
    assert 0.35 < drawn.data.s.mean() < 0.65
    assert drawn.propensity_x.mean() == pytest.approx(drawn.data.s.mean(), abs=0.08)
    assert 0.15 < (drawn.propensity_x < 0.3).mean() < 0.45
    assert (drawn.y - drawn.f0).mean() == pytest.approx(0, abs=0.06)
    other = draws.draw_regime(*astuple(setting), seed=4)
    assert not np.isclose(drawn.x, other.x).any(axis=0)[:4].any()


def test_the_settings_are_stratified_and_the_fresh_seeds_are_not_those_of_the_design():
    settings = x5.settings()
    assert len(set(settings)) == len(settings) == x5.SETTINGS
    regimes = Counter((s.instrument, s.errors, s.rho) for s in settings)
    assert len(regimes) == 75
    assert set(regimes.values()) == {2, 3}
    assert len({(s.instrument, s.errors, s.rho, s.n) for s in settings}) == 150
    for name in ("outcome", "selection"):
        shares = Counter(getattr(s, name) for s in settings).values()
        assert min(shares) > 0.6 * max(shares)
    fresh, design = x5.cells(), x5.design_cells()
    assert len(set(fresh)) == len(fresh) == 200 * 8 * 3
    assert len(design) == 200 * 2 * 3
    assert not {cell.seed for cell in fresh} & {cell.seed for cell in design}


def test_chunks_share_networks_and_number_of_units():
    chunks = {}
    for cell in x5.cells():
        chunks.setdefault(x5.chunk_of(cell), []).append(cell)
    for cells in chunks.values():
        assert len({(cell.n, cell.instrument) for cell in cells}) == 1
        assert {cell.method for cell in cells} in ({x5.AUTO, x5.TWO_STEP}, {x5.NAIVE})


def test_seeds_and_methods_can_be_restricted(monkeypatch):
    monkeypatch.setenv("X5_SEEDS", "3")
    monkeypatch.setenv("X5_METHODS", "heckman_auto,deep_ensemble")
    cells = x5.cells()
    assert len(cells) == 200 * 3 * 2
    assert {cell.seed for cell in cells} == {100, 101, 102}
    monkeypatch.setenv("X5_SEEDS", "design")
    monkeypatch.delenv("X5_METHODS")
    assert x5.cells() == x5.design_cells()
    assert {cell.seed for cell in x5.cells(quick=True)} == {0}


@pytest.mark.parametrize("methods", [(x5.AUTO, x5.TWO_STEP), (x5.NAIVE,)])
def test_a_chunk_runs_end_to_end(methods, monkeypatch):
    monkeypatch.setattr(x5, "NETWORK", replace(x5.NETWORK, n_members=5, epochs=10, hidden=(8,)))
    setting = ("none", "skewed", 0.9, "linear", "linear", 500)
    cells = [x5.Cell(*setting, 0, method) for method in methods]
    for cell, row in zip(cells, x5.run_chunk(cells, "cpu"), strict=True):
        assert all(np.isfinite(value) for value in row.values())
        assert {"coverage90_against", "crps", "bias_f0_against", "seconds"} <= set(row)
        assert ("rho_hat" in row) == (cell.method != x5.NAIVE)
        assert ("weight_shape" in row) == (cell.method == x5.AUTO)


def test_the_estimate_of_rho_is_the_mean_of_the_posterior():
    class Fit:
        info = AutoInfo(
            rho=[0.0, 0.8],
            sigma=[1.0, 1.0],
            weight=[0.25, 0.75],
            candidates=[
                Candidate("splines", "likelihood", "shape and scale", 0.6, 1.0, -9.0, 0.0, 0.0)
            ],
            rho_interval=[0.0, 0.8],
            member_rho=[0.0, 0.8],
            variance_factor=1.0,
            surfaces=[],
            explanation="",
        )

        def predict(self, x):
            from heckesel import Predictive

            return Predictive.normal(np.zeros(len(x)), 0.0, 1.0)

    drawn = draws.draw_regime("weak", "normal", 0.5, "smooth", "quadratic", 500, seed=0)
    row = x5.row(drawn, Fit(), 2.0)
    assert row["rho_hat"] == pytest.approx(0.6)
    assert row["weight_shape_and_scale"] == 1.0
    against = drawn.propensity_x < 0.3
    assert row["n_against"] == against.sum()
    assert row["bias_f0_against"] == pytest.approx(-drawn.f0[against].mean())


def test_rows_need_neither_pandas_nor_scikit_learn():
    """A machine with a card may have neither, nor threadpoolctl, which the runner can use."""
    code = (
        "import sys\n"
        "for name in ('pandas', 'sklearn', 'threadpoolctl', 'click'): sys.modules[name] = None\n"
        "from dataclasses import replace\n"
        "from reproduction import runner, x5_regimes as x5\n"
        "import benchmarks.gpu_grid\n"
        "x5.NETWORK = replace(x5.NETWORK, n_members=2, epochs=2, hidden=(4,))\n"
        "cell = x5.cells(quick=True)[-1]\n"
        "rows, _ = runner.run_chunk('x5', x5.chunk_of(cell), True, 'cpu', 1)\n"
        "print(rows[0]['crps'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0
