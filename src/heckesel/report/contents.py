"""The contents of the page, computed before anything is drawn."""

import platform
import warnings
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pandas as pd

from heckesel import __version__
from heckesel.diagnostics.verdict import IDENTIFIED, NO_SELECTION, Identification
from heckesel.errors import DataError
from heckesel.linear.forms.error_models import ERROR_MODELS
from heckesel.linear.forms.form_fits import varying_name
from heckesel.linear.forms.form_weights import CLOSE_AIC
from heckesel.linear.results.functional_form import FunctionalForm
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.methods import method_of
from heckesel.plots.predictions_of import outcome_of, second_class
from heckesel.report.comparison import (
    EVERYONE,
    Comparison,
    Group,
    compare,
    nothing_to_compare,
)
from heckesel.report.formatting import Digits, digits_for
from heckesel.report.held_out_check import HeldOutCheck, check_held_out
from heckesel.report.naive_model import naive_fit
from heckesel.report.refits import NETWORK_FOLDS, NotChecked, Refits, refit_on_folds
from heckesel.report.report_data import (
    ColumnSummary,
    ReportData,
    read_report_data,
    summarise_columns,
)
from heckesel.report.rho_section import OwnRho, RhoCurve, RhoValues, evidence_on_rho, own_rho
from heckesel.report.verdict_box import VerdictBox, boundary_reached, verdict_box

COEFFICIENT_LEVEL = 0.95
# Fifteen fits to this many rows take seconds and show any error model that fits much better.
ROWS_WITH_INSTRUMENT = 5000


@dataclass(frozen=True)
class Contents:
    """predicted : the predicted quantity in words; event : whose probability it is, or None
    boundary : -1 or 1 if the estimate of rho is there, else None
    actions : what on_problem="fix" did, one sentence per column
    forms, coefficients : None unless the model is linear; error_model : the one of the fit, as
        `forms` names it
    """

    outcome: str
    predicted: str
    event: str | None
    scale: str
    method: str
    identification: Identification
    boundary: float | None
    cases: int
    observed: int
    digits: Digits
    comparison: Comparison | None
    own_rho: OwnRho | None
    rho: RhoCurve | RhoValues | None
    calibration: HeldOutCheck | NotChecked
    forms: FunctionalForm | NotChecked | None
    error_model: str | None
    coefficients: pd.DataFrame | None
    columns: tuple[ColumnSummary, ...]
    actions: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def verdict_box(self) -> VerdictBox:
        found = self.calibration
        passed = not isinstance(found, HeldOutCheck) or found.passed
        return verdict_box(self.identification, boundary=self.boundary, passed=passed)

    def in_words(self, group: Group) -> str:
        """The direction of a change, if it is clear."""
        if not self.verdict_box.usable:
            return "do not use"
        if not group.known:
            return "uncertainty unknown"
        if not group.clear:
            return "no clear difference"
        if self.digits(group.change).strip("−") == self.digits(0.0):
            return "the same"
        return "corrected is lower" if group.change < 0 else "corrected is higher"

    @property
    def forms_compared(self) -> str:
        """How the best error model compares with that of the fit."""
        assert isinstance(self.forms, FunctionalForm)
        best = self.forms.forms[0]
        used = next(form for form in self.forms.forms if form.name == self.error_model)
        behind = used.aic - best.aic
        if behind < CLOSE_AIC:
            return f"No other error model fits clearly better than {_errors(used.name)}."
        better = _errors(best.name)
        return (
            f"{better[0].upper()}{better[1:]} fit better than the {_errors(used.name)} of this "
            f"model, by {behind:,.0f} AIC units ({CLOSE_AIC:g} units are a clear difference). "
            "Use intervals and probabilities for single cases with caution."
        )

    @property
    def headline(self) -> str:
        """The largest change by the correction, in a sentence."""
        if self.comparison is None:
            return "Every case has an outcome, so there is no naive fit to compare with."
        if not self.verdict_box.usable:
            largest = self.comparison.largest
            return (
                "Do not use the corrected predictions. The numbers below only show what the model "
                f"would change: on average {self.digits.signed(largest.change)} for the "
                f"{largest.cases:,} cases {_who(largest)}."
            )
        return self._largest_change(self.comparison)

    def _largest_change(self, comparison: Comparison) -> str:
        everyone, largest, digits = comparison.everyone, comparison.largest, self.digits
        if self.in_words(largest) == "the same":
            return "The correction does not change the predictions at this precision."
        if largest.known and not largest.clear:
            return (
                "No clear difference: in every group corrected and naive predictions differ "
                f"by less than the uncertainty. The largest difference, for the "
                f"{largest.cases:,} cases {_who(largest)}, is "
                f"{digits.change(largest.change, largest.uncertainty)}."
            )
        direction = "lower" if largest.change < 0 else "higher"
        is_unclear = everyone.known and not everyone.clear
        unclear = ", which is not a clear difference" if is_unclear else ""
        unknown = (
            "" if largest.known else " The uncertainty of this difference could not be computed."
        )
        return (
            f"For the {largest.cases:,} cases {_who(largest)} the corrected {self.predicted} "
            f"is {digits(abs(largest.change))} {direction} on average than the "
            f"naive one: {digits(largest.corrected)} instead of {digits(largest.naive)}. Over all "
            f"cases the change is {digits.change(everyone.change, everyone.uncertainty)}{unclear}."
            f"{unknown}"
        )


def report_contents(model, X, y, *, baseline=None, **sides) -> Contents:
    """Predictions, refits and tests for the page; takes a few times as long as the fit.

    sides : selected, sample_weight and groups, as they were given to `fit`
    """
    with warnings.catch_warnings():  # every refit would repeat the warnings of the fit
        for said in ("on_problem='fix'", "column .* repeats", ".*did not occur in the fit"):
            warnings.filterwarnings("ignore", message=said)
        return _contents(model, read_report_data(model, X, y, **sides), baseline)


def _contents(model, data: ReportData, baseline) -> Contents:
    linear, classes = hasattr(model, "result_"), data.classes is not None
    naive = None
    if not nothing_to_compare(model, data):
        naive = naive_fit(model, data, baseline, members=None if linear else NETWORK_FOLDS)
    refits = refit_on_folds(model, data, naive)
    comparison = None
    if naive is not None:
        known = refits if isinstance(refits, Refits) else None
        comparison = compare(model, data, naive, known)
    packages = ("numpy", "scipy", "pandas") + (() if linear else ("torch",))
    return Contents(
        outcome=model.outcome_name_,
        predicted=outcome_of(model),
        event=second_class(model) if classes else None,
        scale=getattr(model, "scale_", model.outcome_name_),
        method=_method(model, linear) + _scale(model),
        identification=model.identification_,
        boundary=boundary_reached(model),
        cases=data.n,
        observed=int(data.s.sum()),
        digits=digits_for(data.y[data.s]),
        comparison=comparison,
        own_rho=own_rho(model),
        rho=evidence_on_rho(model),
        calibration=check_held_out(refits, data),
        forms=_forms(model) if linear and not classes else None,
        error_model=_error_model(model.result_) if linear and not classes else None,
        coefficients=_coefficients(model, comparison) if linear else None,
        columns=summarise_columns(model, data),
        actions=() if model.columns_.plan is None else model.columns_.plan.actions,
        options=tuple((name, _shown(value)) for name, value in model.get_params().items()),
        versions=(
            ("heckesel", __version__),
            ("Python", platform.python_version()),
            *((name, version(name)) for name in packages),
        ),
    )


def _who(group: Group) -> str:
    return "in total" if group.name == EVERYONE else f"that are {group.name}"


def _scale(model) -> str:
    """The end of a sentence that names the scale of coefficients, rho and sigma."""
    transform = getattr(model, "transform_", None)
    return "" if transform is None else f", fitted on the scale {model.scale_}"


def _method(model, linear: bool) -> str:
    classes = hasattr(model, "classes_")
    if model.identification_.verdict == NO_SELECTION:
        alone = "A probit" if classes else "Least squares"
        return alone if linear else "A plain ensemble of networks"
    if classes:
        outcome = "a linear index" if linear else "networks"
        return f"A probit with sample selection and {outcome} for the class"
    if linear:
        result = model.result_
        way = "by maximum likelihood" if result.method == "ml" else "in two steps"
        shape = {"t": " with t errors", "shape": " with skewed or heavy-tailed errors"}
        sigma = ", where σ varies with x" if result.data.scale_names else ""
        errors = shape.get(result.errors, "")
        return f"Heckman's model with a linear outcome, {way}{errors}{sigma}"
    info, outcome = model.fitted_.info, "networks for the outcome"
    if getattr(info, "explanation", None) is not None:
        return f"Heckman's model, chosen automatically. {model.explanation_.removesuffix('.')}"
    if getattr(info, "outcome", None) == "spline":
        outcome = "splines for the outcome"
    elif "splines" in (getattr(info, "averaged", None) or ()):
        outcome = "networks and splines for the outcome"
    return f"Heckman's model with {outcome}, {method_of(model).way}"


def _error_model(result) -> str:
    name = ERROR_MODELS[result.errors].name
    return varying_name(name) if result.data.scale_names else name


def _errors(form: str) -> str:
    """A name of `FunctionalForm` as a part of a sentence."""
    name, _, varying = form.partition(", ")
    kind = {"Gaussian": "normal", "Shape": "shape"}.get(name, name)
    return f"heteroskedastic {kind} errors" if varying else f"{kind} errors"


def _forms(model) -> FunctionalForm | NotChecked | None:
    """Other error models; with a strong instrument, on some of the rows only."""
    verdict = model.identification_.verdict
    if verdict == NO_SELECTION:
        return None
    if not isinstance(model.result_, HeckmanFit):
        return NotChecked("a saved model does not contain the rows of the fit")
    options = {"rows": ROWS_WITH_INSTRUMENT} if verdict == IDENTIFIED else {}
    try:
        return model.result_.functional_form(**options)
    except DataError as error:  # a sample of the rows may have collinear columns
        return NotChecked(str(error))


def _coefficients(model, comparison: Comparison | None) -> pd.DataFrame:
    """coef, se, z, p, low, high by (equation, term), and `naive` in the outcome equation."""
    frame = model.result_.to_frame(COEFFICIENT_LEVEL)
    naive = {} if comparison is None else comparison.naive.coefficients
    return frame.assign(
        naive=[
            naive.get(term, np.nan) if equation == "outcome" else np.nan
            for equation, term in frame.index
        ]
    )


def _shown(value) -> str:
    """The same string in every process: functions by name, not by address."""
    if isinstance(value, (tuple, list)):
        return ", ".join(_shown(item) for item in value) or "none"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text
