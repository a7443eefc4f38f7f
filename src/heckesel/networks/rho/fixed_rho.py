"""Predictions of an ensemble at given values of rho: last layers are refitted at each."""

from dataclasses import replace

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.networks.rho.linear_joint import bases_of, conditional_optima, start_at
from heckesel.networks.rho.rho_curve import FIRST_UPDATES
from heckesel.networks.rho.rho_mixture import Basis
from heckesel.networks.training.batches import DataScale, joint_rows


def means_over_rho(
    data: SelectionData, scaling: DataScale, basis: Basis, rho: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(j, m) population means at x (m, p), averaged over members, and (j,) log-evidence, for
    rho (j,) in ascending order.

    The columns, activations of the ensemble, are fixed; coefficients are refitted at each rho.
    """
    rows = joint_rows(data, scaling)
    columns = basis.columns(rows.x[:, :-1])  # (k, n, h)
    models = [replace(rows, x=one) for one in columns]
    totals = [data.weight.sum()] * len(columns)
    bases = bases_of(models, totals, basis.membership, torch.device("cpu"))
    at_x = basis.columns(scaling.x(x))
    means, evidence = np.empty((len(rho), len(x))), np.empty(len(rho))
    centre = _at(bases, 0.0, *start_at(bases))
    up, down = np.flatnonzero(rho >= 0), np.flatnonzero(rho < 0)[::-1]
    for side in (up, down):
        here = centre
        for position in side:
            here = _at(bases, float(np.arctanh(rho[position])), here.v, here.ridge)
            v = here.v.numpy()
            f = np.einsum("kmh,kh->km", at_x, v[:, bases.q : -1]) / v[:, -1:]
            means[position] = scaling.y_centre + scaling.y_scale * f.mean(axis=0)
            evidence[position] = float(here.evidence.mean())
    return means, evidence


def _at(bases, a, v, ridge):
    """Ridges are updated until they converge, because the previous rho may be far away."""
    return conditional_optima(bases, v.new_full((len(v),), a), v, ridge, updates=FIRST_UPDATES)
