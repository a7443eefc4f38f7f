"""The layout of the `ColumnPlan` of a model."""

import numpy as np
import pandas as pd

from heckesel.saving.codec import SPECIAL, Sizes, Special, layout_of, text
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.preparation.column_plan import (
    MEANS,
    STEPS,
    TREND,
    ColumnPlan,
    Step,
    years_since,
)


def plan_of_fields(state: Fields) -> ColumnPlan:
    """The plan, with every field checked."""
    return layout_of(ColumnPlan).read(state, {})


def _check_plan(plan: ColumnPlan, sizes: Sizes) -> None:
    names = plan.names
    if len(set(names)) != len(names) or not set(plan.instruments) <= set(names):
        raise Damage("has a plan with a column twice, or an instrument that is not a column")
    if tuple(entry.name for entry in plan.entries) != names:
        raise Damage("has a plan whose entries are not its columns")
    for step in plan.steps:
        if step.source not in names:
            raise Damage(f"has a plan for a column {step.source!r:.60} that it does not have")


def _check_step(step: Step, sizes: Sizes) -> None:
    numbers = all(type(each) is float and np.isfinite(each) for each in step.means)
    if not numbers or len(step.means) != (len(step.levels) if step.kind == MEANS else 0):
        raise Damage("has a plan whose means do not match its levels")
    known = [*step.levels, *step.merged]
    repeated = len(set(known)) != len(known)
    if repeated or (step.is_category and not {step.other, step.gap} <= set(known)):
        raise Damage("has a plan with a level twice, or without the level of unseen ones")
    if step.is_category and not step.levels:
        raise Damage("has a plan for a category without levels")
    if step.kind == TREND:
        _check_origin(step.origin)


def _check_origin(origin: str) -> None:
    try:
        years_since(pd.Series(pd.to_datetime(["2000-01-01"])), origin)
    except (TypeError, ValueError, OverflowError):
        raise Damage(
            f"has a plan whose trend starts at {origin!r:.60}, which is not a date"
        ) from None


SPECIAL["ColumnPlan"] = Special(check=_check_plan)
SPECIAL["Step"] = Special(
    {
        "kind": text(*STEPS),
        "means": lambda state, name, sizes: tuple(state.items(name)),
    },
    check=_check_step,
)
