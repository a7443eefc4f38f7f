"""Nine real sources in which the outcomes of the unselected are known, and how they are hidden.

`known_outcomes.toml` states for each source who is selected, which columns affect selection only,
and which outcomes are known whether or not a unit was selected. The outcomes were determined before
selection, so selection cannot have caused them. The files are not in the repository; each is read
from an installed package or from the folder in HECKESEL_DATA, and must have the recorded SHA-256.
"""

import hashlib
import io
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.datasets.outside import read_outside
from heckesel.datasets.rand_hie import load_rand_hie
from heckesel.errors import DataError


@dataclass(frozen=True)
class Source:
    """One dataset with the column `selected`, an entry of `known_outcomes.toml`.

    read : the frame, complete in all columns but the outcomes
    randomised : whether the instruments were assigned at random
    outcomes : outcome -> columns x of its equation
    """

    read: Callable[[], pd.DataFrame]
    instruments: tuple[str, ...]
    randomised: bool
    outcomes: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class KnownOutcome:
    """An outcome as known to an analyst, and the truth.

    x : covariates and instruments; y : NaN where unselected
    truth : values of the unselected, all of them or those of a random follow-up
    """

    x: pd.DataFrame
    y: pd.Series
    instruments: tuple[str, ...]
    truth: np.ndarray

    @property
    def covariates(self) -> list[str]:
        return [name for name in self.x.columns if name not in self.instruments]

    @property
    def hidden(self) -> np.ndarray:
        return self.y.isna().to_numpy()


@lru_cache
def _table(file: str) -> pd.DataFrame:
    """A CSV file of FILES, from the installed package of that name or from HECKESEL_DATA."""
    package, _, inside = file.partition("/")
    published = PUBLISHED[package]
    found = find_spec(package)
    if found is None or found.origin is None:
        content = read_outside(file, FILES[file], None, published=published)
    else:
        path = Path(found.origin).parent / inside
        if not path.exists():
            raise DataError(f"{path} does not exist; {published}")
        content = path.read_bytes()
        if (computed := hashlib.sha256(content).hexdigest()) != FILES[file]:
            raise DataError(f"{path} has SHA-256 {computed} instead of {FILES[file]}; {published}")
    return pd.read_csv(io.BytesIO(content), compression="bz2" if file.endswith("bz2") else None)


def _hiv_tests(frame: pd.DataFrame) -> pd.DataFrame:
    known = frame["hiv2004"] >= 0  # -1 is not determined
    return frame.assign(hiv2004=frame["hiv2004"].where(known))


def _survey(frame: pd.DataFrame) -> pd.DataFrame:
    dummies = {
        party: (frame["pid_3_recoded"] == name).astype(float)
        for party, name in (("democrat", "Dem"), ("republican", "Rep"))
    }
    answered = frame["L_dif_w2"].where((frame["R1"] == 1) | (frame["R2"] == 1))
    return frame.assign(L_dif_w2=answered, **dummies)


# Preparation of the columns of a source.
PREPARED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "HIV tests": _hiv_tests,
    "crop insurance": lambda frame: frame.assign(log_rice_area=np.log(frame["ricearea_2010"])),
    "school vouchers": lambda frame: frame.rename(columns={"select": "lottery"}),
    "panel survey": _survey,
}


def _read(name: str, *, selected: str, file: str | None, complete: list[str]) -> pd.DataFrame:
    """The frame of a source, with `selected` from a condition on its columns."""
    frame = load_rand_hie("cameron_trivedi") if file is None else _table(file)
    frame = frame.dropna(subset=complete)
    frame = PREPARED[name](frame) if name in PREPARED else frame
    return frame.assign(selected=frame.eval(selected))


def _source(name: str, given: dict) -> Source:
    file, complete = given.get("file"), given.get("complete", [])
    return Source(
        partial(_read, name, selected=given["selected"], file=file, complete=complete),
        tuple(given["instruments"]),
        given["randomised"],
        {outcome: tuple(columns) for outcome, columns in given["outcomes"].items()},
    )


_PROTOCOL = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FILES, PUBLISHED = _PROTOCOL["files"], _PROTOCOL["published"]
SOURCES = {name: _source(name, given) for name, given in _PROTOCOL["sources"].items()}


def load_outcome(source: str, outcome: str) -> KnownOutcome:
    """Hide an outcome of those who were not selected.

    A unit whose outcome is unknown is dropped, whether selected or not, except where the truth is
    a random follow-up (`L_dif_w2`): there all unselected units are kept, and the truth is the
    outcomes of those who were reached.
    """
    of = SOURCES[source]
    frame, x = of.read(), [*of.outcomes[outcome], *of.instruments]
    frame = frame.dropna(subset=x)
    followed_up = outcome == "L_dif_w2"
    frame = frame[frame[outcome].notna() | (followed_up & ~frame["selected"])]
    s = frame["selected"].to_numpy()
    truth = frame[outcome][~s].dropna().to_numpy(dtype=float)
    y = frame[outcome].astype(float).where(s).rename("y").reset_index(drop=True)
    columns = frame[x].astype(float).reset_index(drop=True)
    return KnownOutcome(columns, y, of.instruments, truth)
