"""A-E4, benchmark reporting panels: are reported scores better than unreported ones?

A cell of a panel is selected where a score was reported. No column of these data is known to affect
reporting but not the score, so the fits show how a selection model behaves without an instrument:
most end at |rho| = 1. The paper counts 8 of 13 on a dump that is no longer available.

* by_paper_2022, the main table: the flat table of 2022-11-04, one row per paper
* by_model_2020: the full dump of 2020-08-28, one row per model

The whole panel is fitted by score on ability (the mean of the row's other scores) and dataset
dummies, a pair by the score on the target on the score on the anchor; selection has the same
columns. A cell with instrument "age" adds the paper's own candidate to the selection equation: the
dataset's age, in years from the first result on it anywhere in the source to the row's date. Cells
without a date, and cells of datasets that did not exist yet, are dropped and counted, and the row
repeats the fit without age on the remaining cells. Age is a doubtful instrument: given dataset
dummies, and in a pair, it is the row's date minus a constant, and later work scores higher.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import chdtri

from heckesel.classical.covariance import inverse
from heckesel.classical.probit import fit_probit
from heckesel.classical.profile import atanh_rho_interval
from heckesel.classical.results import HeckmanFit
from heckesel.classical.rows import standardised_sample
from heckesel.selection_model import heckman
from heckesel.verdict.identify import wald_evidence
from reproduction.outside import PAPERS_FILES, load_evaluation_tables, load_results_by_paper
from reproduction.reporting_panel import Panel, build_panel, pair_frame, panel_frame
from reproduction.runner import attempt

TASKS = ("Image Classification", "Semantic Segmentation", "Object Detection", "Machine Translation")
SOURCES = {
    "by_paper_2022": (lru_cache(load_results_by_paper), "paper"),
    "by_model_2020": (lru_cache(load_evaluation_tables), "model"),
}
DATA_HASHES = PAPERS_FILES
chunk_of = "{0.source}, {0.task}".format


@dataclass(frozen=True)
class Cell:
    """target: the dataset of a pair, "" for the whole panel; instrument: "" or "age"."""

    source: str
    task: str
    target: str
    instrument: str


def cells(quick: bool = False) -> list[Cell]:
    """Panels and pairs depend on the data, which must be available; there is no small version."""
    return [
        Cell(source, task, target, instrument)
        for source in SOURCES
        for task in TASKS
        if (panel := load_panel(source, task)) is not None
        for target in ("", *panel.targets)
        for instrument in ("", "age")
    ]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return [attempt(run_cell, cell) for cell in cells]


def run_cell(cell: Cell) -> dict[str, float]:
    """Estimates of both methods, every mode, and the interval of rho.

    Dropped datasets are keys: "unreported: " if no row of the panel reports on them, "complete: "
    if every row does.
    """
    panel = load_panel(cell.source, cell.task)  # of the grid, so there is one
    row = {"n_rows": float(len(panel.scores)), "n_unparsed": float(panel.unparsed)}
    if cell.target:
        return row | fit_row(pair_frame(panel, cell.target), "anchor", cell.instrument)
    row |= {f"unreported: {name}": 1.0 for name in panel.unreported}
    return row | fit_row(panel_frame(panel), "ability + dataset", cell.instrument)


@lru_cache
def load_panel(source: str, task: str) -> Panel | None:
    load, unit = SOURCES[source]
    return build_panel(load(), task, unit)


def fit_row(frame: pd.DataFrame, right: str, instrument: str = "") -> dict[str, float]:
    """Score on `right`, by both methods; selection on these columns and the instrument, if any."""
    dropped: dict[str, float] = {}
    if instrument:
        # only cells whose row could have reported
        dated = frame[frame["age"].notna()]
        dropped["n_undated"] = float(len(frame) - len(dated))
        frame = dated[dated["age"] >= 0]
        dropped["n_not_yet_there"] = float(len(dated) - len(frame))
    if "dataset" in frame:
        # Reporting on a complete dataset has no finite coefficient in the selection equation. Its
        # scores are part of every ability already.
        complete = frame["score"].notna().groupby(frame["dataset"]).all()
        frame = frame[~frame["dataset"].map(complete)]
        dropped |= {f"complete: {name}": 1.0 for name in complete.index[complete]}
    outcome, same = f"score ~ {right}", f"~ {right}"
    select = f"{same} + {instrument}" if instrument else same
    joint = heckman(outcome, select, frame, method="ml")
    two_step = heckman(outcome, select, frame, method="two-step")
    row = dropped | _estimates(joint, right.split()[0])
    row["rho_two_step"] = two_step.rho
    row["lambda_two_step"] = float(two_step.params["mills", "lambda"])
    if instrument:
        without = heckman(outcome, same, frame, method="ml")
        row["select_age"] = float(joint.modes[0].params["select", instrument])
        row["wald_age"] = _wald(joint)
        row["rho_without"] = without.modes[0].rho
        row["boundary_without"] = float(without.modes[0].near_boundary)
    return row


def _wald(fit: HeckmanFit) -> float:
    """The Wald statistic of the instrument at the highest maximum; by a probit at rho = +-1, where
    there is no covariance."""
    if fit.selected_mode is fit.modes[0]:
        return fit.identification.evidence["wald"]
    probit = fit_probit(fit.data.w, fit.data.s, fit.data.weight)
    covariance = inverse(-probit.hessian)
    names, instruments = fit.data.w_names, fit.data.instruments
    return wald_evidence(instruments, names, probit.gamma, covariance)["wald"]


def _estimates(fit: HeckmanFit, slope: str) -> dict[str, float]:
    """Of the highest maximum, as in the paper, also where `fit` uses an interior one."""
    best, (rows, _) = fit.modes[0], standardised_sample(fit.data)
    lowest = fit.scan.modes[0].value - 0.5 * float(chdtri(1, 0.05))
    low, high = atanh_rho_interval(rows, fit.scan.modes, lowest)
    row = {
        "n": float(fit.n),
        "n_reported": float(fit.n_selected),
        "rho": best.rho,
        "rho_low": float(np.tanh(low)),
        "rho_high": float(np.tanh(high)),
        "loglik": best.loglik,
        "boundary": float(best.near_boundary),
        "n_modes": float(len(fit.modes)),
        f"outcome_{slope}": float(best.params["outcome", slope]),
        f"select_{slope}": float(best.params["select", slope]),
    }
    rho_se = (1 - fit.rho**2) * fit.se["ancillary", "atanh_rho"]
    # at the boundary there is none, and JSON has no NaN
    if fit.selected_mode is best and np.isfinite(rho_se):
        row["rho_se"] = float(rho_se)
    for position, mode in enumerate(fit.modes):
        row |= {f"mode_{position}_rho": mode.rho, f"mode_{position}_loglik": float(mode.loglik)}
    return row
