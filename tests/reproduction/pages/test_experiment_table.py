"""The table that `heckesel reproduce --quick` prints has the numbers of its rows."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from reproduction import e1_controlled
from reproduction.command import reproduce
from reproduction.pages.experiment_table import experiment_table
from reproduction.result_files import read_rows, results_path

ROOT = Path(__file__).parents[3]


def committed(name):
    return read_rows(results_path(name, ROOT / "results"))


def test_a_line_has_the_means_over_draws():
    rows = [row for row in committed("e1") if row["cell"]["seed"] < 3]
    table = pd.DataFrame([row["cell"] | row["metrics"] for row in rows])
    means = table.groupby(["rho", "alpha", "method"]).mean()
    lines = experiment_table("e1", rows).splitlines()
    assert lines[0].startswith("Means over 3 draws per line. Selected-against region")
    assert lines[1].split() == ["rho", "alpha", "method", "bias", "ECE", "covered", "CRPS"]
    assert len(lines) == 2 + len(means) + 1
    for line in lines[2:-1]:
        rho, alpha, method, bias, ece, covered, crps = line.split()
        expected = means.loc[(float(rho), float(alpha), method)]
        found = [float(bias), float(ece), float(covered.rstrip("%")) / 100, float(crps)]
        metrics = [f"{each}_against" for each in ("bias_f0", "ece", "coverage90", "crps")]
        # half of the last printed place, which every column has three of
        np.testing.assert_allclose(found, expected[metrics], rtol=0, atol=0.000501)


def test_a_quick_run_shows_its_table(tmp_path):
    """Rows that are there are kept, so that nothing is fitted here."""
    (tmp_path / "quick").mkdir()
    quick = {json.dumps(asdict(cell), sort_keys=True) for cell in e1_controlled.cells(quick=True)}
    path = results_path("e1", ROOT / "results")
    rows = [row for row in read_rows(path) if json.dumps(row["cell"], sort_keys=True) in quick]
    content = json.loads(path.read_text()) | {"rows": rows}
    (tmp_path / "quick" / path.name).write_text(json.dumps(content))
    shown = CliRunner().invoke(reproduce, ["e1", "--quick", "--out", str(tmp_path)])
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[1].startswith("e1: 32 of 32 cells done, in ")
    assert lines[3].split()[:3] == ["rho", "alpha", "method"]
    assert lines[-2] == "The whole grid: paper/scoreboard.md"
