"""The runner: chunks, resumption after a kill, workers, and a Dask cluster."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

import heckesel as hk
from heckesel.cli import run_command
from reproduction import EXPERIMENTS
from reproduction.command import reproduce
from reproduction.pages import check
from reproduction.runner import failed, on_cluster, run

MAIN = partial(run_command, reproduce, "python -m reproduction")
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
    again = [f"small chunk {number}" for number in (1, 3, 4)]  # cell 7 of chunk 3 failed
    assert sorted(line.split(":")[0] for line in said) == again
    assert bytes_of(tmp_path) == whole


def edited(folder, *keys, value, rows=4):
    """The results file of a run, with one entry of its header changed and its first rows only."""
    run("small", folder)
    path = folder / "small_experiment.json"
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    kept = [{"number": number} for number in range(rows)]
    content["rows"] = [row for row in content["rows"] if row["cell"] in kept]
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("keys", "value", "named"),
    [
        (("packages", "heckesel"), "0.0.9", "heckesel 0.0.9"),
        (("packages", "numpy"), "1.0.0", "numpy 1.0.0"),
        (("packages", "torch"), None, "torch None"),
        (("python",), "3.9.1", "Python 3.9.1"),
        (("device",), "Abacus", "device Abacus"),
        (("data", "a.csv"), "abc", "data file a.csv abc"),
    ],
)
def test_rows_made_elsewhere_are_not_relabelled(keys, value, named, tmp_path):
    path = edited(tmp_path, *keys, value=value)
    before = path.read_bytes()
    with pytest.raises(hk.DataError, match=rf"was made with {named}, but this run has") as caught:
        run("small", tmp_path)
    assert all(part in str(caught.value) for part in (str(path), "4 of its 6 chunks", "--out"))
    assert path.read_bytes() == before


def test_a_finished_file_made_elsewhere_is_read_and_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SEVEN", "is lucky")
    path = edited(tmp_path, "device", value="Abacus", rows=12)
    before = path.read_bytes()
    assert len(run("small", tmp_path)) == 12
    assert path.read_bytes() == before


def changed(content, change):
    content = json.loads(content)
    change(content)
    return json.dumps(content).encode()


DAMAGE = {
    "cannot be read": lambda content: content[: len(content) // 2],
    "cannot be read (": lambda content: b"",
    "cannot be read ('utf-8'": lambda content: b"\xff" + content,
    "cannot be read (maximum recursion": lambda content: b"[" * 100_000,
    "is not a results file": lambda content: b"[]",
    "has schema None": lambda content: b"{}",
    "has schema 7": lambda content: changed(content, lambda c: c.update(schema=7)),
    "'rows' is missing": lambda content: changed(content, lambda c: c.pop("rows")),
    "'packages' is missing": lambda content: changed(content, lambda c: c.update(packages=[])),
    "row 3 does not have": lambda content: changed(content, lambda c: c["rows"][2].pop("metrics")),
    "row 12 does not have": lambda content: changed(content, lambda c: c["rows"].insert(11, 5)),
    "row 1 does not have": lambda content: changed(content, lambda c: c["rows"][0].update(cell=1)),
    'two rows have the cell {"number": 0}': lambda content: changed(
        content, lambda c: c["rows"].insert(3, c["rows"][0])
    ),
}


@pytest.mark.parametrize("said", DAMAGE)
def test_a_damaged_results_file_is_named_in_one_sentence(said, tmp_path, whole):
    path = tmp_path / "small_experiment.json"
    path.write_bytes(DAMAGE[said](whole))
    before = path.read_bytes()
    with pytest.raises(hk.DataError) as caught:
        run("small", tmp_path)
    assert f"{path} " in str(caught.value)
    assert said in str(caught.value)
    assert path.read_bytes() == before


def test_the_check_of_committed_results_names_a_damaged_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "e0_gate.json").write_text('{"schema": 1,')
    monkeypatch.chdir(tmp_path)
    assert check.main() == 1
    assert "e0_gate.json is damaged" in capsys.readouterr().out


@pytest.mark.slow
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


@pytest.mark.slow
def test_workers_give_the_same_bytes(tmp_path, whole, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=_register) as executor:
        run("small", tmp_path, executor=executor)
    assert bytes_of(tmp_path) == whole


def _register():
    EXPERIMENTS["small"] = SMALL


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


@pytest.mark.slow
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
    assert [line.split(":")[0] for line in said] == ["small chunk 2", "small chunk 3"]  # 3 failed
    assert bytes_of(tmp_path) == whole
