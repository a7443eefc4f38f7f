"""Figures made by a page's own code, and tables of committed results, written when the pages are
built. The output folder `_generated` is not committed."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
import numpy as np

from heckesel.errors import IdentificationWarning
from reproduction.result_files import read_rows

# Page -> file name -> the name that its code gives to the matplotlib axes.
PICTURES = {"identification.md": {"profile.svg": "curve", "sensitivity.svg": "means"}}
ERRORS = {"normal": "normal", "t": "t(3)", "chi2": "skewed, centred χ²(3)"}
SHOWN = {
    "deep_ensemble": "plain ensemble",
    "heckman_two_step": "two-step",
    "heckman_profile": "profile",
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
    """Coverage and bias of X2 in the selected-against region, with and without an instrument."""
    rows = read_rows(folder.parent / "results" / "x2_misspecified.json")
    lines = [
        "| errors | instrument | ρ | " + " | ".join(SHOWN.values()) + " |",
        "|---|---|---|" + "---|" * len(SHOWN),
    ]
    for errors, text in ERRORS.items():
        for alpha, instrument in ((1.0, "yes"), (0.0, "no")):
            for rho in (0.0, 0.9):
                cell = {"errors": errors, "alpha": alpha, "rho": rho}
                found = " | ".join(_entry(rows, cell | {"method": method}) for method in SHOWN)
                lines.append(f"| {text} | {instrument} | {rho:g} | {found} |")
    (folder / "_generated").mkdir(exist_ok=True)
    (folder / "_generated" / "misspecified.md").write_text("\n".join(lines) + "\n")


def _entry(rows, cell: dict) -> str:
    """Mean over seeds: coverage in per cent, then bias."""
    found = [row["metrics"] for row in rows if cell.items() <= row["cell"].items()]
    coverage, bias = (
        np.mean([metrics[name] for metrics in found])
        for name in ("coverage90_against", "bias_f0_against")
    )
    bias = round(bias, 2) + 0.0  # no minus before a zero
    return f"{100 * coverage:.0f} %, {bias:+.2f}".replace("-", "−")
