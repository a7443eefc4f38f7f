"""Time the network methods of one controlled cell, batched against a plain loop over members.

    python -m benchmarks.network_methods --epochs 1500 --threads 2

Both run in this process, in turns, on the same data and with the same number of threads. Prints
one JSON object: seconds of each, their ratio, and the bias of both in the region that selection
avoids, which at 1500 epochs shows that they did the same work. Last, the whole schedule with our
members ending early, each by a fold it does not see; MC dropout has no folds and trains on.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

from benchmarks import looped_reference
from heckesel.data import selection_data
from heckesel.datasets.controlled import make_controlled
from heckesel.methods import fit_one
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.metrics.regions import regions
from heckesel.networks.training.config import NetworkConfig

# A time scales with the epochs, so a part of the 1500 is enough; of several turns the fastest
# counts, because a busy neighbour only ever adds.
EPOCHS, TURNS = 150, 3
WHOLE_SCHEDULE, FOLDS = NetworkConfig().epochs, 5


def measure(
    epochs: int = EPOCHS, turns: int = TURNS, methods=tuple(looped_reference.METHODS)
) -> dict:
    """Seconds and bias of each method, ours and the loop's, with the threads torch has now."""
    _compare("deep_ensemble", 2, 1)  # first use of each kernel
    found = _table({name: _compare(name, epochs, turns) for name in methods}, epochs)
    ending = {name: None if name == "mc_dropout" else FOLDS for name in methods}
    early = {name: _compare(name, WHOLE_SCHEDULE, 1, ending[name]) for name in methods}
    return found | {"ending_early": _table(early, WHOLE_SCHEDULE)}


def _table(rows: dict, epochs: int) -> dict:
    looped, ours = (sum(row[key] for row in rows.values()) for key in ("looped_s", "ours_s"))
    return {
        "epochs": epochs,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "looped_s": round(looped, 2),
        "ours_s": round(ours, 2),
        "ratio": round(looped / ours, 2),
        "methods": rows,
    }


def _compare(name: str, epochs: int, turns: int, folds: int | None = None) -> dict:
    train = make_controlled(rho=0.9, alpha=1.0, seed=0)
    test = make_controlled(3000, rho=0.9, alpha=1.0, seed=10_000)
    data = selection_data(train.frame[["x"]], train.frame[["x", "z"]], train.frame["y"])
    cell = looped_reference.cell_of(data, train.truth.propensity)
    x_new = test.frame[["x"]].to_numpy()
    config = NetworkConfig(epochs=epochs, folds=folds, standardise=False, device="cpu")
    if name == "weighted_ensemble":
        config = WeightedConfig(train.truth.propensity, config)
    torch.manual_seed(0)
    looped_s, ours_s = [], []
    for _ in range(turns):
        start = time.perf_counter()
        means = looped_reference.METHODS[name](cell, torch.tensor(x_new).float(), epochs)
        middle = time.perf_counter()
        fitted = fit_one(name, data, seed=0, config=config)
        looped_s.append(middle - start)
        ours_s.append(time.perf_counter() - middle)

    against = regions(test.truth.propensity_x)["against"]

    def bias(mean):
        return round(float(np.mean((mean - test.truth.f0)[against])), 3)

    return {
        "looped_s": round(min(looped_s), 3),
        "ours_s": round(min(ours_s), 3),
        "ratio": round(min(looped_s) / min(ours_s), 2),
        "ours_ms_per_epoch": round(1e3 * min(ours_s) / epochs, 3),
        "looped_bias_against": bias(means.mean(axis=0)),
        "ours_bias_against": bias(fitted.predict(x_new).mean),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--methods", default=",".join(looped_reference.METHODS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    methods = options.methods.split(",")
    print(json.dumps(measure(options.epochs, options.turns, methods), indent=2))


if __name__ == "__main__":
    main()
