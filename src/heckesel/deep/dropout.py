"""Dropout masks, drawn for each network from a generator of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from heckesel.deep.nets import DROPOUT, member_seed

WORD_RANGE = (-(2**63), 2**63 - 1)


def generator_of(seed: int, member: int, device: torch.device) -> torch.Generator:
    """The dropout stream of one member. CPU and CUDA draw different numbers from it."""
    generator = torch.Generator(device=device)
    state = member_seed(seed, member, DROPOUT).generate_state(1, dtype="uint64")
    return generator.manual_seed(int(state[0] >> 1))  # torch takes 63 bits


def dropout_masks(
    generators: Sequence[torch.Generator], weight: torch.Tensor, hidden: Sequence[int], rate: float
) -> Callable[[], list[torch.Tensor]]:
    """A function that draws one factor (k, n, width) for each hidden layer: 0 with probability
    `rate`, to the nearest 1/65536, else 1/(1 - rate), so that activations keep their mean.

    weight : (k, n) tells real rows from padding: padding draws nothing, so a network sees the
    same masks however long its neighbours in the batch are. Each call overwrites the last masks.
    """
    counts = [int(row.nonzero().max()) + 1 for row in weight]
    blocks = [weight.new_zeros(*weight.shape, width) for width in hidden]
    draws = [
        (generator, *_random_bits(rows[:count]))
        for block in blocks
        for rows, count, generator in zip(block, counts, generators, strict=True)
    ]
    keep_below = round((1 - rate) * 2**16) - 2**15

    def draw():
        for generator, words, bits, rows in draws:
            words.random_(*WORD_RANGE, generator=generator)
            torch.lt(bits, keep_below, out=rows)
        return [block.div_(1 - rate) for block in blocks]

    return draw


def _random_bits(rows):
    """64-bit words, a view of them as one 16-bit number for each entry of rows, and rows.

    Drawing words and comparing takes a quarter of the time that `bernoulli_` takes.
    """
    words = torch.empty(-(-rows.numel() // 4), dtype=torch.int64, device=rows.device)
    return words, words.view(torch.int16)[: rows.numel()].view(rows.shape), rows
