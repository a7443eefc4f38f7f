"""Training an ensemble on several workers: each trains a block of members and returns it.

Each member has its own seeds, so blocks do not communicate, and the ensemble is the same as on a
single machine.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from heckesel.networks.training.config import NetworkConfig

# The product of a single pair of matrices uses another routine than a batched one and rounds
# differently, so a block has at least two members.
FEWEST_IN_A_BLOCK = 2


def member_blocks(config: NetworkConfig) -> list[range]:
    """Numbers of the members of each block, in order; one block without workers."""
    workers = 1 if config.map_over_workers is None else config.map_over_workers.workers
    count = max(1, min(workers, config.n_members // FEWEST_IN_A_BLOCK))
    ends = [config.n_members * j // count for j in range(count + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def joined(parts: Sequence):
    """One `Members` from the blocks of several workers."""

    def together(name):
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    names = ("parameters", "loss", "late_gain", "validation", "best_epoch")
    return replace(parts[0], **{name: together(name) for name in names})
