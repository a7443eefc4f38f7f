"""A pool with its test points, a method fitted to many of them, and the metrics of a fit."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

import heckesel as hk
from heckesel.data import SelectionData, selection_data
from heckesel.datasets import Controlled, SemiReal, Truth
from heckesel.metrics import evaluate
from reproduction import baselines
from reproduction.runner import attempt

AUTO = "auto"  # the default HeckmanRegressor
# What the paper trains in A-E1 and A-E2.
TRAINED = (
    *("heckman_joint", "heckman_two_step", "blind_two_head", "deep_ensemble"),
    *("weighted_ensemble", "mc_dropout", "gp"),
)


@dataclass(frozen=True)
class Problem:
    """A pool, and the test points with their truth; x : (m, p)

    It is drawn once and shared by all methods, so it must not be changed.
    """

    data: SelectionData
    truth: Truth
    x: np.ndarray
    test_truth: Truth


def as_data(pool: Controlled | SemiReal) -> SelectionData:
    """z is a column of w only, even if its coefficient is 0."""
    names = [name for name in pool.frame if name not in ("z", "y")]
    x, w, y = (pool.frame[columns].to_numpy() for columns in (names, [*names, "z"], "y"))
    return selection_data(x, w, y, x_names=names, w_names=[*names, "z"])


@dataclass(frozen=True)
class AutoFit:
    """The default `HeckmanRegressor`, fitted to SelectionData, with `predict` of the population.

    That prediction does not depend on the instruments, which are set to 0.
    """

    model: hk.HeckmanRegressor
    names: tuple[str, ...]
    instruments: tuple[str, ...]

    def predict(self, x: np.ndarray):
        frame = pd.DataFrame(x, columns=list(self.names))
        return self.model.predict_distribution(frame.assign(**dict.fromkeys(self.instruments, 0.0)))


def fit_auto(data: SelectionData) -> AutoFit:
    frame = pd.DataFrame(data.w, columns=list(data.w_names))
    y = pd.Series(np.where(data.s, data.y, np.nan))
    model = hk.HeckmanRegressor(instruments=list(data.instruments)).fit(frame, y)
    return AutoFit(model, data.x_names, data.instruments)


def run_cells(cells: Sequence, problem: Callable, *, network, row=None, **options) -> list:
    """Fits the method of the cells to `problem(cell)` of every cell and returns a row for each, or
    the exception: `row(problem, fit)`, by default `problem_row`.

    options : of `baselines.fit`
    """
    problems, seeds = [problem(cell) for cell in cells], [cell.seed for cell in cells]
    row, name = row or problem_row, cells[0].method
    if name == AUTO:
        return [attempt(lambda one: row(one, fit_auto(one.data)), one) for one in problems]
    fits = baselines.fit(name, problems, seeds, network, **options)
    return [attempt(row, *pair) for pair in zip(problems, fits, strict=True)]


def problem_row(problem: Problem, fit) -> dict[str, float]:
    """`metrics_row` on the test points, and the share of the pool that was selected."""
    row = metrics_row(fit, problem.x, problem.test_truth)
    return row | {"selected_share": float(problem.data.s.mean())}


def metrics_row(fit, x, truth: Truth) -> dict[str, float]:
    """Metrics of the population prediction at x, and the estimates of rho and sigma."""
    row = evaluate(truth.y, fit.predict(x), f0=truth.f0, propensity_x=truth.propensity_x)
    found = {} if isinstance(fit, AutoFit) else asdict(fit.info)
    info = {name: value for name, value in found.items() if value is not None}
    if "weight" in info:  # a mixture has too many points to list them
        row["rho_hat"] = float(np.average(info["rho"], weights=info["weight"]))
    elif "rho" in info:
        row |= rho_row(fit)
    if "sigma" in info:
        row["sigma_hat"] = float(np.average(info["sigma"], weights=info.get("weight")))
    return row


def rho_row(fit) -> dict[str, float]:
    """rho of the members of an ensemble: mean, standard deviation, and each of them."""
    members = np.array(fit.info.rho)
    row = {"rho_hat": float(members.mean()), "rho_hat_sd": float(members.std())}
    return row | {f"rho_member_{j}": float(value) for j, value in enumerate(members)}
