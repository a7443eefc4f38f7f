"""Fits of one dataset under given forms and values of rho, computed side by side.

A form is an error model with given free parameters. Each fit has the optimum for all rows and the
likelihood of held-out units. Models are fitted in chunks that fit into memory, and the chunks are
tasks for the workers of a cluster or for several GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

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
    """An error model with given free parameters. shape : skewness and tails; scale : sigma(x)"""

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
# Size of the tables of all models that are optimised side by side. With 20,000 rows a CPU fits one
# model at a time, because several do not fit into its cache.
BATCH_BYTES = {"cpu": 16 * 2**20, "gpu": 2**30}
HOPELESS = 30.0  # a point this many log-units below the best is not evaluated on held-out units
FIRST_UPDATES, UPDATES = 12, 5  # of the ridges: at rho = 0, from arbitrary values, and elsewhere


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
        fixed[: q + width - 1] = GAMMA_RIDGE  # straight lines may be collinear
        fixed[q + width - 1] = 0.0
        fixed[q + width : q + width + r] = SCALE_SD**-2
        fixed[-2], fixed[-1] = SKEWNESS_SD**-2, TAIL_SD**-2
        extra = torch.zeros(len(fixed), dtype=torch.bool, device=fixed.device)
        extra[q + width :] = True
        return Penalty(self.membership, fixed, extra)

    def free(self, forms: np.ndarray) -> torch.Tensor:
        """(k, P) which coefficients are free in the given forms (k,), positions in FORMS."""
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
    """The normal model of each column set at rho = 0, started from zero coefficients and sigma
    1."""
    size, ridges = design.membership.shape
    q, width, _ = design.units.sizes
    k = len(design.units.weight)
    v = design.membership.new_zeros(k, size)
    v[:, q + width - 1] = 1.0
    ridge, a, free = v.new_ones(k, ridges), v.new_zeros(k), design.free(np.zeros(k, dtype=int))
    units, penalty = design.units, design.penalty
    return optimise(form_shape, units, a, v, ridge, free, penalty, updates=FIRST_UPDATES)


@dataclass(frozen=True)
class Problem:
    """The data that models are fitted to.

    device : to which a worker moves the rows; None does not move them
    """

    design: Design
    folds: Folds
    device: str | None = None

    def there(self) -> Problem:
        """The same on the device of the worker that calls this."""
        if self.device is None:
            return self
        place = torch_device(self.device)
        design = Design(_moved(self.design.units, place), self.design.membership.to(place))
        return Problem(design, _moved(self.folds, place))


def _moved(holder: Any, place: torch.device) -> Any:
    """A dataclass with its tensors on another device."""
    tensors = {n: v.to(place) for n, v in vars(holder).items() if isinstance(v, torch.Tensor)}
    return replace(holder, **tensors)


class Chunk(NamedTuple):
    """Models of one family: forms (k,), a (k,), v (k, P) and ridge (k, ridges)."""

    form: np.ndarray
    a: np.ndarray
    v: torch.Tensor
    ridge: torch.Tensor

    @property
    def family(self) -> Family:
        return _family_of(self.form[0])

    def only(self, models: np.ndarray) -> Chunk:
        return Chunk(self.form[models], self.a[models], self.v[models], self.ridge[models])

    def on(self, place: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return torch.as_tensor(self.a, device=place), self.v.to(place), self.ridge.to(place)


def _family_of(form: int) -> Family:
    return list(FORMS.values())[form].family


@dataclass(frozen=True)
class Fitting:
    """Fits points to the units of `design` and evaluates them on the held-out units of `folds`.

    run : a map over chunks; device : name of the device of a worker, by default that of the design
    """

    design: Design
    folds: Folds
    run: Callable = map
    device: str | None = None

    def points(self, form, a, v, ridge) -> Points:
        """The points with these forms (k,) at a (k,), from v (k, P) and ridge (k, ridges)."""
        problem, given = Problem(self.design, self.folds, self.device), Chunk(form, a, v, ridge)
        everyone = np.arange(len(form))
        found = self._in_chunks(partial(_optimised, problem), given, everyone)
        optima = {
            name: torch.cat([getattr(each, name) for _, each in found])
            for name in ("v", "ridge", "information", "evidence")
        }
        order = np.argsort(np.concatenate([own for own, _ in found]))
        v, ridge, information, evidence = (each[order] for each in optima.values())
        height = evidence.cpu().numpy()
        readings = np.full((len(form), len(FACTORS), self.folds.groups), -np.inf)
        hopeful, fitted = self._hopeful(form, height), Chunk(form, a, v, ridge)
        for own, each in self._in_chunks(partial(_readings, problem), fitted, hopeful):
            readings[own] = each
        return Points(form, a, height, readings, v, ridge, information)

    def _in_chunks(self, function: Callable, given: Chunk, among: np.ndarray) -> list[tuple]:
        """For each chunk of the models at positions `among`: its positions and its result."""
        chunks = [among[own] for own in self._chunks(given.form[among])]
        tasks = [given.only(own) for own in chunks]
        return list(zip(chunks, self.run(function, tasks), strict=True))

    def _hopeful(self, form: np.ndarray, evidence: np.ndarray) -> np.ndarray:
        """Positions of the models that are evaluated on held-out units: at most HOPELESS below the
        best of their family."""
        best = {family: -np.inf for family in map(_family_of, form)}
        for one, height in zip(form, evidence, strict=True):
            best[_family_of(one)] = max(best[_family_of(one)], height)
        least = np.array([best[_family_of(one)] for one in form]) - HOPELESS
        return np.flatnonzero(evidence > least)

    def _chunks(self, form: np.ndarray) -> list[np.ndarray]:
        """The positions in each chunk: models of one family, as many as memory holds. On CPUs
        chunks do not depend on the number of workers; on GPUs they are large, and every GPU gets
        one."""
        place = self.device or self.design.membership.device.type
        kind = "gpu" if place.startswith("cuda") else "cpu"
        at_once = max(1, int(BATCH_BYTES[kind] // self.design.units.nbytes))
        if kind == "gpu":
            at_once = min(at_once, max(1, -(-len(form) // getattr(self.run, "workers", 1))))
        found = []
        for family in dict.fromkeys(map(_family_of, form)):
            own = np.array([at for at, one in enumerate(form) if _family_of(one) is family])
            found += [own[first : first + at_once] for first in range(0, len(own), at_once)]
        return found


def _optimised(problem: Problem, chunk: Chunk) -> Optima:
    """The optima of the models of a chunk, which start at its v and ridge."""
    problem = problem.there()
    design, place = problem.design, problem.design.membership.device
    at, v, ridge = chunk.on(place)
    found = optimise(
        chunk.family,
        design.units.repeated(len(at)),
        at,
        v,
        ridge,
        design.free(chunk.form),
        design.penalty,
        updates=UPDATES,
    )
    return _moved(found, chunk.v.device)


def _readings(problem: Problem, optima: Chunk) -> np.ndarray:
    """(k, factors, groups) of the units held out from the models of a chunk."""
    problem = problem.there()
    design, folds = problem.design, problem.folds
    at, v, ridge = optima.on(design.membership.device)
    free = design.free(optima.form)
    return held_out_readings(optima.family, design.units, folds, at, v, ridge, free, design.penalty)
