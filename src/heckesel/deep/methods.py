r"""The paper's ensembles, fitted to many datasets with the same columns as one batch.

`fit_two_step`, `fit_joint` and `fit_plain` take datasets, a seed for each, and a `NetworkConfig`,
and return an ensemble for each dataset. On folds the level of the noise and the tails are estimated
on held-out rows (`Pairs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln, log_ndtr, ndtri, stdtr

from heckesel.classical.probit import fit_probit, instruments_are_strong, selection_probit
from heckesel.data import DataScale, SelectionData
from heckesel.deep.ensemble import (
    GaussianEnsemble,
    SelectionEnsemble,
    TrainingInfo,
    noise_factor_of,
    output_variance,
)
from heckesel.deep.losses import GAUSSIAN, JOINT, NOISE_SCALE, TWO_STEP
from heckesel.deep.training import (
    Members,
    NetworkConfig,
    Progress,
    Rows,
    joint_rows,
    outcome_rows,
    train_members,
    with_folds,
)
from heckesel.errors import DataError, HeckeselError, warn_user
from heckesel.math.special import HALF_LOG_2PI, inverse_mills, mills_delta
from heckesel.predictive import RHO_LIMIT

# The largest |rho| at which networks start; that of a linear two-step may exceed one.
START_RHO = 0.9
WAY_OUT = "lower learning_rate or weight_decay, or rescale columns with extreme values"
# Predictions on the rows of the fit may lie this many times as far from the median outcome as the
# farthest outcome. Trained networks interpolate: a factor of two or three is large, and networks
# that diverged are off by a factor of thousands.
FARTHEST = 10.0
LOOKED_AT = 10_000  # rows; a diverged network shows it everywhere
# Decrease of the held-out loss in the last quarter of the schedule, which has a fortieth of the sum
# of learning rates. At this rate, twice as many epochs would gain .08, eight percent of a residual
# sd. Fits with enough epochs stay below .0015.
LATE_GAIN = 0.002
# Adam moves a weight by at most the learning rate per step, on average half of the initial one.
# Weights start within 1/8 of zero (64 units per layer), so a shorter path hardly leaves the start.
SHORTEST_PATH = 0.25
DEFAULT_RATE = 1e-2  # the larger of the two defaults

# At two degrees of freedom a t has no variance, and below three the few largest residuals determine
# its standard deviation, which is the level.
LEAST_TAIL_DF = 3.0
# Beyond the upper end a t is a normal to four digits.
LOG_EXTRA_DF_RANGE = (-5.0, 9.2)


def fit_plain(
    datas: Sequence[SelectionData],
    seeds: Sequence[int],
    config: NetworkConfig,
    *,
    device: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[GaussianEnsemble]:
    """Networks with a mean and a variance output, on the selected units alone; on folds, the level
    of sigma(x), and its tails, are calibrated on held-out rows.

    options : of `train_members`
    """
    folds = config.folds
    scalings = [DataScale.of(data, config.standardise) for data in datas]
    tables = [
        with_folds(outcome_rows(data, scaling), data, folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    where = _where(datas, seeds, config, device, progress) | options
    fits = []
    for members, rows, scaling in zip(
        train_members(tables, GAUSSIAN, **where), tables, scalings, strict=True
    ):
        unit = float(np.log(scaling.y_scale))
        fit = GaussianEnsemble(members, scaling, TrainingInfo((members.loss + unit).tolist()))
        if folds is not None:
            outputs = members.outputs(rows.x)
            factor = np.sqrt(output_variance(outputs))
            pairs = Pairs.of(outputs[..., 0], factor, rows, folds)
            residual = rows.y[pairs.row] - pairs.mean

            def loss(level, df, pairs=pairs, residual=residual):
                variance = (level * pairs.noise_factor) ** 2 + pairs.doubt
                return tailed_loss(residual, variance, df)

            level, df, value = pairs.calibrated(loss, config.tails)
            info = replace(
                fit.info,
                folds=folds,
                held_out_loss=value + unit,
                sigma_level=level,
                best_epoch=np.asarray(members.best_epoch).tolist(),
                tail_df=df,
            )
            fit = replace(fit, info=info, level=level, tail_df=df)
        fits.append(fit)
    return fits


def _where(datas, seeds, config, device, progress) -> dict[str, Any]:
    return {
        "seeds": seeds,
        "config": config,
        "units": max(data.n for data in datas),
        "device": device,
        "progress": progress,
    }


def fit_two_step(
    datas: Sequence[SelectionData],
    seeds: Sequence[int],
    config: NetworkConfig,
    *,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    r"""A classic probit, then an ensemble for f(x) + c lambda on the selected units.

    With folds, held-out rows are used for early stopping and to estimate the noise. There is one
    round of training for a constant sigma, and three for a sigma(x):

    1. f and c, as with one sigma, for residuals r of held-out rows;
    2. a network for the standard deviation of :math:`r/\sqrt{1-\rho^2\delta}`, the residuals as
       they would be without selection: :math:`\sigma(x) = \sigma s(x)`;
    3. f and c again, around :math:`f + c\,s(x)\lambda`, so that the correction grows with the
       noise: :math:`E[y|s{=}1] = f + \rho\sigma(x)\lambda`, :math:`\rho = c/\sigma`.

    Means are fitted by least squares in both rounds. A likelihood with sigma(x) would fit them best
    where outcomes are least noisy, and neglect regions with few selected units.
    """
    folds, where = config.folds, _where(datas, seeds, config, device, progress)
    steps = [_FirstStep.of(*each, config) for each in zip(datas, seeds, strict=True)]
    tables = [step.rows for step in steps]
    if folds is None:
        return [
            step.ensemble(members, None)
            for step, members in zip(steps, train_members(tables, TWO_STEP, **where), strict=True)
        ]
    heads = [np.array([c, np.log(sigma)]) for _, c, sigma in (step.start() for step in steps)]
    first = train_members(tables, TWO_STEP, heads=heads, **where)
    fits = []
    if config.noise != "varying":
        fits.append(
            [step.calibrated(m, None, config) for step, m in zip(steps, first, strict=True)]
        )
    if config.noise != "constant":
        narrow = [step.residual_rows(m, folds) for step, m in zip(steps, first, strict=True)]
        noise = train_members(narrow, NOISE_SCALE, **where)
        steps = [
            replace(
                step, rows=replace(step.rows, mills=step.rows.mills * _crossed(n, step.rows, folds))
            )
            for step, n in zip(steps, noise, strict=True)
        ]
        heads = [np.array([c, np.log(sigma)]) for _, c, sigma in (step.start() for step in steps)]
        again = train_members([step.rows for step in steps], TWO_STEP, heads=heads, **where)
        fits.append(
            [
                step.calibrated(members, scale, config)
                for step, members, scale in zip(steps, again, noise, strict=True)
            ]
        )
    best = []
    for *tried, data in zip(*fits, datas, strict=True):
        losses = {str(fit.info.noise): float(fit.info.held_out_loss) for fit in tried}
        fit = min(tried, key=lambda fit: fit.info.held_out_loss)
        fit = replace(fit, info=replace(fit.info, held_out_losses=losses))
        best.append(fit.reporting_sigma_of(data.x, data.weight))
    return best


@dataclass(frozen=True)
class _FirstStep:
    """Input of the second step: its rows with the inverse Mills ratio, and the probit.

    gamma : (q + 1,) for w as given, the constant last
    strong : whether the instruments are strong; False without folds, which do not need it
    """

    rows: Rows
    scaling: DataScale
    gamma: np.ndarray
    strong: bool

    @classmethod
    def of(cls, data: SelectionData, seed: int, config: NetworkConfig) -> _FirstStep:
        scaling = DataScale.of(data, config.standardise)
        gamma = selection_probit(data).gamma
        rows = with_mills(outcome_rows(data, scaling), data.w[data.s] @ gamma[:-1] + gamma[-1])
        strong = config.folds is not None and instruments_are_strong(data)
        return cls(with_folds(rows, data, config.folds, seed), scaling, gamma, strong)

    def start(self) -> tuple[np.ndarray, float, float]:
        return linear_start(self.rows, self.strong)

    def ensemble(self, members: Members, sigma: float | None) -> SelectionEnsemble:
        r"""The ensemble in units of y, with this sigma for the scaled y. None is the sd of the
        population error: selection takes :math:`c^2\delta` off the variance of y,

        .. math:: \sigma^2 = \mathrm{mean}\,(y - f - c\lambda)^2 + c^2\,\mathrm{mean}\,\delta .
        """
        rows, unit, c = self.rows, self.scaling.y_scale, members.head[:, 0].astype(float)
        each = np.full(len(c), sigma)
        if sigma is None:
            residual = rows.y - members.outputs(rows.x)[..., 0] - c[:, None] * rows.mills
            each = np.sqrt(residual**2 @ rows.weight + c**2 * (rows.delta @ rows.weight))
        info = TrainingInfo(
            rho=(c / each).tolist(),
            sigma=(unit * each).tolist(),
            training_loss=(members.loss + np.log(unit)).tolist(),
        )
        return SelectionEnsemble(
            members, self.scaling, unit * each, unit * c, self.gamma[None], info
        )

    def calibrated(
        self, members: Members, noise: Members | None, config: NetworkConfig
    ) -> SelectionEnsemble:
        """The ensemble with the level of sigma and the tails that held-out rows prefer."""
        rows, c = self.rows, members.head[:, 0].astype(float)
        f = members.outputs(rows.x)[..., 0]
        factor = (
            np.ones_like(f) if noise is None else noise_factor_of(noise.outputs(rows.x)[..., 0])
        )
        assert config.folds is not None
        pairs = Pairs.of(f, factor, rows, config.folds)
        c, delta = c[pairs.member], rows.delta[pairs.row]
        residual = rows.y[pairs.row] - pairs.mean - c * rows.mills[pairs.row]
        level, df, value = pairs.calibrated(
            lambda level, df: two_step_loss(residual, level, c, delta, pairs, df), config.tails
        )
        fit = self.ensemble(members, level)
        info = replace(
            fit.info,
            folds=config.folds,
            held_out_loss=value + float(np.log(self.scaling.y_scale)),
            best_epoch=np.asarray(members.best_epoch).tolist(),
            noise="constant" if noise is None else "varying",
            tail_df=df,
        )
        return replace(fit, info=info, noise_networks=noise, tail_df=df)

    def residual_rows(self, members: Members, folds: int) -> Rows:
        """Residuals of held-out rows, scaled to their standard deviation in the population."""
        rows, c = self.rows, members.head[:, :1].astype(float)
        f = members.outputs(rows.x)[..., 0]
        out = rows.held_out(len(f), folds)
        seen = out.any(axis=0)  # with fewer members than folds, some rows are never held out
        residual = np.where(out, rows.y - f - c * rows.mills, 0.0).sum(axis=0)
        residual = residual / np.maximum(out.sum(axis=0), 1)
        weight = np.where(seen, rows.weight, 0.0)
        weight = weight / weight.sum()
        square, c2 = residual**2 @ weight, float(np.mean(c)) ** 2
        rho2 = min(c2 / (square + c2 * (rows.delta @ weight)), RHO_LIMIT**2)
        y = residual / np.sqrt(1 - rho2 * rows.delta)
        return Rows(x=rows.x, y=y, weight=weight, fold=rows.fold)


def _crossed(noise: Members, rows: Rows, folds: int) -> np.ndarray:
    """(n,) s(x) of each row by members that held it out, or by all members if none did."""
    factor = noise_factor_of(noise.outputs(rows.x)[..., 0])
    out = rows.held_out(len(factor), folds)
    out = out | ~out.any(axis=0)
    return np.where(out, factor, 0.0).sum(axis=0) / out.sum(axis=0)


def with_mills(rows: Rows, index: np.ndarray) -> Rows:
    """Rows of one dataset with `mills` and `delta` at the probit index (n,)."""
    mills = inverse_mills(index)
    return replace(rows, mills=mills, delta=mills_delta(index, mills))


def linear_start(rows: Rows, strong: bool) -> tuple[np.ndarray, float, float]:
    r"""A linear outcome on selected rows with inverse Mills ratios, as a start for the networks:
    beta (p + 1,), the covariance c of the two errors, and the sd sigma of y.

    With strong instruments it is the classic two-step. Without them :math:`\lambda` is a function
    of x and picks up the nonlinear part of f. Its coefficient c can be many sigmas large, and
    members would stop before they correct it. So c starts at 0, and sigma at that of least squares.
    """
    columns, root = np.column_stack([rows.x, np.ones(len(rows.y))]), np.sqrt(rows.weight)
    p = columns.shape[1]
    if strong:
        columns = np.column_stack([columns, rows.mills])
    found = np.linalg.lstsq(columns * root[:, None], rows.y * root, rcond=None)[0]
    residual, c = rows.y - columns @ found, float(found[-1]) if strong else 0.0
    return found[:p], c, float(np.sqrt((residual**2 + c**2 * rows.delta) @ rows.weight))


def fit_joint(
    datas: Sequence[SelectionData],
    seeds: Sequence[int],
    config: NetworkConfig,
    *,
    rho_start: Sequence[float] | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    """Outcome network, linear selection head, sigma and rho fitted at once.

    On folds, heads start at classic estimates and need no warm-up, during which members could stop
    early; held-out rows calibrate sigma and the tails.

    rho_start : of each member; rho keeps it for `config.warm_up` epochs
    """
    folds = config.folds
    if config.noise == "varying":
        raise DataError('noise="varying" needs method="two-step"')
    scalings = [DataScale.of(data, config.standardise) for data in datas]
    tables = [
        with_folds(joint_rows(data, scaling), data, folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    heads = None
    if folds is not None:
        heads = [
            classic_head(rows, instruments_are_strong(data))
            for rows, data in zip(tables, datas, strict=True)
        ]
        if rho_start is None:
            config = replace(config, warm_up=0)
    where = _where(datas, seeds, config, device, progress)
    if rho_start is not None:
        where["last_of_head"] = np.arctanh(np.asarray(rho_start, dtype=float))
    trained = train_members(tables, JOINT, heads=heads, **where)
    fits = []
    for members, rows, scaling in zip(trained, tables, scalings, strict=True):
        *gamma, log_sigma, a = members.head.astype(float).T
        unit, rho = scaling.y_scale, np.tanh(a)
        sigma = unit * np.exp(log_sigma)
        # The density of y is that of the scaled y divided by its scale, for the selected units.
        loss = members.loss + rows.weight.sum() * np.log(unit)
        info = TrainingInfo(loss.tolist(), rho.tolist(), sigma.tolist())
        at = np.transpose(gamma)
        fit = SelectionEnsemble(
            members, scaling, sigma, rho * sigma, scaling.unscale_gamma(at), info
        )
        fits.append(fit if folds is None else _calibrated(fit, rows, at, config))
    return fits


def _calibrated(fit: SelectionEnsemble, rows: Rows, gamma, config) -> SelectionEnsemble:
    """With the level of sigma and the tails that maximise the joint likelihood of held-out rows."""
    f, rho = fit.members.outputs(rows.x)[..., 0], np.array(fit.info.rho)
    pairs = Pairs.of(f, np.ones_like(f), rows, config.folds)
    index = (rows.w[pairs.row] * gamma[pairs.member]).sum(axis=1)
    y, rho_of = rows.y[pairs.row], rho[pairs.member]
    level, df, value = pairs.calibrated(
        lambda level, df: joint_loss(y, level, rho_of, index, pairs, df), config.tails
    )
    sigma = np.full(len(rho), fit.scaling.y_scale * level)
    info = replace(
        fit.info,
        sigma=sigma.tolist(),
        tail_df=df,
        folds=config.folds,
        held_out_loss=value + float(np.log(fit.scaling.y_scale)),
        best_epoch=np.asarray(fit.members.best_epoch).tolist(),
        noise="constant",
    )
    return replace(fit, sigma=sigma, covariance=rho * sigma, tail_df=df, info=info)


def classic_head(rows: Rows, strong: bool) -> np.ndarray:
    """(h,) where the heads start: gamma of a probit on these rows, log sigma and atanh rho of the
    linear model with the inverse Mills ratios of that probit."""
    w, weight = (
        np.vstack([rows.w, rows.w_unselected]),
        np.append(rows.weight, rows.weight_unselected),
    )
    gamma = fit_probit(w, np.arange(len(w)) < len(rows.w), weight * len(w)).gamma
    selected = replace(rows, weight=rows.weight / rows.weight.sum())
    _, c, sigma = linear_start(with_mills(selected, rows.w @ gamma), strong)
    rho = np.clip(c / sigma, -START_RHO, START_RHO)
    return np.concatenate([gamma, [np.log(sigma), np.arctanh(rho)]])


def check_outcome(data: SelectionData) -> None:
    """Refuse an outcome that does not vary, since it has no scale."""
    seen = data.y[data.s & (data.weight > 0)]
    if seen.min() == seen.max():
        raise DataError(
            f"the outcome {data.y_name!r} is {seen[0]:g} in all {len(seen)} selected rows, so "
            "there is nothing to learn"
        )


def check_training(fitted, config: NetworkConfig, data: SelectionData) -> None:
    """Raise if `fitted` diverged; warn if it was trained for too few epochs."""
    noise = getattr(fitted, "noise_networks", None)
    networks = [fitted.members] + ([] if noise is None else [noise])
    if any(own.diverged for own in networks):
        raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")
    selected = np.flatnonzero(data.s)
    looked_at = selected[:: math.ceil(len(selected) / LOOKED_AT)]
    centre = np.median(data.y[selected])
    reach = np.abs(data.y[selected] - centre).max()
    apart = np.abs(fitted.predict(data.x[looked_at]).mean - centre).max()
    if not apart <= FARTHEST * max(reach, np.finfo(float).tiny):
        raise HeckeselError(
            f"training diverged: predictions lie {apart:.3g} from the median outcome, and no "
            f"outcome is farther from it than {reach:.3g}; {WAY_OUT}"
        )
    steps = 1 if config.batch_size is None else math.ceil(data.n / config.batch_size)
    gains = [float(np.mean(own.late_gain)) for own in networks if own.late_gain is not None]
    if 0.5 * (config.learning_rate or DEFAULT_RATE) * config.epochs * steps < SHORTEST_PATH:
        what = f"{config.epochs} epochs at this learning rate hardly change the weights"
    elif any(gain > LATE_GAIN for gain in gains):
        what = f"the held-out loss was still falling after {config.epochs} epochs"
    else:
        return
    from sklearn.exceptions import ConvergenceWarning

    warn_user(
        f"training did not converge: {what}; raise epochs or learning_rate", ConvergenceWarning
    )


# Calibration on held-out rows


@dataclass(frozen=True)
class Pairs:
    r"""Every row with every member that held it out, r pairs in all: they calibrate the noise.

    Residuals of training rows are too small, and so is a sigma computed from them. The residual
    :math:`r_{ij}` of row i under a member j that held it out is not too small, but a member has a
    larger error than the ensemble. With :math:`\sigma^2` the variance of the noise and of the error
    that all members share, and :math:`v_i` the variance of the error that is specific to a member,

    .. math:: E\,r_{ij}^2 = \sigma^2 + v_i, \qquad
              E\,(y - \bar f)^2 = \sigma^2 + v_i/k ,

    while the ensemble will predict with the aleatoric variance and the variance between its k
    members, which is :math:`v_i(1 - 1/k)` on average. For the sum to equal the second expression,
    the aleatoric variance must be :math:`E\,r_{ij}^2 - 2 v_i(1 - 1/k)`: plain residuals would count
    the members' own errors twice. So its level maximises the likelihood of

    .. math:: r_{ij} \sim N(0,\ \text{aleatoric} + 2 (1 - 1/k)\,v_i) .

    :math:`v_i` is the variance between members at row i. Most members were trained on that row, so
    they agree on it more than on new rows. On rows that two or more members held out, the variance
    between these members alone is computed, too, and all :math:`v_i` are multiplied by the ratio of
    its mean to the mean of :math:`v_i` on these rows.

    Residuals of real outcomes often have heavier tails than a normal. A normal with the same
    variance is then too wide outside the tails. With tails "auto" the shape is calibrated as well:
    a t with the same variance is used if it gains more held-out log-likelihood than the log-unit
    that a parameter costs (AIC).

    mean, noise_factor : (r,) f and the factor on sigma that the member predicts for the row
    doubt : (r,) 2 (1 - 1/k) v, the variance that a member's error adds to its residual
    member, row : (r,); weight : (r,) adding up to 1
    """

    mean: np.ndarray
    noise_factor: np.ndarray
    doubt: np.ndarray
    weight: np.ndarray
    member: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, mean, noise_factor, rows: Rows, folds: int) -> Pairs:
        """mean, noise_factor : (k, n) of the members at the rows"""
        k, weight = len(mean), rows.weight
        out = rows.held_out(k, folds)
        own = own_variance(mean, out, weight) if k > 1 else np.zeros(mean.shape[1])
        doubt = 2 * (1 - 1 / k) * own
        member, row = np.nonzero(out & (weight > 0))
        total = weight[row]
        return cls(
            mean=mean[member, row],
            noise_factor=noise_factor[member, row],
            doubt=doubt[row],
            weight=total / total.sum(),
            member=member,
            row=row,
        )

    def calibrated(
        self, loss: Callable[[float, float | None], np.ndarray], tails: str
    ) -> tuple[float, float | None, float]:
        """The level with the least mean loss over the pairs, with tails "auto" the degrees of
        freedom that they prefer, else None, and that loss.

        loss : (level, df) -> (r,), normal where df is None
        """
        plain = minimize_scalar(
            lambda log_level: float(self.weight @ loss(np.exp(log_level), None)),
            bracket=(-1.0, 0.0),
        )
        if tails == "auto":

            def df(free):
                return float(np.exp(np.clip(free, *LOG_EXTRA_DF_RANGE))) + LEAST_TAIL_DF

            found = minimize(
                lambda point: float(self.weight @ loss(np.exp(point[0]), df(point[1]))),
                x0=[-0.5, 1.0],
                method="Nelder-Mead",
                options={"xatol": 1e-3, "fatol": 1e-7},
            )
            # fewer than there are if weights differ
            rows = 1 / np.sum(np.bincount(self.row, self.weight) ** 2)
            if (plain.fun - found.fun) * rows > 1:
                return float(np.exp(found.x[0])), df(found.x[1]), float(found.fun)
        return float(np.exp(plain.x)), None, float(plain.fun)


def own_variance(mean, out, weight) -> np.ndarray:
    """(n,) variance between members, scaled to the variance between members that held a row out."""
    everyone = mean.var(axis=0, ddof=1)
    several = out.sum(axis=0) > 1
    if not (several & (weight > 0) & (everyone > 0)).any():
        return everyone
    chosen, counts = out[:, several], out[:, several].sum(axis=0)
    apart = mean[:, several]
    centre = np.where(chosen, apart, 0.0).sum(axis=0) / counts
    unseen = np.where(chosen, apart - centre, 0.0) ** 2
    unseen = unseen.sum(axis=0) / (counts - 1)
    return everyone * (unseen @ weight[several]) / (everyone[several] @ weight[several])


def tailed_loss(residual, variance, df: float | None):
    r"""-log density of a normal or, with df, of a t with that variance, whose scale is
    :math:`\sqrt{v(\nu-2)/\nu}`."""
    if df is None:
        return 0.5 * (np.log(variance) + residual**2 / variance) + HALF_LOG_2PI
    square = variance * (df - 2)
    constant = gammaln(df / 2) - gammaln((df + 1) / 2) + 0.5 * np.log(np.pi)
    return constant + 0.5 * (np.log(square) + (df + 1) * np.log1p(residual**2 / square))


def two_step_loss(residual, level, c, delta, pairs: Pairs, df: float | None = None):
    r"""(r,) of residuals given selection, with :math:`\sigma_i` = level times the noise_factor and
    :math:`\rho` = c/level: mean 0, variance :math:`\sigma_i^2(1 - \rho^2\delta) + \tau_i^2`.

    In a two-step c may exceed the level, which no pair of errors allows; |rho| is then set just
    below one.
    """
    rho_square = np.minimum((c / level) ** 2, RHO_LIMIT**2)
    sigma_square = (level * pairs.noise_factor) ** 2
    return tailed_loss(residual, sigma_square * (1 - rho_square * delta) + pairs.doubt, df)


def joint_loss(y, level, rho, index, pairs: Pairs, df: float | None = None):
    r"""(r,) of y and selection under the joint likelihood, with
    :math:`\sigma'^2 = \sigma_i^2 + \tau_i^2` and :math:`\rho' = \rho\sigma_i/\sigma'`.

    With df the error of y is a t of that variance, tied to selection by the same normal copula: in
    :math:`\Phi((\eta + \rho q)/\sqrt{1-\rho^2})` its normal score :math:`q = \Phi^{-1}(T_\nu(e))`
    replaces e; it is computed from the nearer tail.
    """
    sigma = level * pairs.noise_factor
    total = np.sqrt(sigma**2 + pairs.doubt)
    score, rho = (y - pairs.mean) / total, rho * sigma / total
    if df is not None:
        e = score * np.sqrt(df / (df - 2))
        score = -np.sign(e) * ndtri(stdtr(df, -np.abs(e)))
    argument = (index + rho * score) / np.sqrt((1 - rho) * (1 + rho))
    return tailed_loss(y - pairs.mean, total**2, df) - log_ndtr(argument)
