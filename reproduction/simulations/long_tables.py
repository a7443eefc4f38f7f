"""How much `method="auto"` loses on a long table, where it fits a sample in mini-batches.

`python -m reproduction.simulations.long_tables` writes `results/long_tables.json`: for each draw of
ROWS rows the fit that a user gets (`sampled`) and one to all rows in full batches (`whole`), on the
same test points. With `--part K/N FILE` only every N-th draw, to FILE, for several processes.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from heckesel.data import SelectionData
from heckesel.methods import load_method
from heckesel.networks.training.config import torch_device
from reproduction import x5_regimes as x5
from reproduction.draws.regime_draws import ERRORS, OUTCOMES, Draw

RESULTS = Path(__file__).parents[2] / "results" / "long_tables.json"
ROWS, SEED = 40_000, 400  # no other experiment has this seed
INSTRUMENTS, RHO = ("strong", "none"), 0.5
MEASURES = ("coverage90_against", "coverage90", "crps_against", "crps", "bias_f0_against")


def cells() -> list[x5.Cell]:
    """One draw for each kind of errors, with and without an instrument; outcomes in turn."""
    return [
        x5.Cell(instrument, errors, RHO, OUTCOMES[place % 3], "linear", ROWS, SEED, x5.AUTO)
        for instrument in INSTRUMENTS
        for place, errors in enumerate(ERRORS)
    ]


def rows_of(cell: x5.Cell, device: str = "auto") -> dict:
    """The measures of both fits, and the mean log density of the outcomes of the test points."""
    drawn = x5.problem(cell)
    fits = {"sampled": _sampled(drawn.data, cell.seed, device)}
    fits["whole"] = _whole(drawn.data, cell.seed, device)
    found = {name: _measures(drawn, fit) for name, fit in fits.items()}
    where = {n: getattr(cell, n) for n in ("instrument", "errors", "rho", "outcome", "n", "seed")}
    return where | {f"{name}_{key}": v for name, own in found.items() for key, v in own.items()}


def _sampled(data: SelectionData, seed: int, device: str):
    auto = load_method(x5.AUTO)
    config = auto.AutoConfig(network=x5.NETWORK)
    return auto.fit_many([data], seeds=[seed], config=config, device=device)[0]


def _whole(data: SelectionData, seed: int, device: str):
    """As `heckman_auto` fits a short table."""
    two_step, auto = load_method(x5.TWO_STEP), load_method(x5.AUTO)
    (networks,) = two_step.fit_many([data], seeds=[seed], config=x5.NETWORK, device=device)
    config = auto.AutoConfig(network=replace(x5.NETWORK, device=str(torch_device(device))))
    return auto.weigh_candidates(data, seed, networks, config)


def _measures(draw: Draw, fit) -> dict[str, float]:
    found = x5.row(draw, fit, 0.0)
    found["log_density"] = float(np.mean(fit.predict(draw.x).log_density(draw.y)))
    return {name: round(found[name], 4) for name in (*MEASURES, "log_density", "rho_hat")}


def table(rows: list[dict]) -> list[dict]:
    """Mean over draws of each measure under both fits, and of their difference with its standard
    error over draws."""
    found = []
    for name in (*MEASURES, "log_density"):
        pairs = np.array([[row[f"{fit}_{name}"] for fit in ("sampled", "whole")] for row in rows])
        if name.startswith("bias"):
            pairs = np.abs(pairs)
        change = pairs[:, 0] - pairs[:, 1]
        error = change.std(ddof=1) / np.sqrt(len(change))
        line = {"measure": name, "sampled": pairs[:, 0].mean(), "whole": pairs[:, 1].mean()}
        found.append(line | {"difference": change.mean(), "standard_error": error})
    return [{k: v if k == "measure" else round(float(v), 4) for k, v in f.items()} for f in found]


def main(arguments: list[str]) -> None:
    chosen, path = cells(), RESULTS
    if arguments[:1] == ["--part"]:
        part, parts = map(int, arguments[1].split("/"))
        chosen, path = chosen[part - 1 :: parts], Path(arguments[2])
    found = []
    for cell in chosen:
        found.append(rows_of(cell))
        path.write_text("[\n" + ",\n".join(json.dumps(row) for row in found) + "\n]\n")
    for line in table(found) if len(found) > 1 else []:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
