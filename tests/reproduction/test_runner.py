"""The runner: chunks, resumption after a kill, workers, and a Dask cluster."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

import heckesel as hk
from reproduction import EXPERIMENTS
from reproduction.command import AT_ONCE, overlapping
from reproduction.runner import failed, on_cluster, run

SMALL = "tests.reproduction.small_experiment"
PROGRAM = (
    "import sys; from pathlib import Path; from reproduction import EXPERIMENTS; "
    f"EXPERIMENTS['small'] = '{SMALL}'; from reproduction.runner import run; "
    "run('small', Path(sys.argv[1]))"
)


@pytest.fixture(autouse=True)
def _small_experiment(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)


def bytes_of(folder):
    return (folder / "small_experiment.json").read_bytes()


@pytest.fixture
def whole(tmp_path):
    run("small", tmp_path / "whole")
    return bytes_of(tmp_path / "whole")


def test_rows_are_sorted_and_failures_recorded(tmp_path):
    rows = run("small", tmp_path)
    assert len(rows) == 12
    assert [row["cell"]["number"] for row in failed(rows)] == [7]
    assert failed(rows)[0]["error"] == "ValueError: seven is unlucky"
    content = json.loads(bytes_of(tmp_path))
    assert content["schema"] == 1
    assert len(content["rows"]) == 12
    times = json.loads((tmp_path / "small_experiment.times.json").read_text())
    assert set(times) == {f"chunk {j}" for j in range(6)}


def test_a_second_run_computes_only_what_is_missing(tmp_path, whole):
    run("small", tmp_path)
    path = tmp_path / "small_experiment.json"
    content = json.loads(path.read_text())
    content["rows"] = [row for row in content["rows"] if row["cell"]["number"] not in (2, 3, 9)]
    path.write_text(json.dumps(content))
    said = []
    run("small", tmp_path, report=said.append)
    assert sorted(line.split(":")[0] for line in said) == ["small chunk 1", "small chunk 4"]
    assert bytes_of(tmp_path) == whole


def test_ten_kills_at_random_moments_leave_the_same_bytes(tmp_path, whole):
    rng = random.Random(5)
    interrupted = 0
    for trial in range(10):
        folder = tmp_path / f"trial{trial}"
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)])
        deadline = time.monotonic() + 30
        while not (folder / "small_experiment.json").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.15))
        interrupted += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        run("small", folder)
        assert bytes_of(folder) == whole
    assert interrupted >= 5  # otherwise nothing was tested


def test_quick_rows_are_kept_apart(tmp_path):
    run("small", tmp_path, quick=True)
    assert not (tmp_path / "small_experiment.json").exists()
    quick = json.loads((tmp_path / "quick" / "small_experiment.json").read_text())
    assert len(quick["rows"]) == 4


def test_workers_give_the_same_bytes(tmp_path, whole, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=_register) as executor:
        run("small", tmp_path, executor=executor)
    assert bytes_of(tmp_path) == whole


def _register():
    EXPERIMENTS["small"] = SMALL


def test_a_dask_cluster_gives_the_same_bytes(tmp_path, whole):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        run("small", tmp_path, executor=on_cluster(client))
    assert bytes_of(tmp_path) == whole


@pytest.fixture
def processes(monkeypatch):
    """Two workers with nannies, which start a new worker for each that dies."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("SECONDS_A_CHUNK", "0.2")

    class Registered(distributed.WorkerPlugin):
        def setup(self, worker):
            _register()

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(Registered())  # also with workers that start later
        yield client


def test_a_worker_killed_in_the_middle_of_the_grid_loses_nothing(tmp_path, whole, processes):
    said, victims = [], []

    def report(line):
        said.append(line)
        if len(said) in (1, 3):  # both workers have a chunk in their hands
            victims.append(next(iter(processes.run(os.getpid).values())))
            os.kill(victims[-1], signal.SIGKILL)

    rows = run("small", tmp_path, executor=on_cluster(processes), report=report)
    assert bytes_of(tmp_path) == whole
    assert len(rows) == 12
    assert len(said) == 6  # no chunk is written twice
    assert len(set(victims)) == 2


class LosesOne(ThreadPoolExecutor):
    """An executor that says of one chunk that its workers died."""

    def submit(self, function, name, chunk, *rest):
        if chunk == "chunk 2":
            return super().submit(self.die)
        return super().submit(function, name, chunk, *rest)

    def die(self):
        raise RuntimeError("4 workers died")


def test_a_chunk_whose_workers_all_die_is_not_recorded_and_stops_no_other(tmp_path, whole):
    with (
        LosesOne(1) as executor,
        pytest.raises(hk.HeckeselError, match=r"1 of 6 chunks .* 'chunk 2' .* 4 workers died"),
    ):
        run("small", tmp_path, executor=executor)
    assert len(json.loads(bytes_of(tmp_path))["rows"]) == 10
    said = []
    run("small", tmp_path, report=said.append)
    assert len(said) == 1
    assert bytes_of(tmp_path) == whole


def test_an_experiment_begins_while_the_one_before_it_is_at_work():
    begun, seen = threading.Event(), []
    overlapping([lambda: seen.append(begun.wait(30)), begun.set])
    assert seen == [True]


def test_after_a_failure_no_further_experiment_begins():
    seen = []

    def fail():
        raise hk.HeckeselError("3 of 12 cells of small failed")

    with pytest.raises(hk.HeckeselError, match="3 of 12"):
        overlapping([fail, *(partial(seen.append, number) for number in range(1, 9))])
    assert sorted(seen) == list(range(1, AT_ONCE))  # those begun before it was known
