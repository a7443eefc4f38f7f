"""Twenty real sources in which outcomes of the unselected are known, and how they are hidden.

`sources.toml` states for each source who is selected, which columns affect selection only, and
which outcomes are known whether or not a unit was selected. The outcomes were determined before
selection, so selection cannot have caused them. The files are not in the repository; each is read
from an installed package or from the folder in HECKESEL_DATA, and must have the recorded SHA-256.
"""

import hashlib
import io
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.datasets.shipped import load_rand_hie
from heckesel.errors import DataError
from reproduction.outside import read_outside


@dataclass(frozen=True)
class Source:
    """An entry of `sources.toml`, which explains the fields."""

    selected: str
    instruments: list[str]
    randomised: bool
    covariates: list[str]
    outcomes: list[str]
    file: str | None = None
    complete: tuple[str, ...] | list[str] = ()
    columns: dict[str, str] | None = None
    categories: tuple[str, ...] | list[str] = ()
    cluster: str | None = None
    missing: str = "mean"
    without: dict[str, list[str]] | None = None
    follow_up: tuple[str, ...] | list[str] = ()
    doubtful: bool = False
    one_sided: bool = False
    strong: bool = False

    @property
    def has_instrument(self) -> bool:
        return bool(self.instruments)

    def equation(self, outcome: str) -> list[str]:
        """The covariates of an outcome."""
        others = {outcome, *(self.without or {}).get(outcome, ())}
        return [*(name for name in self.covariates if name not in others), *self.categories]

    def read(self) -> pd.DataFrame:
        """The whole table, with a column `selected` of booleans."""
        frame = load_rand_hie("cameron_trivedi") if self.file is None else _table(self.file)
        frame = frame.dropna(subset=list(self.complete))
        for name, expression in (self.columns or {}).items():
            frame = frame.assign(**{name: frame.eval(expression, engine="python")})
        return frame.assign(selected=frame.eval(self.selected, engine="python"))


@dataclass(frozen=True)
class KnownOutcome:
    """An outcome as an analyst would know it, and the truth.

    x : (n, columns) covariates and instruments, none missing; categories are strings
    y : (n,) NaN where unselected
    groups : (n,) labels of clusters, or None
    truth : values of the hidden units whose outcome is known, in their order
    hidden_rows_known : (n_hidden,) which hidden units these are; all but in a random follow-up
    """

    source: str
    outcome: str
    x: pd.DataFrame
    y: pd.Series
    instruments: list[str]
    groups: np.ndarray | None
    truth: np.ndarray
    hidden_rows_known: np.ndarray

    @property
    def covariates(self) -> list[str]:
        return [name for name in self.x.columns if name not in self.instruments]

    @property
    def scale(self) -> tuple[float, float, float]:
        """The truth, its standard error, and the standard deviation of the known outcome."""
        everyone = np.concatenate([self.y[~self.hidden], self.truth])
        error = self.truth.std(ddof=1) / np.sqrt(len(self.truth))
        return self.truth.mean(), error, everyone.std(ddof=1)

    @property
    def hidden(self) -> np.ndarray:
        return self.y.isna().to_numpy()


_SPECIFICATION = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FILES, PUBLISHED = _SPECIFICATION["files"], _SPECIFICATION["published"]
SOURCES = {name: Source(**given) for name, given in _SPECIFICATION["sources"].items()}
OUTCOMES = [(name, outcome) for name, source in SOURCES.items() for outcome in source.outcomes]


def load_outcome(source: str, outcome: str) -> KnownOutcome:
    """Hide an outcome of those who were not selected.

    A unit whose outcome is unknown is dropped, whether selected or not, except where the truth is
    a random follow-up: there all unselected units are kept.
    """
    of = SOURCES[source]
    x = [*of.equation(outcome), *of.instruments]
    frame = of.read()
    keep = frame[outcome].notna() | ((outcome in of.follow_up) & ~frame["selected"])
    if of.missing == "drop":
        keep &= frame[x].notna().all(axis=1)
    frame = frame[keep].reset_index(drop=True)
    columns = {name: _filled(frame[name], name in of.categories) for name in x}
    s, known = frame["selected"].to_numpy(), frame[outcome].notna().to_numpy()
    groups = None
    if of.cluster is not None:  # a unit without a label is its own cluster
        own = "row " + pd.Series(frame.index.astype(str))
        groups = frame[of.cluster].astype(object).where(frame[of.cluster].notna(), own)
        groups = groups.astype(str).to_numpy()
    return KnownOutcome(
        source,
        outcome,
        pd.DataFrame(columns),
        frame[outcome].astype(float).where(s).rename("y"),
        of.instruments,
        groups,
        frame[outcome][~s & known].to_numpy(dtype=float),
        known[~s],
    )


def _filled(column: pd.Series, category: bool) -> pd.Series:
    """The column without missing values: its mean, or for text a level "missing"."""
    if pd.api.types.is_numeric_dtype(column) and not category:
        column = column.astype(float)
        return column.fillna(column.mean())
    return column.astype(object).where(column.isna(), column.astype(str)).fillna("missing")


@lru_cache
def _table(file: str) -> pd.DataFrame:
    """A CSV file of FILES, from the installed package of that name or from HECKESEL_DATA."""
    package, _, inside = file.partition("/")
    published, found = PUBLISHED[package], find_spec(package)
    path = Path(found.origin).parent / inside if found and found.origin else None
    content = read_outside(file, FILES[file], path, published=published)
    computed = FILES[file] if path is None else hashlib.sha256(content).hexdigest()
    if computed != FILES[file]:  # a file from HECKESEL_DATA has been compared already
        raise DataError(f"{path} has SHA-256 {computed} instead of {FILES[file]}; {published}")
    return pd.read_csv(io.BytesIO(content), compression="bz2" if file.endswith("bz2") else None)
