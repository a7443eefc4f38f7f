"""From members trained with the loss `losses.shape` to a mixture of their predictions."""

from dataclasses import replace

import numpy as np

from heckesel.data import SelectionData
from heckesel.fit_info import SelectionInfo
from heckesel.methods.spline_joint import straight_lines
from heckesel.networks.ensembles.form_ensemble import FormEnsemble
from heckesel.networks.ensembles.noise_calibration import calibrated_form, pairs_of
from heckesel.networks.losses.shape import SHAPE
from heckesel.networks.rho.form_mixture import FormMixture, FormPoints, standard_deviation
from heckesel.networks.rho.form_profile import ErrorModel
from heckesel.networks.rho.last_layer import LastLayer
from heckesel.networks.training.batches import Batch, DataScale, held_out
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.steps import parameter_count
from heckesel.predictive import possible_covariance


def ensemble_of(
    errors: ErrorModel,
    members: Members,
    batch: Batch,
    scaling: DataScale,
    data: SelectionData,
    folds: int | None,
) -> FormEnsemble:
    """Members with equal weights. On folds held-out rows estimate the level of sigma and the shape
    that all share."""
    points, held_out_loss, best_epoch = _points(errors, members, batch, data.x.shape[1]), None, None
    if folds is not None:
        points, loss = _calibrated(errors, points, members, batch, folds)
        held_out_loss = loss + float(np.log(scaling.y_scale))
        best_epoch = np.asarray(members.best_epoch).tolist()
    index_basis = straight_lines(data.w.shape[1])
    mixture = FormMixture(_one_set_each(members), index_basis, scaling, points)
    sd = standard_deviation(
        points.theta, points.scale, points.shape, scaling.x(data.x), data.weight
    )
    # The density of y is that of the scaled y divided by its scale, for the selected units.
    in_units_of_y = batch.weight.sum() * np.log(scaling.y_scale)
    info = SelectionInfo(
        rho=np.tanh(members.head[:, -1].astype(float)).tolist(),
        sigma=(scaling.y_scale * sd).tolist(),
        training_loss=(members.loss + in_units_of_y).tolist(),
        held_out_loss=held_out_loss,
        best_epoch=best_epoch,
        error_model=mixture.error_model(errors.scale),
    )
    return FormEnsemble(mixture, info)


def _calibrated(
    errors: ErrorModel, points: FormPoints, members: Members, batch: Batch, folds: int
) -> tuple[FormPoints, float]:
    """Points with the level of sigma and the shape that maximise the joint likelihood of held-out
    rows, and its mean loss; members stop before their own shape has converged."""
    x, k = batch.x[:, :-1], len(points.rho)
    f = members.outputs(x)[..., 0]
    pairs = pairs_of(f, np.exp(points.scale @ x.T), batch.weight, held_out(batch.fold, k, folds))
    gamma = members.head.astype(float)[:, : batch.w.shape[1]]
    index = (batch.w[pairs.row] * gamma[pairs.member]).sum(axis=1)
    guess = (points.skewness.mean(), points.log_tail.mean()) if errors.shape else None
    found = calibrated_form(batch.y[pairs.row], points.rho[pairs.member], index, pairs, guess)
    last = points.delta / points.theta[:, None]
    last[:, -1] += found.shift
    common = replace(
        points,
        delta=last / found.level,
        theta=np.full(k, 1 / found.level),
        skewness=np.full(k, found.skewness),
        log_tail=np.full(k, found.log_tail),
    )
    return common, found.loss


def _points(errors: ErrorModel, members: Members, batch: Batch, p: int) -> FormPoints:
    """One point for each member: its last layer is delta/theta. The uncertainty of its coefficients
    is not estimated."""
    head, q, k = members.head.astype(float), batch.w.shape[1], len(members.loss)
    named = dict(zip(errors.loss.scalars, head[:, q:].T, strict=True))
    theta = np.exp(-named["log_sigma"])
    scale = np.zeros((k, p))
    for column in errors.scale:
        scale[:, column] = named[f"scale_{column}"]
    skewness, log_tail = (named.get(name, np.zeros(k)) for name in SHAPE)
    width = members.sizes[-2] + 1
    end = parameter_count(members.sizes)
    last = members.parameters[:, end - width : end].astype(float)
    gamma = head[:, :q]
    size = width + 1 + p + 2
    return FormPoints(
        model=np.arange(k),
        weight=np.full(k, 1 / k),
        form=np.full(k, errors.form),
        rho=possible_covariance(np.tanh(named["atanh_rho"]), 1.0),
        gamma=np.column_stack([gamma[:, -1:], gamma[:, :-1]]),  # the constant is first in a basis
        delta=last * theta[:, None],
        theta=theta,
        scale=scale,
        skewness=skewness,
        log_tail=log_tail,
        root=np.zeros((k, size, size)),
    )


def _one_set_each(members: Members) -> LastLayer:
    """The last layer of every member as its column set."""
    width = members.sizes[-2]
    axes = np.tile(np.eye(width), (len(members.loss), 1, 1))
    return LastLayer(replace(members, parameters=members.parameters.astype(float)), axes)
