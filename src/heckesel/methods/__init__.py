"""Methods and baselines, one per file: `fit(data, *, seed, config) -> Fitted`.

A fitted method has `.predict(x, w=None, target="population") -> Predictive` and `.info`, a dict.
Network methods also have `fit_many(datas, *, seeds, config, device)`, which trains all cells in
one batch. A new method is a file and a line here; the contract test picks it up.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from heckesel.errors import DataError

METHODS = {
    "heckman_joint": "heckesel.methods.heckman_joint",
    "heckman_two_step": "heckesel.methods.heckman_two_step",
    "heckman_outcome": "heckesel.methods.heckman_outcome",
    "heckman_averaged": "heckesel.methods.heckman_averaged",
    "heckman_profile": "heckesel.methods.heckman_profile",
    "spline_joint": "heckesel.methods.spline_joint",
    "blind_two_head": "heckesel.methods.blind_two_head",
    "deep_ensemble": "heckesel.methods.deep_ensemble",
    "weighted_ensemble": "heckesel.methods.weighted_ensemble",
    "mc_dropout": "heckesel.methods.mc_dropout",
    "gp": "heckesel.methods.gp",
    "least_squares": "heckesel.methods.least_squares",
    "linear_heckman": "heckesel.methods.linear_heckman",
    "skyline": "heckesel.methods.skyline",
    "oracle": "heckesel.methods.oracle",
}


def load_method(name: str) -> ModuleType:
    """The module behind a name in METHODS, imported when first asked for."""
    if name not in METHODS:
        raise DataError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return import_module(METHODS[name])
