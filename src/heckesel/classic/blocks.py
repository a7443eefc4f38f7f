"""Sums over blocks of rows: small enough for a core's cache, spread over cores for long tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

BLOCK_ROWS = 8192  # with two dozen columns 1.5 MB
# Below this a pass takes a few milliseconds, and handing out blocks would cost as much.
SEVERAL_CORES_FROM = 100_000


def sum_over_blocks(function: Callable[[slice], tuple], rows: int) -> list:
    """Sum of function(block) over all blocks, each a tuple of numbers or arrays.

    Blocks are added in their order, so the sum does not depend on how many cores there are.
    numpy leaves the interpreter while it works, so threads do run side by side.
    """
    blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, rows, BLOCK_ROWS)]
    parts = (_threads().map if rows >= SEVERAL_CORES_FROM else map)(function, blocks)
    total: list = []
    for part in parts:
        total = [np.add(a, b) for a, b in zip(total, part, strict=True)] if total else list(part)
    return total


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1)
