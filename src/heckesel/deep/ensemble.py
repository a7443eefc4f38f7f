"""From trained members to predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from heckesel.data import DataScale
from heckesel.deep.losses import LOG_NOISE_FACTOR_LIMIT, LOG_VARIANCE_RANGE
from heckesel.deep.training import Members
from heckesel.errors import DataError
from heckesel.margins import ComponentMean, without_uncertainty
from heckesel.predictive import (
    Predictive,
    check_target,
    possible_covariance,
    predict_given_selection,
    transformed,
)
from heckesel.scales import TargetTransform


@dataclass(frozen=True)
class TrainingInfo:
    """What the training of an ensemble found; lists have one number for each member.

    training_loss : of the last epoch, for y as it was given
    rho, sigma : correlation of the two errors and standard deviation of y given x
    folds : that members held out in turn, if they did
    held_out_loss : mean over held-out rows, at the calibrated level of the noise
    sigma_level : the factor on sigma(x) that held-out rows prefer
    best_epoch : the epoch with the lowest held-out loss
    tail_df : degrees of freedom, if held-out rows prefer the tails of a t
    noise : "constant" or "varying"; held_out_losses : of each kind that was tried
    """

    training_loss: list[float]
    rho: list[float] | None = None
    sigma: list[float] | None = None
    folds: int | None = None
    held_out_loss: float | None = None
    sigma_level: float | None = None
    best_epoch: list[int] | None = None
    tail_df: float | None = None
    noise: str | None = None
    held_out_losses: dict[str, float] | None = None


class Ensemble:
    """What ensembles of members share; they are dataclasses with `members` and `info`."""

    members: Members
    info: TrainingInfo

    def component_means(
        self, x, w, target: str, *, transform: TargetTransform | None, **_
    ) -> Iterator[ComponentMean]:
        """The mean at x and w by the members that held out each fold, whose variation is a
        jackknife. If all members were trained on the same rows, their variation does not measure
        the uncertainty of the estimate."""

        def mean_of(part) -> np.ndarray:
            return transformed(part.predict(x, w, target), transform).mean

        predicted, folds = mean_of(self), self.info.folds
        if folds is None:
            yield without_uncertainty(predicted)
            return
        own = np.arange(len(self.members.loss)) % folds
        means = [mean_of(self.of_members(own == fold)) for fold in range(min(len(own), folds))]
        yield ComponentMean(1.0, np.stack(means), folds=folds, predicted=predicted)

    def of_members(self, chosen: np.ndarray):
        """The ensemble of some of its members; chosen : (k,) True for these."""
        raise NotImplementedError

    def draw(self, rng):
        """One of the members."""
        k = len(self.members.loss)
        return self.of_members(np.arange(k) == rng.integers(k))


@dataclass(frozen=True)
class SelectionEnsemble(Ensemble):
    """Members f_k with a common error model: the result of two-step and joint fits.

    sigma, covariance : (k,) sd of y and covariance rho sigma of the two errors, in units of y
    gamma : (k, q + 1) index of each member, constant last; a single row if all share it
    noise_networks : networks whose output g makes sigma and covariance local, both times
        `noise_factor_of(g)`
    tail_df : degrees of freedom of a t with the sd sigma, if held-out units preferred it
    """

    members: Members
    scaling: DataScale
    sigma: np.ndarray
    covariance: np.ndarray
    gamma: np.ndarray
    info: TrainingInfo
    noise_networks: Members | None = None
    tail_df: float | None = None

    def of_members(self, chosen: np.ndarray) -> SelectionEnsemble:
        noise = self.noise_networks
        return replace(
            self,
            members=self.members.take(chosen),
            sigma=self.sigma[chosen],
            covariance=self.covariance[chosen],
            gamma=self.gamma if len(self.gamma) == 1 else self.gamma[chosen],
            noise_networks=None if noise is None else noise.take(chosen),
        )

    def noise_factor(self, x) -> np.ndarray:
        """(k, m) the factor on sigma at scaled x."""
        if self.noise_networks is None:
            return np.ones((len(self.sigma), len(x)))
        return noise_factor_of(self.noise_networks.outputs(x)[..., 0])

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        x = self.scaling.x(x)
        factor = self.noise_factor(x)
        f = self.scaling.y_centre + self.scaling.y_scale * self.members.outputs(x)[..., 0]
        mean, epistemic, aleatoric = ensemble_moments(f, (self.sigma[:, None] * factor) ** 2)
        if target == "population":
            return with_tails(mean, epistemic, aleatoric, self.tail_df)
        sign, sigma = (1.0 if target == "selected" else -1.0), np.sqrt(aleatoric)
        covariance = np.mean(self.covariance[:, None] * factor, axis=0)
        covariance = sign * possible_covariance(covariance, sigma)
        given = predict_given_selection(mean, epistemic, sigma, covariance, sign * self.index(w))
        if self.tail_df is None:
            return given
        # the two-step was calibrated so: the moments given selection, with these tails
        return with_tails(given.mean, given.epistemic, given.aleatoric, self.tail_df)

    def reporting_sigma_of(self, x, weight) -> SelectionEnsemble:
        """The same fit, with the root mean square of sigma(x) over units x (n, p) in `info`; the
        field `sigma` is the value at an output of 0."""
        square = self.noise_factor(self.scaling.x(x)) ** 2
        sigma = self.sigma * np.sqrt(square @ (weight / weight.sum()))
        return replace(self, info=replace(self.info, sigma=sigma.tolist()))

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), mean over members."""
        gamma = self.gamma.mean(axis=0)
        return np.asarray(w, dtype=float) @ gamma[:-1] + gamma[-1]


@dataclass(frozen=True)
class GaussianEnsemble(Ensemble):
    """Members with two outputs, mean and log variance. Outcomes are assumed to be missing at
    random, so all three targets have the same prediction.

    level, tail_df : factor on sigma and degrees of freedom of the tails, if held-out rows have
        calibrated them; tail_df is None for normal tails
    gamma : (q + 1,) of a separate probit of selection, the constant last, if there is one
    """

    members: Members
    scaling: DataScale
    info: TrainingInfo
    level: float = 1.0
    tail_df: float | None = None
    gamma: np.ndarray | None = None

    def of_members(self, chosen: np.ndarray) -> GaussianEnsemble:
        return replace(self, members=self.members.take(chosen))

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p)."""
        check_target(target)
        outputs = self.members.outputs(self.scaling.x(x))
        return predict_two_outputs(outputs, self.scaling, self.level, self.tail_df)

    def index(self, w) -> np.ndarray:
        """(m,) the index of the probit at w (m, q)."""
        if self.gamma is None:
            raise DataError(
                "the probit of selection could not be fitted, so there is no joint likelihood; see "
                "identification_ for the reason"
            )
        return np.asarray(w, dtype=float) @ self.gamma[:-1] + self.gamma[-1]


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


def noise_factor_of(g) -> np.ndarray:
    """The factor on sigma that an output g encodes, as in `losses.noise_scale`."""
    return np.exp(LOG_NOISE_FACTOR_LIMIT * np.tanh(g / LOG_NOISE_FACTOR_LIMIT))
