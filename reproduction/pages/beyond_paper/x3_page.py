"""The chapter X3: the verdict on identification compared with the truth."""

from functools import partial
from itertools import product

import numpy as np

from heckesel.diagnostics.verdict import IDENTIFIED, VERDICTS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    coverage_target,
    target_row,
)
from reproduction.pages.rows import Results, matching
from reproduction.x3_verdict import INSTRUMENTS, RHOS, SIZES

CODE = float(VERDICTS.index(IDENTIFIED))
COLUMNS = (
    *md.columns(md.INTERVALS | {"bias": "bias_f0_against"}),
    md.Column("mean of \\|bias\\|", "bias_f0_against", md.mean_absolute),
)


def identified(results: Results, **cell) -> np.ndarray:
    """1 for each dataset called identified by an instrument, 0 for the others."""
    return np.array([float(row["verdict"] == CODE) for row in matching(results.x3, **cell)])


def targets(results: Results) -> list[TargetRow]:
    called = f"called `{IDENTIFIED}`"
    never = Requirement(identified(results, instrument="none"), high=0.0)
    rarely = Requirement(identified(results, instrument="irrelevant"), high=0.01)
    irrelevant = f"an irrelevant instrument: at most 1 in 100 {called}"
    coverage = _values(results, CODE, "coverage90_against")
    return [
        target_row(f"no instrument: never {called}", "identify", never, form=md.PERCENT),
        target_row(irrelevant, "identify", rarely, form=md.PERCENT),
        coverage_target(called, "spline_joint", coverage, 0.87, 0.93),
    ]


def parts(results: Results) -> dict[str, str]:
    return {"verdicts": _verdicts(results), "coverage": _coverage(results)}


def _verdicts(results: Results) -> str:
    lines = []
    for kind, n, rho in product(INSTRUMENTS, SIZES, RHOS):
        found = [row["verdict"] for row in matching(results.x3, instrument=kind, n=n, rho=rho)]
        counts = [str(found.count(float(place))) for place in range(len(VERDICTS))]
        lines.append([kind, str(n), md.decimal(rho), *counts])
    return md.table(["instrument", "units", "ρ", *VERDICTS], lines)


def _coverage(results: Results) -> str:
    lines = []
    for place, verdict in enumerate(VERDICTS):
        find = partial(_values, results, float(place))
        lines.append(([verdict, str(len(find("verdict")))], find))
    return md.metric_table(("verdict", "datasets"), COLUMNS, lines)


def _values(results: Results, verdict: float, metric: str) -> np.ndarray:
    """The metric in each dataset with this verdict."""
    return np.array([row[metric] for row in matching(results.x3, verdict=verdict)])
