"""`--dask ADDRESS`: connect to a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heckesel.errors import HeckeselError


@contextmanager
def dask_client(address: str) -> Iterator:
    """A client of the scheduler at `address`."""
    try:
        from distributed import Client
    except ImportError:
        raise HeckeselError("--dask needs the scale extra: pip install 'heckesel[scale]'") from None
    try:
        client = Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise HeckeselError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client
