"""The memory that a training needs, and the memory of the machine or card."""

import os
from pathlib import Path

import torch

from heckesel.errors import DataError

# Copies of the parameters: start, two moments, gradient, best so far, current.
COPIES = 6
# Numbers for every unit of a layer and every input of a row: value, slope and a temporary.
VALUES = 3
# Numbers of the schedule for each step: eight factors and eight temporaries, in float64.
SCHEDULE = 16
UNLIMITED = 2**50  # bytes, if the system does not report its memory


def check_memory(
    sizes, *, members: int, rows: float, steps: int, item: int, place: torch.device
) -> None:
    """Raise `DataError` if a training does not fit into the memory of `place`.

    sizes : widths of the layers, inputs first; rows : per step; steps : of the whole training;
    item : bytes per number
    """
    parameters = sum((low + 1) * high for low, high in zip(sizes, sizes[1:], strict=False))
    networks = members * item * (COPIES * parameters + VALUES * rows * sum(sizes))
    needed, there = networks + 8 * SCHEDULE * steps, memory_of(place)
    if needed <= there:
        return
    raise DataError(
        f"training {members:,} networks with layers of {', '.join(f'{s:,}' for s in sizes[1:-1])} "
        f"units for {steps:,} steps needs about {needed / 2**30:,.0f} GB of memory, and there are "
        f"{there / 2**30:,.0f} GB; lower n_members, hidden or epochs, or set a smaller batch_size"
    )


def memory_of(place: torch.device) -> int:
    """Bytes of memory of the card, or of the machine or its container, whichever is less."""
    if place.type == "cuda":
        return torch.cuda.mem_get_info(place)[1]
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return UNLIMITED
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        return min(found, int(limit.read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return found
