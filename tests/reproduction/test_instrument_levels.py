"""Tests of instruments: the draws are what they say, and its page shows what its rows hold."""

import numpy as np
import pytest

from reproduction import instrument_levels as instruments
from reproduction.pages.beyond_paper import instruments_page
from reproduction.pages.rows import Results, flat


def cell(**changes):
    design = {"task": "size", "instrument": "continuous", "strength": "strong"}
    design |= {"errors": "normal", "rho": 0.5, "block": 0}
    return instruments.Cell(**design | changes)


@pytest.mark.parametrize("instrument", ["binary", "continuous", "two"])
def test_instruments_have_unit_variance_and_the_stated_effect(instrument):
    of = cell(instrument=instrument)
    valid, invalid = (instruments.draw_data(of, [0, 0, 0], effect) for effect in (0.0, 0.3))
    z = valid.w[:, 2:]
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.1)  # three Monte Carlo errors
    added = (invalid.y - valid.y)[valid.s]
    np.testing.assert_allclose(added, 0.3 * np.std(valid.y[valid.s]) * z[valid.s, 0])


def test_designs_are_distinct_and_have_two_thousand_draws():
    cells = instruments.cells()
    assert len({instruments.chunk_of(each) for each in cells}) == len(cells)
    size = [each for each in cells if each.task == "size"]
    assert len(size) * instruments.DRAWS == 33 * 2000


@pytest.mark.parametrize("instrument", ["binary", "two"])
def test_a_cell_counts_its_rejections(instrument, monkeypatch):
    monkeypatch.setattr(instruments, "DRAWS", 4)
    monkeypatch.setattr(instruments, "LEVEL", 2.0)  # of two p-values, the smaller one is doubled
    (row,) = instruments.run_chunk([cell(instrument=instrument)])
    assert row["rejected"] == 1.0
    assert ("overidentification" in row) == (instrument == "two")


def test_the_page_averages_blocks_and_takes_the_worst_design():
    shares = {("binary", 0): 0.02, ("binary", 1): 0.06, ("two", 0): 0.08}
    rows = [
        {"cell": vars(cell(instrument=name, block=block)), "metrics": {"rejected": share}}
        for (name, block), share in shares.items()
    ]
    results = Results(instruments=flat(rows))
    assert sorted(instruments_page.sizes(results)) == pytest.approx([0.04, 0.08])
    average, worst = instruments_page.targets(results)
    assert average.kind == "met"
    assert worst.verdict == "missed by 1.0 points"
    assert "| two instruments | normal |  | 8.0 % |  |" in instruments_page.parts(results)["sizes"]
