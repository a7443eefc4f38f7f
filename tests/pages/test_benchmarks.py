"""The page of timings is made from the committed measurements; the benchmarks can be run."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT)


def test_the_committed_page_is_what_the_measurements_give():
    from benchmarks import page

    for path, text in page.made().items():
        assert (ROOT / path).read_text() == text


def test_a_peer_that_is_not_installed_is_marked_as_not_run(monkeypatch):
    from benchmarks import page, peers

    monkeypatch.delenv(peers.VARIABLE, raising=False)
    row = peers.statspai()
    assert "not_run" in row
    assert "| joint ML, StatsPAI | 10000 | not run |" in page.peers({"statspai": row})


def test_a_power_law_has_its_exponent():
    from benchmarks.growth import exponent

    sizes = [10, 100, 1000]
    assert exponent(sizes, [{"seconds": 0.3 * n**1.5} for n in sizes]) == 1.5


@pytest.mark.parametrize("contender", ["boosting", "default", "two processes, n_jobs=2"])
def test_a_contender_is_fitted_and_timed(contender):
    from benchmarks import default_fits

    run = default_fits.run_one(contender, 300, 5)
    assert run["seconds"] > 0
    assert run["peak_gb"] < 4


def test_a_run_on_a_device_is_a_table_without_the_parts_that_failed():
    from benchmarks import page

    grid = {"cells_per_method": 64, "first": {"seconds": 18.0}, "second": {"seconds": 11.0}}
    found = {"cores": 16, "networks": {"failed": 1}, "e1": grid, "default": {"seconds": 9.0}}
    text = page.device(found | {"boosting": {"failed": 1}})
    assert "64 cells each | 18.0 | 11.0 |" in text
    assert "default, 1,000,000 rows, on the CPU | 9.0 |" in text
    assert "Networks()" not in text
    assert "boosting" not in text


def test_the_figure_of_growth_has_a_point_per_fit_on_logarithmic_axes():
    from xml.etree import ElementTree

    from benchmarks import page

    runs = [{"seconds": 0.1}, {"seconds": 1.0}, {"seconds": 10.0}]
    found = {"ml, rows": {"sizes": [10, 100, 1000], "runs": runs}, "ml, columns": {}}
    points = [
        (float(each.get("cx")), float(each.get("cy")))
        for each in ElementTree.fromstring(page.growth_svg(found)).iter()
        if each.tag.endswith("circle")
    ]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x1 > x0
    assert y1 < y0


def test_the_written_files_hold_the_rows_asked_for(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    import pandas as pd

    from benchmarks import streamed

    monkeypatch.setattr(streamed, "GROUP_ROWS", 100)
    monkeypatch.setattr(streamed, "FILE_ROWS", 200)
    streamed.write_files(tmp_path / "rows", 450)
    frame = pd.read_parquet(tmp_path / "rows")
    assert frame.shape == (450, 12)
    assert len(list((tmp_path / "rows").iterdir())) == 3
    row = streamed.run_one("files", "two-step", tmp_path / "rows", 0)
    assert row["rows"] == 450
    assert np.isfinite(row["seconds"])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="VmHWM is Linux's")
def test_a_small_child_of_a_large_parent_is_measured_as_small():
    held = np.ones(60_000_000)  # 480 MB
    command = [sys.executable, "-c", "from benchmarks.memory import peak_bytes as p; print(p())"]
    printed = subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout
    assert int(printed) < 100e6 < held.nbytes


def test_every_chunk_of_the_paper_goes_to_processes_that_can_run_it():
    from benchmarks.gpu_grid import PAPER, pool_of
    from reproduction import load

    assert set(PAPER) == {"e0", "e1", "warm-up", "e2", "e4", "e4-timm"}
    pools = {}
    for name in ("e0", "e1", "warm-up", "e2", "e4-timm"):  # E4's chunks depend on its data
        module = load(name)
        for chunk in dict.fromkeys(map(module.chunk_of, module.cells())):
            pools.setdefault(pool_of(name, chunk), []).append((name, chunk))
    assert pools["gp"] == [("e1", "gp"), ("e2", "california gp"), ("e2", "wine gp")]
    assert ("e1", "oracle") in pools["classic"]
    assert len(pools["networks"]) == 6 + 6 + 2 * 7
    assert pool_of("e4", "by_paper_2022, Machine Translation") == "classic"


def test_the_paper_runs_its_experiments_at_once_and_says_how_long_they_took(
    tmp_path, monkeypatch, capsys
):
    from benchmarks import gpu_grid, page

    monkeypatch.setattr(gpu_grid, "PAPER", ("e0",))
    monkeypatch.setenv("GRID_WORKERS", "1")
    gpu_grid.main(str(tmp_path), "paper")
    found = json.loads((tmp_path / "gpu_grid.json").read_text())
    assert found["e0"]["rows"] == 10
    assert found["failed"] == 0
    assert found["seconds"] >= found["e0"]["seconds"]
    text = page.whole_paper(found)
    assert "| e0 | 10 | 0 |" in text
    assert f"| total | 10 | 0 | {found['seconds']} |" in text
