"""What a sample costs `auto` on long tables: the committed rows and their table."""

import json
from dataclasses import replace

import numpy as np
import pytest

from heckesel.methods.parts import auto_sample
from reproduction import x5_regimes as x5
from reproduction.simulations import long_tables as simulation

FITS = ("sampled", "whole")
ROWS = json.loads(simulation.RESULTS.read_text())


def test_every_draw_has_a_committed_row():
    cells = [(cell.instrument, cell.errors, cell.outcome, cell.n) for cell in simulation.cells()]
    assert [
        tuple(row[n] for n in ("instrument", "errors", "outcome", "n")) for row in ROWS
    ] == cells


def test_the_table_compares_both_fits_of_the_same_draws():
    measures = (*simulation.MEASURES, "log_density")
    pairs = [(0.88, 0.90), (0.92, 0.90), (0.93, 0.90)]
    rows = [
        {f"{fit}_{name}": value for name in measures for fit, value in zip(FITS, pair, strict=True)}
        for pair in pairs
    ]
    line = simulation.table(rows)[0]
    assert (line["sampled"], line["whole"], line["difference"]) == (0.91, 0.9, 0.01)
    error = np.std([-0.02, 0.02, 0.03], ddof=1) / np.sqrt(3)
    assert line["standard_error"] == pytest.approx(error, abs=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_one_fit_samples_and_the_other_uses_all_rows(monkeypatch):
    monkeypatch.setattr(auto_sample, "MOST_UNITS", 200)
    monkeypatch.setattr(auto_sample, "FEWEST_OF_KIND", 50)
    monkeypatch.setattr(x5, "NETWORK", replace(x5.NETWORK, epochs=5))
    drawn = x5.problem(replace(simulation.cells()[0], n=500))
    fits = [each(drawn.data, 0, "cpu") for each in (simulation._sampled, simulation._whole)]
    said = ["A random sample of" in fit.info.explanation for fit in fits]
    assert said == [True, False]
