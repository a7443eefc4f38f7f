"""`NetworkConfig`: the options of the network methods, with the paper's values as defaults, and a
check that the machine has enough memory for a training with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Protocol

import torch

from heckesel.device import ALL_GPUS, check_device
from heckesel.errors import DataError, is_one_of, is_whole

DTYPES = {"float32": torch.float32, "float64": torch.float64}

AUTO = "auto"  # chosen by the loss on held-out units
NOISES = ("constant", "varying", AUTO)
ERRORS = ("normal", "t")  # that "auto" compares
SHAPE = "shape"
TAILS = ("normal", AUTO)
WAY_OUT = "lower learning_rate or weight_decay, or rescale columns with extreme values"
SELECTIONS = ("linear", "network", AUTO)
# From almost none to as much as networks of a few dozen units tolerate; a decade or more apart,
# because the loss is flat in between.
WEIGHT_DECAYS = (1e-5, 1e-3, 1e-2)
# Copies of the parameters: start, two moments, gradient, best so far, current.
COPIES = 6
# Numbers for every unit of a layer and every input of a row: value, slope and a temporary.
VALUES = 3
# Numbers of the schedule for each step: eight factors and eight temporaries, in float64.
SCHEDULE = 16
UNLIMITED = 2**50  # bytes, if the system does not report its memory


class WorkerMap(Protocol):
    """A function like `map` that uses `workers` workers."""

    @property
    def workers(self) -> int: ...
    def __call__(self, function: Callable, items: Iterable, /) -> Iterable: ...


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture, ensemble size and training schedule.

    learning_rate : None is the default of the loss: 1e-2 with one output, 5e-3 with two.
    warm_up : epochs during which the joint likelihood keeps rho at its start, 0.
    batch_size : units per step; None is the full batch.
    folds : the number of folds that units are split into. Member j holds out fold j mod folds, for
        early stopping and to estimate sigma. None trains every member on all units for all epochs.
    patience : epochs without a lower held-out loss after which a member stops.
    noise : "constant" is one sigma, "varying" a sigma(x) given by the network, "auto" whichever has
        the lower held-out loss; the last two need folds.
    tails : "auto" gives predictions the tails of a t if that lowers the held-out loss; needs folds.
        Networks are trained as for normal errors.
    errors : "normal"; "t", with estimated degrees of freedom (joint likelihood only); "shape", with
        estimated skewness and tails (joint likelihood and profile); or "auto", the one of normal
        and t with the lower held-out loss.
    scale : positions of the columns of x on which log sigma depends linearly (joint likelihood and
        profile, normal or shape errors).
    weight_decay : L2 penalty on all parameters; "auto" is the one of `WEIGHT_DECAYS` with
        the lowest held-out loss.
    selection : "linear" is a probit; "network" an index given by networks on w, for each unit the
        mean over members that held it out; "auto" whichever predicts the selection of held-out
        units better. The last two are for the two-step with folds.
    standardise : scale x and w over all units, and y over the selected ones, to mean 0 and sd 1;
        predictions are mapped back. Without it, rescaling y changes the fit.
    map_over_workers : a map over workers, each of which trains a block of members; None trains all
        of them in this process. Members are the same either way.
    """

    hidden: tuple[int, ...] = (64, 64)
    n_members: int = 5
    epochs: int = 1500
    learning_rate: float | None = None
    warm_up: int = 100
    weight_decay: float | str = 1e-5
    dtype: str = "float32"
    device: str = "auto"
    standardise: bool = True
    batch_size: int | None = None
    folds: int | None = None
    patience: int = 150
    noise: str = "constant"
    tails: str = "normal"
    errors: str = "normal"
    selection: str = "linear"
    scale: tuple[int, ...] = ()
    map_over_workers: WorkerMap | None = None

    def __post_init__(self):
        for name, known in (
            ("dtype", DTYPES),
            ("noise", NOISES),
            ("errors", (*ERRORS, SHAPE, AUTO)),
            ("tails", TAILS),
            ("selection", SELECTIONS),
        ):
            if not is_one_of(value := getattr(self, name), known):
                raise DataError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        self._check_numbers()
        check_device(self.device)
        if self.map_over_workers is None:  # otherwise the workers have the GPUs
            torch_device(self.device)
        if self.errors != "normal" and self.noise == "varying":
            raise DataError(
                f'errors="{self.errors}" needs a constant sigma; set noise="constant"'
                + ", and scale= for a sigma that depends on x" * (self.errors == SHAPE)
            )
        if self.scale and self.errors not in ("normal", SHAPE):
            raise DataError(
                f'scale= needs normal or shape errors, not errors="{self.errors}"; set '
                'errors="shape"'
            )
        if self.scale and self.noise != "constant":
            raise DataError(
                f'scale= already models how sigma depends on x; set noise="constant", not '
                f'noise="{self.noise}"'
            )
        for name in ("weight_decay", "errors", "noise", "tails"):
            if (value := getattr(self, name)) in (AUTO, "varying") and self.folds is None:
                raise DataError(f'{name}="{value}" needs held-out folds; set folds=5, for example')
        if self.tails == AUTO and self.errors == "t":
            raise DataError('errors="t" already has heavy tails; set tails="normal"')
        if self.tails == AUTO and self.has_form:
            raise DataError('errors="shape" and scale= need tails="normal", not tails="auto"')
        if self.selection != "linear" and not 2 <= (self.folds or 0) <= self.n_members:
            raise DataError(
                f"selection={self.selection!r} needs folds and at least one member per fold, but "
                f"folds is {self.folds} and n_members is {self.n_members}"
            )

    def _check_numbers(self) -> None:
        for name, least in (("n_members", 1), ("epochs", 1), ("warm_up", 0), ("patience", 1)):
            check_whole(name, getattr(self, name), least)
        for name, least in (("folds", 2), ("batch_size", 1)):
            if (value := getattr(self, name)) is not None:
                check_whole(name, value, least, " or None")
        if self.learning_rate is not None and not _finite(self.learning_rate, above=0.0):
            raise DataError(
                f"learning_rate must be a positive number, such as 1e-2, or None, "
                f"got {self.learning_rate!r}"
            )
        decay = self.weight_decay
        if decay != AUTO and not (decay == 0 or _finite(decay, above=0.0)):
            raise DataError(
                f'weight_decay must be a number that is not negative or "auto", got {decay!r}'
            )
        hidden = layer_widths(self.hidden)
        check_memory(
            (1, *hidden, 1),  # a lower bound; `train_datasets` knows the columns and rows
            members=self.n_members,
            rows=1,
            steps=self.epochs,
            item=DTYPES[self.dtype].itemsize,
            place=torch.device("cpu"),
        )

    @property
    def decay(self) -> float:
        """The weight decay of one training."""
        if isinstance(self.weight_decay, str):
            raise DataError('this method does not support weight_decay="auto"; set a number')
        return self.weight_decay

    @property
    def has_form(self) -> bool:
        """Whether skewness and tails, or how log sigma depends on x, are estimated."""
        return self.errors == SHAPE or bool(self.scale)

    @property
    def noises(self) -> tuple[str, ...]:
        """The kinds of noise to compare; t errors have one sigma."""
        if self.errors == "t":
            return NOISES[:1]
        return NOISES[:2] if self.noise == "auto" else (self.noise,)

    def candidates(self) -> list[NetworkConfig]:
        """The configurations that held-out rows choose from; with t errors `tails` is "normal"."""
        decays = WEIGHT_DECAYS if self.weight_decay == AUTO else (self.weight_decay,)
        errors = ERRORS if self.errors == AUTO else (self.errors,)
        return [
            replace(
                self,
                weight_decay=decay,
                errors=one,
                tails=self.tails if one == "normal" or self.errors != AUTO else "normal",
            )
            for decay, one in product(decays, errors)
        ]


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


def _finite(value, *, above: float) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > above


def torch_device(name) -> torch.device:
    """The device called `name`; "auto" is CUDA if this machine has a GPU, else the CPU. With
    several GPUs, "cuda" and "cuda:*" are the one that this process uses."""
    check_device(name)
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if cards else "cpu"
    device = torch.device("cuda" if name == ALL_GPUS else name)
    if device.type == "cuda" and (device.index or 0) >= cards:
        raise DataError(
            f"device is {str(name)!r}, but torch finds {cards or 'no'} CUDA "
            f"card{'s' * (cards != 1)} on this machine; use 'cpu' or 'auto'"
        )
    return device


def check_memory(
    sizes, *, members: int, rows: float, steps: int, item: int, place: torch.device
) -> None:
    """Raise `DataError` if a training does not fit into the memory of `place`.

    sizes : widths of the layers, inputs first; rows : per step; steps : of the whole training;
    item : bytes per number
    """
    parameters = sum((low + 1) * high for low, high in zip(sizes, sizes[1:], strict=False))
    networks = members * item * (COPIES * parameters + VALUES * rows * sum(sizes))
    needed, there = networks + 8 * SCHEDULE * steps, memory_of(place)
    if needed <= there:
        return
    raise DataError(
        f"training {members:,} networks with layers of {', '.join(f'{s:,}' for s in sizes[1:-1])} "
        f"units for {steps:,} steps needs about {needed / 2**30:,.0f} GB of memory, and there are "
        f"{there / 2**30:,.0f} GB; lower n_members, hidden or epochs, or set a smaller batch_size"
    )


def memory_of(place: torch.device) -> int:
    """Bytes of memory of the GPU, or of the machine or its container, whichever is less."""
    if place.type == "cuda":
        return torch.cuda.mem_get_info(place)[1]
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return UNLIMITED
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        return min(found, int(limit.read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return found
