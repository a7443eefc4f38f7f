r"""The evidence for rho in units that a network did not see.

A last layer that was trained on its rows at one rho fits them well at that rho, and the likelihood
of those rows, coefficients averaged out or not, prefers it by tens of log-units. Rows left out have
no such memory. So the coefficients of model j are found without fold j and judged there, and folds,
being different units, add up.

There f is not known but estimated, with an error :math:`\tau_i` that is independent of the
row's own. It takes the residual's correlation with selection down, so that a plug-in f would
make large rho look too large. Each row therefore enters with

.. math:: \sigma_i^2 = \sigma^2 + \tau_i^2, \qquad \rho_i = \rho\,\sigma/\sigma_i,
          \qquad \tau_i^2 = c\,\sigma^2\, b_i' V b_i ,

V the covariance of delta. V takes the columns b as given; that they were found from data as well is
the factor c, averaged over by the same likelihood. Predictions carry it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.networks.losses.normal import product
from heckesel.networks.rho.linear_joint import Bases, Optima
from heckesel.networks.rho.rho_curve import Evidence
from heckesel.networks.training.batches import Batch
from heckesel.numerics.normal import HALF_LOG_2PI
from heckesel.numerics.normal_torch import log_ndtr_and_mills

# Values of c, and what is believed of them before the data. Given columns have c = 1; last layers,
# on draws that no experiment uses, had 1.5 on one curve and 8 to 14 on five interacting columns.
VARIANCE_FACTORS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
PRIOR_WEIGHTS = 1 / (1 + VARIANCE_FACTORS) / np.sum(1 / (1 + VARIANCE_FACTORS))


def split_held_out(models: Sequence[Batch], folds: int) -> tuple[list[Batch], list[Batch]]:
    """Rows of each model but those of its own fold, and those alone; model j has fold j mod
    `folds`."""
    kept, held = [], []
    for place, rows in enumerate(models):
        fold = place % folds
        inside, outside = rows.fold == fold, rows.fold_unselected == fold
        kept.append(_taken(rows, ~inside, ~outside))
        held.append(_taken(rows, inside, outside))
    return kept, held


def _taken(rows: Batch, selected, unselected) -> Batch:
    return replace(
        rows,
        x=rows.x[selected],
        y=rows.y[selected],
        weight=rows.weight[selected],
        w=rows.w[selected],
        w_unselected=rows.w_unselected[unselected],
        weight_unselected=rows.weight_unselected[unselected],
        fold=None,
        fold_unselected=None,
    )


@dataclass(frozen=True)
class HeldOut:
    """held : rows left out by each model"""

    held: Bases

    def readings(self, optima: Optima) -> np.ndarray:
        """(k, c) log-likelihood of the rows left out, at each of `VARIANCE_FACTORS`."""
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
        """readings : (j, k, c), of k folds, which speak of different units and count alike."""
        by_doubt = np.log(PRIOR_WEIGHTS) + readings.sum(axis=1)  # (j, c)
        log_evidence = logsumexp(by_doubt, axis=1)
        belief = np.exp(by_doubt - log_evidence[:, None])  # in each c, given rho
        share = np.full(readings.shape[:2], 1 / readings.shape[1])
        return Evidence(log_evidence, share, belief @ VARIANCE_FACTORS)
