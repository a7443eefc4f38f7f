"""Sums over blocks of rows that fit into a processor's cache; long tables use several threads."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.tables.cluster import in_threads

# Threads take turns between two operations of numpy, so these should not be short.
BLOCK_ROWS, FEWEST_ROWS = 32_768, 8192
BLOCK_NUMBERS = 400_000  # 3.2 MB
# Below so many results numpy lets no other thread run during a product, however long it takes.
FREE_RESULTS = 512
# Below this a pass takes a few milliseconds, and handing out blocks would cost as much.
SEVERAL_CORES_FROM = 100_000


def slices(rows: int, columns: int = 1) -> list[slice]:
    """Blocks of rows that cover a table; fewer rows each if it has many columns."""
    size = min(BLOCK_ROWS, max(FEWEST_ROWS, BLOCK_NUMBERS // columns))
    return [slice(first, first + size) for first in range(0, rows, size)]


def threads_of_blocks(rows: int) -> AbstractContextManager:
    """One thread for the products of each block: if they had several, too, and other programs
    compete for the cores, threads that wait for one another take up to 30 times as long."""
    several = rows >= SEVERAL_CORES_FROM
    return threadpool_limits(1, user_api="blas") if several else nullcontext()


def sum_over(function: Callable, blocks: Sequence, rows: int) -> list:
    """Sum of function(block) over all blocks, each a tuple of numbers or arrays.

    rows : how many the blocks hold together; few are summed in this thread.
    """
    return add_up((in_threads if rows >= SEVERAL_CORES_FROM else map)(function, blocks))


def cross_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left @ right, of a few rows left (k, n) and a few columns right (n, q), as the sum of so many
    products side by side that other threads run meanwhile."""
    (k, n), q = left.shape, right.shape[1]
    parts = 1 << (FREE_RESULTS // (k * q)).bit_length()
    rows = n // parts
    if rows < parts:
        return left @ right
    whole = rows * parts
    above = left[:, :whole].reshape(k, parts, rows).swapaxes(0, 1)
    total = (above @ right[:whole].reshape(parts, rows, q)).sum(axis=0)
    return total + left[:, whole:] @ right[whole:] if whole < n else total


def do_all(tasks: Sequence[Callable], rows: int) -> list:
    """The results of tasks that do not depend on one another."""
    return list((in_threads if rows >= SEVERAL_CORES_FROM else map)(lambda task: task(), tasks))


def add_up(parts: Iterable[Sequence]) -> list:
    """Tuples added entry by entry in the order they come, so that the sum does not depend on
    how many cores, or machines, computed them."""
    total: list = []
    for part in parts:
        if not len(part):  # a part without a row that counts
            continue
        total = [np.add(a, b) for a, b in zip(total, part, strict=True)] if total else list(part)
    return total
