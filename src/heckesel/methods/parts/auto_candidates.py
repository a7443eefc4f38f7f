"""The candidates of `heckman_auto` and their likelihoods of held-out units."""

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from heckesel.classical.probit import selection_probit
from heckesel.data import SelectionData
from heckesel.errors import IdentificationWarning
from heckesel.fit_info import Candidate
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.fitted_points import FORMS
from heckesel.networks.rho.form_held_out import Folds
from heckesel.networks.rho.form_posterior import Posterior


def network_readings(
    networks: SelectionEnsemble, data: SelectionData, folds: Folds, y_scale: float
) -> np.ndarray:
    """(groups,) log-likelihood of the held-out units of each group, for the scaled y, under a
    probit of selection and networks that were fitted without their fold."""
    groups = np.empty(data.n, dtype=int)
    groups[data.s], groups[~data.s] = folds.group.cpu(), folds.group_unselected.cpu()
    fold, found = groups % folds.count, np.zeros(data.n)
    sign = np.where(data.s, 1.0, -1.0)
    held_by = np.arange(len(networks.sigma)) % folds.count
    for own in range(folds.count):
        held = fold == own
        gamma = selection_probit(data.take(~held)).gamma
        found[held] = log_ndtr(sign[held] * (data.w[held] @ gamma[:-1] + gamma[-1]))
        held &= data.s
        part = networks.of_members(held_by == own)
        with warnings.catch_warnings():  # of |rho| above one, which the fit itself reports
            warnings.simplefilter("ignore", IdentificationWarning)
            predicted = part.predict(data.x[held], data.w[held], "selected")
        found[held] += predicted.log_density(data.y[held]) + np.log(y_scale)
    return np.bincount(groups, data.weight * found, minlength=folds.groups)


def candidates_of(
    posterior: Posterior, networks: SelectionEnsemble | None, rival: np.ndarray, share: float
) -> list[Candidate]:
    """Best first; rival : `network_readings`, and share the weight of the networks."""
    points, found = posterior.points, {}
    for place, name in enumerate(FORMS):
        own = np.flatnonzero((points.form == place) & (posterior.weight > 0))
        if not len(own):
            continue
        weight = posterior.weight[own]
        rho = float(np.average(points.rho[own], weights=weight))
        by_group = posterior.best_by_group(own)
        total = float((1 - share) * weight.sum())
        found[name] = by_group, Candidate("splines", "likelihood", name, rho, total, 0.0, 0.0, 0.0)
    if networks is not None:
        rho = float(np.mean(networks.info.rho))
        found["networks"] = rival, Candidate("networks", "two-step", "any", rho, share, 0, 0, 0)
    best = max((by_group for by_group, _ in found.values()), key=np.sum)
    compared = [
        replace(
            each,
            held_out=float(by_group.sum()),
            behind=float((best - by_group).sum()),
            behind_error=float(np.sqrt(len(best)) * (best - by_group).std(ddof=1)),
        )
        for by_group, each in found.values()
    ]
    return sorted(compared, key=lambda each: each.behind)
