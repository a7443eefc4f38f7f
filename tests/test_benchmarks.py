"""The page of timings is made from the committed measurements; the benchmarks can be run."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT)


def test_the_committed_page_is_what_the_measurements_give():
    from benchmarks import page

    assert (ROOT / "docs" / "speed.md").read_text() == page.speed_md()


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


def test_frozen_rows_say_that_they_are():
    from benchmarks import page

    frozen = json.loads((ROOT / "benchmarks" / "frozen.json").read_text())
    text = page.not_in_this_run(frozen)
    assert "not in this run" in text
    assert all(f"| {row['who']} |" in text for row in frozen["rows"])
