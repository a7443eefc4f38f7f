"""The level of the tests of instruments, and whether their stated power is correct.

`size`: valid instruments, 2,000 draws for each design, in blocks of 500. One binary or continuous
instrument that depends on x, or two continuous ones; strong or weak; normal, chi-squared or
heteroskedastic errors; an outcome that is curved in x. `power`: the effect that a test is stated to
detect with 80 % probability (the inequalities, or with two instruments the overidentification
test), as the median of 20 draws without an effect, is added to other draws.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, selection_data
from heckesel.datasets.simulated import draw_errors
from heckesel.verdict.validity import (
    detectable_by,
    detectable_effects,
    inequality_test,
    overidentification_test,
    pairs_of,
    validity_sample,
    violations_of,
)
from reproduction.runner import attempt

LEVEL = 0.05
ERRORS, RHOS, BLOCKS = ("normal", "chi2", "scale"), (0.0, 0.5, -0.8), range(4)
STRENGTHS = {"strong": 0.8, "weak": 0.1}  # in the index, where the error has sd 1
DRAWS, POWER_DRAWS, EFFECT_DRAWS = 500, 400, 20
N = 500
FIRST_SEED = 60_000  # no other experiment has these draws


@dataclass(frozen=True)
class Cell:
    task: str
    instrument: str
    strength: str
    errors: str
    rho: float
    block: int


def cells(quick: bool = False) -> list[Cell]:
    blocks = range(1) if quick else BLOCKS
    strong = product(("binary", "continuous", "two"), ("strong",), ERRORS, RHOS, blocks)
    weak = product(("binary", "continuous"), ("weak",), ERRORS, (0.5,), blocks)
    power = product(("binary", "continuous", "two"), ("strong", "weak"), ("normal",), (0.5,), (0,))
    return [Cell("size", *each) for each in (*strong, *weak)] + [
        Cell("power", *each) for each in power
    ]


def chunk_of(cell: Cell) -> str:
    return f"{cell.task} {cell.instrument} {cell.strength} {cell.errors} {cell.rho} {cell.block}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    with threadpool_limits(1, user_api="blas"):
        return [attempt(_size if cell.task == "size" else _power, cell) for cell in cells]


def _size(cell: Cell) -> dict[str, float]:
    """Shares of draws that each test rejects, and that the verdict of both rejects."""
    p = np.array([_p_values(cell, _seed(cell, j), 0.0) for j in range(DRAWS)])
    row = {"draws": float(DRAWS), "inequalities": float(np.mean(p[:, 0] <= LEVEL))}
    if p.shape[1] == 2:
        row["overidentification"] = float(np.mean(p[:, 1] <= LEVEL))
    return row | {"rejected": float(np.mean(p.min(axis=1) * p.shape[1] <= LEVEL))}


def _power(cell: Cell) -> dict[str, float]:
    """The median of the stated effects, and the share of draws in which the same test detects it.

    If most draws state that no effect up to 1 is detectable, there is no median, only their share.
    """
    stated = np.array([_stated(cell, _seed(cell, -1 - j)) for j in range(EFFECT_DRAWS)])
    which = 1 if cell.instrument == "two" else 0
    row = {}
    for name, effects in zip(("negative", "positive"), stated.T, strict=True):
        row[f"without_{name}"] = float(np.mean(np.isinf(effects)))
        effect = float(np.sort(effects)[EFFECT_DRAWS // 2])
        if np.isfinite(effect):
            seeds = [_seed(cell, j) for j in range(POWER_DRAWS)]
            caught = [_p_values(cell, seed, effect)[which] <= LEVEL for seed in seeds]
            row |= {f"effect_{name}": effect, f"caught_{name}": float(np.mean(caught))}
    return row


def _seed(cell: Cell, draw: int) -> list[int]:
    """The same in every design."""
    return [FIRST_SEED, cell.block, draw % 1000]


def _p_values(cell: Cell, seed: list[int], effect: float) -> list[float]:
    sample = validity_sample(draw_data(cell, seed, effect), 0)
    pairs = pairs_of(sample)
    # without a violation in the data the bootstrap cannot reject and is skipped
    violated = violations_of(sample, pairs)[1].max() > 0
    p = [inequality_test(sample, pairs, seed[-1]).p_value if violated else 1.0]
    if cell.instrument == "two":
        both = overidentification_test(sample)
        assert both is not None
        p.append(both.p_value)
    return p


def _stated(cell: Cell, seed: list[int]) -> tuple[float, float]:
    """The detectable effects: of one instrument, or of the first of two."""
    sample = validity_sample(draw_data(cell, seed, 0.0), 0)
    if cell.instrument == "two":
        both = overidentification_test(sample)
        assert both is not None
        return detectable_by(both, sample, LEVEL)[0]
    low, high = detectable_effects(sample, pairs_of(sample), LEVEL, seed[-1])
    # measured along the index, on which a weak instrument may seem to have a negative effect
    return (low, high) if sample.effects[0] > 0 else (-high, -low)


def draw_data(cell: Cell, seed: list[int], effect: float) -> SelectionData:
    """x and z have unit variance; `effect` of the first instrument in sd of y per sd of z."""
    rng = np.random.default_rng(seed)
    count = 2 if cell.instrument == "two" else 1
    x = rng.normal(size=(N, 2))
    if cell.instrument == "binary":
        z = np.where(rng.random((N, 1)) < 1 / (1 + np.exp(-0.5 * x[:, :1])), 1.0, -1.0)
    else:
        z = 0.4 * x[:, :1] + np.sqrt(1 - 0.4**2) * rng.normal(size=(N, count))
    shape = "normal" if cell.errors == "scale" else cell.errors
    errors, u = draw_errors(rng, N, rho=cell.rho, sigma=1.0, errors=shape)
    if cell.errors == "scale":
        errors = errors * np.exp(0.4 * x[:, 0])
    strength = STRENGTHS[cell.strength] / np.sqrt(count)
    s = 0.2 + 0.5 * x[:, 0] + strength * z.sum(axis=1) + u > 0
    y = 1.5 * np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] ** 2 + errors
    y = y + effect * np.std(y[s]) * z[:, 0]
    names = tuple(f"z{j}" for j in range(count))
    return selection_data(
        x,
        np.column_stack([x, z]),
        np.where(s, y, np.nan),
        x_names=("a", "b"),
        w_names=("a", "b", *names),
    )
