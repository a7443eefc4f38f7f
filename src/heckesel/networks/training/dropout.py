"""Dropout masks computed from a counter, as functions of the network, the step and the position.

Masks of hundreds of networks take a few operations, and they are the same on a CPU and a GPU, in
any batch, and beside networks with more rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heckesel.networks.training.steps import DROPOUT, member_seed

# The increment and the two multipliers of splitmix64, as signed 64-bit numbers.
GOLDEN = -0x61C8864680B583EB
MULTIPLIERS = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)
SHIFTS = (30, 27, 31)
PER_WORD = 4  # one 64-bit word holds four 16-bit numbers, a resolution of 1/65536 in the rate


@dataclass(frozen=True)
class DropoutMasks:
    """A call returns the factors of the next step, one (k, n, width) for each hidden layer: 0 with
    probability `rate`, else 1/(1 - rate), which keeps the mean of the activations.

    seeds : (k, 1); step : (1,), increased by each call; places, words, bits, factors : for each
    layer the positions (1, W), memory for words and its 16-bit view, and the factors.
    """

    seeds: torch.Tensor
    step: torch.Tensor
    places: Sequence[torch.Tensor]
    words: Sequence[torch.Tensor]
    bits: Sequence[torch.Tensor]
    factors: Sequence[torch.Tensor]
    rate: float

    def __call__(self) -> Sequence[torch.Tensor]:
        keep_below = round((1 - self.rate) * 2**16) - 2**15
        for layer, (place, words) in enumerate(zip(self.places, self.words, strict=True)):
            stream = _mix(self.seeds + (len(self.places) * self.step + layer) * GOLDEN)
            torch.add(stream, place, out=words)
            _mix(words)
            torch.lt(self.bits[layer], keep_below, out=self.factors[layer])
            self.factors[layer].div_(1 - self.rate)
        self.step.add_(1)
        return self.factors


def dropout_seeds(seeds: Sequence[int], members: int, first: int = 0) -> np.ndarray:
    """(k,) one 64-bit number for each member of each dataset, from member number `first` on."""
    states = [
        member_seed(seed, j, DROPOUT).generate_state(1, dtype=np.uint64)[0]
        for seed in seeds
        for j in range(first, first + members)
    ]
    return np.array(states, dtype=np.uint64).view(np.int64)


def dropout_masks(
    seeds: np.ndarray, rows: int, hidden: Sequence[int], rate: float, *, like: torch.Tensor
) -> DropoutMasks:
    """Masks of k networks over `rows` rows, with the dtype and device of `like`."""
    k, device = len(seeds), like.device
    places, words, bits, factors = [], [], [], []
    for width in hidden:
        # Words are numbered row by row, so that rows of padding do not change those before them.
        per_row = -(-width // PER_WORD)
        count = rows * per_row
        places.append(torch.arange(count, device=device)[None] * GOLDEN)
        words.append(torch.empty((k, count), dtype=torch.int64, device=device))
        halves = words[-1].view(torch.int16).view(k, rows, per_row * PER_WORD)
        bits.append(halves[..., :width])
        factors.append(torch.empty((k, rows, width), dtype=like.dtype, device=device))
    return DropoutMasks(
        seeds=torch.as_tensor(seeds, device=device)[:, None],
        step=torch.zeros(1, dtype=torch.int64, device=device),
        places=places,
        words=words,
        bits=bits,
        factors=factors,
        rate=rate,
    )


def _mix(words: torch.Tensor) -> torch.Tensor:
    """splitmix64's finaliser, in place: every bit of the input affects every bit of the output."""
    for shift, multiplier in zip(SHIFTS, (*MULTIPLIERS, 1), strict=True):
        # a shift of a signed number fills with the sign bit, which the mask sets to zero
        words.bitwise_xor_((words >> shift) & ((1 << (64 - shift)) - 1))
        if multiplier != 1:
            words.mul_(multiplier)
    return words
