"""Work handed to the workers of a Dask cluster: the one place that talks to a client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from heckesel.classic.blocks import in_threads
from heckesel.errors import DataError

RETRIES = 3  # of a task that was interrupted, before the fit gives up
LARGE = 1 << 20  # bytes; a function that carries more is sent once and not with every item


@dataclass(frozen=True)
class Cluster:
    """A `map` over the workers of a dask client; here, once the client is closed."""

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
        return self.client.gather(self._futures(function, list(items)))

    def _futures(self, function, items):
        from distributed.protocol.pickle import dumps

        content = dumps(function)
        if len(content) < LARGE:
            task = partial(_with_one_thread, function)
            return self.client.map(task, items, pure=False, retries=RETRIES)
        # The result of a task, unlike data that was scattered, is made again if its worker dies.
        held = self.client.submit(_unpacked, content, pure=False, retries=RETRIES)
        return self.client.map(_applied, items, function=held, pure=False, retries=RETRIES)

    def __reduce__(self):
        return Cluster, (None,)  # a connection cannot be saved


def cluster_of(client) -> Cluster:
    """A checked `client=`."""
    if not hasattr(client, "gather"):
        raise DataError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    return Cluster(client)


def _with_one_thread(function, item):
    with threadpool_limits(1, user_api="blas"):
        return function(item)


def _applied(item, *, function):
    return _with_one_thread(function, item)


def _unpacked(content: bytes):
    from distributed.protocol.pickle import loads

    return loads(content)
