"""Tables of committed results, written when the pages are built into `_generated`, which is not
committed."""

from __future__ import annotations

import json
from pathlib import Path

from reproduction.pages.beyond_paper.targets import table

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
