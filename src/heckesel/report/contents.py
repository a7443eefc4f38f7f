"""Everything the page says, computed before anything is drawn."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pandas as pd

from heckesel import __version__
from heckesel.diagnostics.verdict import IDENTIFIED, NO_SELECTION, Identification
from heckesel.errors import DataError
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.linear.forms.error_models import GAUSSIAN
from heckesel.linear.forms.form_weights import CLOSE_AIC
from heckesel.linear.results.functional_form import FunctionalForm
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.report.changes import EVERYONE, Comparison, Group, compare
from heckesel.report.coefficient_table import ColumnShape, column_shapes, read_rows
from heckesel.report.formatting import Digits, digits_for
from heckesel.report.headline import Judgement, edge_reached, judge
from heckesel.report.held_out_check import Calibration, NotChecked, check_held_out
from heckesel.report.rho_section import OwnRho, RhoCurve, RhoValues, evidence_on_rho, own_rho

COEFFICIENT_LEVEL = 0.95
# Twelve fits of so many rows take seconds, and show any error model that is better by far.
ROWS_BESIDE_AN_INSTRUMENT = 5000


@dataclass(frozen=True)
class NotTried:
    reason: str


@dataclass(frozen=True)
class Contents:
    """edge : -1 or 1 where the fit ran to this rho, else None
    forms, coefficients : of a linear model where they apply, else None"""

    outcome: str
    method: str
    identification: Identification
    edge: float | None
    cases: int
    observed: int
    digits: Digits
    comparison: Comparison | None
    own_rho: OwnRho | None
    rho: RhoCurve | RhoValues | None
    calibration: Calibration | NotChecked
    forms: FunctionalForm | NotTried | None
    coefficients: pd.DataFrame | None
    columns: tuple[ColumnShape, ...]
    options: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def at_edge(self) -> bool:
        """Whether the fit ran to rho = +-1."""
        return self.edge is not None

    @property
    def judgement(self) -> Judgement:
        found = self.calibration
        holds = not isinstance(found, Calibration) or found.passed
        return judge(self.identification, edge=self.edge, holds=holds)

    def in_words(self, group: Group) -> str:
        """The direction of a change, where it has one."""
        if not group.clear:
            return "no clear difference"
        if self.digits(group.change).strip("−") == self.digits(0.0):
            return "the same"
        return "corrected is lower" if group.change < 0 else "corrected is higher"

    @property
    def forms_compared(self) -> str:
        """How the best of the other error models compares with the normal one."""
        assert isinstance(self.forms, FunctionalForm)
        best = self.forms.forms[0]
        normal = next(form for form in self.forms.forms if form.name == GAUSSIAN.name)
        behind = normal.aic - best.aic
        if behind < CLOSE_AIC:
            return "No other error model describes the data clearly better than the normal curve."
        return (
            f"{best.name} errors describe the data better than the normal ones of this model, by "
            f"{behind:,.0f} AIC units, where {CLOSE_AIC:g} are a clear difference: take intervals "
            "and chances of single cases with care."
        )

    @property
    def headline(self) -> str:
        """What the correction changed most, in a sentence."""
        if self.comparison is None:
            return "Every case has an outcome, so there is no naive fit to compare with."
        if self.at_edge:
            return f"To show what the correction would be, not to be used: {self._most}"
        return self._most

    @property
    def _most(self) -> str:
        assert self.comparison is not None
        everyone, digits = self.comparison.everyone, self.digits
        largest = self.comparison.largest
        if self.in_words(largest) == "the same":
            return "The correction changes nothing that these digits could show."
        if not largest.clear:
            return (
                "No clear difference: in every group the corrected prediction differs from the "
                f"naive one by less than its uncertainty. The widest difference, for the "
                f"{largest.cases:,} cases {_who(largest)}, is "
                f"{digits.change(largest.change, largest.doubt)}."
            )
        direction = "lower" if largest.change < 0 else "higher"
        return (
            f"For the {largest.cases:,} cases {_who(largest)} the corrected prediction of "
            f"{self.outcome} is {digits(abs(largest.change))} {direction} on average than the "
            f"naive one: {digits(largest.corrected)} instead of {digits(largest.naive)}. Over all "
            f"cases the change is {digits.change(everyone.change, everyone.doubt)}"
            f"{'' if everyone.clear else ', which is no clear difference'}."
        )


def report_contents(model, X, y, *, selected=None, sample_weight=None, baseline=None) -> Contents:
    """Predictions, refits and tests for the page. Takes a few times as long as the fit."""
    table = read_rows(model, X, y, selected=selected, sample_weight=sample_weight)
    linear = isinstance(model, HeckmanRegressor)
    comparison = compare(model, table, baseline)
    return Contents(
        outcome=model.outcome_name_,
        method=_method(model, linear),
        identification=model.identification_,
        edge=edge_reached(model),
        cases=table.n,
        observed=int(table.s.sum()),
        digits=digits_for(table.y[table.s]),
        comparison=comparison,
        own_rho=own_rho(model),
        rho=evidence_on_rho(model),
        calibration=check_held_out(model, table),
        forms=_forms(model) if linear else None,
        coefficients=_coefficients(model, comparison) if linear else None,
        columns=column_shapes(model, table),
        options=tuple((name, _shown(value)) for name, value in model.get_params().items()),
        versions=_versions(linear),
    )


def _who(group: Group) -> str:
    return "in all" if group.name == EVERYONE else f"that are {group.name}"


def _method(model, linear: bool) -> str:
    if model.identification_.verdict == NO_SELECTION:
        return "Least squares" if linear else "A plain ensemble of networks"
    outcome = "a linear outcome" if linear else "networks for the outcome"
    if model.method == "profile" and model.info_.get("outcome") == "spline":
        outcome = "splines for the outcome"
    if model.method == "averaged" and "splines" in model.info_.get("averaged", ()):
        outcome = "networks and splines for the outcome"
    ways = {
        "ml": "by maximum likelihood",
        "joint": "by joint likelihood",
        "averaged": "in two steps and by likelihood, averaged",
        "profile": "averaged over ρ",
    }
    return f"Heckman's model with {outcome}, {ways.get(model.method, 'in two steps')}"


def _forms(model) -> FunctionalForm | NotTried | None:
    """Other error models; on part of a long table where rho does not rest on them alone."""
    verdict = model.identification_.verdict
    if verdict == NO_SELECTION:
        return None
    if not isinstance(model.result_, HeckmanFit):
        return NotTried("the model comes from a file, which does not keep the rows of the fit")
    try:
        if verdict == IDENTIFIED:
            return model.result_.functional_form(rows=ROWS_BESIDE_AN_INSTRUMENT)
        return model.result_.functional_form()
    except DataError as error:  # rows drawn from a long table may not carry every column
        return NotTried(str(error))


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
    """The same text in every process: functions by name, never by address."""
    if isinstance(value, (tuple, list)):
        return ", ".join(_shown(item) for item in value) or "none"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text


def _versions(linear: bool) -> tuple[tuple[str, str], ...]:
    packages = ("numpy", "scipy", "pandas") + (() if linear else ("torch",))
    return (
        ("heckesel", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
    )
