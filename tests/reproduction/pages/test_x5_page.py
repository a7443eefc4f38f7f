"""The page of X5 on made-up rows: pooling, the allowance, and what has not been run."""

from dataclasses import asdict

import numpy as np
import pytest

from reproduction import x5_regimes as x5
from reproduction.pages.beyond_paper import chapter, x5_page
from reproduction.pages.beyond_paper.targets import MET, MISSED, NOT_RUN, SHOWN
from reproduction.pages.rows import Results

GOOD = {
    "coverage90_against": 0.9,
    "width90_against": 2.0,
    "interval_score90_against": 2.5,
    "crps_against": 0.3,
    "bias_f0_against": 0.01,
    "crps": 0.3,
    "seconds": 1.0,
}


def rows(change=lambda cell: {}, cells=None):
    """The same numbers in every cell, but for what `change` says."""
    cells = x5.cells() if cells is None else cells
    return [asdict(cell) | GOOD | change(cell) for cell in cells]


def auto(**changed):
    """Numbers of auto in the cells that agree; without "where", in all."""
    where = changed.pop("where", lambda cell: True)
    return Results(x5=rows(lambda c: changed if c.method == x5.AUTO and where(c) else {}))


def kinds(results, method="auto"):
    return {row.target: row.kind for row in x5_page.targets(results) if row.method == method}


def kind(results, *words):
    """The verdict on the one target of auto with these words."""
    (found,) = [k for target, k in kinds(results).items() if all(word in target for word in words)]
    return found


def test_equal_methods_meet_every_target_and_only_auto_has_targets():
    assert set(kinds(auto()).values()) == {MET}
    assert len(kinds(auto())) == 7
    assert set(kinds(auto(), "two-step").values()) == {SHOWN}


def test_no_target_is_met_without_rows():
    none = x5_page.targets(Results())
    assert {row.kind for row in none} == {NOT_RUN}
    assert chapter("x5", Results()) == ""
    only_auto = Results(x5=rows(cells=[c for c in x5.cells() if c.method == x5.AUTO]))
    assert kind(only_auto, "strong", "coverage") == MET
    assert kind(only_auto, "no instrument", "ρ = 0") == NOT_RUN
    assert kind(only_auto, "with an instrument") == NOT_RUN
    assert kind(only_auto, "best single") == NOT_RUN
    assert "| strong instrument | auto |" in chapter("x5", only_auto)


def test_seeds_of_the_design_do_not_count_for_targets():
    assert {row.kind for row in x5_page.targets(Results(x5=rows(cells=x5.design_cells())))} == {
        NOT_RUN
    }


@pytest.mark.parametrize(
    ("instrument", "bad", "verdict"),
    [("strong", 0, MET), ("strong", 1, MISSED), ("weak", 2, MET), ("weak", 3, MISSED)],
)
def test_the_share_of_regimes_decides(instrument, bad, verdict):
    regimes = list(dict.fromkeys((s.errors, s.rho) for s in x5.settings()))[:bad]
    low = auto(
        coverage90_against=0.8,
        where=lambda c: c.instrument == instrument and (c.errors, c.rho) in regimes,
    )
    assert kind(low, f"{instrument} instrument", "coverage") == verdict


def test_too_wide_intervals_are_allowed_without_an_instrument_only():
    wide = auto(coverage90_against=0.99)
    assert kind(wide, "no instrument", "coverage") == MET
    assert kind(wide, "strong", "coverage") == kind(wide, "weak", "coverage") == MISSED


def test_scores_are_compared_with_the_naive_ensemble():
    zero = auto(interval_score90_against=2.7, where=lambda cell: cell.rho == 0)
    assert kind(zero, "no instrument", "ρ = 0") == MET
    zero = auto(interval_score90_against=2.8, where=lambda cell: cell.rho == 0)
    assert kind(zero, "no instrument", "ρ = 0") == MISSED
    assert kind(zero, "no instrument", "≥ .5") == MET
    far = auto(interval_score90_against=2.51, where=lambda cell: cell.rho != 0)
    assert kind(far, "no instrument", "≥ .5") == MISSED
    assert kind(auto(crps=0.305), "with an instrument") == MET
    one = auto(crps=0.307, where=lambda c: (c.instrument, c.errors, c.rho) == ("weak", "normal", 0))
    assert kind(one, "with an instrument") == MISSED
    assert kind(auto(crps=0.4, where=lambda c: c.instrument == "none"), "with an") == MET
    assert kind(auto(crps_against=0.307), "best single") == MISSED


def test_a_regime_has_an_allowance_of_two_standard_errors_over_seeds():
    """Coverage .83 on average: missed if every seed says so, allowed if seeds differ enough."""
    same = auto(coverage90_against=0.83)
    assert kind(same, "strong", "coverage") == MISSED
    made = same.x5
    for row in made:
        row["coverage90_against"] += 0.1 * (-1) ** row["seed"] * (row["method"] == x5.AUTO)
    assert kind(Results(x5=made), "strong", "coverage") == MET


def test_settings_differ_without_making_the_mean_uncertain():
    found = x5_page.pooled([np.array([0.8, 0.8]), np.array([0.9, 0.9])])
    assert (found.mean, found.error) == (pytest.approx(0.85), 0.0)
    found = x5_page.pooled([np.array([0.8, 0.9]), np.array([0.7, 0.9])])
    # variances .005 and .02 of one seed, two seeds each, two settings
    assert found.error == pytest.approx(np.sqrt((0.005 + 0.02) / 2) / 2)


def test_the_tables_show_every_method_in_every_regime():
    text = chapter("x5", auto(coverage90_against=0.876))
    by_regime = text.partition("### By regime")[2].strip().splitlines()
    assert len(by_regime) == 2 + 75
    line = "| none | skewed | -.5 | 87.6 % | 90.0 % | 90.0 % | 2.500 | 2.500 | 2.500 |"
    assert any(each.startswith(line) for each in by_regime)
