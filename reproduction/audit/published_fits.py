"""The published fits: where each is printed, its data and equations, and its log-likelihood."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from reproduction.audit import tables


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


def _read_fits() -> tuple[PublishedFit, ...]:
    text = Path(__file__).with_name("published_fits.toml").read_text(encoding="utf-8")
    found = []
    for model in tomllib.loads(text)["model"]:
        printed, arguments = model.pop("print"), model.pop("arguments", [])
        table = partial(getattr(tables, model.pop("table")), *arguments)
        found += [PublishedFit(table=table, **model, **each) for each in printed]
    return tuple(found)


PUBLISHED_FITS = _read_fits()
