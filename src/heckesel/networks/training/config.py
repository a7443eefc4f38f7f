"""`NetworkConfig`: every choice a network method leaves to its user, with the paper's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol

import torch

from heckesel.device import check_device
from heckesel.errors import DataError, is_one_of
from heckesel.networks.training.memory import check_memory

DTYPES = {"float32": torch.float32, "float64": torch.float64}

AUTO = "auto"  # what units left out decide
NOISES = ("constant", "varying", AUTO)
ERRORS = ("normal", "t")
TAILS = ("normal", AUTO)
WAY_OUT = "lower learning_rate or weight_decay, or rescale columns with extreme values"
SELECTIONS = ("linear", "network", AUTO)


class Spread(Protocol):
    """A `map` over workers, as many as `workers`."""

    @property
    def workers(self) -> int: ...
    def __call__(self, function: Callable, items: Iterable, /) -> Iterable: ...


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture, ensemble size and training schedule.

    learning_rate : None takes the method's own: 1e-2 with one output, 5e-3 with two.
    warm_up : epochs during which the joint likelihood keeps rho at its start, 0.
    batch_size : units per step; None is the full batch.
    folds : units are dealt into that many folds; member j never sees fold j mod folds, ends where
        its loss on that fold was lowest, and sigma is judged there; None trains every member on
        all units to the end. patience : epochs without a better reading after which it ends.
    noise : "constant" is one sigma, "varying" a sigma(x) of the network, "auto" what the units
        left out prefer; the last two need folds.
    tails : "auto" gives predictions the tails of a t where the units left out prefer them; needs
        folds. Networks are trained as for normal errors.
    errors : "normal", or "t" with degrees of freedom that are estimated (joint likelihood only), or
        "auto", whichever the units left out prefer.
    weight_decay : L2 on all parameters; "auto" is what the units left out prefer of `choices`.
    selection : "linear" is a probit; "network" an index of networks on w, each unit's from members
        that did not see it; "auto" is whichever describes selection better on units left out. The
        last two are for the two-step with folds.
    standardise : networks see x and w over all units, y over the selected ones, at mean 0 and
        sd 1; predictions are mapped back. Without it, rescaling y changes the fit.
    spread : a map over `spread.workers` workers, each of which trains a block of the members; None
        trains all of them here. Members are the same either way.
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
    spread: Spread | None = None

    def __post_init__(self):
        if not is_one_of(self.dtype, DTYPES):
            raise DataError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        self._check_numbers()
        check_device(self.device)
        if self.spread is None:  # else the workers have the cards
            torch_device(self.device)
        if self.noise not in NOISES:
            raise DataError(f"noise must be one of {', '.join(NOISES)}, got {self.noise!r}")
        if self.errors not in (*ERRORS, AUTO):
            known = ", ".join((*ERRORS, AUTO))
            raise DataError(f"errors must be one of {known}, got {self.errors!r}")
        if self.errors != "normal" and self.noise == "varying":
            raise DataError('errors="t" has one sigma; take noise="constant"')
        if isinstance(self.weight_decay, str) and self.weight_decay != AUTO:
            raise DataError(f'weight_decay is a number or "auto", got {self.weight_decay!r}')
        for name, value in (("weight_decay", self.weight_decay), ("errors", self.errors)):
            if value == AUTO and self.folds is None:
                raise DataError(f'{name}="auto" needs folds to judge it on; set folds, say to 5')
        if self.noise != "constant" and self.folds is None:
            raise DataError(f"noise={self.noise!r} needs folds to judge it on; set folds, say to 5")
        if self.tails not in TAILS:
            raise DataError(f"tails must be one of {', '.join(TAILS)}, got {self.tails!r}")
        if self.tails == "auto" and self.folds is None:
            raise DataError('tails="auto" needs folds to judge them on; set folds, say to 5')
        if self.tails == "auto" and self.errors == "t":
            raise DataError('errors="t" has tails of its own; take tails="normal"')
        if self.selection not in SELECTIONS:
            known = ", ".join(SELECTIONS)
            raise DataError(f"selection must be one of {known}, got {self.selection!r}")
        if self.selection != "linear" and not 2 <= (self.folds or 0) <= self.n_members:
            raise DataError(
                f"selection={self.selection!r} needs folds, and a member to leave out each: "
                f"folds is {self.folds}, n_members {self.n_members}"
            )

    def _check_numbers(self) -> None:
        check_whole("n_members", self.n_members, 1)
        check_whole("epochs", self.epochs, 1)
        check_whole("warm_up", self.warm_up, 0)
        check_whole("patience", self.patience, 1)
        if self.folds is not None:
            check_whole("folds", self.folds, 2, " or None")
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size, 1, " or None")
        if self.learning_rate is not None and not _finite(self.learning_rate, above=0.0):
            raise DataError(
                f"learning_rate must be a positive number, such as 1e-2, or None, "
                f"got {self.learning_rate!r}"
            )
        decay = self.weight_decay
        if not isinstance(decay, str) and not (decay == 0 or _finite(decay, above=0.0)):
            raise DataError(
                f'weight_decay must be a number that is not negative or "auto", got {decay!r}'
            )
        hidden = layer_widths(self.hidden)
        check_memory(
            (1, *hidden, 1),  # at least; `train_cells` knows the columns and rows
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
            raise DataError('nothing judges weight_decay="auto" in this method; give a number')
        return self.weight_decay

    @property
    def noises(self) -> tuple[str, ...]:
        """The kinds of noise to try; t errors have one sigma."""
        if self.errors == "t":
            return NOISES[:1]
        return NOISES[:2] if self.noise == "auto" else (self.noise,)


def layer_widths(hidden) -> tuple[int, ...]:
    """`hidden` as a tuple of positive numbers, at least one."""
    widths = tuple(hidden) if isinstance(hidden, Iterable) else ()
    if not widths or not all(_is_whole(width) and width >= 1 for width in widths):
        raise DataError(
            "hidden must list the widths of one or more hidden layers, such as (64, 64), "
            f"got {hidden!r}"
        )
    return tuple(int(width) for width in widths)


def check_whole(name: str, value, least: int, otherwise: str = "") -> None:
    if not _is_whole(value):
        raise DataError(f"{name} must be a whole number{otherwise}, got {value!r}")
    if value < least:
        raise DataError(f"{name} must be at least {least}{otherwise}, got {value}")


def _is_whole(value) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _finite(value, *, above: float) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > above


def torch_device(name) -> torch.device:
    """The device called `name` on this machine; "auto" is CUDA where there is one, else the CPU."""
    check_device(name)
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if cards else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= cards:
        raise DataError(
            f"device is {str(name)!r}, and torch finds {cards or 'no'} CUDA "
            f"card{'s' * (cards != 1)} on this machine; use 'cpu' or 'auto'"
        )
    return device
