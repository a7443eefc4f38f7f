"""Numbers predicted for many rows: in bounded memory, on as many cores as BLAS may use."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from heckesel.errors import warn_user

# The columns of so many rows fit into a cache; larger blocks of splines take a fifth longer.
ROWS_AT_ONCE = 4096


def in_row_blocks(numbers: Callable[[slice], tuple], rows: int) -> list[np.ndarray]:
    """The arrays that `numbers` returns for a block of rows, joined over all blocks; what it warns
    of is said once, at the line of the user."""
    if rows <= ROWS_AT_ONCE:
        return [np.asarray(each) for each in numbers(slice(None))]
    blocks = [slice(at, at + ROWS_AT_ONCE) for at in range(0, rows, ROWS_AT_ONCE)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = _in_threads(numbers, blocks)
    for text, category in dict.fromkeys((str(each.message), each.category) for each in caught):
        warn_user(text, category)
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def _in_threads(numbers: Callable[[slice], tuple], blocks: list[slice]) -> list[tuple]:
    threads = max((each["num_threads"] for each in threadpool_info()), default=1)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(numbers, blocks))
