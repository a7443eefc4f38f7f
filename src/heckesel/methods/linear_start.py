"""Where networks on folds start: at the classic model with a linear outcome, on the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckesel.linear.probit import fit_probit
from heckesel.networks.training.batches import Batch, with_mills

# A linear two-step may leave |rho| at one or beyond; this is where networks start then.
START_RHO = 0.9


@dataclass(frozen=True)
class LinearStart:
    """beta : (p + 1,) of the outcome; c, sigma : covariance of the two errors and sd of y"""

    beta: np.ndarray
    c: float
    sigma: float

    @property
    def rho(self) -> float:
        return float(np.clip(self.c / self.sigma, -START_RHO, START_RHO))


def linear_start(cell: Batch, strong: bool) -> LinearStart:
    r"""A linear outcome on selected rows that have Mills terms, a first guess for the networks'.

    With strong instruments it is the classic two-step. Without, :math:`\lambda` is a function of x
    and stands in for all that is not linear in f: c would be many sigmas large, and members end
    before they have undone it. There c starts at 0 and sigma at that of least squares.
    """
    columns, root = cell.x, np.sqrt(cell.weight)
    if strong:
        columns = np.column_stack([cell.x, cell.mills])
    found = np.linalg.lstsq(columns * root[:, None], cell.y * root, rcond=None)[0]
    residual, c = cell.y - columns @ found, found[-1] if strong else 0.0
    sigma = np.sqrt((residual**2 + c**2 * cell.delta) @ cell.weight)
    return LinearStart(found[: cell.x.shape[1]], float(c), float(sigma))


def probit_start(cell: Batch) -> np.ndarray:
    """(q + 1,) gamma of a probit of selection on the cell's selected and unselected units."""
    w = np.vstack([cell.w, cell.w_unselected])
    weight = np.concatenate([cell.weight, cell.weight_unselected])
    return fit_probit(w, np.arange(len(w)) < len(cell.w), weight * len(w)).gamma


def linear_start_of_both(cell: Batch, strong: bool) -> tuple[np.ndarray, LinearStart]:
    """`probit_start`, and `linear_start` with the Mills terms of that probit."""
    gamma = probit_start(cell)
    selected = replace(cell, weight=cell.weight / cell.weight.sum())
    return gamma, linear_start(with_mills(selected, cell.w @ gamma), strong)
