"""`method="auto"` on several workers: members of the networks and chunks of the splines are tasks.

python -m benchmarks.workers dask 1 2        a local Dask cluster of one and of two workers
python -m benchmarks.workers cpu 1 16        processes of this machine with one thread each
python -m benchmarks.workers cuda:0 1 2      processes that share one GPU

Prints JSON for benchmarks/workers.json. Workers fit a small table before the one that is timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace

from benchmarks.gpu_auto import draw

ROWS, WARM_UP = 20_000, 1_000


def seconds(workers, device: str, rows: int) -> float:
    from heckesel.methods import fit_one
    from heckesel.methods.heckman_auto import AutoConfig

    network = replace(AutoConfig().network, device=device, map_over_workers=workers)
    for data in (draw(min(rows, WARM_UP)), draw(rows)):
        started = time.perf_counter()
        fit_one("heckman_auto", data, config=AutoConfig(None, network))
        taken = time.perf_counter() - started
    return round(taken, 2)


def with_dask(count: int, rows: int) -> float:
    from distributed import Client, LocalCluster

    from heckesel.tables.cluster import Cluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=count, **options) as cluster, Client(cluster) as client:
        return seconds(Cluster(client), "cpu", rows)


def with_processes(device: str, count: int, rows: int) -> float:
    from heckesel.networks.training.local_workers import Processes

    return seconds(Processes((device,) * count), device.split(":")[0], rows)


def measure(kind: str = "dask", counts=(1, 2), rows: int = ROWS) -> dict:
    import torch

    torch.set_num_threads(1)  # as the workers do
    taken = {}
    for count in counts:
        run = with_dask(count, rows) if kind == "dask" else with_processes(kind, count, rows)
        taken[count] = run
        print(kind, count, run, file=sys.stderr, flush=True)
    name = torch.cuda.get_device_name() if kind.startswith("cuda") else f"{os.cpu_count()} cores"
    return {"kind": kind, "machine": name, "rows": rows, "seconds": taken}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], [int(count) for count in sys.argv[2:]])))
