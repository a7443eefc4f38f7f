"""Members of an ensemble over workers: each trains a block of them and sends them back.

A member has seeds of its own, so a block needs to hear nothing from the others, and the ensemble is
the one a single machine would have trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from heckesel.networks.training.config import NetworkConfig

# A block of one would be multiplied by another routine than a block of several, and end in other
# digits.
FEWEST_IN_A_BLOCK = 2


def member_blocks(config: NetworkConfig) -> list[range]:
    """Numbers of the members, dealt out in order; one block where all are trained here."""
    workers = 1 if config.spread is None else config.spread.workers
    count = max(1, min(workers, config.n_members // FEWEST_IN_A_BLOCK))
    ends = [config.n_members * j // count for j in range(count + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def joined(parts: Sequence):
    """One `Members` from blocks of them."""

    def together(name):
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    names = ("theta", "loss", "late_gain", "validation", "best_epoch")
    return replace(parts[0], **{name: together(name) for name in names})
