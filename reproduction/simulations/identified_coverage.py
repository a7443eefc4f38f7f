"""Coverage of `method="auto"` among draws that the verdict calls identified by an instrument.

`python -m reproduction.simulations.identified_coverage` writes `results/identified_coverage.json`:
one row for each draw, with its verdict. For the fresh draws of X5 with a strong or weak instrument,
the coverage is taken from `results/x5_regimes.json`. Verdicts on draws of 500 rows with a moderate
instrument are close to the border. Of these, the ones called identified are fitted here: FITTED for
each combination of errors and rho.
"""

import json
from dataclasses import asdict, astuple, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.atomic_files import write_atomically
from heckesel.diagnostics.data_verdict import identify
from heckesel.diagnostics.verdict import IDENTIFIED
from heckesel.methods import load_method
from reproduction import x5_regimes as x5
from reproduction.draws.regime_draws import ERRORS, OUTCOMES, RHOS, SELECTIONS
from reproduction.result_files import read_rows

FOLDER = Path(__file__).parents[2] / "results"
RESULTS = FOLDER / "identified_coverage.json"
MEASURES = ("coverage90_against", "coverage90")
FIRST_SEED, FITTED, ROWS = 300, 1, 500  # no other experiment has these seeds
SETTINGS_SEED = 21


def moderate_cells() -> list[x5.Cell]:
    """The first draw of each combination; later ones have the following seeds."""
    rng = np.random.default_rng(SETTINGS_SEED)
    return [
        x5.Cell(
            "moderate",
            errors,
            rho,
            OUTCOMES[rng.integers(len(OUTCOMES))],
            SELECTIONS[rng.integers(len(SELECTIONS))],
            ROWS,
            FIRST_SEED,
            x5.AUTO,
        )
        for errors in ERRORS
        for rho in RHOS
    ]


def verdict_row(cell: x5.Cell) -> dict:
    found = identify(x5.problem(cell).data)
    where = {name: value for name, value in asdict(cell).items() if name != "method"}
    error = round(found.evidence["rho_error"], 4)
    return {**where, "verdict": found.verdict, "rho_error": error}


def x5_rows() -> list[dict]:
    """Verdicts of the draws of X5 that have an instrument, with the coverage of its fits."""
    committed = [
        (x5.Cell(**row["cell"]), row["metrics"])
        for row in read_rows(FOLDER / "x5_regimes.json")
        if row["cell"]["method"] == x5.AUTO and row["cell"]["instrument"] != "none"
    ]
    return [verdict_row(cell) | _measures(metrics) for cell, metrics in committed]


def moderate_rows(first: x5.Cell) -> list[dict]:
    """Draws of one combination until FITTED of them are called identified; these are fitted."""
    rows: list[dict] = []
    called: list[int] = []
    while len(called) < FITTED:
        rows.append(verdict_row(replace(first, seed=first.seed + len(rows))))
        if rows[-1]["verdict"] == IDENTIFIED:
            called.append(len(rows) - 1)
    auto = load_method(x5.AUTO)
    cells = [replace(first, seed=rows[place]["seed"]) for place in called]
    draws, seeds = [x5.problem(cell) for cell in cells], [cell.seed for cell in cells]
    config = auto.AutoConfig(network=x5.NETWORK)
    fits = auto.fit_many([draw.data for draw in draws], seeds=seeds, config=config, device="cpu")
    for place, draw, fit in zip(called, draws, fits, strict=True):
        rows[place] |= _measures(x5.row(draw, fit, 0.0))
    return rows


def _measures(metrics: dict) -> dict:
    return {name: round(metrics[name], 4) for name in MEASURES}


def table(rows: list[dict]) -> list[dict]:
    """By strength and errors: the number of draws, how many are called identified, and the coverage
    of `auto` in those, with the standard error of its mean over draws."""
    found = []
    for instrument in ("strong", "moderate", "weak"):
        for errors in (*ERRORS, "all"):
            own = [row for row in rows if row["instrument"] == instrument]
            own = [row for row in own if errors in ("all", row["errors"])]
            called = [row for row in own if row["verdict"] == IDENTIFIED]
            line = {"instrument": instrument, "errors": errors, "draws": len(own)}
            line |= {"identified": len(called)}
            if called:
                against = np.array([row["coverage90_against"] for row in called])
                line |= {name: float(np.mean([row[name] for row in called])) for name in MEASURES}
                if len(called) > 1:
                    line["standard_error"] = float(against.std(ddof=1) / np.sqrt(len(called)))
            found.append(line)
    return found


def main() -> None:
    """Compute the rows that are missing in the file, and write it after each combination."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else _write(x5_rows())
    with threadpool_limits(1):
        for first in moderate_cells():
            if not any(astuple(first)[:-2] == tuple(row.values())[:6] for row in rows):
                rows = _write(rows + moderate_rows(first))


def _write(rows: list[dict]) -> list[dict]:
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_atomically(RESULTS, f"[\n{lines}\n]\n")
    return rows


if __name__ == "__main__":
    main()
