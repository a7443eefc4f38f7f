"""X3 on the page: the verdict on identification against what was true."""

from __future__ import annotations

import numpy as np

from heckesel.diagnostics.verdict import IDENTIFIED, VERDICTS
from reproduction import x3_verdict
from reproduction.pages.ours.targets import (
    PERCENT,
    Judged,
    Part,
    decimal,
    judge,
    mean_of,
    mean_size,
    table,
)
from reproduction.pages.rows import Results, Row, matching
from reproduction.x3_verdict import INSTRUMENTS, RHOS, SIZES

TITLE = "X3: is the verdict right?"
FIGURE = None
CODE = float(VERDICTS.index(IDENTIFIED))
AT_MOST = 0.01
INTRODUCTION = """\
Generated data sets with an instrument that is strong, weak, irrelevant (a column of noise) or \
absent. Each gets the verdict of `hk.identify` and a spline fit, whose 90 % intervals are counted \
in the selected-against region. *Seeds* of the targets are data sets here."""


def cells() -> list:
    return x3_verdict.cells()


def rows(results: Results) -> list[Row]:
    return list(results.x3)


def identified(results: Results, **cell) -> np.ndarray:
    """1 for each data set called identified by an instrument, 0 for the others."""
    return np.array([float(row["verdict"] == CODE) for row in matching(results.x3, **cell)])


def coverage_where_identified(results: Results) -> np.ndarray:
    found = matching(results.x3, verdict=CODE)
    return np.array([row["coverage90_against"] for row in found])


def targets(results: Results) -> list[Judged]:
    called = f"called `{IDENTIFIED}`"
    never, rarely = (identified(results, instrument=kind) for kind in ("none", "irrelevant"))
    covered = Part(coverage_where_identified(results), 0.87, 0.93)
    return [
        judge(f"no instrument: never {called}", "identify", Part(never, high=0.0), form=PERCENT),
        judge(
            f"an irrelevant instrument: at most 1 in 100 {called}",
            "identify",
            Part(rarely, high=AT_MOST),
            form=PERCENT,
        ),
        judge(f"{called}: coverage 87–93 %", "spline_joint", covered, form=PERCENT),
    ]


def text(results: Results) -> str:
    parts = [INTRODUCTION]
    if results.x3:
        parts += [
            "### Verdict against what was true",
            _verdicts(results),
            "### Coverage of the spline fit by verdict",
            _coverage(results),
        ]
    return "\n\n".join(parts)


def _verdicts(results: Results) -> str:
    lines = []
    for kind in INSTRUMENTS:
        for n in SIZES:
            for rho in RHOS:
                cell = {"instrument": kind, "n": n, "rho": rho}
                found = [row["verdict"] for row in matching(results.x3, **cell)]
                counts = [str(found.count(float(place))) for place in range(len(VERDICTS))]
                lines.append([kind, str(n), decimal(rho), *counts])
    return table(["instrument", "units", "ρ", *VERDICTS], lines)


def _coverage(results: Results) -> str:
    lines = []
    for place, verdict in enumerate(VERDICTS):
        found = matching(results.x3, verdict=float(place))
        coverage, width, bias = (
            np.array([row[f"{metric}_against"] for row in found])
            for metric in ("coverage90", "width90", "bias_f0")
        )
        shown = [mean_of(coverage, PERCENT), mean_of(width), mean_of(bias), mean_size(bias)]
        lines.append([verdict, str(len(found)), *shown])
    return table(["verdict", "data sets", "coverage", "width", "bias", "mean of \\|bias\\|"], lines)
