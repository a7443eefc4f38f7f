"""Ensembles fitted by `losses.outcome_selection`: members that predict mixtures of normals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from scipy.special import log_ndtr, logsumexp

from heckesel.fit_info import SelectionInfo
from heckesel.margins import ComponentMean
from heckesel.math.special import inverse_mills
from heckesel.networks.ensembles.fold_means import fold_means
from heckesel.networks.ensembles.selection_ensemble import noise_factor_of
from heckesel.networks.losses.outcome_selection import SCALARS, SHAPE, error_shape
from heckesel.networks.member_graphs import log_factor, member_outputs, one_output, scaled
from heckesel.networks.training.batches import DataScale, with_constant
from heckesel.networks.training.ensemble_training import Members
from heckesel.on_disk import on_disk
from heckesel.predictive import Mixture, Normal, Predictive, check_target, mixed_given_selection


@dataclass(frozen=True)
class ErrorShape:
    """The error model of k members, for the scaled y.

    gamma : (k, q + 1) for the scaled w; sigma, kappa, theta : (k,)
    share, shift, width : (k, parts) of e around its own mean; mean, variance : (k,) of e
    """

    gamma: np.ndarray
    sigma: np.ndarray
    kappa: np.ndarray
    theta: np.ndarray
    share: np.ndarray
    shift: np.ndarray
    width: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def shape_of(members: Members) -> ErrorShape:
    head = members.head.astype(float)
    q = head.shape[1] - len(SCALARS) - (len(SHAPE) if members.sizes[-1] == 2 else 0)
    found = error_shape(torch.as_tensor(head[:, q + len(SCALARS) :]))[:3]
    log_share, shift, log_width = (part.numpy() for part in found)
    share, width = np.exp(log_share), np.exp(log_width)
    mean = (share * shift).sum(axis=1)
    centred = shift - mean[:, None]
    log_sigma, kappa, theta = head[:, q : q + len(SCALARS)].T
    return ErrorShape(
        gamma=head[:, :q],
        sigma=np.exp(log_sigma),
        kappa=kappa,
        theta=theta,
        share=share,
        shift=centred,
        width=width,
        mean=mean,
        variance=(share * (width**2 + centred**2)).sum(axis=1),
    )


def mean_and_sigma(members: Members, shape: ErrorShape, x) -> tuple[np.ndarray, np.ndarray]:
    """(k, m) both, for the scaled y at scaled x: f with the mean of the error, and sigma(x)."""
    outputs = members.outputs(x)
    f = outputs[..., 0]
    noise_factor = noise_factor_of(outputs[..., 1]) if outputs.shape[2] == 2 else np.ones_like(f)
    sigma = shape.sigma[:, None] * noise_factor
    return f + sigma * shape.mean[:, None], sigma


def index_beside_y(shape: ErrorShape, by_w, mean, sigma) -> np.ndarray:
    r"""(k, m) the term besides :math:`\kappa y` in P(s = 1 | w, y):
    :math:`w'\gamma + (\theta - \kappa) f`; by_w : :math:`w'\gamma`. Arrays begin with k."""
    extra = shape.theta - shape.kappa
    return by_w + extra[:, None] * (mean - sigma * shape.mean[:, None])


@dataclass(frozen=True)
class OutcomeEnsemble:
    """level : factor on the noise of all members, calibrated on held-out rows"""

    members: Members = field(metadata=on_disk(inputs="p", outputs=(1, 2)))
    scaling: DataScale
    level: float = field(metadata=on_disk(positive=True))
    info: SelectionInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        shape, unit = shape_of(self.members), self.scaling.y_scale
        mean, sigma = mean_and_sigma(self.members, shape, self.scaling.x(x))
        noise = self.level * sigma
        k, m = mean.shape
        centre = (mean[:, None] + noise[:, None] * shape.shift[..., None]).reshape(-1, m)
        width = (noise[:, None] * shape.width[..., None]).reshape(-1, m)
        share = np.repeat(shape.share.ravel()[:, None] / k, m, axis=1)
        location = self.scaling.y_centre + unit * centre
        if target == "population":
            return Predictive(
                self.scaling.y_centre + unit * mean.mean(axis=0),
                unit**2 * mean.var(axis=0),
                unit**2 * (noise**2 * shape.variance[:, None]).mean(axis=0),
                Mixture(share, Normal(location, unit * width)),
            )
        sign = 1.0 if target == "selected" else -1.0
        scaled = with_constant(self.scaling.w(np.asarray(w, dtype=float)))
        parts = len(share) // k
        kappa = np.repeat(shape.kappa, parts)[:, None]
        root = np.sqrt(1 + (kappa * width) ** 2)
        beside = index_beside_y(shape, shape.gamma @ scaled.T, mean, sigma)
        index = sign * (np.repeat(beside, parts, axis=0) + kappa * centre) / root
        covariance = sign * unit * kappa * width**2 / root
        weight = np.log(share) + log_ndtr(index)
        none = np.zeros_like(location)
        given = mixed_given_selection(weight, location, none, unit * width, covariance, index)
        own = np.exp(weight - logsumexp(weight, axis=0)).reshape(k, parts, m)
        centres = (location + covariance * inverse_mills(index)).reshape(k, parts, m)
        return _doubt_between_members(given, own, centres)

    def of_members(self, chosen: np.ndarray) -> OutcomeEnsemble:
        """The ensemble of some of its members; chosen : (k,) True for these."""
        return replace(self, members=self.members.take(chosen))

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The mean at x and w, by members that held out each fold."""
        yield fold_means(self, x, w, target, **options)

    def draw(self, rng) -> OutcomeEnsemble:
        """One of the members."""
        return replace(self, members=self.members.take([rng.integers(len(self.members.loss))]))

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph: the j parts of all
        members' errors."""
        shape, scaling = shape_of(self.members), self.scaling
        k, parts = shape.share.shape
        outputs = member_outputs(graph, self.members, scaled(graph, scaling, x))
        f, varies = one_output(graph, outputs, 0), self.members.sizes[-1] == 2
        log_noise_factor = log_factor(graph, one_output(graph, outputs, 1)) if varies else None
        noise_factor = graph.call("Exp", log_noise_factor or graph.call("Sub", f, f))
        member = np.repeat(np.arange(k), parts)  # of each of the j
        f, noise_factor = (
            graph.call("Gather", value, member, axis=0) for value in (f, noise_factor)
        )  # (j, m)
        sigma = scaling.y_scale * shape.sigma[:, None]
        centre = sigma * (shape.mean[:, None] + self.level * shape.shift)  # (k, parts)
        width = sigma * self.level * shape.width
        mean = graph.call(
            "Add", graph.call("Mul", f, np.float64(scaling.y_scale)), scaling.y_centre
        )
        return graph.part(
            graph.call("Add", mean, graph.call("Mul", noise_factor, centre.reshape(-1, 1))),
            graph.square(graph.call("Mul", noise_factor, width.reshape(-1, 1))),
            "mixture of normals",
            weight=shape.share.ravel() / k,
        )


def _doubt_between_members(given: Predictive, share, mean) -> Predictive:
    """The variance between the components of one member is aleatoric, that between members
    epistemic; share, mean : (k, parts, m)"""
    own = np.maximum(share.sum(axis=1), np.finfo(float).tiny)
    centre = (share * mean).sum(axis=1) / own
    doubt = (own * (centre - given.mean) ** 2).sum(axis=0)
    return replace(given, epistemic=doubt, aleatoric=given.std**2 - doubt)
