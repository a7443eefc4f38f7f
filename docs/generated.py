"""Figures made by a page's own code, and tables of committed results, written when the pages are
built. The output folder `_generated` is not committed."""

from __future__ import annotations

import io
import json
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib

from heckesel.errors import IdentificationWarning
from reproduction.pages.beyond_paper.markdown import table

# Page -> file name -> the name that its code gives to the matplotlib axes.
PICTURES = {
    "identification.md": {"profile.svg": "curve", "sensitivity.svg": "means"},
    "bounds.md": {"bounds.svg": "ax"},
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
    rows = json.loads((results / "inference_coverage.json").read_text())["rows"]
    for outcome in INFERENCE:
        (out / f"inference_{outcome}.md").write_text(inference(rows, outcome) + "\n")


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
