"""The published fits: where each is printed, its data, equations and log-likelihood; and the same
model fitted again: every mode, the printed one, and a fit with shape errors.
"""

import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

import heckesel as hk
from heckesel.classical.forms import Mode
from heckesel.display import plain
from heckesel.errors import IdentificationWarning
from reproduction.audit import tables

SAME = 0.01  # log-units between a maximum and the value at which a program stopped
GLOBAL, LOCAL = "global maximum", "local maximum"
BELOW_BOUNDARY = "highest interior maximum, below rho = ±1"
PRINTED = ("name", "source", "program", "outcome", "select")


@dataclass(frozen=True)
class PublishedFit:
    """A printed maximum likelihood fit, an entry of `published_fits.toml`."""

    name: str
    source: str
    program: str
    table: Callable[[], pd.DataFrame]
    outcome: str
    select: str
    loglik: str
    term: str
    weights: str | None = None
    slack: float = 0.0

    @property
    def printed(self) -> float:
        return float(self.loglik)

    @property
    def tolerance(self) -> float:
        """Half a unit of the last printed digit, and 1e-11 of the value for other arithmetic."""
        digits = len(self.loglik.partition(".")[2])
        return 0.5 * 10.0**-digits + self.slack + 1e-11 * abs(self.printed)


_TEXT = Path(__file__).with_name("published_fits.toml").read_text(encoding="utf-8")
PUBLISHED_FITS: list[PublishedFit] = []
for _model in tomllib.loads(_TEXT)["model"]:
    _printed, _arguments = _model.pop("print"), _model.pop("arguments", [])
    _table = partial(getattr(tables, _model.pop("table")), *_arguments)
    PUBLISHED_FITS += [PublishedFit(table=_table, **_model, **each) for each in _printed]


def audit_row(published: PublishedFit) -> dict:
    """The printed fit, the modes found, and the fit with shape errors; safe to write as JSON."""
    fit, shape = _fit(published, "normal"), _fit(published, "shape")
    printed = printed_mode(published, fit.modes)
    interior = [mode for mode in fit.modes if mode.status == "converged"]
    below = BELOW_BOUNDARY if printed is interior[0] else LOCAL
    term = ("outcome", published.term)
    return {
        **{name: getattr(published, name) for name in PRINTED},
        "n": int(fit.n),
        "n_selected": int(fit.n_selected),
        "printed_loglik": published.loglik,
        "tolerance": published.tolerance,
        "best_loglik": float(fit.modes[0].loglik),
        "modes": [
            {
                "rho": float(mode.rho),
                "loglik": float(mode.loglik),
                "status": mode.status,
                "coefficient": float(mode.params[term]),
            }
            for mode in fit.modes
        ],
        "printed_mode": fit.modes.index(printed),
        "printed_is": GLOBAL if printed is fit.modes[0] else below,
        "used_mode": int(fit.selected),
        "verdict": fit.identification.verdict,
        "term": published.term,
        "coefficient": float(fit.params[term]),
        "shape_coefficient": float(shape.params[term]),
        "shape_se": plain(shape.se[term]),
        "shape_rho": float(shape.rho),
        "shape_loglik": float(shape.loglik),
        "shape_status": shape.status,
    }


def printed_mode(published: PublishedFit, modes: tuple[Mode, ...]) -> Mode:
    """The mode that the printed fit approximates."""
    nearest = min(modes, key=lambda mode: abs(mode.loglik - published.printed))
    assert abs(nearest.loglik - published.printed) < SAME, published.name
    return nearest


def _fit(published: PublishedFit, errors: str):
    weights = {"weights": published.weights, "weight_kind": "probability"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # the verdict is recorded
        return hk.heckman(
            published.outcome,
            published.select,
            published.table(),
            errors=errors,
            **(weights if published.weights else {}),
        )
