r"""Maximum likelihood with t or shape errors, or a sigma that varies with x, and the comparison
`fit.functional_form()`.

A point is (gamma, delta, theta, *scale, *shared), theta = 1/sigma and delta = beta/sigma as in
`ml`. Where sigma varies, log sigma(x) = -log theta + z'scale and e = exp(-z'scale)(theta y -
x'delta), z the standardised `scale_columns`; where it does not, there is no `scale`.

The problem is concave at fixed dependence and scale only for normal errors with a constant sigma.
A step therefore uses the absolute curvature where it has the wrong sign. The modes found are those
that a search along both signs of rho reaches; unlike in `ml.scan`, there may be others.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import check_estimable, check_scale
from heckesel.classical.covariance import covariance_of_rows
from heckesel.classical.likelihood import (
    ATANH_RHO_STOPS,
    ERROR_MODELS,
    GAUSSIAN,
    ErrorModel,
    Jet,
)
from heckesel.classical.ml import (
    LARGEST_THETA,
    NEAR_BOUNDARY,
    Point,
    Scan,
    at_zero,
    back_transform,
    estimates_at,
    listed,
    scan,
    solve_at,
    standardised_hessian,
    unit_scores,
)
from heckesel.classical.rows import (
    Rows,
    Sample,
    SampleScale,
    standardised_sample,
    weighted_sums,
)
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData, scaled_weight
from heckesel.display import block, heading, html_table, paragraphs
from heckesel.errors import DataError, as_list, is_whole
from heckesel.math.optimise import maximise, newton_step

# At the stops of the walk an error of .01 in the log-likelihood does not matter. Ten steps are
# enough except at the outermost stops, which are far below the maximum.
ROUGH: dict = {"gain_tolerance": 1e-2, "last_step": False, "max_iterations": 10}
LONGEST_SHARED_STEP = 1.0
LEAST_CURVATURE = 1e-6  # relative to the curvature on the diagonal
SAME_MODE = 1e-3
SCALE_END = 8.0  # of a standardised coefficient of log sigma(x): beyond, some rows have sigma 0
AT_AN_END = 1e-4  # a shared parameter closer to its end than this is at the end


@dataclass(frozen=True)
class FormScan:
    """modes: best first; centre: approximately the maximum at rho = 0, on the rows used for the
    walk."""

    form: ErrorModel
    modes: tuple[Point, ...]
    centre: Point


def search(form: ErrorModel, rows: Rows, *, far_ends: bool = True) -> Scan | FormScan:
    """Every mode of an error model; normal errors with a constant sigma have the faster `scan`."""
    is_normal = form is GAUSSIAN and not rows.k
    return scan(rows, far_ends=far_ends) if is_normal else scan_form(form, rows)


def scan_form(form: ErrorModel, rows: Rows) -> FormScan:
    """Every mode that a walk along the dependence meets, from rough optima at its stops. The walk
    uses a part of a long table (`Rows.part`); every mode is polished on all rows."""
    coarse = rows.part()
    start = np.concatenate([at_zero(coarse), np.zeros(coarse.k), [0.0], form.extra])
    centre, *up = walk(form, coarse, start, [0.0, *ATANH_RHO_STOPS])
    _, *down = walk(form, coarse, centre.coordinates, [0.0, *-ATANH_RHO_STOPS])
    path = [*reversed(down), centre, *up]
    values = np.array([-np.inf, *(point.value for point in path), -np.inf])
    top = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    found = [polish(form, rows, point) for point, is_top in zip(path, top, strict=True) if is_top]
    modes: list[Point] = []
    for mode in sorted(found, key=lambda point: -point.value):
        # two climbs that ended at the same dependence are one mode
        if all(abs(mode.a - other.a) > SAME_MODE for other in modes):
            modes.append(mode)
    return FormScan(form, tuple(modes), centre)


def walk(form: ErrorModel, sample: Rows, start: np.ndarray, stops) -> list[Point]:
    """Rough optima at each stop of the dependence, each started on the tangent at the last one."""
    path: list[Point] = []
    for stop in stops:
        here = _ahead(form, sample, path[-1], float(stop)) if path else start
        path.append(climb(form, sample, here, fixed=float(stop), rough=True))
    return path


def _ahead(form: ErrorModel, sample: Rows, point: Point, dependence: float) -> np.ndarray:
    """The next point on the path of conditional optima, to first order, if it is near."""
    theta, full = len(point.v) - 1, point.coordinates
    at = theta + 1 + sample.k
    free = np.delete(np.arange(len(full)), at)
    tangent = newton_step(point.hessian[free, at], point.hessian[np.ix_(free, free)])
    if tangent is None:
        return full
    moved = full.copy()
    moved[free] += (dependence - point.a) * tangent
    others = np.abs(moved - full)[np.r_[theta + 1 : at, at + 1 : len(full)]]
    near = moved[theta] > 0.5 * full[theta] and others.max(initial=0) < 1
    return moved if near and _inside(form, sample, moved) else full


def polish(form: ErrorModel, sample: Rows, start: Point) -> Point:
    """The mode near `start`. status: `boundary` if it lies at an end of a shared parameter,
    `converged` at an interior maximum, `max_iterations` otherwise."""
    found = climb(form, sample, start.coordinates)
    if found.status == "converged" and at_an_end(form, sample, found).any():
        return replace(found, status="boundary")
    if found.status == "converged" and newton_step(found.score, found.hessian) is None:
        return replace(found, status="max_iterations")  # a saddle
    return found


def climb(form: ErrorModel, sample: Rows, start, *, fixed=None, held=(), rough=False) -> Point:
    """The maximum reached uphill from `start`. The dependence is held at `fixed` if that is given,
    and the coordinates at the positions `held` do not change."""
    last = sample.q + sample.p + 1
    at = last + sample.k  # where the dependence is
    start = np.array(start, dtype=float)
    if fixed is not None:
        start[at], held = fixed, [*held, at]
    free = np.delete(np.arange(len(start)), held)
    seen: dict = {}

    def objective(part):
        full = start.copy()
        full[free] = part
        value, score, hessian = evaluate_form(form, sample, full)
        seen["last"] = full, score, hessian
        return value, score[free], hessian[np.ix_(free, free)]

    def step(gradient, hessian):  # called at the point that was evaluated last
        full = seen["last"][0]
        low, high = np.full(len(full), -np.inf), np.full(len(full), np.inf)
        down, up = _bounded(form, sample, full)
        low[last:] = np.where(down > -AT_AN_END, 0.0, np.maximum(down, -LONGEST_SHARED_STEP))
        high[last:] = np.where(up < AT_AN_END, 0.0, np.minimum(up, LONGEST_SHARED_STEP))
        return bounded_step(gradient, hessian, low[free], high[free])

    found = maximise(objective, start[free], step_of=step, **(ROUGH if rough else {}))
    full, score, hessian = seen["last"]
    if not np.array_equal(full[free], found.point):
        objective(found.point)
        full, score, hessian = seen["last"]
    v, scale, (a, *extra) = full[:last], full[last:at], full[at:]
    derivatives = found.value, score, hessian, found.status
    return Point(v, float(a), *derivatives, scale=scale, extra=np.array(extra))


def bounded_step(gradient, hessian, low, high) -> np.ndarray:
    """Newton's step, or where the surface is not concave one along |curvature|, that stays inside:
    low <= 0 <= high is the room of each coordinate.

    A coordinate that is at its end and would leave the range is fixed; the others step without it.
    """
    moves = np.ones(len(gradient), bool)
    while True:
        step = np.zeros(len(gradient))
        step[moves] = _ascent_step(gradient[moves], hessian[np.ix_(moves, moves)])
        room = np.where(step > 0, high, -low)
        blocked = (step != 0) & (room <= 0)
        if not blocked.any():
            break
        moves &= ~blocked
    moving = step != 0
    return step * np.min(room[moving] / np.abs(step[moving]), initial=1.0)


def _ascent_step(gradient, hessian) -> np.ndarray:
    step = newton_step(gradient, hessian)
    if step is None:
        scale = np.sqrt(np.abs(np.diag(hessian)) + np.finfo(float).tiny)
        values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
        curvature = np.maximum(np.abs(values), LEAST_CURVATURE)
        step = vectors @ ((vectors.T @ (gradient / scale)) / curvature) / scale
    return step


def _bounded(form: ErrorModel, sample: Rows, point) -> tuple[np.ndarray, np.ndarray]:
    """How far the scale and shared parameters are from their lower (<= 0) and upper ends."""
    first = len(point) - form.size
    scale, (low, high) = point[first - sample.k : first], form.room(point[first:])
    return np.append(-SCALE_END - scale, low), np.append(SCALE_END - scale, high)


def _inside(form: ErrorModel, sample: Rows, point) -> bool:
    low, high = _bounded(form, sample, point)
    return bool((low < AT_AN_END).all() and (high > -AT_AN_END).all())


def at_an_end(form: ErrorModel, sample: Rows, point: Point) -> np.ndarray:
    """Which of the scale and shared parameters are at an end of their range."""
    low, high = _bounded(form, sample, point.coordinates)
    return (low > -AT_AN_END) | (high < AT_AN_END)


def evaluate_form(form: ErrorModel, rows: Rows, point) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, score and Hessian in (gamma, delta, theta, *scale, *shared)."""
    at = rows.q + rows.p  # where theta is
    size, theta = len(point), point[at]
    if not (0 < theta < LARGEST_THETA and _inside(form, rows, point)):
        return -np.inf, np.zeros(size), np.zeros((size, size))
    value, score, hessian = rows.sum(partial(_block_terms, form=form, point=point))
    mass = rows.mass_selected
    score[at] += mass / theta
    hessian[at, at] -= mass / theta**2
    return float(value + mass * np.log(theta)), score, hessian


def _block_terms(block: Sample, *, form: ErrorModel, point) -> tuple:
    """Value, score and Hessian of a block, without what depends on theta alone."""
    q, k, size = block.q, block.k, len(point)
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if len(block.w_selected):
        units, columns = selected_jets(form, block, point)
        value, score, hessian = weighted_sums(units, columns, block.weight_selected)
    if len(block.w_unselected):
        w, last = block.w_unselected, q + block.p + 1
        units = form.unselected(w @ point[:q], *point[last + k :])
        parts = weighted_sums(units, (w,), block.weight_unselected)
        at = np.r_[:q, last + k : size]
        value += parts[0]
        score[at] += parts[1]
        hessian[np.ix_(at, at)] += parts[2]
    return value, score, hessian


def selected_jets(form: ErrorModel, block: Sample, point) -> tuple[Jet, tuple[np.ndarray, ...]]:
    r"""Log-likelihoods of the selected units less log theta, and the columns of their arguments.

    Where sigma varies, these are jets in (index, e, m, \*shared), m = z'scale. The slope of e in m
    is -e, and the density of y loses m:

    .. math:: \ell_m = -(e\,\ell_e + 1),\quad \ell_{em} = -(e\,\ell_{ee} + \ell_e),\quad
              \ell_{mm} = e\,(e\,\ell_{ee} + \ell_e)
    """
    q, last = block.q, block.q + block.p + 1
    w, r, shared = block.w_selected, block.residual_columns, point[last + block.k :]
    z = block.scale_columns
    if z is None:
        return form.selected(w @ point[:q], r @ point[q:last], *shared), (w, r)
    log_scale = z @ point[last : last + block.k]
    r = r * np.exp(-log_scale)[:, None]
    e = r @ point[q:last]
    units = form.selected(w @ point[:q], e, *shared)
    at = np.r_[:2, 2, 2 : len(units.gradient)]  # the third is overwritten
    gradient, hessian = units.gradient[at], units.hessian[at][:, at]
    row = -e * hessian[1]
    row[1] -= units.gradient[1]
    row[2] = -e * row[1]
    gradient[2] = -(e * units.gradient[1] + 1.0)
    hessian[2], hessian[:, 2] = row, row
    return Jet(units.value - log_scale, gradient, hessian), (w, r, z)


def restricted(found: FormScan, mode: Point, rows: Rows, names) -> float:
    """The drop of the log-likelihood from `mode` if these parameters are fixed at zero:
    "atanh_rho", "scale" (all of it) or extra ones of the form. The other parameters are fitted
    again, from those at rho = 0, or from normal errors with a constant sigma."""
    form, first = found.form, rows.q + rows.p + 1
    if list(names) == ["atanh_rho"]:
        return climb(form, rows, found.centre.coordinates, fixed=0.0).value - mode.value
    normal = solve_at(rows, 0.0, mode.v).v
    start = np.concatenate([normal, np.zeros(rows.k), [mode.a], form.extra])
    held = [first + rows.k + 1 + form.extra_labels.index(n) for n in names if n != "scale"]
    held += range(first, first + rows.k) if "scale" in names else []
    return climb(form, rows, start, held=held).value - mode.value


def form_covariance(
    form: ErrorModel,
    point: Point,
    rows: Rows,
    scalings: SampleScale,
    kind: str,
    *,
    given_ends: bool = False,
    **meat,
) -> np.ndarray:
    """Covariance in the order of `Estimates.vector`; NaN where there is none.

    An extra parameter at an end of its range (mostly a df that is practically normal) is treated as
    known: it has no standard error and the others keep theirs.

    given_ends : whether rho = +-1 and an end of log sigma(x) are treated as known, too, with
        variance zero
    meat : options of `covariance_of_rows`
    """
    before = rows.p + rows.q + 1
    size = before + rows.k + form.size
    ended = at_an_end(form, rows, point)
    if form is GAUSSIAN and not rows.k:
        ended = np.array([point.status == "boundary"])
    no_interior = ended[: rows.k + 1].any() and not given_ends
    if no_interior or point.status == "max_iterations":
        return np.full((size, size), np.nan)
    covariance = np.full((size, size), 0.0 if given_ends else np.nan)
    kept = np.flatnonzero(np.append(np.ones(before, bool), ~ended))
    hessian = standardised_hessian(point, rows.q)[np.ix_(kept, kept)]
    scores = partial(_kept_scores, form=form, point=point, kept=kept)
    back = back_transform(scalings, form.size)
    own = np.flatnonzero(np.isin(listed(before - 1, rows.k, size), kept))
    back = back[np.ix_(own, kept)]
    found = back @ covariance_of_rows(kind, hessian, rows, scores, **meat) @ back.T
    covariance[np.ix_(own, own)] = found
    return covariance


def _kept_scores(sample: Sample, *, form: ErrorModel, point: Point, kept) -> np.ndarray:
    return unit_scores(sample, form=form, point=point)[:, kept]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """A local maximum of the likelihood.

    Attributes
    ----------
    rho : float
        Correlation of the errors.
    loglik : float
        Log-likelihood.
    status : str
        ``"converged"``, ``"boundary"`` (rho = +-1), ``"separated"`` or ``"max_iterations"``.
    params : Series
        Estimates by (equation, term).
    """

    rho: float
    loglik: float
    status: str
    params: pd.Series

    @property
    def sigma(self) -> float:
        """Scale of the outcome error, if there is one."""
        return float(np.exp(self.params["ancillary", "log_sigma"]))

    @property
    def near_boundary(self) -> bool:
        """Whether \\|rho\\| > .99."""
        return abs(self.rho) > NEAR_BOUNDARY

    def __repr__(self) -> str:
        return f"<Mode rho {self.rho:.4f}, loglik {self.loglik:.4f}, {self.status}>"


def equation_labels(data) -> list[tuple[str, str]]:
    """(equation, term) of both equations."""
    return [
        *(("outcome", name) for name in data.x_names),
        *(("select", name) for name in data.w_names),
    ]


def mode_at(point: Point, rows: Rows, scalings: SampleScale, form: ErrorModel, data) -> Mode:
    """The mode in the user's units; data : what has x_names, w_names and scale_names"""
    labels = [
        *equation_labels(data),
        *(("ancillary", name) for name in ("atanh_rho", "log_sigma", *form.extra_labels)),
        *(("scale", name) for name in data.scale_names),
    ]
    found = estimates_at(point, rows, scalings)
    index = pd.MultiIndex.from_tuples(labels, names=["equation", "term"])
    params = pd.Series(found.vector, index)
    return Mode(rho=found.rho, loglik=float(found.loglik), status=found.status, params=params)


# Which coefficients change sign under other error models

RULE = "-" * 78
FORM_HEAD = ("  error model", "log-lik", "AIC-best", "weight", "rho", "status")
COEFFICIENT_HEAD = ("  coefficient", "normal", "lowest*", "highest*", "")
# A form that is ten units of AIC worse than the best one has hardly any weight.
CLOSE_AIC = 10.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FormResult(Mode):
    """An error model at its highest mode; if its name contains "sigma(x)", sigma varies with
    columns of x."""

    name: str
    aic_weight: float = float("nan")

    @property
    def n_params(self) -> int:
        return len(self.params)

    @property
    def aic(self) -> float:
        return 2 * self.n_params - 2 * self.loglik


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalForm:
    """A fit under several error models, the result of ``fit.functional_form()``.

    Attributes
    ----------
    forms : tuple of FormResult
        The error models, best first.
    terms : tuple of str
        The outcome terms that are compared.
    rows, rows_in_all : int
        How many rows were used, and how many there are.
    y_name : str
        Name of the outcome.
    """

    forms: tuple[FormResult, ...]
    terms: tuple[str, ...]
    rows: int
    rows_in_all: int
    y_name: str

    def to_frame(self) -> pd.DataFrame:
        """Table with one row per error model.

        Returns
        -------
        DataFrame
            ``loglik``, ``aic``, ``weight``, ``rho``, ``status``, then the coefficients.
        """
        columns = {
            "loglik": [form.loglik for form in self.forms],
            "aic": [form.aic for form in self.forms],
            "weight": [form.aic_weight for form in self.forms],
            "rho": [form.rho for form in self.forms],
            "status": [form.status for form in self.forms],
        }
        frame = pd.DataFrame(columns, index=pd.Index([f.name for f in self.forms], name="form"))
        coefficients = pd.DataFrame(self._coefficients, index=frame.index, columns=list(self.terms))
        return pd.concat([frame, coefficients], axis=1)

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """(forms, terms)"""
        return np.array(
            [[form.params["outcome", term] for term in self.terms] for form in self.forms]
        )

    @cached_property
    def weighed(self) -> tuple[str, ...]:
        """Names of the error models that are considered: those within 10 AIC units of the best or
        no worse than the normal model, except fits that ran out of iterations."""
        normal = next(form.aic for form in self.forms if form.name == GAUSSIAN.name)
        most = max(min(form.aic for form in self.forms) + CLOSE_AIC, normal)
        return tuple(
            form.name for form in self.forms if form.aic <= most and form.status != "max_iterations"
        )

    @cached_property
    def flips(self) -> tuple[str, ...]:
        """Terms whose coefficient changes sign between the error models that are considered."""
        low, high = self._ranges.T
        flipped = (low < 0) & (high > 0)
        return tuple(term for term, yes in zip(self.terms, flipped, strict=True) if yes)

    @property
    def _ranges(self) -> np.ndarray:
        """(terms, 2) smallest and largest coefficient over the error models that are considered."""
        some = self._coefficients[[form.name in self.weighed for form in self.forms]]
        return np.column_stack([some.min(axis=0), some.max(axis=0)])

    def __repr__(self) -> str:
        return f"<FunctionalForm: best {self.forms[0].name}, flips {list(self.flips)}>"

    def summary(self) -> str:
        """Error models, the range of every coefficient, and a sentence.

        Returns
        -------
        str
        """
        used = f"all {self.rows:,} rows"
        if self.rows < self.rows_in_all:
            used = f"{self.rows:,} of {self.rows_in_all:,} rows, drawn at random"
        lines = [f"Sensitivity to the error distribution: {self.y_name}, fitted on {used}", RULE]
        for row in (FORM_HEAD, *self._form_rows()):
            lines.append("{:<22}{:>14}{:>10}{:>8}{:>8}  {}".format(*row))
        lines.append(RULE)
        width = max(24, *(len(term) + 2 for term in self.terms))
        for term, *numbers, note in (COEFFICIENT_HEAD, *self._coefficient_rows()):
            lines.append(f"{term:<{width}}{''.join(f'{n:>12}' for n in numbers)}  {note}".rstrip())
        return "\n".join([*lines, RULE, *textwrap.wrap(self.sentence, len(RULE))])

    def _repr_html_(self) -> str:
        return block(
            heading("Sensitivity to the error distribution"),
            html_table(FORM_HEAD, list(self._form_rows()), left=("status",)),
            html_table(COEFFICIENT_HEAD, list(self._coefficient_rows()), left=("",)),
            paragraphs([self.sentence]),
        )

    def _form_rows(self):
        """The entries under FORM_HEAD."""
        for form in self.forms:
            behind = form.aic - self.forms[0].aic
            name = f"{'*' if form.name in self.weighed else ' '} {form.name}"
            numbers = (f"{form.loglik:.2f}", f"{behind:.1f}", f"{form.aic_weight:.3f}")
            yield name, *numbers, f"{form.rho:.3f}", form.status

    def _coefficient_rows(self):
        """The entries under COEFFICIENT_HEAD."""
        normal = next(form.params for form in self.forms if form.name == GAUSSIAN.name)
        for term, ends in zip(self.terms, self._ranges, strict=True):
            numbers = (f"{value:.4g}" for value in (normal["outcome", term], *ends))
            yield f"  {term}", *numbers, "changes sign" if term in self.flips else ""

    @property
    def sentence(self) -> str:
        """The finding in words."""
        among = (
            f"the {len(self.weighed)} error models marked * (within {CLOSE_AIC:g} AIC units of the "
            "best, or no worse than the normal model)"
        )
        best = f"The best error model is {self.forms[0].name}."
        values = [form.rho for form in self.forms if form.name in self.weighed]
        turns = min(values) < 0 < max(values)
        if not self.flips:
            dependence = "does" if turns else "does not change sign either"
            return (
                f"None of the coefficients changes sign among {among}; the dependence of the two "
                f"errors {dependence}. {best}"
            )
        verb = "changes" if len(self.flips) == 1 else "change"
        dependence = ", and so does the dependence of the two errors" if turns else ""
        return (
            f"{', '.join(self.flips)} {verb} sign among {among}{dependence}: these signs depend on "
            f"the assumed error distribution. {best}"
        )


def compare_forms(fit, terms, *, rows: int, seed: int) -> FunctionalForm:
    """Check, draw rows where there are many, fit every form, label the results."""
    if isinstance(fit.data, StreamedData):
        raise DataError(
            "functional_form() needs the rows of the fit, but this fit was read from files and has "
            "none; fit a frame with a sample of the rows"
        )
    if not fit.has_selection:
        raise DataError("every unit was selected, so the errors have no dependence to compare")
    if not (is_whole(rows) and is_whole(seed)) or rows < 1 or seed < 0:
        raise DataError(f"rows must be positive and seed not negative, got {rows!r}, {seed!r}")
    names = fit.data.x_names
    slopes = tuple(name for name in names if name != "Intercept")
    chosen = slopes if terms is None else tuple(as_list("terms", terms))
    for term in chosen:
        if term not in names:
            raise DataError(
                f"there is no outcome term {term!r}; the terms are {', '.join(map(repr, names))}"
            )
    weight = scaled_weight(fit.data.weight, fit.weight_kind)  # AIC needs a scale
    varying = replace(fit.data, weight=weight)
    if varying.scale is None:  # log sigma(x) with every outcome column
        columns = varying.x[:, [names.index(name) for name in slopes]]
        varying = replace(varying, scale=columns, scale_names=slopes)
    varying = _drawn(varying, rows, seed)
    data = replace(varying, scale=None, scale_names=())
    with threadpool_limits(1, user_api="blas"):
        fits = fit_forms(*standardised_sample(data), data)
        if varying.scale_names:
            fits = with_weights((*fits, *fit_forms(*standardised_sample(varying), varying)))
    fits = tuple(sorted(fits, key=lambda form: form.aic))
    return FunctionalForm(fits, chosen, data.n, fit.data.n, data.y_name)


def _drawn(data: SelectionData, rows: int, seed: int) -> SelectionData:
    if data.n <= rows:
        return data
    kept = np.sort(np.random.default_rng(seed).permutation(data.n)[:rows])
    part = data.take(kept)
    if part.s.all() or not part.s.any():
        kind = "selected" if part.s.all() else "unselected"
        raise DataError(f"all of the {rows} rows drawn are {kind}; increase rows=")
    try:
        check_estimable(part)
        check_scale(part)
    except DataError as error:
        raise DataError(f"among the {rows} rows drawn, {error}; or give more rows=") from None
    return part


def fit_forms(sample: Sample, scalings: SampleScale, data) -> tuple[FormResult, ...]:
    """Every error model by maximum likelihood, to standardised rows. If these have columns of log
    sigma(x), sigma varies with them. data : what has x_names, w_names and scale_names"""
    fits = []
    for form in ERROR_MODELS.values():
        best = search(form, sample, far_ends=False).modes[0]
        mode = mode_at(best, sample, scalings, form, data)
        name = f"{form.name}, sigma(x)" if data.scale_names else form.name
        fits.append(FormResult(**vars(mode), name=name))
    return with_weights(fits)


def with_weights(fits: Sequence[FormResult]) -> tuple[FormResult, ...]:
    """The same with their Akaike weights, exp(-AIC/2), normalised to sum to one."""
    aic = np.array([fit.aic for fit in fits])
    relative = np.exp(-0.5 * (aic - aic.min()))
    pairs = zip(fits, relative / relative.sum(), strict=True)
    return tuple(replace(fit, aic_weight=float(weight)) for fit, weight in pairs)
