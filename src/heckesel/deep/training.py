"""The one training loop: k networks side by side, each with its own rows, seeds and early stopping.

All parameters are in one block (k, P) whose row j is network j: layer by layer a matrix
(in + 1, out) whose last line is the bias, then the head of the loss. A layer of all networks is one
batched product; autograd and `torch.optim.Adam` do the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, pairwise
from numbers import Real
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import expit

from heckesel.data import DataScale, SelectionData
from heckesel.deep.losses import Loss
from heckesel.errors import DataError, check_device, is_one_of, is_whole

DTYPES = {"float32": torch.float32, "float64": torch.float64}
NOISES, TAILS = ("constant", "varying", "auto"), ("normal", "auto")
# Purposes of the random streams of a member. Each has its own spawn key, so that drawing from one
# never changes another. The key of the folds, which belong to a dataset, has one number.
INITIAL_WEIGHTS, INITIAL_HEAD, MINI_BATCHES, FOLDS = 0, 1, 2, (0,)
# Epochs between evaluations of the held-out loss. Training on small datasets stops after about
# twenty epochs, and an evaluation takes a third of the time of a step.
READ_EVERY = 2
# Where the last quarter of the schedule begins. By then the cosine has used all but a fortieth of
# the sum of its learning rates, so a training that was long enough gains almost nothing later.
LATE = 0.75
# Networks trained together. On a CPU five share a cache; the blocks do not depend on the number of
# workers, so neither do results. On a GPU as many as the activations of a layer, in bytes, allow.
CPU_BLOCK, GPU_LAYER_BYTES = 5, 2 * 2**30
ALIGNED = 16  # rows of a network are padded to a multiple of this
PREDICTED_AT_ONCE = 16384  # rows: the activations of five members take about 40 MB
Progress = Callable[[int, int], None]
Values = Any  # an array, or a tensor once rows are stacked; None if the loss does not use it


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture, ensemble size and training schedule.

    learning_rate : None is the default of the loss: 1e-2 with one output, 5e-3 with two.
    warm_up : epochs during which the joint likelihood keeps rho at its start.
    batch_size : units per step; None is the full batch.
    folds : the number of folds that units are split into. Member j holds out fold j mod folds, for
        early stopping and to estimate sigma. None trains every member on all units for all epochs.
    patience : epochs without a lower held-out loss after which a member stops.
    noise : of the two-step: "constant" is one sigma, "varying" a sigma(x) given by networks, "auto"
        whichever has the lower held-out loss; the last two need folds.
    tails : "auto" gives predictions the tails of a t if that lowers the held-out loss; needs folds.
    standardise : scale x and w over all units, and y over the selected ones, to mean 0 and sd 1;
        predictions are mapped back. Without it, rescaling y changes the fit.
    n_jobs : processes that train blocks of members on a CPU, as in joblib. Results are the same.
    """

    hidden: tuple[int, ...] = (64, 64)
    n_members: int = 5
    epochs: int = 1500
    learning_rate: float | None = None
    warm_up: int = 100
    weight_decay: float = 1e-5
    dtype: str = "float32"
    device: str = "auto"
    standardise: bool = True
    batch_size: int | None = None
    folds: int | None = None
    patience: int = 150
    noise: str = "constant"
    tails: str = "normal"
    n_jobs: int | None = None

    def __post_init__(self):
        for name, known in (("dtype", DTYPES), ("noise", NOISES), ("tails", TAILS)):
            if not is_one_of(value := getattr(self, name), known):
                raise DataError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        for name, least in (("n_members", 1), ("epochs", 1), ("warm_up", 0), ("patience", 1)):
            check_whole(name, getattr(self, name), least)
        for name, least in (("folds", 2), ("batch_size", 1)):
            if (value := getattr(self, name)) is not None:
                check_whole(name, value, least, " or None")
        rate, decay = self.learning_rate, self.weight_decay
        if rate is not None and not (_is_finite(rate) and rate > 0):
            raise DataError(
                f"learning_rate must be a positive number, such as 1e-2, or None, got {rate!r}"
            )
        if not (_is_finite(decay) and decay >= 0):
            raise DataError(f"weight_decay must be a number that is not negative, got {decay!r}")
        object.__setattr__(self, "hidden", layer_widths(self.hidden))
        for name in ("noise", "tails"):
            if (value := getattr(self, name)) in ("auto", "varying") and self.folds is None:
                raise DataError(f'{name}="{value}" needs held-out folds; set folds=5, for example')
        torch_device(self.device)


def layer_widths(hidden) -> tuple[int, ...]:
    """`hidden` as a tuple of positive numbers, at least one."""
    widths = tuple(hidden) if isinstance(hidden, Iterable) else ()
    if not widths or not all(is_whole(width) and width >= 1 for width in widths):
        raise DataError(
            "hidden must list the widths of one or more hidden layers, such as (64, 64), "
            f"got {hidden!r}"
        )
    return tuple(int(width) for width in widths)


def check_whole(name: str, value, least: int, otherwise: str = "") -> None:
    if not is_whole(value):
        raise DataError(f"{name} must be a whole number{otherwise}, got {value!r}")
    if value < least:
        raise DataError(f"{name} must be at least {least}{otherwise}, got {value}")


def _is_finite(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def torch_device(name) -> torch.device:
    """The device called `name`; "auto" is CUDA if this machine has a GPU, else the CPU."""
    check_device(name)
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    device = torch.device(("cuda" if cards else "cpu") if name == "auto" else name)
    if device.type == "cuda" and (device.index or 0) >= cards:
        raise DataError(
            f"device is {str(name)!r}, but torch finds {cards or 'no'} CUDA "
            f"card{'s' * (cards != 1)} on this machine; use 'cpu' or 'auto'"
        )
    return device


@dataclass(frozen=True)
class Rows:
    """Rows of one dataset (arrays), or of k networks (tensors with leading axis k).

    x : (n, p), y, weight : (n,) the selected units; padding has weight zero
    mills, delta : (n,) the inverse Mills ratio at the probit index (two-step), and by how much
        selection reduces the variance there, in units of rho^2 sigma^2
    w : (n, q + 1), w_unselected : (m, q + 1), weight_unselected : (m,) (joint likelihood)
    fold : (n,), fold_unselected : (m,) the fold of each unit, if members hold one out

    Weights add up to one over all rows of the loss, which is a weighted mean.
    """

    x: Values
    y: Values
    weight: Values
    mills: Values = None
    delta: Values = None
    w: Values = None
    w_unselected: Values = None
    weight_unselected: Values = None
    fold: Values = None
    fold_unselected: Values = None

    def map(self, function: Callable[[str, Values], Values]) -> Rows:
        """The same rows with `function` applied to the name and values of every field in use."""
        named = ((one.name, getattr(self, one.name)) for one in fields(self))
        return Rows(**{name: function(name, each) for name, each in named if each is not None})

    def taken(self, fold: int, *, inside: bool) -> Rows:
        """The rows of a fold, or of all others; weights add up to one again."""

        def some(name, values):
            own = self.fold_unselected if name.endswith("unselected") else self.fold
            return values[(own == fold) == inside]

        part = self.map(some)
        mass = part.weight.sum()
        mass += 0.0 if part.weight_unselected is None else part.weight_unselected.sum()
        return part.map(lambda name, each: each / mass if name.startswith("weight") else each)

    def held_out(self, members: int, folds: int) -> np.ndarray:
        """(k, n) True where member j held out row i."""
        return np.arange(members)[:, None] % folds == self.fold


def outcome_rows(data: SelectionData, scaling: DataScale) -> Rows:
    """The selected units."""
    s, weight = data.s, data.weight[data.s]
    return Rows(x=scaling.x(data.x[s]), y=scaling.y(data.y[s]), weight=weight / weight.sum())


def joint_rows(data: SelectionData, scaling: DataScale) -> Rows:
    """Selected and unselected units for a joint likelihood."""
    s, w, weight = data.s, scaling.w(data.w), data.weight / data.weight.sum()
    return replace(
        outcome_rows(data, scaling),
        weight=weight[s],
        w=w[s],
        w_unselected=w[~s],
        weight_unselected=weight[~s],
    )


def with_folds(rows: Rows, data: SelectionData, folds: int | None, seed: int) -> Rows:
    """The rows with the fold of each unit; unchanged if `folds` is None."""
    if folds is None:
        return rows
    fold = assign_folds(data, folds, seed)
    unselected = None if rows.w_unselected is None else fold[~data.s]
    return replace(rows, fold=fold[data.s], fold_unselected=unselected)


def assign_folds(data: SelectionData, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each unit; selected and unselected units are split separately.

    Units of one group are in one fold. Groups are assigned to the folds in turn, the largest first,
    so that folds have similar numbers of selected units.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=FOLDS))
    if data.groups is None:
        selected = int(data.s.sum())
        if selected < 2 * folds:
            raise DataError(
                f"{selected} selected units cannot be split into {folds} folds of at least two; "
                "set fewer folds"
            )
        fold = np.empty(data.n, dtype=int)
        for part in (data.s, ~data.s):
            fold[part] = rng.permutation(part.sum()) % folds
        return fold
    _, code = np.unique(data.groups, return_inverse=True)
    selected_in = np.bincount(code, data.s)
    with_outcome = np.count_nonzero(selected_in)
    if with_outcome < folds:
        raise DataError(
            f"{with_outcome} groups with selected units cannot be split into {folds} folds; set "
            "fewer folds"
        )
    order = np.lexsort((rng.random(len(selected_in)), -np.bincount(code), -selected_in))
    of_group = np.empty(len(order), dtype=int)
    of_group[order] = np.arange(len(order)) % folds
    return of_group[code]


@dataclass(frozen=True)
class Members:
    """The k trained networks of one dataset, as arrays.

    parameters : (k, P) networks, then heads
    loss : (k,) final training loss
    validation, best_epoch : (k,) lowest held-out loss and its epoch, or None
    late_gain : (k,) decrease of the held-out loss in the last quarter of the schedule, or None;
        zero for a network that stopped before
    """

    sizes: tuple[int, ...]
    parameters: np.ndarray
    loss: np.ndarray
    validation: np.ndarray | None = None
    best_epoch: np.ndarray | None = None
    late_gain: np.ndarray | None = None

    def take(self, chosen) -> Members:
        """Some of the networks, by position or by a mask."""
        return Members(self.sizes, self.parameters[chosen], self.loss[chosen])

    @property
    def head(self) -> np.ndarray:
        """(k, h) the parameters of the loss."""
        return self.parameters[:, parameter_count(self.sizes) :]

    @property
    def diverged(self) -> bool:
        """Whether a network ended without a finite loss. On folds it then has its initial
        parameters, those of epoch 0."""
        if self.best_epoch is not None:
            return bool((self.best_epoch == 0).any())
        return not (np.isfinite(self.parameters).all() and np.isfinite(self.loss).all())

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(k, m, out) at scaled x (m, p), for the scaled y, in float64."""
        outer, parts = layers_of(self.parameters, self.sizes)[-1], []
        for first in range(0, max(len(x), 1), PREDICTED_AT_ONCE):
            values = self.last_layer(x[first : first + PREDICTED_AT_ONCE])
            parts.append(values @ outer)
        return np.concatenate(parts, axis=1)

    def last_layer(self, x: np.ndarray) -> np.ndarray:
        """(k, m, width + 1): activations of the last hidden layer, a constant last."""
        values = np.asarray(x, dtype=float)
        for layer in layers_of(self.parameters, self.sizes)[:-1]:
            values = values @ layer[:, :-1] + layer[:, -1:]
            values *= expit(values)
        return np.concatenate([values, np.ones((*values.shape[:-1], 1))], axis=-1)


def parameter_count(sizes: Sequence[int]) -> int:
    """Weights and biases of one network with layers of these sizes, input and output included."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def layers_of(block, sizes: Sequence[int]) -> list:
    """Views into (k, P): for each layer (k, in + 1, out), the bias as its last line."""
    views, at = [], 0
    for fan_in, fan_out in pairwise(sizes):
        end = at + (fan_in + 1) * fan_out
        views.append(block[:, at:end].reshape(len(block), fan_in + 1, fan_out))
        at = end
    return views


def initial_weights(seed: np.random.SeedSequence, sizes: Sequence[int]) -> np.ndarray:
    r"""(P,) weights and biases of one network, uniform on :math:`\pm 1/\sqrt{\text{fan in}}`."""
    rng = np.random.default_rng(seed)
    bounds = ((1.0 / math.sqrt(low), (low + 1) * high) for low, high in pairwise(sizes))
    return np.concatenate([rng.uniform(-bound, bound, count) for bound, count in bounds])


def member_seed(seed: int, member: int, *purpose: int) -> np.random.SeedSequence:
    """The random stream of one member: the same in any block and on any device."""
    return np.random.SeedSequence(seed, spawn_key=(member, *purpose))


def train_members(
    datasets: Sequence[Rows],
    loss: Loss,
    seeds: Sequence[int],
    config: NetworkConfig,
    *,
    units: int,
    heads: Sequence[np.ndarray] | None = None,
    last_of_head: np.ndarray | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    activation: Callable = torch.nn.functional.silu,
) -> list[Members]:
    """One ensemble of `config.n_members` for each dataset; all datasets have the same columns.

    If datasets have folds, each member holds one out and keeps the parameters with the lowest loss
    there.

    units : rows of the largest dataset, selected or not; with `config.batch_size` they determine
        the number of steps
    heads : for each dataset (h,), the initial heads of its members; by default gamma is random and
        the rest zero
    last_of_head : (n_members,) the initial values of the last scalar of the heads
    """
    place, k = torch_device(device or config.device), config.n_members
    sizes = (datasets[0].x.shape[1], *config.hidden, loss.outputs)
    starts = []
    for c, (rows, seed) in enumerate(zip(datasets, seeds, strict=True)):
        for j in range(k):
            weights = initial_weights(member_seed(seed, j, INITIAL_WEIGHTS), sizes)
            if loss.quiet:
                layers_of(weights[None], sizes)[-1][..., -loss.quiet :] = 0.0
            head = np.zeros(len(loss.scalars))
            if heads is not None:
                head = heads[c].copy()
            elif loss.linear:  # as a linear layer on w
                gamma = initial_weights(
                    member_seed(seed, j, INITIAL_HEAD), (rows.w.shape[1] - 1, 1)
                )
                head = np.concatenate([gamma, head])
            if last_of_head is not None:
                head[-1] = last_of_head[j]
            starts.append(np.concatenate([weights, head]))
    groups, size = [[(c, j) for j in range(k)] for c in range(len(datasets))], CPU_BLOCK
    if place.type == "cuda":
        layer = max(len(rows.x) for rows in datasets) * max(config.hidden) * 4
        groups, size = [list(chain(*groups))], max(1, GPU_LAYER_BYTES // layer)
    blocks = [
        group[first : first + size] for group in groups for first in range(0, len(group), size)
    ]
    jobs = 1 if place.type == "cuda" else min(effective_n_jobs(config.n_jobs), len(blocks))
    steps = 1 if config.batch_size is None else math.ceil(units / config.batch_size)
    train = partial(_train, loss=loss, sizes=sizes, config=config, steps=steps, device=str(place))
    tasks = []
    for done, block in enumerate(blocks):
        tables = [datasets[c] for c, _ in block]
        start = np.stack([starts[c * k + j] for c, j in block])
        who = [(seeds[c], j) for c, j in block]
        report = None
        if progress is not None and jobs == 1:
            report = partial(_shifted, progress, done, len(blocks))
        tasks.append((tables, start, who, report, activation))
    if jobs == 1:
        trained = [train(*task) for task in tasks]
    else:
        trained = Parallel(n_jobs=jobs)(delayed(_alone)(train, *task) for task in tasks)
    columns: list[list] = [
        [None] * len(datasets)
        if parts[0] is None
        else np.split(np.concatenate(parts), len(datasets))
        for parts in zip(*trained, strict=True)
    ]
    return [Members(sizes, *own) for own in zip(*columns, strict=True)]


def _shifted(progress, done, trainings, epoch, epochs):
    progress(done * epochs + epoch, trainings * epochs)


def _alone(train, *task):
    """In a worker, which has one core."""
    torch.set_num_threads(1)
    return train(*task)


def _train(rows, start, who, progress, activation, *, loss, sizes, config, steps, device) -> tuple:
    """Parameters (k, P) after training, and loss, validation, best epoch and late gain (k,).

    rows, who : for each network its dataset, and the seed and the number of the member
    """
    dtype, k, folds = DTYPES[config.dtype], len(rows), config.folds
    held = None
    if folds is not None and rows[0].fold is not None:
        own = [j % folds for _, j in who]
        held = _stacked(
            [r.taken(f, inside=True) for r, f in zip(rows, own, strict=True)], dtype, device
        )
        rows = [r.taken(f, inside=False) for r, f in zip(rows, own, strict=True)]
    counts = [(len(r.y), 0 if r.w_unselected is None else len(r.w_unselected)) for r in rows]
    table = _stacked(rows, dtype, device)
    start = torch.as_tensor(start, dtype=dtype, device=device)
    last = start.shape[1] - int(loss.frozen)
    free, kept = (part.clone().requires_grad_() for part in (start[:, :last], start[:, last:]))
    rate = loss.learning_rate if config.learning_rate is None else config.learning_rate
    optimiser = _adam([free, kept], rate, config.weight_decay)

    def losses(batch):
        block = torch.cat([free, kept], dim=1)
        values, (*inner, outer) = batch.x, layers_of(block, sizes)
        for layer in inner:
            values = activation(torch.baddbmm(layer[:, -1:], values, layer[:, :-1]))
        output = torch.baddbmm(outer[:, -1:], values, outer[:, :-1])
        return loss.value(output, block[:, parameter_count(sizes) :], batch)

    alive = torch.arange(k, device=device)
    best = start.clone()
    lowest = torch.full((k,), torch.inf, dtype=dtype, device=device)
    epoch_of = torch.zeros(k, dtype=torch.long, device=device)
    done = torch.zeros(k, dtype=torch.bool, device=device)
    final, before = torch.zeros_like(lowest), None
    for epoch in range(config.epochs):
        for group in optimiser.param_groups:
            group["lr"] = 0.5 * rate * (1 + math.cos(math.pi * epoch / config.epochs))
        total = torch.zeros(len(alive), dtype=dtype, device=device)
        for batch in _batches(table, counts, who, steps, epoch):
            optimiser.zero_grad()
            value = losses(batch)
            value.sum().backward()
            if epoch < config.warm_up:
                kept.grad = None  # so that Adam ignores it, and starts with the first gradient
            optimiser.step()
            total += value.detach()
        if progress is not None:
            progress(epoch + 1, config.epochs)
        if held is None or ((epoch + 1) % READ_EVERY and epoch + 1 < config.epochs):
            continue
        with torch.no_grad():
            value = losses(held)
            # A network that has stopped may improve again while others train. Accepting that would
            # make its result depend on the networks it was trained with.
            better = (value < lowest[alive]) & ~done[alive]
            at = alive[better]
            final[alive] = total / steps
            best[at] = torch.cat([free, kept], dim=1)[better]
            lowest[at], epoch_of[at] = value[better], epoch + 1
            done |= epoch + 1 - epoch_of >= config.patience
            if before is None and epoch + 1 >= LATE * config.epochs:
                before = lowest.clone()
            going = ~done[alive]
        if not going.any():
            break
        if len(going) > 2 and 2 * going.sum() <= len(going):  # go on with the others only
            table, held = _networks(table, going), _networks(held, going)
            chosen = going.nonzero()[:, 0].tolist()
            counts, who = [counts[i] for i in chosen], [who[i] for i in chosen]
            alive, old = alive[going], optimiser.state
            moved = [each.detach()[going].requires_grad_() for each in (free, kept)]
            optimiser = _adam(moved, rate, config.weight_decay)
            for one, other in zip((free, kept), moved, strict=True):
                if one in old:
                    optimiser.state[other] = {
                        name: each[going] if each.ndim else each for name, each in old[one].items()
                    }
            free, kept = moved
    if held is None:
        found = torch.cat([free, kept], dim=1).detach(), total / steps
        return *map(_array, found), None, None, None
    late_gain = torch.zeros_like(lowest) if before is None else before - lowest
    return tuple(map(_array, (best, final, lowest, epoch_of, late_gain)))


def _networks(rows: Rows, chosen: torch.Tensor) -> Rows:
    return rows.map(lambda _, values: values[chosen])


def _adam(parameters, rate, decay):
    some = [each for each in parameters if each.numel()]
    return torch.optim.Adam(some, lr=rate, weight_decay=decay, fused=True)


def _array(values: torch.Tensor) -> np.ndarray:
    return values.cpu().numpy()


def _stacked(rows: Sequence[Rows], dtype, device) -> Rows:
    """The rows of k networks with leading axis k, padded with zeros."""

    def stack(name, _):
        arrays = [getattr(each, name) for each in rows]
        length = ALIGNED * math.ceil(max(1, *map(len, arrays)) / ALIGNED)
        block = np.zeros((len(arrays), length, *arrays[0].shape[1:]))
        for place, array in zip(block, arrays, strict=True):
            place[: len(array)] = array
        return torch.as_tensor(block, dtype=dtype, device=device)

    return replace(rows[0], fold=None, fold_unselected=None).map(stack)


def _batches(table: Rows, counts, who, steps: int, epoch: int) -> Iterable[Rows]:
    """All rows, or `steps` batches in a separate random order for each network.

    Selected and unselected rows are split separately, so that every batch has its share of both.
    Weights are multiplied by `steps`, which makes the gradient of a batch unbiased.
    """
    if steps == 1:
        yield table
        return
    rngs = [np.random.default_rng(member_seed(*one, MINI_BATCHES, epoch)) for one in who]
    places = []
    for side in (0, 1):
        length = ALIGNED * math.ceil(max(1, *(count[side] for count in counts)) / steps / ALIGNED)
        at = np.full((steps, len(who), length), -1)
        for network, (rng, count) in enumerate(zip(rngs, counts, strict=True)):
            order = rng.permutation(count[side])
            for step in range(steps):
                part = order[step::steps]
                at[step, network, : len(part)] = part
        places.append(torch.as_tensor(at, device=table.y.device))
    networks = torch.arange(len(who), device=table.y.device)[:, None]
    for step in range(steps):

        def some(name, values, step=step):
            at = places[name.endswith("unselected")][step]
            chosen = values[networks, at.clamp(min=0)]
            return chosen * (at >= 0) * steps if name.startswith("weight") else chosen

        yield table.map(some)
