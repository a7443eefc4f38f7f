"""The two-step and likelihoods side by side, averaged.

All correct for selection, and err in different ways. The two-step asks little of the shape of the
errors, but throws away what a likelihood knows; the likelihood of `heckman_outcome` is sharper, and
misled where its model of the errors is wrong. Splines (`spline_joint`) are simpler than networks,
and know a smooth function better: they are the third if held-out units do not distinguish them from
the networks, which is to say that their loss there is within a standard error of the networks'.

The prediction is the mixture of theirs: errors that are skewed in one of them stay skewed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.methods import heckman_outcome, heckman_two_step, spline_joint
from heckesel.networks.ensembles.averaged import AveragedEnsemble
from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.rho_mixture import RhoMixture
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.loop import Progress, shifted


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[AveragedEnsemble]:
    """The average for many datasets with the same columns, `config.n_members` networks of either
    kind."""
    config = config or NetworkConfig(folds=5)
    if config.folds is None:
        raise DataError("the average needs held-out folds; set folds, say to 5")
    two_steps, networks = (
        method.fit_many(
            datas, seeds=seeds, config=config, device=device, progress=shifted(progress, done, 2)
        )
        for done, method in enumerate((heckman_two_step, heckman_outcome))
    )
    splines = spline_joint.fit_affordable(
        datas, seeds=seeds, folds=config.folds, device=device or config.device
    )
    average = partial(_averaged, folds=config.folds)
    return [average(*each) for each in zip(datas, two_steps, networks, splines, strict=True)]


def _averaged(
    data: SelectionData,
    two_step: SelectionEnsemble,
    likelihood: OutcomeEnsemble,
    spline: RhoMixture | None,
    *,
    folds: int,
) -> AveragedEnsemble:
    """Members of all are listed, those of the two-step first."""
    loss, error = _held_out_loss(likelihood, folds)
    losses = {"network": loss}
    if spline is not None:
        losses["spline"] = _spline_held_out_loss(spline, data)
        spline = spline if losses["spline"] <= loss + error else None
    said = [two_step.info, likelihood.info]
    if spline is not None:
        said.append(_said_of(spline, len(likelihood.info["rho"])))
    of_all = {
        name: [value for one in said for value in one.get(name, ())]
        for name in ("rho", "sigma", "training_loss", "best_epoch")
    }
    about = {
        "averaged": ["two-step", "likelihood", *(["splines"] if spline is not None else [])],
        "joint_losses": losses,
        "joint_loss_error": error,
        "outcome_seen": likelihood.info["outcome_seen"],
    }
    return AveragedEnsemble(two_step, likelihood, spline, two_step.info | of_all | about)


def _held_out_loss(network: OutcomeEnsemble, folds: int) -> tuple[float, float]:
    """The joint loss of a unit under members that held it out, and its standard error over
    folds."""
    losses = np.array(network.info["validation_loss"])
    fold = np.arange(len(losses)) % folds
    by_fold = np.bincount(fold, losses) / np.bincount(fold)
    error = by_fold.std(ddof=1) / np.sqrt(len(by_fold)) if len(by_fold) > 1 else 0.0
    return float(losses.mean()), float(error)


def _spline_held_out_loss(spline: RhoMixture, data: SelectionData) -> float:
    """The same of splines, from the log-likelihood of all held-out units, for y as it is given."""
    unit = data.weight[data.s].sum() * np.log(spline.scaling.y_scale)
    return float((unit - spline.info["held_out_evidence"]) / data.weight.sum())


def _said_of(spline: RhoMixture, k: int) -> dict:
    """What k networks would have said: quantiles of what splines believe of rho, each as likely as
    the next."""
    points, order = spline.points, np.argsort(spline.points.rho)
    below = np.cumsum(points.weight[order])
    at = order[np.searchsorted(below, (np.arange(k) + 0.5) / k * below[-1])]
    return {
        "rho": points.rho[at].tolist(),
        "sigma": (spline.scaling.y_scale / points.theta[at]).tolist(),
    }
