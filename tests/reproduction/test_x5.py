"""X5: what the draws are drawn from, the settings of the grid, and one chunk end to end."""

from collections import Counter
from dataclasses import asdict, astuple, replace

import numpy as np
import pytest
from scipy.stats import skew, spearmanr

from reproduction import regime_draws as draws
from reproduction import x5_regimes as x5
from reproduction.pages.beyond_paper import x5_page
from reproduction.pages.rows import Results

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


def test_a_chunk_has_draws_of_one_size_and_method():
    chunks = {}
    for cell in x5.cells():
        chunks.setdefault(x5.chunk_of(cell), []).append(cell)
    for cells in chunks.values():
        assert len({(cell.n, cell.instrument, cell.method) for cell in cells}) == 1


@pytest.mark.parametrize("method", [x5.TWO_STEP, x5.NAIVE])
def test_a_chunk_runs_end_to_end(method, monkeypatch):
    monkeypatch.setattr(x5, "NETWORK", replace(x5.NETWORK, n_members=5, epochs=10, hidden=(8,)))
    cells = [x5.Cell("none", "skewed", 0.9, "linear", "linear", 500, 0, method)]
    (row,) = x5.run_chunk(cells, "cpu")
    assert all(np.isfinite(value) for value in row.values())
    assert {"coverage90_against", "crps", "bias_f0_against", "seconds"} <= set(row)


GOOD = {
    "coverage90_against": 0.9,
    "width90_against": 2.0,
    "interval_score90_against": 2.5,
    "crps_against": 0.3,
    "bias_f0_against": 0.01,
    "crps": 0.3,
    "seconds": 1.0,
    "supported": 1.0,
}


def results(where=lambda cell: True, **changed):
    """The same numbers in every cell; others for auto in the cells that agree."""
    rows = []
    for cell in x5.cells():
        own = changed if cell.method == x5.AUTO and where(cell) else {}
        rows.append(asdict(cell) | GOOD | own)
        if cell.method == x5.AUTO:
            rows.append(asdict(cell) | GOOD | {"method": x5_page.OLD})
    return Results(x5=rows)


def kinds(found):
    return [row.kind for row in x5_page.targets(found) if row.method == "auto"]


def test_equal_methods_meet_every_target():
    assert kinds(results()) == ["met"] * 5
    assert set(kinds(Results())) == {"not run"}


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"coverage90_against": 0.81, "where": lambda c: c.errors == "normal"}, 0),
        ({"crps_against": 0.32}, 1),
        ({"supported": 0.8, "where": lambda c: abs(c.rho) > 0.4}, 2),
        ({"coverage90_against": 0.99, "where": lambda c: c.instrument == "weak"}, 3),
        ({"coverage90_against": 0.8, "where": lambda c: c.instrument == "none"}, 4),
    ],
)
def test_each_target_is_missed_where_its_rows_say_so(changed, place):
    missed = [at for at, kind in enumerate(kinds(results(**changed))) if kind == "missed"]
    assert missed == [place]


def test_a_few_bad_regimes_are_allowed_and_noise_too():
    regimes = list(dict.fromkeys((s.errors, s.rho) for s in x5.settings()))
    two = results(lambda c: (c.errors, c.rho) in regimes[:2], coverage90_against=0.8)
    three = results(lambda c: (c.errors, c.rho) in regimes[:3], coverage90_against=0.8)
    assert (kinds(two)[0], kinds(three)[0]) == ("met", "missed")
    noisy = results(coverage90_against=0.83)
    for row in noisy.x5:
        row["coverage90_against"] += 0.1 * (-1) ** row["seed"] * (row["method"] == x5.AUTO)
    assert kinds(noisy)[0] == "met"


def test_coverage_is_averaged_over_the_prior_of_rho():
    """Bad at |rho| = .9 only, where the prior has little weight."""
    bad = results(lambda c: abs(c.rho) == 0.9, coverage90_against=0.0)
    average = x5_page.averaged_coverage(bad, x5.AUTO, "none")
    assert (average > 0.85).all()
    assert (average < 0.9).all()
