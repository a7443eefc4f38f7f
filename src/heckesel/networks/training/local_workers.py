"""Maps over processes of this machine, such as one for each of its GPUs, and over its cores."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from threadpoolctl import threadpool_limits

from heckesel.io import in_threads


@dataclass(frozen=True)
class Processes:
    """One process per device; a device may be named more than once.

    The items are assigned to the processes in turn. The processes are kept for later calls.
    """

    devices: tuple[str, ...]

    @property
    def workers(self) -> int:
        return len(self.devices)

    def __call__(self, function: Callable, items: Iterable) -> list:
        from joblib import Parallel, delayed  # scikit-learn depends on it

        tasks = list(items)
        shares = [range(first, len(tasks), self.workers) for first in range(self.workers)]
        # An array in a file that processes share may have another alignment than in memory, so that
        # its products may round differently.
        run = Parallel(n_jobs=self.workers, backend="loky", max_nbytes=None)
        found = run(
            delayed(_on_device)(device, function, [tasks[i] for i in share])
            for device, share in zip(self.devices, shares, strict=True)
            if share
        )
        results: list = [None] * len(tasks)
        for share, answers in zip(shares, found, strict=False):
            for place, answer in zip(share, answers, strict=True):
                results[place] = answer
        return results


def _on_device(device: str, function: Callable, tasks: list) -> list:
    """The results of a process; inside `function`, "cuda" is the GPU of the process."""
    place = torch.device(device)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    torch.set_num_threads(1)
    with threadpool_limits(1, user_api="blas"):
        return [function(task) for task in tasks]


def all_gpus() -> Processes | None:
    """A process for each GPU of this machine; None if it has at most one, which this process can
    use."""
    count = torch.cuda.device_count()
    return Processes(tuple(f"cuda:{number}" for number in range(count))) if count > 1 else None


def over_cores(function: Callable, items: Iterable) -> list:
    """`map` over threads that compute on one core each: tasks of a few milliseconds per operation
    leave a core idle for half of the time if it shares every operation with the others."""
    before = torch.get_num_threads()

    def alone(item):
        torch.set_num_threads(1)  # of this thread
        return function(item)

    try:
        with threadpool_limits(1, user_api="blas"):
            return list(in_threads(alone, items))
    finally:
        torch.set_num_threads(before)
