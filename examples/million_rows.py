"""A million rows in mini-batches: five networks side by side, each with its own batches.

Run it: python examples/million_rows.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import heckesel as hk


def main(n: int = 1_000_000, epochs: int = 6, members: int = 5) -> float:
    """The bias of the corrected mean where few were selected; printed with its coverage."""
    draw = hk.datasets.make_controlled(n, rho=0.9, alpha=1.0, seed=0)
    table, y = draw.frame[["x", "z"]], draw.frame["y"]
    networks = hk.Networks(n_members=members, epochs=epochs, batch_size=8192, learning_rate=5e-3)
    model = hk.DeepHeckmanRegressor(instruments=["z"], networks=networks)
    started = time.perf_counter()
    model.fit(table, y)
    seconds = time.perf_counter() - started
    fresh = hk.datasets.make_controlled(20_000, rho=0.9, alpha=1.0, seed=1)
    against = fresh.truth.propensity_x < 0.3
    bias = (model.predict(fresh.frame[["x"]]) - fresh.truth.f0)[against].mean()
    low, high = model.predict_interval(fresh.frame[["x"]], level=0.9).T
    covered = ((fresh.truth.y > low) & (fresh.truth.y < high))[against].mean()
    print(f"{n:,} rows, {epochs} epochs, {members} networks: {seconds:.1f} s")
    print(f"selected-against region: bias {bias:+.3f}, coverage of 90 % intervals {covered:.1%}")
    print(f"rho of the members: {np.round(model.rho_, 3)} (true 0.9)")
    print(model.identification_)
    return float(bias)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--members", type=int, default=5)
    main(**vars(parser.parse_args()))
