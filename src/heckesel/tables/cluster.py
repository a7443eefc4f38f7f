"""A `map` over threads, or over the workers of a Dask cluster."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from threadpoolctl import threadpool_limits

from heckesel.errors import DataError

RETRIES = 3  # of a task that was interrupted, before the fit gives up
PATIENCE = 1.5  # seconds in which a cluster without workers may get its first
LARGE = 1 << 20  # bytes; a larger function is sent once and not with every item


def in_threads(function: Callable, items: Iterable) -> Iterable:
    """`map` over threads, which run in parallel because numpy releases the interpreter lock; this
    thread is one of them, so that none waits for another to wake up."""
    tasks = list(items)
    results: list = [None] * len(tasks)
    errors: dict[int, BaseException] = {}
    positions = count()

    def work() -> None:
        while not errors and (at := next(positions)) < len(tasks):
            try:
                results[at] = function(tasks[at])
            except BaseException as error:  # an interrupt, too, ends the other threads' work
                errors[at] = error

    helpers = min(os.cpu_count() or 1, len(tasks)) - 1
    others = [_threads(os.getpid()).submit(work) for _ in range(helpers)]
    work()
    for other in others:
        if not other.cancel():
            other.result()
    if errors:
        raise errors[min(errors)]
    return results


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The pool of one process: a forked process has no threads."""
    return ThreadPoolExecutor(os.cpu_count() or 1)


@dataclass(frozen=True)
class Cluster:
    """A `map` over the workers of a Dask client, or over threads once the client is closed."""

    client: Any

    @property
    def running(self) -> bool:
        return self.client is not None and self.client.status == "running"

    @property
    def workers(self) -> int:
        return max(1, len(self.client.nthreads())) if self.running else 1

    def __call__(self, function, items):
        if not self.running:
            return in_threads(function, items)
        from distributed.protocol.pickle import dumps

        # Sent as bytes: arrays that dask unpacks may start at odd addresses, which numpy multiplies
        # by another routine, and the last digits would depend on the worker.
        content = dumps(function)
        if len(content) >= LARGE:
            # the result of a task, unlike data that was scattered, is made again if it is lost
            content = self.client.submit(_as_it_is, content, pure=False, retries=RETRIES)
        options = {"pure": False, "retries": RETRIES}
        futures = [self.client.submit(_call, content, dumps(item), **options) for item in items]
        return self.client.gather(futures)

    def __reduce__(self):
        return Cluster, (None,)  # a connection cannot be saved


def cluster_of(client) -> Cluster:
    """A checked `client=`."""
    if not hasattr(client, "gather"):
        raise DataError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    cluster = Cluster(client)
    if cluster.running and not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DataError(
                "the Dask cluster of client= has no workers; start one, such as with "
                "client.cluster.scale(2), and wait for it with client.wait_for_workers(1)"
            ) from None
    return cluster


def _as_it_is(content: bytes) -> bytes:
    return content


def _call(function: bytes, item: bytes):
    from distributed.protocol.pickle import loads

    with threadpool_limits(1, user_api="blas"):
        return loads(function)(loads(item))
