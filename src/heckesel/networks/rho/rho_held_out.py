r"""The evidence for rho from held-out units.

A last layer that was trained at one rho fits its training rows well at that rho, and their
likelihood, with coefficients integrated out or not, prefers it by tens of log-units. Held-out rows
do not have this bias. So the coefficients of model j are fitted without fold j, the evidence is the
likelihood of fold j, and the log-likelihoods of the folds are added up.

On held-out rows f is estimated, with an error :math:`\tau_i` that is independent of the row's own
error. It reduces the correlation of the residual with selection, so a plug-in f would overestimate
large rho. Each row therefore enters with

.. math:: \sigma_i^2 = \sigma^2 + \tau_i^2, \qquad \rho_i = \rho\,\sigma/\sigma_i,
          \qquad \tau_i^2 = c\,\sigma^2\, b_i' V b_i ,

V the covariance of delta. V treats the columns b as known; the factor c accounts for their
estimation from the data. The likelihood averages over c, and predictions use its posterior mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills
from heckesel.networks.losses.normal import product
from heckesel.networks.rho.linear_joint import Bases, Optima
from heckesel.networks.rho.rho_curve import Evidence
from heckesel.networks.training.batches import Batch

# Values of c and their prior. Known columns have c = 1; last layers, on draws that no experiment
# uses, had 1.5 with one column and 8 to 14 with five interacting columns.
VARIANCE_FACTORS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
PRIOR_WEIGHTS = 1 / (1 + VARIANCE_FACTORS) / np.sum(1 / (1 + VARIANCE_FACTORS))


def split_held_out(models: Sequence[Batch], folds: int) -> tuple[list[Batch], list[Batch]]:
    """Training rows and held-out rows of each model; model j holds out fold j mod `folds`."""
    kept, held = [], []
    for place, rows in enumerate(models):
        fold = place % folds
        inside, outside = rows.fold == fold, rows.fold_unselected == fold
        kept.append(_taken(rows, ~inside, ~outside))
        held.append(_taken(rows, inside, outside))
    return kept, held


def _taken(rows: Batch, selected, unselected) -> Batch:
    return Batch(
        **{
            name: values[unselected if name.endswith("unselected") else selected]
            for name, values in rows.present().items()
            if not name.startswith("fold")
        }
    )


@dataclass(frozen=True)
class HeldOut:
    """Held-out likelihood as evidence; held : the held-out rows of each model"""

    held: Bases

    def readings(self, optima: Optima) -> np.ndarray:
        """(k, c) log-likelihood of the held-out rows at each of `VARIANCE_FACTORS`."""
        held, q, v = self.held, self.held.q, optima.v
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(optima.information))
        columns, index = held.residual[:, :, :-1], product(held.w, v[:, :q])
        e = product(held.residual, v[:, q:])
        variance = (torch.bmm(columns, covariance[:, q:-1, q:-1]) * columns).sum(dim=2)
        out, _ = log_ndtr_and_mills(-product(held.w_unselected, v[:, :q]))
        unselected = (held.weight_unselected * out).sum(dim=1)
        log_theta, rho = v[:, -1:].log(), torch.tanh(optima.a)[:, None]
        found = []
        for c in VARIANCE_FACTORS:
            wider = (1 + c * variance).sqrt()
            own_rho, own_e = rho / wider, e / wider
            argument = (index + own_rho * own_e) / ((1 - own_rho) * (1 + own_rho)).sqrt()
            log_cdf, _ = log_ndtr_and_mills(argument)
            each = log_cdf - 0.5 * own_e.square() - HALF_LOG_2PI + log_theta - wider.log()
            found.append((held.weight * each).sum(dim=1) + unselected)
        return torch.stack(found, dim=1).cpu().numpy()

    def evidence(self, readings: np.ndarray) -> Evidence:
        return evidence_of_folds(readings)


def evidence_of_folds(readings: np.ndarray) -> Evidence:
    """readings : (j, k, c) of k folds, which have the same weight."""
    by_factor = np.log(PRIOR_WEIGHTS) + readings.sum(axis=1)  # (j, c)
    log_evidence = logsumexp(by_factor, axis=1)
    posterior = np.exp(by_factor - log_evidence[:, None])  # of each c, given rho
    share = np.full(readings.shape[:2], 1 / readings.shape[1])
    return Evidence(log_evidence, share, posterior @ VARIANCE_FACTORS)
