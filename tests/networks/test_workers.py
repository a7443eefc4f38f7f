"""Members of an ensemble over the workers of a cluster: the networks of one machine, bit by bit."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.data import selection_data
from heckesel.io import Cluster
from heckesel.methods import fit_one
from heckesel.methods.heckman_auto import AutoConfig
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import member_blocks
from heckesel.networks.training.local_workers import Processes

pytest.importorskip("distributed")
pytest.importorskip("torch")

pytestmark = pytest.mark.arithmetic

DRAWN = hk.datasets.make_controlled(n=400, rho=0.6, alpha=1.0, seed=3).frame
X, Y = DRAWN.drop(columns="y"), DRAWN["y"]
QUICK = {"instruments": ["z"], "epochs": 12, "hidden": (16,), "progress": False, "device": "cpu"}


@pytest.fixture(autouse=True)
def _one_thread():
    """As the workers have: products shared by threads end in other digits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


OPTIONS = {
    "two-step": {},
    "mini-batches": {"batch_size": 100, "n_members": 6},
    "joint": {"method": "joint", "warm_up": 3},
    "joint on folds": {"method": "joint", "folds": 3, "noise": "auto"},
    "index of networks": {"selection": "network", "n_members": 4, "folds": 4},
    "profile": {"method": "profile", "n_members": 4, "folds": 2},
    "auto": {"method": "auto", "n_members": 4, "folds": 2},
}


@pytest.fixture
def _small_chunks(monkeypatch):
    """Several chunks of models, as of a longer table."""
    from heckesel.networks.rho import fitted_points

    monkeypatch.setattr(fitted_points, "BATCH_BYTES", {"cpu": 2**20})


@pytest.mark.filterwarnings("ignore:training")  # of so few epochs
@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_workers_train_the_members_of_one_machine(client, options):
    here, there = (
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK | options) for _ in range(2)
    )
    here.fit(X, Y)
    there.fit(X, Y, client=client)
    assert there.info_ == here.info_
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    np.testing.assert_array_equal(there.predict_interval(X), here.predict_interval(X))


@pytest.mark.usefixtures("_small_chunks")
def test_processes_of_one_machine_fit_the_same_model():
    one, two = fit_auto(None), fit_auto(Processes(("cpu", "cpu")))
    assert two.info == one.info
    at = X[["x"]].to_numpy()
    np.testing.assert_array_equal(two.predict(at).mean, one.predict(at).mean)


@pytest.mark.usefixtures("_small_chunks")
def test_members_and_chunks_of_candidates_are_tasks_for_workers():
    workers = Workers(2)
    fit_auto(workers)
    trained, optimised, held_out = (
        [count for name, count in workers.tasks if name == wanted]
        for wanted in ("train_datasets", "_optimised", "_readings")
    )
    assert set(trained) == {2}  # blocks of two members
    assert max(optimised) > 2
    assert max(held_out) > 2


def fit_auto(workers):
    network = NetworkConfig(hidden=(16,), n_members=4, folds=2, epochs=12, device="cpu")
    config = AutoConfig(None, replace(network, map_over_workers=workers))
    return fit_one("heckman_auto", selection_data(X[["x"]], X, Y), config=config)


def test_every_process_gets_its_share_in_turn():
    found = Processes(("cpu", "cpu"))(process_of, range(5))
    assert [item for item, _ in found] == list(range(5))
    numbers = [number for _, number in found]
    assert numbers[0::2] == [numbers[0]] * 3
    assert numbers[1::2] == [numbers[1]] * 2
    assert os.getpid() not in numbers


def process_of(item):
    return item, os.getpid()


def test_all_gpus_of_a_machine_without_one_are_refused():
    with pytest.raises(hk.DataError, match=r"device is 'cuda:\*', but torch finds no CUDA card"):
        hk.DeepHeckmanRegressor(**QUICK | {"device": "cuda:*"}).fit(X, Y)


def test_a_worker_killed_while_it_trains_changes_nothing(client):
    here, there = (
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK | {"epochs": 2500})
        for _ in range(2)
    )
    here.fit(X, Y)
    victims = []
    killer = threading.Thread(target=_kill_one_at_work, args=(client, victims))
    killer.start()
    there.fit(X, Y, client=client)
    killer.join()
    assert victims[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


def _kill_one_at_work(client, victims):
    pids = client.run(os.getpid)
    busy = []
    while not busy:
        time.sleep(0.02)
        busy = [address for address, tasks in client.processing().items() if tasks]
    time.sleep(0.2)
    victims.append(pids[busy[0]])
    os.kill(victims[0], signal.SIGKILL)


class Workers:
    """A map that counts its tasks, by the name of their function."""

    def __init__(self, workers):
        self.workers, self.tasks = workers, []

    def __call__(self, function, items):
        items = list(items)
        self.tasks.append((function.func.__name__, len(items)))
        return map(function, items)


@pytest.mark.parametrize(
    ("members", "workers", "sizes"),
    [(5, 2, [2, 3]), (5, 8, [2, 3]), (1, 4, [1]), (3, 2, [3]), (10, 3, [3, 3, 4]), (4, 1, [4])],
)
def test_blocks_hold_every_member_once_and_never_one_alone(members, workers, sizes):
    blocks = member_blocks(NetworkConfig(n_members=members, map_over_workers=Workers(workers)))
    assert [len(block) for block in blocks] == sizes
    assert [number for block in blocks for number in block] == list(range(members))


def test_large_data_is_sent_once(client):
    values = np.arange(300_000.0)
    found = Cluster(client)(lambda item: float(values[item]), [5, 7])
    assert found == [5.0, 7.0]


def test_what_is_no_client_is_refused():
    with pytest.raises(hk.DataError, match=r"must be a dask.distributed.Client, got str"):
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK).fit(
            X, Y, client="tcp://somewhere"
        )
