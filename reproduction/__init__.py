"""Experiments: cells in, `results/*.json` out, and everything published is computed from those.

EXPERIMENTS maps the name a user types to the module that runs it. A module has

* `Cell`, a frozen dataclass; `cells(quick)` lists the grid, or a small version of it
* `chunk_of(cell)`: the chunk of a cell, which depends only on the cell; cells of a chunk are
  trained together
* `run_chunk(cells, device)`: one flat dict of floats (or an exception) for each cell
* `DATA_HASHES`, if it reads files: their SHA-256; `PACKAGES`, if it judges others: their names
"""

from importlib import import_module

EXPERIMENTS = {
    "e0": "reproduction.e0_gate",
    "e1": "reproduction.e1_controlled",
    "warm-up": "reproduction.e1_warm_up",
    "e2": "reproduction.e2_semireal",
    "e4": "reproduction.e4_panels",
    "e4-timm": "reproduction.e4_timm",
    "x1": "reproduction.x1_profile",
    "x4": "reproduction.x4_calibrated",
    "x5": "reproduction.x5_regimes",
    "x6": "reproduction.x6_truth",
    "peers": "reproduction.x6_peers",
}


def load(name: str):
    """The module of an experiment."""
    return import_module(EXPERIMENTS[name])
