"""From k members to one `Predictive`: moments of an ensemble, and ensembles that predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heckesel.errors import DataError
from heckesel.fit_info import EnsembleInfo, SelectionInfo
from heckesel.margins import ComponentMean
from heckesel.networks.ensembles.fold_means import fold_means
from heckesel.networks.losses.normal import LOG_NOISE_FACTOR_LIMIT, LOG_VARIANCE_RANGE
from heckesel.networks.member_graphs import (
    log_factor,
    mean_and_doubt,
    member_outputs,
    one_output,
    scaled,
    tailed,
)
from heckesel.networks.training.batches import DataScale
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.on_disk import on_disk
from heckesel.predictive import (
    Predictive,
    check_target,
    possible_covariance,
    predict_given_selection,
)


def ensemble_moments(member_mean, member_variance):
    r"""Mean, epistemic and aleatoric variance of k equally weighted members.

    .. math:: \tfrac1k\sum f_k, \qquad \tfrac1k\sum (f_k - \bar f)^2, \qquad \tfrac1k\sum\sigma_k^2

    member_mean : (k, m); member_variance : (k,) or (k, m)
    """
    mean = member_mean.mean(axis=0)  # (m,)
    epistemic = member_mean.var(axis=0)  # (m,)
    aleatoric = np.broadcast_to(np.mean(member_variance, axis=0), mean.shape)
    return mean, epistemic, aleatoric


def with_tails(mean, epistemic, aleatoric, df: float | None) -> Predictive:
    """The normal with these moments or, with df, the t."""
    if df is None:
        return Predictive.normal(mean, epistemic, aleatoric)
    return Predictive.student(mean, epistemic, aleatoric, df)


def noise_factor_of(g) -> np.ndarray:
    """The factor on sigma that an output g encodes; the twin of `losses.local_log_sigma`."""
    return np.exp(LOG_NOISE_FACTOR_LIMIT * np.tanh(g / LOG_NOISE_FACTOR_LIMIT))


def with_networks(fitted, change: Callable[[Any], Any]):
    """`fitted` with `change` applied to all its networks, those of fits inside it included."""
    changed = {}
    for name, value in vars(fitted).items():
        if hasattr(value, "outputs"):
            changed[name] = change(value)
        elif hasattr(value, "predict"):
            changed[name] = with_networks(value, change)
    return replace(fitted, **changed)


@dataclass(frozen=True)
class SelectionEnsemble:
    """Members f_k with a common error model: the result of two-step, joint and blind fits.

    sigma, covariance : (k,) sd of y and covariance rho sigma of the two errors, in units of y
    gamma : (k, q + 1) index of each member, constant last; a single row if all share it
    noise_networks : networks whose output g makes sigma and covariance local, both times
        `noise_factor_of(g)`; where they are None, the second output of the members is g, if any
    selection : networks on w whose mean output is the index, used instead of gamma
    df : (k,) degrees of freedom of t errors, whose scale is then sigma; None for normal errors
    tail_df : degrees of freedom of a t with the sd sigma, if held-out units preferred it
    """

    members: Members | ModuleMembers = field(metadata=on_disk(inputs="p", outputs=(1, 2)))
    scaling: DataScale
    sigma: np.ndarray = field(metadata=on_disk("k", positive=True))
    covariance: np.ndarray = field(metadata=on_disk("k"))
    gamma: np.ndarray = field(metadata=on_disk("indices", "q+1"))
    info: SelectionInfo
    noise_networks: Members | None = field(default=None, metadata=on_disk(inputs="p"))
    df: np.ndarray | None = field(default=None, metadata=on_disk("k", above=2))
    selection: Members | None = field(default=None, metadata=on_disk(inputs="q"))
    tail_df: float | None = field(default=None, metadata=on_disk(above=2))

    def of_members(self, chosen: np.ndarray) -> SelectionEnsemble:
        """The ensemble of some of its members; chosen : (k,) True for these."""
        noise = self.noise_networks
        return replace(
            self,
            members=self.members.take(chosen),
            sigma=self.sigma[chosen],
            covariance=self.covariance[chosen],
            gamma=self.gamma if len(self.gamma) == 1 else self.gamma[chosen],
            noise_networks=None if noise is None else noise.take(chosen),
            df=None if self.df is None else self.df[chosen],
        )

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The mean at x and w, by members that held out each fold."""
        yield fold_means(self, x, w, target, **options)

    def draw(self, rng) -> SelectionEnsemble:
        """One of the members."""
        return self.of_members(np.arange(len(self.sigma)) == rng.integers(len(self.sigma)))

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        outputs, noise_factor = self._outputs(self.scaling.x(x))
        member_mean = self.scaling.y_centre + self.scaling.y_scale * outputs
        member_sigma = self.sigma[:, None] * noise_factor
        mean, epistemic, aleatoric = ensemble_moments(member_mean, member_sigma**2)
        if self.df is not None:
            return self._student(mean, epistemic, self.df, target)
        if target == "population":
            return with_tails(mean, epistemic, aleatoric, self.tail_df)
        sign = 1.0 if target == "selected" else -1.0
        sigma = np.sqrt(aleatoric)
        covariance = np.mean(self.covariance[:, None] * noise_factor, axis=0)
        covariance = sign * possible_covariance(covariance, sigma)
        given = predict_given_selection(mean, epistemic, sigma, covariance, sign * self.index(w))
        if self.tail_df is None:
            return given
        # the two-step was calibrated so: the moments given selection, with these tails
        return with_tails(given.mean, given.epistemic, given.aleatoric, self.tail_df)

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph."""
        if not isinstance(self.members, Members):
            raise DataError(
                "networks of your own cannot be exported; torch.onnx.export takes each module"
            )
        x = scaled(graph, self.scaling, x)
        outputs = member_outputs(graph, self.members, x)
        f = one_output(graph, outputs, 0)
        mean, doubt = mean_and_doubt(graph, f, self.scaling)
        local = None
        if self.noise_networks is not None:
            local = one_output(graph, member_outputs(graph, self.noise_networks, x), 0)
        elif self.members.sizes[-1] == 2:
            local = one_output(graph, outputs, 1)
        if self.df is not None:
            noise = graph.call("Add", doubt, np.mean(self.sigma**2 * self.df / (self.df - 2)))
            return graph.part(mean, noise, "t", df=2 + float(np.exp(np.mean(np.log(self.df - 2)))))
        if local is None:
            variance = graph.call("Add", doubt, np.mean(self.sigma**2))
        else:
            square = graph.call("Mul", log_factor(graph, local), np.float32(2))
            own = graph.call("Mul", graph.call("Exp", square), self.sigma[:, None] ** 2)
            variance = graph.call("Add", doubt, graph.mean_over_members(own))
        return tailed(graph, mean, variance, self.tail_df)

    def reporting_sigma_of(self, x, weight) -> SelectionEnsemble:
        """The same fit, with the root mean square of sigma(x) over units x (n, p) in `info`; the
        field `sigma` is the value at an output of 0."""
        _, noise_factor = self._outputs(self.scaling.x(x))
        sigma = self.sigma * np.sqrt(noise_factor**2 @ (weight / weight.sum()))
        return replace(self, info=replace(self.info, sigma=sigma.tolist()))

    def _student(self, mean, epistemic, df, target) -> Predictive:
        r"""The t with the variance of the members, :math:`\overline{\sigma_k^2\nu_k/(\nu_k-2)}`
        plus the variance between them, with their typical degrees of freedom."""
        if target != "population":
            raise DataError(f"target {target!r} does not exist with t errors; set errors='normal'")
        aleatoric = np.mean(self.sigma**2 * df / (df - 2))
        typical = 2 + float(np.exp(np.mean(np.log(df - 2))))
        return Predictive.student(mean, epistemic, aleatoric, typical)

    def _outputs(self, x):
        """f in the networks' own units, and the factor on sigma; (k, m) both."""
        outputs = self.members.outputs(x)
        if self.noise_networks is not None:
            return outputs[..., 0], noise_factor_of(self.noise_networks.outputs(x)[..., 0])
        if outputs.shape[2] == 2:
            return outputs[..., 0], noise_factor_of(outputs[..., 1])
        return outputs[..., 0], np.ones(outputs.shape[:2])

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), mean over members."""
        w = np.asarray(w, dtype=float)
        if self.selection is not None:
            return self.selection.outputs(self.scaling.w(w)).mean(axis=0)[:, 0]
        gamma = self.gamma.mean(axis=0)
        return w @ gamma[:-1] + gamma[-1]


@dataclass(frozen=True)
class GaussianEnsemble:
    """Members with two outputs, mean and log variance. Outcomes are assumed to be missing at
    random, so all three targets have the same prediction.

    level, tail_df : factor on sigma and degrees of freedom of the tails, if held-out rows have
        calibrated them; tail_df is None for normal tails
    """

    members: Members = field(metadata=on_disk(inputs="p", outputs=(2,)))
    scaling: DataScale
    info: EnsembleInfo
    level: float = field(default=1.0, metadata=on_disk(positive=True))
    tail_df: float | None = field(default=None, metadata=on_disk(above=2))

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p)."""
        check_target(target)
        outputs = self.members.outputs(self.scaling.x(x))
        return predict_two_outputs(outputs, self.scaling, self.level, self.tail_df)

    def of_members(self, chosen: np.ndarray) -> GaussianEnsemble:
        """The ensemble of some of its members; chosen : (k,) True for these."""
        return replace(self, members=self.members.take(chosen))

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The mean at x, by members that held out each fold."""
        yield fold_means(self, x, w, target, **options)

    def draw(self, rng) -> GaussianEnsemble:
        """One of the members."""
        return replace(self, members=self.members.take([rng.integers(len(self.members.loss))]))

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph."""
        outputs = member_outputs(graph, self.members, scaled(graph, self.scaling, x))
        mean, doubt = mean_and_doubt(graph, one_output(graph, outputs, 0), self.scaling)
        low, high = (np.float64(end) for end in LOG_VARIANCE_RANGE)
        own = graph.call("Exp", graph.call("Clip", one_output(graph, outputs, 1), low, high))
        unit = np.float64((self.level * self.scaling.y_scale) ** 2)
        noise = graph.call("Mul", graph.mean_over_members(own), unit)
        return tailed(graph, mean, graph.call("Add", doubt, noise), self.tail_df)


def predict_two_outputs(
    outputs, scaling: DataScale, level: float = 1.0, tail_df: float | None = None
) -> Predictive:
    """The normal, or the t, with the moments of a mixture of k normals; outputs : (k, m, 2)."""
    variance = level**2 * output_variance(outputs)
    mean, epistemic, aleatoric = ensemble_moments(outputs[..., 0], variance)
    square = scaling.y_scale**2
    mean = scaling.y_centre + scaling.y_scale * mean
    return with_tails(mean, square * epistemic, square * aleatoric, tail_df)


def output_variance(outputs) -> np.ndarray:
    """(k, m) the variance that the second of two outputs encodes."""
    return np.exp(outputs[..., 1].clip(*LOG_VARIANCE_RANGE))
