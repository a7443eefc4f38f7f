"""The `ColumnPlan` of a model, read from the plain fields of a file."""

from typing import Any

import numpy as np
import pandas as pd

from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields
from heckesel.tables.preparation.column_plan import (
    MEANS,
    STEPS,
    TREND,
    ColumnEntry,
    ColumnPlan,
    Step,
    years_since,
)


def plan_of_fields(state: Fields) -> ColumnPlan:
    """The plan, with every field checked."""
    names, instruments = state.strings("names"), state.strings("instruments")
    steps = tuple(_step(Fields(each, "a step of the plan")) for each in state.items("steps"))
    entries = tuple(_entry(Fields(each, "an entry of the plan")) for each in state.items("entries"))
    if len(set(names)) != len(names) or not set(instruments) <= set(names):
        raise Damage("has a plan with a column twice, or an instrument that is not a column")
    if tuple(entry.name for entry in entries) != names:
        raise Damage("has a plan whose entries are not its columns")
    for step in steps:
        if step.source not in names:
            raise Damage(f"has a plan for a column {step.source!r:.60} that it does not have")
    return ColumnPlan(names, instruments, steps, entries)


def _step(state: Fields) -> Step:
    kind = state.text("kind", STEPS)
    strings: dict[str, Any] = {
        name: state.text(name) for name in ("name", "source", "other", "gap", "origin")
    }
    lists: dict[str, Any] = {
        name: state.strings(name) for name in ("gaps", "levels", "pooled", "merged")
    }
    step = Step(
        kind=kind,
        fill=state.number("fill"),
        means=tuple(state.items("means")),
        day_first=state.truth("day_first"),
        **strings,
        **lists,
    )
    numbers = all(type(each) is float and np.isfinite(each) for each in step.means)
    if not numbers or len(step.means) != (len(step.levels) if kind == MEANS else 0):
        raise Damage("has a plan whose means do not fit its levels")
    known = [*step.levels, *step.merged]
    repeated = len(set(known)) != len(known)
    if repeated or (step.is_category and not {step.other, step.gap} <= set(known)):
        raise Damage("has a plan with a level twice, or without the level of unseen ones")
    if step.is_category and not step.levels:
        raise Damage("has a plan for a category without levels")
    if kind == TREND:
        _check_origin(step.origin)
    return step


def _check_origin(origin: str) -> None:
    try:
        years_since(pd.Series(pd.to_datetime(["2000-01-01"])), origin)
    except (TypeError, ValueError, OverflowError):
        raise Damage(f"has a plan whose trend starts at {origin!r:.60}, which is no date") from None


def _entry(state: Fields) -> ColumnEntry:
    strings: dict[str, Any] = {
        name: state.text(name) for name in ("name", "role", "kind", "action")
    }
    return ColumnEntry(
        levels=state.integer("levels"),
        missing=state.number("missing"),
        acted=state.truth("acted"),
        **strings,
    )
