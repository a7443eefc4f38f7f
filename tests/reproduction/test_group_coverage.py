"""Coverage without and with groups: the committed rows, and what the page says about them."""

import json
from itertools import product

import pytest

from reproduction.simulations import group_coverage as simulation

ROWS = json.loads(simulation.PATH.read_text())
ONES = {(row["method"], row["units"], row["groups"]): row for row in ROWS}


def test_every_setting_has_a_row():
    wanted = product(simulation.METHODS, simulation.UNITS, (False, True))
    assert list(ONES) == list(wanted)
    assert all(row["draws"] == simulation.METHODS[row["method"]][1] for row in ROWS)


def test_committed_draws_are_made_again():
    for number, row in enumerate(simulation.run_setting(("linear-ml", 50))):
        committed = ROWS[number]
        assert row.keys() == committed.keys()
        for name in ("coverage", "slope", "width"):
            assert row[name] == pytest.approx(committed[name], abs=0.002)


@pytest.mark.parametrize("method", simulation.METHODS)
def test_groups_keep_the_level_of_intervals_for_new_units(method):
    with_groups = ONES[method, 150, True]
    room = 3 * with_groups["coverage_error"]
    assert with_groups["coverage"] == pytest.approx(simulation.LEVEL, abs=room)
    for units in simulation.UNITS:
        without, grouped = ONES[method, units, False], ONES[method, units, True]
        assert grouped["coverage"] > without["coverage"]
        if method != "linear-ml":  # which learns no function that tells units apart
            assert without["coverage"] < simulation.LEVEL - 3 * without["coverage_error"]


def test_groups_keep_the_level_of_the_slope_of_a_column_of_units():
    for units in simulation.UNITS:
        assert ONES["linear-ml", units, False]["slope"] < 0.7
        # 20 draws: three standard errors of a share of .9
        assert ONES["linear-ml", units, True]["slope"] > 0.9 - 3 * (0.9 * 0.1 / 20) ** 0.5
