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
import numpy as np

from heckesel.diagnostics.verdict import SUPPORTED, UNCERTAIN, UNUSABLE
from heckesel.errors import IdentificationWarning
from reproduction.result_files import read_rows
from reproduction.simulations.identified_coverage import table as identified_coverage

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
    (folder / "_generated").mkdir(exist_ok=True)
    make_misspecified(folder)
    make_inference(folder)
    make_fooling(folder)
    make_averages(folder)
    make_identified(folder)
    make_groups(folder)


def make_misspecified(folder: Path) -> None:
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
    (folder / "_generated" / "misspecified.md").write_text("\n".join(lines) + "\n")


def make_inference(folder: Path) -> None:
    """Rejections of rho = 0 and coverage, by strength of the instrument."""
    found = json.loads((folder.parent / "results" / "inference_coverage.json").read_text())
    for outcome, columns in INFERENCE.items():
        lines = ["| n | instrument | ρ | " + " | ".join(columns.values()) + " |"]
        lines.append("|---|---|---|" + "---|" * len(columns))
        for row in found["rows"]:
            setting = row["setting"]
            if setting["outcome"] == outcome:
                shown = [f"{100 * row[name]:.1f} %" if name in row else "" for name in columns]
                where = f"{setting['n']} | {setting['instrument']} | {setting['rho']:g}"
                lines.append(f"| {where} | {' | '.join(shown)} |")
        (folder / "_generated" / f"inference_{outcome}.md").write_text("\n".join(lines) + "\n")


def make_fooling(folder: Path) -> None:
    """How often the Wald rule alone calls cases identified, and what the verdict says of them."""
    levels = (SUPPORTED, UNCERTAIN, UNUSABLE)
    lines = [
        f"| case | Wald statistic above 10 | {' | '.join(levels)} |",
        "|---|---|" + "---|" * len(levels),
    ]
    for row in json.loads((folder.parent / "results" / "fooling.json").read_text()):
        given = " | ".join(str(row["levels"].get(level, 0)) for level in levels)
        lines.append(f"| {row['case']} | {row['wald_rule']} | {given} |")
    (folder / "_generated" / "fooling.md").write_text("\n".join(lines) + "\n")


def make_averages(folder: Path) -> None:
    """Coverage of average outcomes, by estimator."""
    found = json.loads((folder.parent / "results" / "average_coverage.json").read_text())
    lines = [
        "| estimator | target | draws | coverage | bias | sd | se |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        numbers = " | ".join(f"{row[name]:.3f}" for name in ("bias", "sd", "se"))
        where = f"{row['estimator']} | {row['target']} | {row['draws']}"
        lines.append(f"| {where} | {100 * row['coverage']:.0f} % | {numbers} |")
    (folder / "_generated" / "average_coverage.md").write_text("\n".join(lines) + "\n")


def make_identified(folder: Path) -> None:
    """Coverage of `auto` among draws that are called identified, by strength and errors."""
    found = json.loads((folder.parent / "results" / "identified_coverage.json").read_text())
    lines = [
        "| instrument | errors | draws | called identified | selected-against | all points |",
        "|---|---|---|---|---|---|",
    ]
    for line in identified_coverage(found):
        shown = ["", ""]
        if line["identified"]:
            error = f" ± {100 * line['standard_error']:.1f}" if "standard_error" in line else ""
            shown = [f"{100 * line[name]:.1f}" for name in ("coverage90_against", "coverage90")]
            shown = [f"{shown[0]}{error} %", f"{shown[1]} %"]
        numbers = f"{line['draws']} | {line['identified']} | {' | '.join(shown)}"
        lines.append(f"| {line['instrument']} | {line['errors']} | {numbers} |")
    (folder / "_generated" / "identified.md").write_text("\n".join(lines) + "\n")


def make_groups(folder: Path) -> None:
    """Coverage without and with `groups=`, by method and number of units."""
    rows = json.loads((folder.parent / "results" / "group_coverage.json").read_text())
    lines = [
        "| method | units | draws | new units, without | with groups | slope, without "
        "| with groups |",
        "|---|---|---|---|---|---|---|",
    ]
    for without, grouped in zip(rows[::2], rows[1::2], strict=True):
        shown = [
            f"{100 * row['coverage']:.1f} ± {100 * row['coverage_error']:.1f} %"
            for row in (without, grouped)
        ]
        shown += [
            f"{100 * row['slope']:.0f} %" if "slope" in row else "" for row in (without, grouped)
        ]
        where = f"{without['method']} | {without['units']} | {without['draws']}"
        lines.append(f"| {where} | {' | '.join(shown)} |")
    (folder / "_generated" / "groups.md").write_text("\n".join(lines) + "\n")


def _entry(rows, cell: dict) -> str:
    """Mean over seeds: coverage in per cent, then bias."""
    found = [row["metrics"] for row in rows if cell.items() <= row["cell"].items()]
    coverage, bias = (
        np.mean([metrics[name] for metrics in found])
        for name in ("coverage90_against", "bias_f0_against")
    )
    bias = round(bias, 2) + 0.0  # no minus before a zero
    return f"{100 * coverage:.0f} %, {bias:+.2f}".replace("-", "−")
