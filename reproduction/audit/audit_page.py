"""`paper/audit.md`: the published fits and the other maxima of their likelihoods."""

import json
from collections.abc import Sequence
from pathlib import Path

from heckesel.errors import DataError
from reproduction.audit.refit import GLOBAL, LOCAL
from reproduction.pages.beyond_paper.targets import table
from reproduction.pages.macros import fixed
from reproduction.pages.page_text import filled

HEADER = (
    *("fit", "program", "units", "selected", "printed", "best found", "ρ there"),
    *("the printed fit is the", "verdict"),
)
COEFFICIENTS = ("fit", "coefficient", "at the printed mode", "at the best", "shape errors")


def read_audit(folder: Path) -> list[dict]:
    path = folder / "audit.json"
    if not path.exists():
        raise DataError(f"{path} is missing; run `python -m reproduction.audit` first")
    return json.loads(path.read_text(encoding="utf-8"))


def audit_md(rows: Sequence[dict]) -> str:
    return filled(
        "audit",
        n_fits=len(rows),
        n_equations=len(_distinct(rows)),
        not_global=", ".join(
            f"*{row['name']}*" for row in _distinct([r for r in rows if r["printed_is"] != GLOBAL])
        ),
        n_local=len(_distinct([row for row in rows if row["printed_is"] == LOCAL])),
        n_refused=sum(row["verdict"] == "contradicted" for row in _distinct(rows)),
        fits=table(HEADER, map(_fit_line, rows)),
        coefficients=table(COEFFICIENTS, map(_coefficient_line, _distinct(rows))),
        sources="\n".join(f"- *{row['name']}*: {row['source']}" for row in rows),
    )


def _distinct(rows: Sequence[dict]) -> list[dict]:
    """The first row of each model; the same model may have been printed twice."""
    found: dict[tuple, dict] = {}
    for row in rows:
        key = (row["outcome"], row["select"], row["n"], round(row["best_loglik"], 3))
        found.setdefault(key, row)
    return list(found.values())


def _fit_line(row: dict) -> list[str]:
    best = row["modes"][0]
    return [
        row["name"],
        row["program"],
        str(row["n"]),
        str(row["n_selected"]),
        row["printed_loglik"],
        fixed(row["best_loglik"], 4),
        "±1" if best["status"] == "boundary" else fixed(best["rho"], 3),
        row["printed_is"],
        row["verdict"],
    ]


def _coefficient_line(row: dict) -> list[str]:
    printed, best = row["modes"][row["printed_mode"]], row["modes"][0]
    error = "" if row["shape_se"] is None else f" ± {_number(row['shape_se'])}"
    values = [_number(each["coefficient"]) for each in (printed, best)]
    return [row["name"], f"`{row['term']}`", *values, _number(row["shape_coefficient"]) + error]


def _number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}".replace("-", "−")
