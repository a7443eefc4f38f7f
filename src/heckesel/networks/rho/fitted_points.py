"""Models of one dataset at given forms of the errors and values of rho, fitted side by side.

Each is the optimum for all rows with the likelihood of held-out units. Models are fitted in chunks
that memory holds, and the chunks are tasks for the workers of a cluster or for several cards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from heckesel.networks.rho import form_shape, form_student
from heckesel.networks.rho.form_held_out import FACTORS, Folds, held_out_readings
from heckesel.networks.rho.form_likelihood import Family, Units
from heckesel.networks.rho.form_optima import (
    GAMMA_RIDGE,
    SCALE_SD,
    SKEWNESS_SD,
    TAIL_SD,
    Optima,
    Penalty,
    optimise,
)
from heckesel.networks.training.config import torch_device


@dataclass(frozen=True)
class Form:
    """family : of the errors; shape : skewness and tails are free; scale : sigma depends on x"""

    family: Family
    shape: bool = False
    scale: bool = False


FORMS = {
    "normal": Form(form_shape),
    "shape": Form(form_shape, shape=True),
    "scale": Form(form_shape, scale=True),
    "shape and scale": Form(form_shape, shape=True, scale=True),
    "t": Form(form_student),
}
# Tables of all models that are optimised side by side.
BATCH_BYTES = {"cpu": 64 * 2**20, "gpu": 2**30}
HOPELESS = 30.0  # log-units below the best evidence at which a point is given up
FIRST_UPDATES, UPDATES = 12, 5  # of the ridges: at rho = 0, where nothing is known, and elsewhere


@dataclass(frozen=True)
class Design:
    """The columns of one dataset, standardised, as tensors with one model for each column set.

    membership : (P, ridges), of all coefficients in the order of `form_likelihood.split`
    """

    units: Units
    membership: torch.Tensor

    @property
    def penalty(self) -> Penalty:
        q, width, r = self.units.sizes
        fixed = self.membership.new_zeros(len(self.membership))
        fixed[: q + width - 1] = GAMMA_RIDGE  # straight lines may depend on one another
        fixed[q + width - 1] = 0.0
        fixed[q + width : q + width + r] = SCALE_SD**-2
        fixed[-2], fixed[-1] = SKEWNESS_SD**-2, TAIL_SD**-2
        extra = torch.zeros(len(fixed), dtype=torch.bool, device=fixed.device)
        extra[q + width :] = True
        return Penalty(self.membership, fixed, extra)

    def free(self, forms: np.ndarray) -> torch.Tensor:
        """(k, P) which coefficients the given forms (k,), positions in FORMS, let vary."""
        q, width, r = self.units.sizes
        shape, scale = np.array([(each.shape, each.scale) for each in FORMS.values()])[forms].T
        free = np.ones((len(forms), len(self.membership)), dtype=bool)
        free[:, q + width : q + width + r] = scale[:, None]
        free[:, -2:] = shape[:, None]
        return torch.as_tensor(free, device=self.membership.device)


@dataclass(frozen=True)
class Points:
    """j fitted points: form (j,) position in FORMS, a (j,), evidence (j,) of all units, readings
    (j, factors, groups) of held-out units, v (j, P), ridge (j, ridges), information (j, P, P)."""

    form: np.ndarray
    a: np.ndarray
    evidence: np.ndarray
    readings: np.ndarray
    v: torch.Tensor
    ridge: torch.Tensor
    information: torch.Tensor

    @property
    def rho(self) -> np.ndarray:
        return np.tanh(self.a)

    def with_more(self, more: Points) -> Points:
        def joined(name: str) -> Any:
            pair = getattr(self, name), getattr(more, name)
            return np.concatenate(pair) if isinstance(pair[0], np.ndarray) else torch.cat(pair)

        return Points(**{name: joined(name) for name in vars(self)})


def independent_optima(design: Design) -> Optima:
    """The normal model of each column set at rho = 0, from next to nothing: zeros and a unit
    sigma."""
    size, ridges = design.membership.shape
    q, width, _ = design.units.sizes
    k = len(design.units.weight)
    v = design.membership.new_zeros(k, size)
    v[:, q + width - 1] = 1.0
    ridge, a, free = v.new_ones(k, ridges), v.new_zeros(k), design.free(np.zeros(k, dtype=int))
    units, penalty = design.units, design.penalty
    return optimise(form_shape, units, a, v, ridge, free, penalty, updates=FIRST_UPDATES)


@dataclass(frozen=True)
class Task:
    """What the models of a chunk are fitted to.

    device : where a worker moves the rows; None leaves them where they are
    """

    family: Family
    design: Design
    folds: Folds
    device: str | None = None

    def there(self) -> Task:
        """The same on the device of the worker that calls this."""
        if self.device is None:
            return self
        place = torch_device(self.device)
        membership = self.design.membership.to(place)
        design = Design(_moved(self.design.units, place), membership)
        return replace(self, design=design, folds=_moved(self.folds, place), device=None)


def _moved(holder: Any, place: torch.device) -> Any:
    """A dataclass with its tensors on another device."""
    tensors = {n: v.to(place) for n, v in vars(holder).items() if isinstance(v, torch.Tensor)}
    return replace(holder, **tensors)


@dataclass(frozen=True)
class Fitting:
    """How points are fitted to the units of `design`, and read off the units of `folds`.

    run : a map over tasks; device : of a worker, by its name; None is that of the design
    """

    design: Design
    folds: Folds
    run: Callable = map
    device: str | None = None

    def points(self, form, a, v, ridge) -> Points:
        """The points with these forms (k,) at a (k,), from v (k, P) and ridge (k, ridges)."""
        families = [each.family for each in FORMS.values()]
        found = []
        for family in dict.fromkeys(families):
            own = np.flatnonzero([families[one] is family for one in form])
            if len(own):
                at = torch.as_tensor(own, device=v.device)
                found.append(self._of_family(family, form[own], a[own], v[at], ridge[at]))
        return reduce(Points.with_more, found)

    def _of_family(self, family: Family, form, a, v, ridge) -> Points:
        task = Task(family, self.design, self.folds, self.device)
        starts = [(form[own], a[own], v[own], ridge[own]) for own in self._chunks(len(form))]
        found = list(self.run(partial(_optimised, task), starts))
        v, ridge, information = (
            torch.cat([getattr(each, name) for each in found])
            for name in ("v", "ridge", "information")
        )
        evidence = torch.cat([each.evidence for each in found]).cpu().numpy()
        # the others are not looked at
        hopeful = np.flatnonzero(evidence > evidence.max() - HOPELESS)
        chunks = [hopeful[own] for own in self._chunks(len(hopeful))]
        given = [(form[own], a[own], v[own], ridge[own]) for own in chunks]
        readings = np.full((len(form), len(FACTORS), self.folds.groups), -np.inf)
        readings[hopeful] = np.concatenate(list(self.run(partial(_readings, task), given)))
        return Points(form, a, evidence, readings, v, ridge, information)

    def _chunks(self, count: int) -> list[slice]:
        """As many models at once as memory holds. Workers do not change which these are, except
        that a GPU wants few large chunks, and every GPU one of them."""
        place = self.device or self.design.membership.device.type
        kind = "gpu" if place.startswith("cuda") else "cpu"
        at_once = max(1, int(BATCH_BYTES[kind] // self.design.units.nbytes))
        if kind == "gpu":
            at_once = min(at_once, max(1, -(-count // getattr(self.run, "workers", 1))))
        return [slice(first, first + at_once) for first in range(0, count, at_once)]


def _optimised(task: Task, start) -> Optima:
    """The optima of one chunk: forms (k,), a (k,), v (k, P) and ridge (k, ridges)."""
    task, (form, a, v, ridge) = task.there(), start
    design, place = task.design, task.design.membership.device
    found = optimise(
        task.family,
        design.units.repeated(len(form)),
        torch.as_tensor(a, device=place),
        v.to(place),
        ridge.to(place),
        design.free(form),
        design.penalty,
        updates=UPDATES,
    )
    return _moved(found, v.device)


def _readings(task: Task, optima) -> np.ndarray:
    """(k, factors, groups) of the units held out from one chunk; optima : as `start` above"""
    task, (form, a, v, ridge) = task.there(), optima
    design, place = task.design, task.design.membership.device
    at = torch.as_tensor(a, device=place)
    given = at, v.to(place), ridge.to(place), design.free(form), design.penalty
    return held_out_readings(task.family, design.units, task.folds, *given)
