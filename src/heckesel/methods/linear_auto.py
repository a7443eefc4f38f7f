"""Chooses the linear estimator and error model by the likelihood of held-out units.

Maximum likelihood with normal or shape errors and a constant or varying sigma is compared by the
likelihood of held-out units on the same folds. The two-step has no likelihood. It is used if the
outcome has no density, or if every likelihood is highest at rho = +-1.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import unsuited_to_density
from heckesel.classical.forms import climb, selected_jets
from heckesel.classical.heckman import fit_in_memory
from heckesel.classical.likelihood import ATANH_RHO_END, ERROR_MODELS, ErrorModel
from heckesel.classical.ml import CLEARLY_BETTER, FLAT_FROM
from heckesel.classical.results import HeckmanFit
from heckesel.classical.rows import Sample, standardised_sample
from heckesel.data import SelectionData
from heckesel.errors import DataError

# Forms from simple to complex: the error model, and whether sigma varies with x.
FORMS = (("normal", False), ("shape", False), ("normal", True), ("shape", True))
# With fewer rows, folds cannot distinguish error models.
FEWEST_SELECTED, FEWEST_UNSELECTED, ROWS_PER_COEFFICIENT = 50, 10, 10
FEWEST_GROUPS = 20  # of rows that depend on one another


@dataclass(frozen=True)
class LinearCandidate:
    """held_out : log-likelihood of held-out units, summed over all rows; behind : its distance from
    the highest one, with a standard error. NaN for the two-step and without folds."""

    fit: HeckmanFit
    held_out: float = float("nan")
    behind: float = float("nan")
    standard_error: float = float("nan")

    @property
    def mode(self):
        """The estimates on the likelihood surface."""
        assert self.fit.scan is not None
        return self.fit.scan.modes[self.fit.selected]

    @property
    def varies(self) -> bool:
        """Whether sigma varies with x."""
        return bool(self.fit.data.scale_names)

    @property
    def at_boundary(self) -> bool:
        """Whether the estimate of rho is -1 or 1."""
        return self.mode.status == "boundary" and abs(self.mode.a) > FLAT_FROM

    @property
    def usable(self) -> bool:
        if self.fit.status == "max_iterations":
            return False
        return self.at_boundary or bool(np.isfinite(self.fit.cov.to_numpy()[0, 0]))

    @property
    def name(self) -> str:
        errors = {"normal": "normal errors", "shape": "skewed or heavy-tailed errors (shape)"}
        sigma = "a sigma that varies with x" if self.varies else "a constant sigma"
        return f"{errors[self.fit.errors]} and {sigma}"


@dataclass(frozen=True)
class LinearChoice:
    """The fit, why it was chosen, and one row for each candidate."""

    fit: HeckmanFit
    explanation: str
    candidates: pd.DataFrame


def choose(
    data: SelectionData, design, kind: str, options: dict, *, errors=("normal", "shape")
) -> LinearChoice:
    """data : checked, with constants; kind, options : of the covariance, see `fit_in_memory`;
    errors : those to compare"""
    if data.s.all():
        fit = fit_in_memory(data, design, kind, options, "ml", "normal")
        why = "Least squares was used, because every unit was selected."
        return _choice(LinearCandidate(fit), why, (LinearCandidate(fit),))
    two_step = _two_step(data, design, kind, options)
    reason = unsuited_to_density(data.y[data.s], data.weight[data.s])
    if reason is not None and two_step:
        return _choice(two_step[0], f"The two-step was used, because {reason}.", two_step)
    forms = [form for form in FORMS if form[0] in errors] if _enough_rows(data) else FORMS[:1]
    candidates = tuple(_fitted(data, design, kind, options, *form) for form in forms)
    if len(forms) > 1:
        candidates = _compared(data, candidates, options["weight_kind"])
    chosen, why = preferred(candidates)
    if chosen is None and two_step:
        why = "The two-step was used, because every likelihood is highest at rho = -1 or 1."
        return _choice(two_step[0], why, (*candidates, *two_step))
    if chosen is None:
        chosen, why = candidates[0], "every likelihood is highest at rho = -1 or 1"
    explanation = f"Maximum likelihood with {chosen.name} was used, because {why}."
    return _choice(chosen, explanation, (*candidates, *two_step))


def _enough_rows(data: SelectionData) -> bool:
    used = data.weight > 0
    selected, unselected = (np.count_nonzero(used & s) for s in (data.s, ~data.s))
    few = data.groups is not None and len(np.unique(data.groups[used])) < FEWEST_GROUPS
    needed = max(FEWEST_SELECTED, ROWS_PER_COEFFICIENT * data.x.shape[1])
    return bool(selected >= needed and unselected >= FEWEST_UNSELECTED and not few)


def _two_step(data: SelectionData, design, kind: str, options: dict) -> tuple[LinearCandidate, ...]:
    """A tuple of one candidate, empty if the inverse Mills ratio is a linear combination of x."""
    kind = "robust" if kind == "opg" else kind  # two steps have no likelihood
    try:
        return (LinearCandidate(fit_in_memory(data, design, kind, options, "two-step", "normal")),)
    except DataError:
        return ()


def _fitted(
    data: SelectionData, design, kind, options, errors: str, varies: bool
) -> LinearCandidate:
    if varies:
        data = with_varying_sigma(data)
        design = replace(design, scale_names=data.scale_names)
    return LinearCandidate(fit_in_memory(data, design, kind, options, "ml", errors))


def with_varying_sigma(data: SelectionData) -> SelectionData:
    """log sigma(x) linear in every outcome column but the constant."""
    return replace(data, scale=data.x[:, 1:], scale_names=data.x_names[1:])


def _compared(data: SelectionData, candidates, weight_kind: str) -> tuple[LinearCandidate, ...]:
    """The candidates with the likelihood of held-out units; of a long table, a part is used."""
    with threadpool_limits(1, user_api="blas"):
        sample, scalings = standardised_sample(with_varying_sigma(data))
        part = sample.part()
        constant, folds = replace(part, scale_columns=None), split_rows(part)

        def held_out(each: LinearCandidate) -> np.ndarray:
            if not each.usable:
                return np.full(part.n, -np.inf)
            rows = part if each.varies else constant
            return held_out_logliks(ERROR_MODELS[each.fit.errors], rows, folds, _start(each))

        units = list(map(held_out, candidates))
    weight = np.append(part.weight_selected, part.weight_unselected)
    mass = weight if weight_kind == "frequency" else weight**2
    stretch = sample.mass / part.mass
    in_units = part.mass_selected * np.log(scalings.y_scale)
    totals = [float(weight @ each) if np.isfinite(each).all() else -np.inf for each in units]
    best = units[int(np.argmax(totals))]
    found = []
    for each, own, total in zip(candidates, units, totals, strict=True):
        behind, error = np.inf, np.nan
        if np.isfinite(total):
            behind, error = lead(best, own, weight, mass, part.group_codes)
        numbers = stretch * (total - in_units), stretch * behind, stretch * error
        found.append(LinearCandidate(each.fit, *numbers))
    return tuple(found)


def _start(candidate: LinearCandidate) -> np.ndarray:
    """The estimates in the coordinates of `forms`; scans reach values closer to +-1."""
    mode = candidate.mode
    return replace(mode, a=float(np.clip(mode.a, -ATANH_RHO_END, ATANH_RHO_END))).coordinates


def unit_logliks(form: ErrorModel, sample: Sample, point) -> np.ndarray:
    """(n,) log-likelihood of each unit, the selected first, not weighted."""
    q, last = sample.q, sample.q + sample.p + 1
    inside = selected_jets(form, sample, point)[0].value + np.log(point[last - 1])
    shared = point[last + sample.k :]
    return np.append(inside, form.unselected(sample.w_unselected @ point[:q], *shared).value)


def preferred(candidates: tuple[LinearCandidate, ...]) -> tuple[LinearCandidate | None, str]:
    """Which candidate to use, and why: the simplest within one standard error of the highest
    held-out likelihood. One at rho = +-1 is used only if it exceeds every interior one by
    `CLEARLY_BETTER`. None if all of them are at rho = +-1."""
    usable = [each for each in candidates if each.usable]
    if all(each.at_boundary for each in usable):
        return None, ""
    if len(candidates) == 1:
        return candidates[0], "there are too few rows to compare error models"
    best = min(usable, key=lambda each: each.behind)
    near = [each for each in usable if each.behind <= min(each.standard_error, CLEARLY_BETTER)]
    inside = [each for each in near if not each.at_boundary]
    if inside and inside[0] is best:
        return best, f"its held-out log-likelihood is the highest of {len(candidates)} error models"
    if inside and not best.at_boundary:
        return inside[0], (
            "its held-out log-likelihood is within one standard error of the highest, that of "
            f"{best.name}, and it is simpler"
        )
    close = [each for each in usable if not each.at_boundary and each.behind <= CLEARLY_BETTER]
    if inside or close:
        chosen = inside[0] if inside else min(close, key=lambda each: each.behind)
        return chosen, (
            f"its held-out log-likelihood is only {chosen.behind:.1f} below that of {best.name}, "
            "whose estimate of rho is -1 or 1"
        )
    return near[0], (
        "its held-out log-likelihood is clearly higher than that of every error model whose "
        "estimate of rho is not -1 or 1"
    )


def _choice(
    chosen: LinearCandidate, why: str, candidates: tuple[LinearCandidate, ...]
) -> LinearChoice:
    rows = [
        {
            "estimator": each.fit.method,
            "errors": each.fit.errors,
            "scale": ", ".join(each.fit.data.scale_names) or "constant",
            "rho": each.fit.rho,
            "loglik": each.fit.loglik,
            "held_out_loglik": each.held_out,
            "difference": -each.behind,
            "standard_error": each.standard_error,
            "status": each.fit.status,
            "chosen": each.fit is chosen.fit,
        }
        for each in candidates
    ]
    return LinearChoice(chosen.fit, why, pd.DataFrame(rows))


FOLDS = 5
FOLD_SEED = 1979  # fixed, so that the same data always gives the same choice


def split_rows(sample: Sample) -> list[np.ndarray]:
    """Fold of each selected and of each unselected row. Folds have nearly equal numbers of both;
    rows of one group are in one fold."""
    rng = np.random.default_rng(FOLD_SEED)
    if sample.groups is not None:
        of_group = rng.permutation(1 + max(each.max(initial=0) for each in sample.groups)) % FOLDS
        return [of_group[each] for each in sample.groups]
    return [rng.permutation(len(w)) % FOLDS for w in (sample.w_selected, sample.w_unselected)]


def held_out_logliks(form: ErrorModel, sample: Sample, folds, start: np.ndarray) -> np.ndarray:
    """(n,) log-likelihood of each unit under a fit to the other folds, selected units first.

    folds : as `split_rows` returns them
    start : the estimates on all rows, which are close to those without a fold
    """
    n1 = len(sample.w_selected)
    found = np.empty(sample.n)
    for fold in range(FOLDS):
        inside, outside = (each == fold for each in folds)
        point = climb(form, sample.take(~inside, ~outside), start, rough=True)
        units = unit_logliks(form, sample.take(inside, outside), point.coordinates)
        found[:n1][inside] = units[: inside.sum()]
        found[n1:][outside] = units[inside.sum() :]
    return found


def lead(units: np.ndarray, others: np.ndarray, weight, mass, groups=None) -> tuple[float, float]:
    """Weighted sum of `units` - `others` with its standard error; mass : the weights of a
    frequency-weighted sample, else their squares; groups : (n,) codes of dependent rows, over which
    differences are added up."""
    difference = units - others
    apart = difference - weight @ difference / weight.sum()
    if groups is None:
        variance = mass @ apart**2
    else:
        variance = np.sum(np.bincount(groups, weight * apart) ** 2)
    return float(weight @ difference), float(np.sqrt(variance))
