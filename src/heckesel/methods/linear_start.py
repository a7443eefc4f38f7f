"""Where networks on folds start: at the classic model with a linear outcome, on the same rows."""

from dataclasses import dataclass, replace

import numpy as np

from heckesel.linear.probit import fit_probit
from heckesel.networks.training.batches import Batch, with_mills

# The largest |rho| at which networks start; that of a linear two-step may exceed one.
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


def linear_start(batch: Batch, strong: bool) -> LinearStart:
    r"""A linear outcome on selected rows that have Mills terms, a first guess for the networks'.

    With strong instruments it is the classic two-step. Without them :math:`\lambda` is a function
    of x and picks up whatever in f is not linear. Its coefficient c can be many sigmas large, and
    members would stop before they correct it. So c starts at 0, and sigma at that of least squares.
    """
    columns, root = batch.x, np.sqrt(batch.weight)
    if strong:
        columns = np.column_stack([batch.x, batch.mills])
    found = np.linalg.lstsq(columns * root[:, None], batch.y * root, rcond=None)[0]
    residual, c = batch.y - columns @ found, found[-1] if strong else 0.0
    sigma = np.sqrt((residual**2 + c**2 * batch.delta) @ batch.weight)
    return LinearStart(found[: batch.x.shape[1]], float(c), float(sigma))


def probit_start(batch: Batch) -> np.ndarray:
    """(q + 1,) gamma of a probit of selection on the dataset's selected and unselected units."""
    w = np.vstack([batch.w, batch.w_unselected])
    weight = np.concatenate([batch.weight, batch.weight_unselected])
    return fit_probit(w, np.arange(len(w)) < len(batch.w), weight * len(w)).gamma


def linear_start_of_both(batch: Batch, strong: bool) -> tuple[np.ndarray, LinearStart]:
    """`probit_start`, and `linear_start` with the Mills terms of that probit."""
    gamma = probit_start(batch)
    selected = replace(batch, weight=batch.weight / batch.weight.sum())
    return gamma, linear_start(with_mills(selected, batch.w @ gamma), strong)
