"""Coverage among draws that are called identified: the committed rows and their table."""

import json
from dataclasses import fields
from itertools import product

import pytest

from heckesel.diagnostics.verdict import IDENTIFIED, WEAK
from reproduction.draws.regime_draws import ERRORS, RHOS
from reproduction.simulations import identified_coverage as simulation
from reproduction.x5_regimes import AUTO, Cell

ROWS = json.loads(simulation.RESULTS.read_text())
NAMES = [field.name for field in fields(Cell) if field.name != "method"]


@pytest.mark.parametrize("row", ROWS[::150] + ROWS[-2:], ids=lambda row: row["instrument"])
def test_a_committed_verdict_is_given_again(row):
    cell = Cell(**{name: row[name] for name in NAMES}, method=AUTO)
    found = simulation.verdict_row(cell)
    assert found["verdict"] == row["verdict"]
    assert found["rho_error"] == pytest.approx(row["rho_error"], abs=2e-4)


def test_every_combination_has_a_fit_that_is_called_identified():
    fitted = [row for row in ROWS if row["instrument"] == "moderate" and "coverage90" in row]
    assert {row["verdict"] for row in fitted} == {IDENTIFIED}
    assert {(row["errors"], row["rho"]) for row in fitted} == set(product(ERRORS, RHOS))


def test_the_table_counts_only_draws_that_are_called_identified():
    def row(verdict, coverage, errors="normal"):
        measures = dict.fromkeys(simulation.MEASURES, coverage)
        return {"instrument": "strong", "errors": errors, "verdict": verdict, **measures}

    rows = [row(IDENTIFIED, 0.8), row(IDENTIFIED, 0.9), row(WEAK, 0.1), row(WEAK, 0.2, "skewed")]
    lines = {(line["instrument"], line["errors"]): line for line in simulation.table(rows)}
    normal = lines["strong", "normal"]
    assert (normal["draws"], normal["identified"]) == (3, 2)
    assert normal["coverage90_against"] == pytest.approx(0.85)
    assert normal["standard_error"] == pytest.approx(0.05)
    assert "coverage90_against" not in lines["strong", "skewed"]
    assert lines["strong", "all"]["draws"] == 4


def test_intervals_of_auto_have_their_level_if_the_verdict_is_identified():
    """The promise of the page, within two standard errors of the mean over draws."""
    for line in simulation.table(ROWS):
        if line["instrument"] == "strong":
            assert line["identified"] >= 0.8 * line["draws"]
            assert 0.86 < line["coverage90_against"] < 0.94
        if line["instrument"] == "weak":
            assert line["identified"] <= 0.05 * line["draws"]
