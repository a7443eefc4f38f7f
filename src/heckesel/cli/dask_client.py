"""`--dask ADDRESS`: connect to a running cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from heckesel.errors import HeckeselError, imported


@contextmanager
def dask_client(address: str) -> Iterator:
    """A client of the scheduler at `address`."""
    distributed = imported("distributed", "--dask needs the scale extra", "scale")
    try:
        client = distributed.Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise HeckeselError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client
