"""The chapter on tests of instruments: their level and power."""

from itertools import product

import numpy as np

from reproduction.instrument_levels import ERRORS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, target_row
from reproduction.pages.rows import Results, matching

SHAPES = {"normal": "normal", "chi2": "centred χ²(3)", "scale": "σ(x)"}
DESIGNS = {
    ("binary", "strong"): "one binary instrument",
    ("continuous", "strong"): "one continuous instrument",
    ("two", "strong"): "two instruments",
    ("binary", "weak"): "one weak binary instrument",
    ("continuous", "weak"): "one weak continuous instrument",
    ("two", "weak"): "two weak instruments",
}


def sizes(results: Results, metric: str = "rejected", **cell) -> np.ndarray:
    """The share that is rejected in each design, over its blocks of draws."""
    found = []
    for (instrument, strength), errors, rho in product(DESIGNS, ERRORS, RHOS):
        design = {"instrument": instrument, "strength": strength, "errors": errors, "rho": rho}
        rows = matching(results.instruments, task="size", **design | cell)
        if rows and design == design | cell and metric in rows[0]:
            found.append(np.mean([row[metric] for row in rows]))
    return np.array(found)


def targets(results: Results) -> list[TargetRow]:
    share = sizes(results)
    average = "valid instruments: rejected in at most 6 % of draws, on average over designs"
    worst = "valid instruments: rejected in at most 7 % of draws of any design"
    return [
        target_row(average, "test_instruments", Requirement(share, high=0.06), form=md.PERCENT),
        target_row(
            worst,
            "test_instruments",
            Requirement(share, high=0.07),
            form=md.PERCENT,
            statistic=np.max,
        ),
    ]


def parts(results: Results) -> dict[str, str]:
    return {"sizes": _sizes(results), "power": _power(results)}


def _sizes(results: Results) -> str:
    lines = []
    for ((instrument, strength), name), errors in product(DESIGNS.items(), ERRORS):
        design = {"instrument": instrument, "strength": strength, "errors": errors}
        shares = [sizes(results, **design, rho=rho) for rho in RHOS]
        if any(map(len, shares)):
            lines.append([name, SHAPES[errors], *map(md.mean_percent, shares)])
    return md.table(["design", "errors", *(f"ρ = {md.decimal(rho)}" for rho in RHOS)], lines)


def _power(results: Results) -> str:
    lines = []
    for ((instrument, strength), name), sign in product(DESIGNS.items(), ("negative", "positive")):
        for row in matching(
            results.instruments, task="power", instrument=instrument, strength=strength
        ):
            effect, caught = row.get(f"effect_{sign}"), row.get(f"caught_{sign}")
            stated = "" if effect is None else md.decimal(round(effect, 2))
            measured = "" if caught is None else md.PERCENT.value(caught)
            lines.append([name, stated, measured, md.PERCENT.value(row[f"without_{sign}"])])
    return md.table(["design", "stated effect", "caught", "draws that state none"], lines)
