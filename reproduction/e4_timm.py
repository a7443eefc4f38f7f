r"""Reporting panels with known truth: how well a selection model recovers hidden scores.

timm evaluated every model on six test sets. Half of these scores are hidden. The rule tends to
report able models and, at rho > 0, scores that are better than predicted by ability. The hidden
scores are then predicted and compared. The equations are those of A-E4, score and reporting on
ability and dataset dummies, and z is a column of the selection equation even where alpha = 0.

* ability "known": the mean of the row's other scores, hidden or not, as in the rule
* ability "reported": the mean of the reported ones, as known to an analyst, on rows with at least
  two of them

The errors are those of real scores: their excess kurtosis is above 20, their standard deviation
differs between test sets, and they are correlated between variants of an architecture. rho
describes the rule; the residuals are not normal.
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from heckesel.classical.prediction import mean_and_gradient
from heckesel.errors import IdentificationWarning
from heckesel.metrics import coverage
from heckesel.selection_model import heckman
from reproduction.outside import TIMM_FILES, load_timm_results
from reproduction.reporting_panel import FEWEST_SCORES, ability, long_frame, standardise
from reproduction.runner import attempt

ABILITIES = ("known", "reported")
RHOS, ALPHAS, SEEDS = (0.0, 0.5, 0.8), (0.0, 1.0), range(8)
METHODS = ("least squares", "two-step", "ml")
ABILITY_SLOPE = 1.0  # of the reporting index, per standard deviation of ability
LEVEL = 0.9
RIGHT = "ability + dataset"
DATA_HASHES = TIMM_FILES
chunk_of = "{0.ability}, rho {0.rho}, alpha {0.alpha}".format


@dataclass(frozen=True)
class Cell:
    ability: str
    rho: float
    alpha: float
    seed: int
    method: str


@dataclass(frozen=True)
class HiddenPanel:
    """A panel of which some cells are hidden.

    scores : (rows, datasets) the truth
    z : (rows, datasets) the reporting instrument
    reported : (rows, datasets) bool
    """

    scores: pd.DataFrame
    z: pd.DataFrame
    reported: pd.DataFrame


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.0, 0.8), range(2)) if quick else (RHOS, SEEDS)
    return [Cell(*each) for each in product(ABILITIES, rhos, ALPHAS, seeds, METHODS)]


def check_data() -> None:
    """Raise an error that says how to get the tables if they are missing."""
    load_timm_results()


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return [attempt(run_cell, cell) for cell in cells]


def run_cell(cell: Cell) -> dict[str, float]:
    """Errors over the hidden cells, in standard deviations of their dataset.

    bias is the mean over datasets of predicted minus true mean of the hidden scores, abs_bias
    that of its absolute values. The rank correlations are Spearman's, of the leaderboards
    completed by predictions with the true ones: the mean over datasets, and that of row means.
    A two-step fit with |rho| > 1 has no predictive distribution, and its row no coverage.
    """
    panel = hide(complete_scores(), rho=cell.rho, alpha=cell.alpha, seed=cell.seed)
    panel, frame = analyst_view(panel, cell.ability)
    hidden = frame["score"].isna().to_numpy()
    equations, selects = (f"score ~ {RIGHT}", f"~ {RIGHT} + z"), cell.method != "least squares"
    if selects:
        fit = heckman(*equations, frame, method=cell.method)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentificationWarning)  # fitted despite it
            fit = heckman(*equations, frame.dropna(subset="score"))
    truth = panel.scores.to_numpy().ravel()[hidden]
    unseen, predicted = frame[hidden], None
    if not selects or abs(fit.rho) <= 1:
        target = "unselected" if selects else "population"
        predicted = fit.predict(unseen, target=target)
        mean = predicted.mean
    else:
        x, w = fit.design.outcome_matrix(unseen), fit.design.selection_matrix(unseen)
        mean, _ = mean_and_gradient(fit, x, w, "unselected")
    row = {"n": float(len(frame)), "n_hidden": float(hidden.sum())}
    error = mean - truth
    bias = pd.Series(error).groupby(frame["dataset"][hidden].to_numpy()).mean()
    row |= {"bias": float(bias.mean()), "abs_bias": float(bias.abs().mean())}
    row |= {"rmse": float(np.sqrt(np.mean(error**2)))}
    row |= {f"bias_{name}": float(value) for name, value in bias.items()}
    row |= _leaderboards(panel, mean)
    if predicted is not None:
        row["coverage90"] = coverage(truth, predicted, level=LEVEL)
    if selects:
        row |= {"rho": fit.rho, "boundary": float(fit.near_boundary)}
    return row


@lru_cache
def complete_scores() -> pd.DataFrame:
    """Models with all six scores, standardised within each test set."""
    return standardise(load_timm_results().dropna())


def hide(scores: pd.DataFrame, *, rho: float, alpha: float, seed: int) -> HiddenPanel:
    r"""Hide half of the cells of a complete panel, depending on the scores themselves.

    With m the ability of a cell, r the residual of the score on ability and dataset dummies, both
    standardised over all cells, and b the ABILITY_SLOPE,

    .. math:: s = 1[c + b m + \alpha z + u > 0], \quad u = \rho r + \sqrt{1 - \rho^2}\, v,
              \quad z, v \sim N(0, 1)

    where c leaves half of all cells reported. corr(u, r) = ρ over all cells, but not within a
    dataset, since the standard deviation of residuals differs between datasets. `default_rng(seed)`
    draws z, then v, for all cells, so panels of one seed differ in the rule only.
    """
    y, m = scores.to_numpy(), ability(scores).to_numpy()
    r = y - m * (m * y).sum() / (m * m).sum()  # no dummies: means per dataset are 0
    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=y.shape), rng.normal(size=y.shape)
    u = rho * r / r.std() + np.sqrt(1 - rho**2) * v
    index = ABILITY_SLOPE * m / m.std() + alpha * z + u
    return HiddenPanel(scores, _like(scores, z), _like(scores, index > np.median(index)))


def analyst_view(panel: HiddenPanel, known: str) -> tuple[HiddenPanel, pd.DataFrame]:
    """The rows that can be used, and their cells: score (NaN where hidden), ability, dataset, z."""
    if known == "reported":
        rows = panel.reported.sum(axis=1) >= FEWEST_SCORES
        panel = HiddenPanel(panel.scores[rows], panel.z[rows], panel.reported[rows])
    seen = panel.scores.where(panel.reported)
    able = ability(panel.scores if known == "known" else seen)
    return panel, long_frame(score=seen, ability=able, z=panel.z)


def _leaderboards(panel: HiddenPanel, mean: np.ndarray) -> dict[str, float]:
    values = panel.scores.to_numpy().copy()
    values[~panel.reported.to_numpy()] = mean  # row by row, like the cells of the frame
    completed = _like(panel.scores, values)
    boards = completed.rank().corrwith(panel.scores.rank())
    overall = completed.mean(axis=1).rank().corr(panel.scores.mean(axis=1).rank())
    return {"rank_correlation": float(boards.mean()), "rank_correlation_overall": float(overall)}


def _like(scores: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, index=scores.index, columns=scores.columns)
