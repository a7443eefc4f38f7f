"""The average of the two-step and of likelihoods.

All of them correct for selection, but they fail in different ways. The two-step assumes little
about the distribution of the errors and uses less information than a likelihood. The likelihood of
`heckman_outcome` is more precise, and biased if its error model is wrong. Splines (`spline_joint`)
are simpler than networks and estimate smooth functions better. They are included if their held-out
loss is within one standard error of that of the networks.

The prediction is the mixture of the three, so errors that are skewed in one of them stay skewed.
"""

from dataclasses import replace
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
from heckesel.networks.training.loop import shifted


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[AveragedEnsemble]:
    """The average for many datasets with the same columns, with `config.n_members` networks of
    each kind."""
    config = config or NetworkConfig(folds=5)
    if config.folds is None:
        raise DataError('method="averaged" needs held-out folds; set folds=5, for example')
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
    """The average; `info` lists the members of all models, those of the two-step first."""
    loss, error = _held_out_loss(likelihood, folds)
    losses = {"network": loss}
    if spline is not None:
        losses["spline"] = _spline_held_out_loss(spline, data)
        spline = spline if losses["spline"] <= loss + error else None
    one, other = two_step.info, likelihood.info
    rho, sigma = _of_members(spline, len(other.rho)) if spline is not None else ([], [])
    info = replace(
        one,
        rho=one.rho + other.rho + rho,
        sigma=one.sigma + other.sigma + sigma,
        training_loss=one.training_loss + other.training_loss,
        best_epoch=[*(one.best_epoch or ()), *(other.best_epoch or ())],
        averaged=["two-step", "likelihood", *(["splines"] if spline is not None else [])],
        joint_losses=losses,
        joint_loss_error=error,
        outcome_seen=other.outcome_seen,
    )
    return AveragedEnsemble(two_step, likelihood, spline, info)


def _held_out_loss(network: OutcomeEnsemble, folds: int) -> tuple[float, float]:
    """The joint loss of a unit under members that held it out, and its standard error over
    folds."""
    losses = np.array(network.info.validation_loss)
    fold = np.arange(len(losses)) % folds
    by_fold = np.bincount(fold, losses) / np.bincount(fold)
    error = by_fold.std(ddof=1) / np.sqrt(len(by_fold)) if len(by_fold) > 1 else 0.0
    return float(losses.mean()), float(error)


def _spline_held_out_loss(spline: RhoMixture, data: SelectionData) -> float:
    """The same for splines, from the log-likelihood of all held-out units, in units of y."""
    unit = data.weight[data.s].sum() * np.log(spline.scaling.y_scale)
    return float((unit - spline.info.held_out_evidence) / data.weight.sum())


def _of_members(spline: RhoMixture, k: int) -> tuple[list[float], list[float]]:
    """rho and sigma as lists of k numbers, like those of members: at equally likely quantiles of
    rho."""
    points, order = spline.points, np.argsort(spline.points.rho)
    below = np.cumsum(points.weight[order])
    at = order[np.searchsorted(below, (np.arange(k) + 0.5) / k * below[-1])]
    return points.rho[at].tolist(), (spline.scaling.y_scale / points.theta[at]).tolist()
