"""Images as inputs: an ensemble of convolutional networks inside the selection model.

Each unit is a 12 x 12 picture of a blob, and its outcome grows with the size of the blob. Whether
the outcome is recorded depends on the size, on which of two cameras took the picture (the
instrument: it affects selection but not the outcome) and on an unrecorded variable that also
affects the outcome. Run it: python examples/images.py
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn

from heckesel.data import selection_data
from heckesel.methods import own_network
from heckesel.networks.training.config import NetworkConfig

SIDE = 12


def draw(n: int, seed: int):
    """pictures (n, 1, 12, 12), size (n,), camera (n,), y (n,) complete, s (n,) recorded or not."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(1.0, 4.0, n)
    centre = rng.uniform(4.0, 7.0, (n, 2))
    row, column = np.mgrid[:SIDE, :SIDE]
    distance = (row - centre[:, :1, None]) ** 2 + (column - centre[:, 1:, None]) ** 2
    pictures = np.exp(-distance / (2 * size[:, None, None] ** 2))
    pictures += 0.05 * rng.standard_normal(pictures.shape)
    camera = rng.integers(0, 2, n)
    u, v = rng.standard_normal((2, n))
    y = np.sin(1.5 * size) + size / 2 + 0.5 * (0.9 * u + np.sqrt(1 - 0.9**2) * v)
    s = 1.2 - 0.9 * (size - 1.0) + 1.5 * (camera - 0.5) + u > 0
    return pictures[:, None].astype(np.float32), size, camera, y, s


def make_net(seed: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2),
        nn.SiLU(),
        nn.Conv2d(8, 16, 3),
        nn.SiLU(),
        nn.Flatten(),
        nn.Linear(16 * 3 * 3, 32),
        nn.SiLU(),
        nn.Linear(32, 1),
    )


def main(n: int = 1500, epochs: int = 150, members: int = 3) -> dict[str, float]:
    pictures, size, camera, y, s = draw(n, seed=0)
    # The index of selection is linear in w: here the size as measured, and the camera.
    data = selection_data(
        size[:, None],
        np.column_stack([size, camera]),
        np.where(s, y, np.nan),
        w_names=("size", "camera"),
        x_names=("size",),
    )
    config = NetworkConfig(n_members=members, epochs=epochs, batch_size=256, learning_rate=3e-3)
    fresh, true_size, _, _, _ = draw(1000, seed=1)
    truth = np.sin(1.5 * true_size) + true_size / 2
    large = true_size > 3  # seldom recorded
    biases = {}
    for method in ("blind", "two-step"):
        fit = own_network.fit(
            make_net, torch.as_tensor(pictures), data, seed=0, method=method, config=config
        )
        predictive = fit.predict(fresh)
        biases[method] = float(np.mean((predictive.mean - truth)[large]))
        print(f"{method:>9}: bias on large blobs {biases[method]:+.3f}, rho {fit.info.rho}")
    return biases


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--members", type=int, default=3)
    main(**vars(parser.parse_args()))
