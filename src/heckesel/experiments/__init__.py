"""Experiments: cells in, `results/*.json` out, and everything published is computed from those.

EXPERIMENTS maps the name a user types to the module that runs it.
"""

from importlib import import_module

EXPERIMENTS = {
    "e0": "heckesel.experiments.e0_gate",
}


def load(name: str):
    """The module of an experiment: `Cell`, `cells()`, `run_cell(cell)`."""
    return import_module(EXPERIMENTS[name])
