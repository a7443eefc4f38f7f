"""Data that could mislead the verdict: by the Wald statistic alone, each case looks identified.

`python -m reproduction.simulations.fooling` fits 20 draws of each case with `hk.heckman` and writes
`results/fooling.json`: how often the Wald statistic of the instrument alone would have called the
fit identified, and what the verdict says. A new case is a function of a random generator.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

import heckesel as hk
from heckesel.atomic_files import write_atomically
from heckesel.linear.wald import STRONG_WALD_PER_INSTRUMENT

DRAWS = 20
ROWS = 1000
RESULTS = Path(__file__).parents[2] / "results" / "fooling.json"


def _draw(rng, *, instrument=None, strength=1.0, error=None, rho=0.5) -> pd.DataFrame:
    """One table; instrument : of (x1, x2, noise); error : of (normal error, x1, uniform)"""
    x1, x2, noise, u, v = rng.normal(size=(5, ROWS))
    z = noise if instrument is None else instrument(x1, x2, noise)
    e = rho * u + np.sqrt(1 - rho**2) * v
    e = e if error is None else error(e, x1, rng.uniform(size=ROWS))
    selected = 0.3 + 0.5 * x1 + strength * z + u > 0
    y = 1 + x1 + x2 + e
    return pd.DataFrame({"x1": x1, "x2": x2, "z": z, "y": np.where(selected, y, np.nan)})


def _draw_two(rng) -> pd.DataFrame:
    """Two instruments, of which the second affects the outcome."""
    table = _draw(rng)
    second = rng.normal(size=ROWS)
    rejected = second + rng.normal(size=ROWS) < -1
    y = (table["y"] + 0.5 * second).mask(rejected)
    return table.assign(z2=second, y=y)


def _draw_curved(rng) -> pd.DataFrame:
    """The outcome has a product and a square that are missing in its equation."""
    table = _draw(rng)
    return table.assign(y=table["y"] + 0.5 * table["x1"] * table["x2"] + 0.3 * table["x1"] ** 2)


def _draw_copies(rng) -> pd.DataFrame:
    """Every fifth row, repeated five times."""
    return _draw(rng).iloc[np.repeat(np.arange(ROWS // 5), 5)]


CASES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "normal errors, a valid instrument": _draw,
    "exponential errors": lambda rng: _draw(rng, error=lambda e, x, t: -norm.logsf(e) - 1),
    "log-normal errors": lambda rng: _draw(rng, error=lambda e, x, t: np.exp(e) - np.exp(0.5)),
    "1 % outliers": lambda rng: _draw(rng, error=lambda e, x, t: np.where(t < 0.01, 10 * e, e)),
    "sigma depends on x": lambda rng: _draw(rng, error=lambda e, x, t: e * np.exp(0.6 * x)),
    "instrument = x1 * x2": lambda rng: _draw(rng, instrument=lambda a, b, t: a * b),
    "instrument = x1 squared": lambda rng: _draw(rng, instrument=lambda a, b, t: a**2),
    "instrument = 1 if x1 > 0": lambda rng: _draw(rng, instrument=lambda a, b, t: 1.0 * (a > 0)),
    "two instruments, one invalid": _draw_two,
    "the outcome lacks a curve and a product": _draw_curved,
    "each row five times": _draw_copies,
    "a weak instrument, rho = 0": lambda rng: _draw(rng, strength=0.15, rho=0.0),
    "a noise column as instrument": lambda rng: _draw(rng, strength=0.0),
}


def fit_of(table: pd.DataFrame) -> hk.HeckmanFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hk.IdentificationWarning)
        return hk.heckman("y ~ x1 + x2", f"~ {' + '.join(table.columns.drop('y'))}", table)


def row_of(name: str, draws: int = DRAWS) -> dict:
    """How often the Wald rule alone is misled, and how often each level is given."""
    fits = [fit_of(CASES[name](np.random.default_rng(seed))) for seed in range(draws)]
    evidence = [fit.identification.evidence for fit in fits]
    least = [STRONG_WALD_PER_INSTRUMENT * len(each["instruments"]) for each in evidence]
    strong = sum(each["wald"] >= one for each, one in zip(evidence, least, strict=True))
    levels = Counter(fit.identification.level for fit in fits)
    return {"case": name, "draws": draws, "wald_rule": int(strong), "levels": dict(levels)}


if __name__ == "__main__":
    write_atomically(RESULTS, json.dumps([row_of(name) for name in CASES], indent=1) + "\n")
