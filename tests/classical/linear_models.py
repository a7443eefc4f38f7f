"""Drawn models whose outcome is linear in given columns, for several tests."""

import numpy as np
import torch

from heckesel.classical import ml as joint
from heckesel.networks.rho import linear_joint
from heckesel.networks.training.batches import Batch


def draw(n, h, seed, *, rho=0.5, scale=1.0):
    """One model: h columns and a constant, two selection columns and a constant; weights vary."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.normal(size=(n, h)), np.ones(n)])
    w = np.column_stack([columns[:, 0], rng.normal(size=n), np.ones(n)])
    u = rng.normal(size=n)
    noise = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    y = scale * (columns @ np.linspace(0.8, -0.4, h + 1) + 0.7 * noise)
    s = 0.5 * w[:, 0] + 0.8 * w[:, 1] + 0.3 + u > 0
    return {"columns": columns, "w": w, "y": y, "s": s, "weight": rng.uniform(0.5, 2, n)}


def rows_of(model) -> tuple[Batch, float]:
    s, total = model["s"], model["weight"].sum()
    share = model["weight"] / total
    rows = Batch(
        x=model["columns"][s],
        y=model["y"][s],
        weight=share[s],
        w=model["w"][s],
        w_unselected=model["w"][~s],
        weight_unselected=share[~s],
    )
    return rows, total


def bases_of(models, membership) -> linear_joint.Bases:
    rows, totals = zip(*map(rows_of, models), strict=True)
    return linear_joint.bases_of(rows, totals, membership, torch.device("cpu"))


def sample_of(model) -> joint.Sample:
    s = model["s"]
    residual = np.column_stack([-model["columns"], model["y"]])[s]
    weight = model["weight"]
    return joint.Sample(model["w"][s], residual, weight[s], model["w"][~s], weight[~s])
