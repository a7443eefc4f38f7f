"""Experiments: cells in, `results/*.json` out, and everything published is computed from those.

EXPERIMENTS maps the name a user types to the module that runs it. A module has

* `Cell`, a frozen dataclass; `cells(quick)` lists the grid, or a small version of it
* `chunk_of(cell)`: cells that are trained together, a function of the cell alone
* `run_chunk(cells, device)`: one flat dict of floats (or an exception) for each cell
* `DATA_HASHES`: SHA-256 of the files it reads
"""

from importlib import import_module

EXPERIMENTS = {
    "e0": "heckesel.experiments.e0_gate",
    "e1": "heckesel.experiments.e1_controlled",
    "warm-up": "heckesel.experiments.e1_warm_up",
    "e2": "heckesel.experiments.e2_semireal",
    "e4": "heckesel.experiments.e4_panels",
    "e4-timm": "heckesel.experiments.e4_timm",
    "x1": "heckesel.experiments.x1_profile",
    "x2": "heckesel.experiments.x2_misspecified",
    "x3": "heckesel.experiments.x3_verdict",
    "x4": "heckesel.experiments.x4_calibrated",
}


def load(name: str):
    """The module of an experiment."""
    return import_module(EXPERIMENTS[name])
