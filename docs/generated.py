"""Figures made by a page's own code, and tables of committed results, written when the pages are
built. The output folder `_generated` is not committed."""

from __future__ import annotations

import io
import json
import re
import warnings
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np

from heckesel.diagnostics.verdict import SUPPORTED, UNCERTAIN, UNUSABLE
from heckesel.errors import IdentificationWarning
from reproduction.pages.beyond_paper.markdown import table
from reproduction.result_files import read_rows
from reproduction.simulations.identified_coverage import table as identified_coverage
from reproduction.simulations.long_tables import table as long_tables

# Page -> file name -> the name that its code gives to the matplotlib axes.
PICTURES = {
    "identification.md": {"profile.svg": "curve", "sensitivity.svg": "means"},
    "bounds.md": {"bounds.svg": "ax"},
}
ERRORS = {"normal": "normal", "t": "t(3)", "chi2": "skewed, centred χ²(3)"}
SHOWN = {
    "deep_ensemble": "plain ensemble",
    "heckman_two_step": "two-step",
    "heckman_profile": "profile",
    "heckman_auto": "auto",
}
# Outcome -> measure -> its heading.
INFERENCE = {
    "linear": {
        "score_rejects": "score test rejects ρ = 0",
        "lr_rejects": "LR test rejects",
        "wald_rejects": "Wald test rejects",
        "wald_x": "slope, Wald 95 %",
        "default_x": "slope, default 95 %",
        "default_average90": "average, default 90 %",
    },
    "binary": {
        "score_rejects": "score test rejects ρ = 0",
        "wald_probability90": "probability, delta method 90 %",
        "default_probability90": "probability, default 90 %",
    },
}

LONG_TABLES = {
    "coverage90_against": "coverage of 90 % intervals, selected-against region",
    "coverage90": "coverage of 90 % intervals, all points",
    "crps_against": "CRPS, selected-against region",
    "crps": "CRPS, all points",
    "bias_f0_against": "absolute bias of the mean, selected-against region",
    "log_density": "mean log density of held-out outcomes",
}


def run_pictures(folder: Path) -> None:
    """Run the code of the pages that draw and save their figures."""
    matplotlib.use("Agg")
    out = folder / "_generated"
    out.mkdir(exist_ok=True)
    for page, pictures in PICTURES.items():
        scope: dict = {}
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore", IdentificationWarning)
            for block in re.findall(r"```python\n(.*?)```", (folder / page).read_text(), re.DOTALL):
                exec(compile(block, page, "exec"), scope)
        for name, axes in pictures.items():
            scope[axes].figure.savefig(out / name)


def make_tables(folder: Path) -> None:
    """Write all tables of committed results."""
    out, results = folder / "_generated", folder.parent / "results"
    out.mkdir(exist_ok=True)
    tables = {
        "misspecified": misspecified(read_rows(results / "x2_misspecified.json")),
        "fooling": fooling(_read(results / "fooling.json")),
        "average_coverage": averages(_read(results / "average_coverage.json")["rows"]),
        "identified": identified(_read(results / "identified_coverage.json")),
        "long_tables": sampled(_read(results / "long_tables.json")),
        "groups": grouped(_read(results / "group_coverage.json")),
    }
    inferences = _read(results / "inference_coverage.json")["rows"]
    tables |= {f"inference_{outcome}": inference(inferences, outcome) for outcome in INFERENCE}
    for name, text in tables.items():
        (out / f"{name}.md").write_text(text + "\n")


def _read(path: Path):
    return json.loads(path.read_text())


def misspecified(rows: list[dict]) -> str:
    """Coverage and bias of X2 in the selected-against region, with and without an instrument."""
    lines = []
    for errors, alpha, rho in product(ERRORS, (1.0, 0.0), (0.0, 0.9)):
        cell = {"errors": errors, "alpha": alpha, "rho": rho}
        found = [_entry(rows, cell | {"method": method}) for method in SHOWN]
        lines.append([ERRORS[errors], "yes" if alpha else "no", f"{rho:g}", *found])
    return table(["errors", "instrument", "ρ", *SHOWN.values()], lines)


def inference(rows: list[dict], outcome: str) -> str:
    """Rejections of rho = 0 and coverage, by strength of the instrument."""
    columns, lines = INFERENCE[outcome], []
    for row in rows:
        setting = row["setting"]
        if setting["outcome"] == outcome:
            where = str(setting["n"]), setting["instrument"], f"{setting['rho']:g}"
            shown = [f"{100 * row[name]:.1f} %" if name in row else "" for name in columns]
            lines.append([*where, *shown])
    return table(["n", "instrument", "ρ", *columns.values()], lines)


def fooling(rows: list[dict]) -> str:
    """How often the Wald rule alone calls cases identified, and what the verdict says of them."""
    levels = (SUPPORTED, UNCERTAIN, UNUSABLE)
    counts = [[str(row["levels"].get(level, 0)) for level in levels] for row in rows]
    lines = [
        [row["case"], str(row["wald_rule"]), *own] for row, own in zip(rows, counts, strict=True)
    ]
    return table(["case", "Wald statistic above 10", *levels], lines)


def averages(rows: list[dict]) -> str:
    """Coverage of average outcomes, by estimator."""
    lines = []
    for row in rows:
        numbers = [f"{row[name]:.3f}" for name in ("bias", "sd", "se")]
        where = row["estimator"], row["target"], str(row["draws"])
        lines.append([*where, f"{100 * row['coverage']:.0f} %", *numbers])
    return table(["estimator", "target", "draws", "coverage", "bias", "sd", "se"], lines)


def identified(rows: list[dict]) -> str:
    """Coverage of `auto` among draws that are called identified, by strength and errors."""
    lines = []
    for line in identified_coverage(rows):
        shown = ["", ""]
        if line["identified"]:
            error = f" ± {100 * line['standard_error']:.1f}" if "standard_error" in line else ""
            shown = [f"{100 * line[name]:.1f}" for name in ("coverage90_against", "coverage90")]
            shown = [f"{shown[0]}{error} %", f"{shown[1]} %"]
        where = line["instrument"], line["errors"], str(line["draws"]), str(line["identified"])
        lines.append([*where, *shown])
    header = ("instrument", "errors", "draws", "called identified")
    return table([*header, "selected-against", "all points"], lines)


def sampled(rows: list[dict]) -> str:
    """`auto` on a sample of a long table against all of its rows."""
    lines = []
    for line in long_tables(rows):
        numbers = [f"{line[name]:.3f}" for name in ("sampled", "whole")]
        change = f"{line['difference']:+.3f} ± {line['standard_error']:.3f}"
        lines.append([LONG_TABLES[line["measure"]], *numbers, change])
    text = table(["measure", "sample", "all rows", "difference"], lines)
    return re.sub(r"-(?=\d)", "−", text)


def grouped(rows: list[dict]) -> str:
    """Coverage without and with `groups=`, by method and number of units."""
    header = ["method", "units", "draws", "new units, without", "with groups"]
    lines = []
    for pair in zip(rows[::2], rows[1::2], strict=True):
        covered = [f"{100 * e['coverage']:.1f} ± {100 * e['coverage_error']:.1f} %" for e in pair]
        slopes = [f"{100 * each['slope']:.0f} %" if "slope" in each else "" for each in pair]
        where = [str(pair[0][name]) for name in ("method", "units", "draws")]
        lines.append([*where, *covered, *slopes])
    return table([*header, "slope, without", "with groups"], lines)


def _entry(rows, cell: dict) -> str:
    """Mean over seeds: coverage in per cent, then bias."""
    found = [row["metrics"] for row in rows if cell.items() <= row["cell"].items()]
    coverage, bias = (
        np.mean([metrics[name] for metrics in found])
        for name in ("coverage90_against", "bias_f0_against")
    )
    bias = round(bias, 2) + 0.0  # no minus before a zero
    return f"{100 * coverage:.0f} %, {bias:+.2f}".replace("-", "−")
