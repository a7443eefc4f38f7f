r"""Deep two-step: a classic probit, then an ensemble for f(x) + c lambda on the selected units.

With folds, held-out rows are used for early stopping and to estimate the noise. There is one round
of training for a constant sigma, and three for a sigma(x):

1. f and c, as with one sigma, for residuals r of held-out rows;
2. a network for the standard deviation of :math:`r/\sqrt{1-\rho^2\delta}`, the residuals as they
   would be without selection: :math:`\sigma(x) = \sigma s(x)`;
3. f and c again, around :math:`f + c\,s(x)\lambda`, so that the correction grows with the noise:
   :math:`E[y|s{=}1] = f + \rho\sigma(x)\lambda`, :math:`\rho = c/\sigma`.

Means are fitted by least squares in both rounds. A likelihood with sigma(x) would fit them best
where outcomes are least noisy, and neglect regions with few selected units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from heckesel.classical.probit import fit_probit, instruments_are_strong, selection_probit
from heckesel.classical.rows import add_up
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.fit_info import SelectionInfo
from heckesel.methods.parts.selection_network import CrossFitted, fit_indices
from heckesel.networks.ensembles.noise_calibration import (
    calibrated_shape,
    pairs_of,
    two_step_loss,
)
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, noise_factor_of
from heckesel.networks.losses.normal import NOISE_SCALE, TWO_STEP
from heckesel.networks.training.batches import (
    Batch,
    DataScale,
    held_out,
    outcome_rows,
    with_constant,
    with_folds,
    with_mills,
)
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import (
    FitRequest,
    Members,
    best_of,
    train_datasets,
)
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.streamed import RowsOnDisk, train_streamed
from heckesel.predictive import RHO_LIMIT

# The largest |rho| at which networks start; that of a linear two-step may exceed one.
START_RHO = 0.9


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[SelectionEnsemble]:
    """The deep two-step for many datasets with the same columns, trained as one batch."""
    config = config or NetworkConfig()
    _check_errors(config)
    tried = FitRequest(datas, seeds, config, device, progress).candidates()
    return best_of(tried, [*map(_fit_all_rows if config.folds is None else _fit_on_folds, tried)])


def _check_errors(config: NetworkConfig) -> None:
    if config.errors != "normal":
        raise DataError(
            'method="two-step" supports errors="normal" only; errors="t" needs method="joint"'
        )


@dataclass(frozen=True)
class FirstStep:
    """Input of the second step: its rows with the inverse Mills ratio, and the probit.

    gamma : (q + 1,) for w as given, the constant last
    strong : whether the instruments are strong; False without folds, which do not need it
    """

    batch: Batch
    scaling: DataScale
    gamma: np.ndarray
    strong: bool
    networks: CrossFitted | None = None


def _first_steps(request: FitRequest) -> list[FirstStep]:
    indices: Sequence[CrossFitted | None] = [None] * len(request.datas)
    if request.config.selection != "linear":
        indices = fit_indices(request)
    given = zip(request.datas, request.scalings, request.seeds, indices, strict=True)
    return [first_step(*each, folds=request.config.folds) for each in given]


def first_step(
    data: SelectionData,
    scaling: DataScale,
    seed: int = 0,
    index: CrossFitted | None = None,
    *,
    folds: int | None = None,
) -> FirstStep:
    """A classic probit of s on w and a constant, in float64, or `index` if it is given; with
    `folds`, the folds of the units."""
    gamma = selection_probit(data).gamma
    at = with_constant(data.w[data.s]) @ gamma if index is None else index.index[data.s]
    batch = with_mills(outcome_rows(data, scaling), at)
    strong = folds is not None and instruments_are_strong(data)
    return FirstStep(with_folds(batch, data, folds, seed), scaling, gamma, strong, index)


def _fit_all_rows(request: FitRequest) -> list[SelectionEnsemble]:
    prepared, place = _first_steps(request), request.device or request.config.device
    trained = train_datasets([each.batch for each in prepared], loss=TWO_STEP, **request.training)
    return [
        corrected(members, members.on(place).outputs(each.batch.x[:, :-1])[..., 0], each)
        for members, each in zip(trained, prepared, strict=True)
    ]


def corrected(members: Members | ModuleMembers, f, first: FirstStep) -> SelectionEnsemble:
    """The ensemble in units of y; f : (k, n) its outputs at the selected rows."""
    c = members.head[:, 0].astype(float)
    sigma = corrected_sigma(f, c, first.batch)
    return in_units_of_y(members, sigma, first.scaling, first.gamma)


def corrected_sigma(f, c, batch: Batch) -> np.ndarray:
    r"""(k,) sd of the population error: selection takes :math:`c^2\delta` off the variance of y,

    .. math:: \sigma^2 = \mathrm{mean}\,(y - f - c\lambda)^2 + c^2\,\mathrm{mean}\,\delta .

    f : (k, n) at the selected rows; c : (k,). Means are weighted as the rows are.
    """
    residual = batch.y - f - c[:, None] * batch.mills
    return np.sqrt((residual**2) @ batch.weight + c**2 * (batch.delta @ batch.weight))


def in_units_of_y(members, sigma, scaling: DataScale, gamma) -> SelectionEnsemble:
    """The ensemble; sigma : (k,) for the scaled y; gamma : (q + 1,) for w as given."""
    unit, c = scaling.y_scale, members.head[:, 0].astype(float)
    training_loss = (members.loss + np.log(unit)).tolist()
    info = SelectionInfo((c / sigma).tolist(), (unit * sigma).tolist(), training_loss)
    return SelectionEnsemble(members, scaling, unit * sigma, unit * c, gamma[None], info)


def _fit_on_folds(request: FitRequest) -> list[SelectionEnsemble]:
    """One ensemble for each dataset; noise "auto" is the kind that held-out rows prefer."""
    prepared, folds = _first_steps(request), request.config.folds
    assert folds is not None
    calibrate = partial(_calibrated, folds=folds, tails=request.config.tails)
    batches, fits = [each.batch for each in prepared], []
    heads = list(map(_start, batches, prepared))
    members = train_datasets(batches, loss=TWO_STEP, heads=heads, **request.training)
    if "constant" in request.config.noises:
        fits.append([calibrate(*each, None) for each in zip(members, prepared, strict=True)])
    if "varying" in request.config.noises:
        narrow = [_residual_rows(*each, folds) for each in zip(members, batches, strict=True)]
        noise_networks = train_datasets(narrow, loss=NOISE_SCALE, **request.training)
        wide = [
            replace(batch, mills=batch.mills * _crossed(each, batch, folds))
            for each, batch in zip(noise_networks, batches, strict=True)
        ]
        heads = list(map(_start, wide, prepared))
        members = train_datasets(wide, loss=TWO_STEP, heads=heads, **request.training)
        again = [replace(each, batch=batch) for each, batch in zip(prepared, wide, strict=True)]
        fits.append([calibrate(*each) for each in zip(members, again, noise_networks, strict=True)])
    return [
        preferred_noise(each).reporting_sigma_of(data.x, data.weight)
        for *each, data in zip(*fits, request.datas, strict=True)
    ]


@dataclass(frozen=True)
class LinearStart:
    """beta : (p + 1,) of the outcome; c, sigma : covariance of the two errors and sd of y"""

    beta: np.ndarray
    c: float
    sigma: float

    @property
    def rho(self) -> float:
        return float(np.clip(self.c / self.sigma, -START_RHO, START_RHO))


def linear_start(batch: Batch, strong: bool) -> LinearStart:
    r"""A linear outcome on selected rows with inverse Mills ratios, as a start for the networks.

    With strong instruments it is the classic two-step. Without them :math:`\lambda` is a function
    of x and picks up the nonlinear part of f. Its coefficient c can be many sigmas large, and
    members would stop before they correct it. So c starts at 0, and sigma at that of least squares.
    """
    columns, root = batch.x, np.sqrt(batch.weight)
    if strong:
        columns = np.column_stack([batch.x, batch.mills])
    found = np.linalg.lstsq(columns * root[:, None], batch.y * root, rcond=None)[0]
    residual, c = batch.y - columns @ found, found[-1] if strong else 0.0
    sigma = np.sqrt((residual**2 + c**2 * batch.delta) @ batch.weight)
    return LinearStart(found[: batch.x.shape[1]], float(c), float(sigma))


def probit_start(batch: Batch) -> np.ndarray:
    """(q + 1,) gamma of a probit of selection on the dataset's selected and unselected units."""
    w = np.vstack([batch.w, batch.w_unselected])
    weight = np.concatenate([batch.weight, batch.weight_unselected])
    return fit_probit(w, np.arange(len(w)) < len(batch.w), weight * len(w)).gamma


def linear_start_of_both(batch: Batch, strong: bool) -> tuple[np.ndarray, LinearStart]:
    """`probit_start`, and `linear_start` with the inverse Mills ratios of that probit."""
    gamma = probit_start(batch)
    selected = replace(batch, weight=batch.weight / batch.weight.sum())
    return gamma, linear_start(with_mills(selected, batch.w @ gamma), strong)


def _start(batch: Batch, first: FirstStep) -> np.ndarray:
    start = linear_start(batch, first.strong)
    return np.array([start.c, np.log(start.sigma)])


def _residual_rows(members: Members, batch: Batch, folds: int) -> Batch:
    """Residuals of held-out rows, scaled to their standard deviation in the population."""
    f = members.outputs(batch.x[:, :-1])[..., 0]
    c = members.head[:, :1].astype(float)
    out = held_out(batch.fold, len(f), folds)
    seen = out.any(axis=0)  # with fewer members than folds, some rows are never held out
    residual = np.where(out, batch.y - f - c * batch.mills, 0.0).sum(axis=0) / np.maximum(
        out.sum(axis=0), 1
    )
    weight = np.where(seen, batch.weight, 0.0)
    weight = weight / weight.sum()
    square, c2 = residual**2 @ weight, float(np.mean(c)) ** 2
    rho2 = min(c2 / (square + c2 * (batch.delta @ weight)), RHO_LIMIT**2)
    return Batch(
        x=batch.x, y=residual / np.sqrt(1 - rho2 * batch.delta), weight=weight, fold=batch.fold
    )


def _crossed(noise_networks: Members, batch: Batch, folds: int) -> np.ndarray:
    """(n,) s(x) of each row by members that held it out, or by all members if none did."""
    factor = noise_factor_of(noise_networks.outputs(batch.x[:, :-1])[..., 0])
    out = held_out(batch.fold, len(factor), folds)
    out = out | ~out.any(axis=0)
    return np.where(out, factor, 0.0).sum(axis=0) / out.sum(axis=0)


def _calibrated(
    members: Members, first: FirstStep, noise_networks: Members | None, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble in units of y, with the level of sigma and the tails that held-out rows
    prefer."""
    batch, c = first.batch, members.head[:, 0].astype(float)
    x = batch.x[:, :-1]
    f = members.outputs(x)[..., 0]
    factor = (
        np.ones_like(f)
        if noise_networks is None
        else noise_factor_of(noise_networks.outputs(x)[..., 0])
    )
    pairs = pairs_of(f, factor, batch.weight, held_out(batch.fold, len(f), folds))
    rows, own = pairs.row, pairs.member
    residual = batch.y[rows] - pairs.mean - c[own] * batch.mills[rows]

    def loss(level, df):
        return two_step_loss(residual, level, c[own], batch.delta[rows], pairs, df)

    found, index = calibrated_shape(loss, pairs, tails), first.networks
    fit = in_units_of_y(members, np.full(len(c), found.level), first.scaling, first.gamma)
    info = replace(
        fit.info,
        held_out_loss=found.loss + float(np.log(first.scaling.y_scale)),
        best_epoch=np.asarray(members.best_epoch).tolist(),
        noise="constant" if noise_networks is None else "varying",
        tail_df=found.df,
        selection=None if index is None else "network" if index.members else "linear",
        selection_losses=None if index is None else index.losses,
    )
    selection = None if index is None else index.members
    return replace(
        fit, info=info, noise_networks=noise_networks, selection=selection, tail_df=found.df
    )


def preferred_noise(fits: Sequence[SelectionEnsemble]) -> SelectionEnsemble:
    """The fit with the lowest held-out loss; its `info` has the losses of all."""
    tried: dict[str, float] = {}
    for fit in fits:
        assert fit.info.noise
        assert fit.info.held_out_loss is not None  # there were folds
        tried[fit.info.noise] = fit.info.held_out_loss
    best = min(fits, key=lambda fit: tried[str(fit.info.noise)])
    return replace(best, info=replace(best.info, held_out_losses=tried))


def fit_files(config: NetworkConfig) -> Callable[..., SelectionEnsemble]:
    """The fit to rows that are read again for every epoch, once `config` is checked."""
    _check_errors(config)
    return partial(_fit_files, config=config)


def _fit_files(
    table: RowsOnDisk, scaling, gamma, mass, *, seed, config, run=map, progress=None
) -> SelectionEnsemble:
    """The second step after a probit with coefficients gamma (q + 1,), the constant last.

    mass : sums of the weights of selected and of unselected units; run : a `map` for the last pass,
    which computes the sums behind sigma
    """
    rows_of = partial(mills_rows, scaling=scaling, gamma=gamma, total=mass[0])
    (members,) = train_streamed(
        table, rows_of, loss=TWO_STEP, seed=seed, config=config, progress=progress
    )
    c = members.head[:, 0].astype(float)
    task = partial(_residual_sums, read=table.read, rows_of=rows_of, members=members, c=c)
    squares, delta = add_up(run(task, table.items))
    return in_units_of_y(members, np.sqrt(squares + c**2 * delta), scaling, gamma)


def mills_rows(data: SelectionData, *, scaling: DataScale, gamma, total: float) -> Batch:
    """The selected units with the inverse Mills ratio; weights are divided by `total`."""
    index = with_constant(data.w[data.s]) @ gamma
    return with_mills(outcome_rows(data, scaling, total=total), index)


def _residual_sums(item, *, read, rows_of, members: Members, c) -> list:
    """Weighted squares of residuals, (k,), and the weighted sum of delta: `corrected_sigma` of
    a whole table, one buffer after the other."""

    def sums(batch: Batch) -> tuple:
        f = members.outputs(batch.x[:, :-1])[..., 0]
        residual = batch.y - f - c[:, None] * batch.mills
        return residual**2 @ batch.weight, batch.delta @ batch.weight

    return add_up(sums(rows_of(data)) for data in read(item))
