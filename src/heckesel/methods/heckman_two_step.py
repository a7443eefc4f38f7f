"""Deep two-step: a classic probit, then an ensemble for f(x) + c lambda on the selected units."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.linear.probit import selection_probit
from heckesel.linear.sample.blocks import add_up
from heckesel.linear.wald import instruments_are_strong
from heckesel.methods.selection_network import CrossFitted, fit_indices
from heckesel.methods.two_step_on_folds import fit_on_folds, in_units_of_y
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.losses.normal import TWO_STEP
from heckesel.networks.training.batches import Batch, with_mills
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, outcome_rows
from heckesel.networks.training.fit_request import FitRequest
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.scaling import DataScale
from heckesel.networks.training.streamed import RowsOnDisk, train_streamed


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[SelectionEnsemble]:
    """The deep two-step for many datasets with the same columns, trained as one batch; on folds by
    `two_step_on_folds`."""
    config = config or NetworkConfig()
    _check_errors(config)
    return best_of(FitRequest(datas, seeds, config, device, progress), _fit)


def _check_errors(config: NetworkConfig) -> None:
    if config.errors != "normal":
        raise DataError('method="two-step" has normal errors; errors="t" needs method="joint"')


def _fit(request: FitRequest) -> list[SelectionEnsemble]:
    config, datas = request.config, request.datas
    indices: Sequence[CrossFitted | None] = [None] * len(datas)
    if config.selection != "linear":
        indices = fit_indices(request)
    given = zip(datas, request.scalings, request.seeds, indices, strict=True)
    prepared = [first_step(*each, folds=config.folds) for each in given]
    if config.folds is None:
        trained = request.train([each.batch for each in prepared], loss=TWO_STEP)
        place = request.device or config.device
        return [
            corrected(members, members.on(place).outputs(each.batch.x[:, :-1])[..., 0], each)
            for members, each in zip(trained, prepared, strict=True)
        ]
    fits = zip(fit_on_folds(prepared, request), datas, strict=True)
    return [fit.reporting_sigma_of(data.x, data.weight) for fit, data in fits]


@dataclass(frozen=True)
class FirstStep:
    """What the second step needs: its rows with the Mills term, and the probit behind it.

    gamma : (q + 1,) for w as given, the constant last
    strong : whether the instruments are strong; False without folds, which do not need it
    """

    batch: Batch
    scaling: DataScale
    gamma: np.ndarray
    strong: bool
    networks: CrossFitted | None = None


def first_step(
    data: SelectionData,
    scaling: DataScale,
    seed: int = 0,
    index: CrossFitted | None = None,
    *,
    folds: int | None = None,
) -> FirstStep:
    """A classic probit of s on w and a constant, in float64, or `index` in its place; with `folds`,
    the folds of the units."""
    gamma = selection_probit(data).gamma
    at = with_constant(data.w[data.s]) @ gamma if index is None else index.index[data.s]
    batch = with_mills(outcome_rows(data, scaling), at)
    strong = folds is not None and instruments_are_strong(data)
    return FirstStep(with_folds(batch, data, folds, seed), scaling, gamma, strong, index)


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
    members = train_streamed(
        table, rows_of, loss=TWO_STEP, seed=seed, config=config, progress=progress
    )
    c = members.head[:, 0].astype(float)
    task = partial(_residual_sums, read=table.read, rows_of=rows_of, members=members, c=c)
    squares, delta = add_up(run(task, table.items))
    return in_units_of_y(members, np.sqrt(squares + c**2 * delta), scaling, gamma)


def mills_rows(data: SelectionData, *, scaling: DataScale, gamma, total: float) -> Batch:
    """The selected units with the Mills term; weights are divided by `total`."""
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
