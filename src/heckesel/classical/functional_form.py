"""`fit.functional_form()`: which coefficients change sign under other error models."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import check_estimable, check_scale
from heckesel.classical.forms import Mode, mode_at, search
from heckesel.classical.likelihood import ERROR_MODELS, GAUSSIAN
from heckesel.classical.rows import Sample, SampleScale, standardised_sample
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData, scaled_weight
from heckesel.display import block, heading, html_table, paragraphs
from heckesel.errors import DataError, as_list, is_whole

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


def varying_name(form: str) -> str:
    """The name of an error model in which sigma varies with columns of x."""
    return f"{form}, sigma(x)"


def fit_forms(sample: Sample, scalings: SampleScale, data) -> tuple[FormResult, ...]:
    """Every error model by maximum likelihood, to standardised rows. If these have columns of log
    sigma(x), sigma varies with them. data : what has x_names, w_names and scale_names"""
    fits = []
    for form in ERROR_MODELS.values():
        best = search(form, sample, far_ends=False).modes[0]
        mode = mode_at(best, sample, scalings, form, data)
        name = varying_name(form.name) if data.scale_names else form.name
        fits.append(FormResult(**vars(mode), name=name))
    return with_weights(fits)


def with_weights(fits: Sequence[FormResult]) -> tuple[FormResult, ...]:
    """The same with their Akaike weights, exp(-AIC/2), normalised to sum to one."""
    aic = np.array([fit.aic for fit in fits])
    relative = np.exp(-0.5 * (aic - aic.min()))
    pairs = zip(fits, relative / relative.sum(), strict=True)
    return tuple(replace(fit, aic_weight=float(weight)) for fit, weight in pairs)
