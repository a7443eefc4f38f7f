"""X3: is the verdict on identification right? 432 generated datasets with known truth.

The curve of A-E1 with an instrument that is strong, weak, irrelevant (a column of noise) or absent,
at three correlations and three sizes. Each dataset gets the verdict of `hk.identify` and a spline
fit; the coverage of its 90 % intervals in the selected-against region is part of the row.
"""

from dataclasses import dataclass, replace
from itertools import product

from heckesel.diagnostics.data_verdict import identify
from heckesel.diagnostics.verdict import VERDICTS
from heckesel.methods import fit_one
from reproduction.e1_controlled import controlled_problem
from reproduction.problems import Problem, metrics_row
from reproduction.runner import attempt
from reproduction.x1_profile import curve_row

# Strength of the instrument in the index, where the error has sd 1.
INSTRUMENTS = {"strong": 1.0, "weak": 0.1, "irrelevant": 0.0, "none": 0.0}
RHOS, SIZES, SEEDS = (0.0, 0.5, 0.9), (500, 2000, 8000), range(12)
FIRST_SEED = 50_000  # no other experiment has these draws
chunk_of = "{0.instrument} {0.n}".format


@dataclass(frozen=True)
class Cell:
    instrument: str
    rho: float
    n: int
    seed: int


def cells(quick: bool = False) -> list[Cell]:
    sizes, seeds = ((500,), range(1)) if quick else (SIZES, SEEDS)
    return [Cell(*each) for each in product(INSTRUMENTS, RHOS, sizes, seeds)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return [attempt(_row, cell) for cell in cells]


def _row(cell: Cell) -> dict[str, float]:
    one = problem(cell)
    found = identify(one.data)
    fit = fit_one("spline_joint", one.data, device="cpu")
    row = {"verdict": float(VERDICTS.index(found.verdict))}
    row |= {
        name: float(found.evidence[name])
        for name in ("wald", "likelihood_ratio", "mills_share", "rho", "rho_low", "rho_high")
        if name in found.evidence
    }
    row |= metrics_row(fit, one.x, one.test_truth)
    return row | {f"fit_{name}": value for name, value in curve_row(fit).items()}


def problem(cell: Cell) -> Problem:
    """x and, unless there is no instrument at all, z."""
    draw = {"rho": cell.rho, "alpha": INSTRUMENTS[cell.instrument]}
    one = controlled_problem(seed=FIRST_SEED + cell.seed, size=cell.n, **draw)
    if cell.instrument != "none":
        return one
    return replace(one, data=replace(one.data, w=one.data.x, w_names=one.data.x_names))
