"""Learns a `ColumnPlan` from a table: one pass over its columns finds every problem.

Columns are read in their order, instruments last, so that of two equal columns the instrument is
the one that is omitted.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from heckesel.data import MISSING_INDICATOR
from heckesel.errors import DataError
from heckesel.tables.preparation import raw_values as raw
from heckesel.tables.preparation.column_plan import (
    CATEGORY,
    MEANS,
    MISSING,
    MONTH,
    NUMBER,
    TREND,
    WEEKDAY,
    ColumnEntry,
    ColumnPlan,
    Step,
    date_labels,
    fill_column,
    years_since,
)
from heckesel.tables.preparation.mean_encoding import cross_fitted_means

OTHER, ABSENT = "other", "missing"
# A level needs so many selected and so many unselected rows for a separate coefficient. Of 3, 5,
# 10, 20 and 40 rows, 10 lost the least held-out log-likelihood over five public tables.
# In simulations 40 is best if levels hardly differ, and 3 if they
# differ by as much as the errors do.
FEWEST_ROWS = 10
# Columns with more levels are encoded by means; also those of which `other` would be the most.
MOST_LEVELS = 40
# Strings of which more than half are distinct identify units and contain nothing about others
# like it. Below so many values it may still be chance.
FEWEST_NAMES = 20
NUMBERED = 0.95  # share of distinct values in a column that numbers the units
TEXT_LENGTH = 30  # characters: longer strings are sentences
# By what pandas calls them.
UNREADABLE_KINDS = {
    "time": "times of day",
    "timedelta": "durations",
    "timedelta64": "durations",
    "complex": "complex numbers",
    "bytes": "bytes",
}
ID_NAME = re.compile(r"(^|[_. ])(id|key|uuid|guid|seqn|index|row_?names?)$|[a-z]I[dD]$", re.I)


@dataclass
class _Learning:
    """The state of the table while its columns are read.

    kept : columns of the clean frame; seen : digest of a column -> its name
    indicated : missing indicator -> the rows where it is 1
    """

    y: np.ndarray
    s: np.ndarray
    instruments: tuple[str, ...]
    groups: np.ndarray | None = None
    steps: list[Step] = field(default_factory=list)
    kept: dict[str, pd.Series] = field(default_factory=dict)
    seen: dict[bytes, str] = field(default_factory=dict)
    indicated: dict[str, np.ndarray] = field(default_factory=dict)

    def keep(self, step: Step, column: pd.Series, values: pd.Series | None = None) -> None:
        """values : for the fit, where they differ from those for predictions"""
        self.steps.append(step)
        self.kept[step.name] = fill_column(step, column).values if values is None else values

    def enough(self, selected, unselected):
        """Whether so many rows determine a coefficient in both equations."""
        return (selected >= FEWEST_ROWS) & (self.s.all() | (unselected >= FEWEST_ROWS))


def learn_plan(
    frame: pd.DataFrame, y: np.ndarray, s: np.ndarray, instruments: Sequence[str], groups=None
) -> tuple[ColumnPlan, pd.DataFrame]:
    """The plan, and the columns that the model is fitted to.

    y : (n,) the outcome, NaN where it is not observed; s : (n,) bool; groups : (n,) codes of units
    that depend on one another, or None
    """
    chosen = tuple(instruments)
    learning = _Learning(y, s, chosen, groups)
    order = [*(name for name in frame.columns if name not in chosen), *chosen]
    entries = {name: _learn_column(learning, name, frame[name]) for name in order}
    names = tuple(frame.columns)
    plan = ColumnPlan(names, chosen, tuple(learning.steps), tuple(entries[name] for name in names))
    return plan, pd.DataFrame(learning.kept, frame.index)


def check_plan(plan: ColumnPlan) -> None:
    """Refuse a plan that leaves no instrument where there was one, or no other column."""
    if plan.instruments and not plan.clean_instruments:
        reasons = [str(each) for each in plan.entries if each.name in plan.instruments]
        raise DataError(
            f"no instrument can be used ({'; '.join(reasons)}), and without one the correction "
            "rests on the functional form; name another instrument, or none"
        )
    if len(plan.clean_instruments) == len(plan.steps):
        raise DataError(
            "no column is left to predict the outcome from: "
            + "; ".join(str(each) for each in plan.entries if each.name not in plan.instruments)
        )


def _learn_column(learning: _Learning, name: str, column: pd.Series) -> ColumnEntry:
    found = raw.raw_kind(column)
    role = "instrument" if name in learning.instruments else "both equations"

    def entry(kind, levels, absent, action, *, acted=True):
        return ColumnEntry(name, role, kind, int(levels), float(np.mean(absent)), action, acted)

    if found.kind == raw.EMPTY:
        return entry(raw.EMPTY, 0, 1.0, "omitted, since it has no value")
    if found.kind == raw.UNREADABLE:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        held = UNREADABLE_KINDS.get(
            kind, f"values of type {type(column.dropna().iloc[0]).__name__}"
        )
        what = f"it holds {held}, which are neither numbers nor categories"
        return entry(raw.UNREADABLE, column.notna().sum(), column.isna(), f"omitted, since {what}")
    values = _read(found, column)
    absent = values.isna().to_numpy()
    codes, levels = pd.factorize(values)
    if not len(levels):
        return entry(raw.EMPTY, 0, 1.0, "omitted, since it has no value that can be read")
    reason = _useless(learning, name, found, values, absent, levels)
    if reason is not None:
        return entry(reason[0], len(levels), absent, f"omitted, since {reason[1]}")
    twin = _twin(learning, name, found, values, codes)
    if twin is not None:
        return entry(raw.DUPLICATE, len(levels), absent, f"omitted, since it equals {twin}")
    actions = _USE[found.kind](learning, name, column, found, values, absent)
    used = {raw.NUMBER: "used as a number", raw.DATE: "used as a date"}
    plain = used.get(found.kind, f"used as a category of {len(levels)} levels")
    return entry(found.kind, len(levels), absent, "; ".join(actions) or plain, acted=bool(actions))


def _read(found: raw.RawKind, column: pd.Series) -> pd.Series:
    """Numbers, dates or strings, missing where there is none."""
    if found.kind == raw.NUMBER:
        return pd.Series(raw.numbers_in(column, found.gaps)[0], column.index)
    if found.kind == raw.DATE:
        return raw.dates_in(column, day_first=found.day_first)[0]
    return raw.labels_of(column)


def _useless(learning, name, found, values, absent, levels) -> tuple[str, str] | None:
    """The kind of a column that no model can use, and why."""
    s = learning.s
    if len(levels) == 1 and (not absent.any() or found.kind == raw.DATE):
        value = f"{levels[0]:g}" if found.kind == raw.NUMBER else levels[0]
        return raw.CONSTANT, f"it is constant ({value})"
    if absent.any() and not absent[s].any() and absent[~s].mean() > 0.5:
        share = f"{100 * absent[~s].mean():.0f} %"
        return found.kind, (
            f"it is missing in no selected row and in {share} of the unselected rows, so it is a "
            "consequence of selection"
        )
    if found.kind == raw.CATEGORY and len(levels) > max(FEWEST_NAMES, (~absent).sum() / 2):
        long = np.mean([len(str(each)) for each in levels[:1000]]) > TEXT_LENGTH
        kind = raw.TEXT if long else raw.IDENTIFIER
        return kind, f"it has {len(levels):,} different strings in {(~absent).sum():,} rows"
    if found.kind == raw.NUMBER and _is_identifier(name, values, absent, levels):
        return raw.IDENTIFIER, "its values are row numbers or unit names"
    if found.kind == raw.NUMBER and _repeats_outcome(values[s].to_numpy(), learning.y[s]):
        return raw.DUPLICATE, "it is the outcome, perhaps on another scale, in all selected rows"
    return None


def _repeats_outcome(values: np.ndarray, y: np.ndarray) -> bool:
    """Whether the values have the order of y, or the reverse, with ties in the same rows."""
    if np.isnan(values).any():
        return False
    levels, codes = np.unique(y, return_inverse=True)
    own, of_values = np.unique(values, return_inverse=True)
    if len(levels) <= FEWEST_NAMES or len(own) != len(levels):
        return False
    last = len(levels) - 1
    return np.array_equal(codes, of_values) or np.array_equal(codes, last - of_values)


def _is_identifier(name: str, values: pd.Series, absent, levels) -> bool:
    """Whole numbers that count the rows, perhaps with gaps, or most of which differ in a column
    called id."""
    if absent.any() or len(levels) <= FEWEST_NAMES or (values % 1 != 0).any():
        return False
    if len(levels) >= NUMBERED * len(values) and values.max() - values.min() < 2 * len(values):
        return True
    return ID_NAME.search(name) is not None and len(levels) > len(values) / 2


def _twin(learning: _Learning, name: str, found, values: pd.Series, codes) -> str | None:
    """An earlier column that is equal, or has the same levels under other names."""
    kind, same = found.kind, values.to_numpy()
    if kind in (raw.CATEGORY, raw.ORDERED):
        kind, same = raw.CATEGORY, codes.astype(np.int64)
    digest = hashlib.blake2b(kind.encode() + np.ascontiguousarray(same).tobytes()).digest()
    return None if (first := learning.seen.setdefault(digest, name)) == name else first


def _use_number(learning: _Learning, name, column, found, values, absent) -> list[str]:
    numbers = values.to_numpy()
    actions = []
    if found.gaps:
        actions.append(f"{' and '.join(map(repr, found.gaps))} treated as missing")
    if np.isnan(numbers).sum() > column.isna().sum() and not found.gaps:
        actions.append("values that are not finite numbers treated as missing")
    if (numbers[~absent] == numbers[~absent][0]).all():  # with gaps
        learning.keep(Step(name, name, MISSING, gaps=found.gaps), column)
        return [*actions, f"used as an indicator of missing values ({numbers[~absent][0]:g} else)"]
    step = Step(name, name, NUMBER, fill=float(numbers[~absent].mean()), gaps=found.gaps)
    learning.keep(step, column)
    if absent.any():
        imputed = f"{_gaps(absent)} imputed by the mean"
        if learning.enough(absent[learning.s].sum(), absent[~learning.s].sum()):
            indicator = Step(f"{name}{MISSING_INDICATOR}", name, MISSING, gaps=found.gaps)
            imputed += _indicated(learning, indicator, column, absent)
        actions.append(imputed)
    return actions


def _indicated(learning: _Learning, step: Step, column, absent) -> str:
    """Add an indicator, unless too few rows distinguish it from an earlier one."""
    s = learning.s
    for name, earlier in learning.indicated.items():
        differs = absent != earlier
        if not learning.enough(differs[s].sum(), differs[~s].sum()):
            return f", with the indicator {name}"
    learning.indicated[step.name] = absent
    learning.keep(step, column)
    return ", with a missing indicator"


def _use_date(learning: _Learning, name, column, found, values, absent) -> list[str]:
    origin = str(values.min())
    how = {"origin": origin, "day_first": found.day_first}
    years = years_since(values, origin)
    trend = Step(f"{name}[{TREND}]", name, TREND, fill=float(np.nanmean(years)), **how)
    learning.keep(trend, column)
    used = ["trend in years"]
    for part in (MONTH, WEEKDAY):
        labels = date_labels(values, part)
        if labels.nunique() > 1:
            step, _ = _category(learning, f"{name}[{part}]", name, part, labels, **how)
            if step is not None and len(step.levels) > 1:
                learning.keep(step, column)
                used.append(part)
    actions = [f"turned into {', '.join(used)}"]
    if absent.any():
        actions.append(f"{_gaps(absent, 'date')} imputed by the mean")
    return actions


def _use_category(learning: _Learning, name, column, found, values, absent) -> list[str]:
    step, actions = _category(learning, name, name, CATEGORY, values)
    if found.code:
        actions.insert(0, f"codes such as {found.code} taken for categories")
    if step is None:
        return [*actions, *_use_means(learning, name, column, values)]
    if len(step.levels) == 1:
        return [f"omitted, since only the level {step.levels[0]} has enough rows", *actions]
    learning.keep(step, column)
    return actions


def _category(
    learning: _Learning, name: str, source: str, kind: str, labels: pd.Series, **how
) -> tuple[Step | None, list[str]]:
    """The step of a category with rare levels pooled, and a description of it.

    None where means are better: too many levels, or most rows in levels that are too rare.
    """
    s = learning.s
    given = labels.where(labels.notna(), ABSENT)
    counts = pd.DataFrame({"in": given[s].value_counts(), "out": given[~s].value_counts()})
    counts = counts.fillna(0).astype(int)
    few = ~learning.enough(counts["in"], counts["out"]) & (len(counts) > 2)
    total = counts.sum(axis=1)
    kept, rare = sorted(total.index[~few]), sorted(total.index[few])
    if kind == CATEGORY and (len(kept) > MOST_LEVELS or total[rare].sum() > len(given) / 2):
        return None, []
    if not kept:
        return None, []
    pooled = counts.loc[rare].sum()
    enough = learning.enough(pooled["in"], pooled["out"])
    common = str(total[[each for each in kept if each != ABSENT] or kept].idxmax())
    other = OTHER if rare and enough else OTHER if OTHER in kept else common
    levels = tuple(kept) if other in kept else (*kept, other)
    gap = ABSENT if ABSENT in levels else other
    rest = tuple(each for each in rare if each not in levels)
    step = Step(name, source, kind, levels=levels, pooled=rest, other=other, gap=gap, **how)
    return step, _pooling(rare, counts, other, labels)


def _pooling(rare: list[str], counts: pd.DataFrame, other: str, labels: pd.Series) -> list[str]:
    actions = []
    names = [each for each in rare if each != ABSENT]
    if names:
        shown = ", ".join(map(str, names[:3])) + (", ..." if len(names) > 3 else "")
        pooled = counts.loc[names]
        levels = f"level{'s' * (len(names) > 1)}"
        what = f"rare {levels}"
        for side, few in (("in", "unselected"), ("out", "selected")):
            if (pooled[side] >= FEWEST_ROWS).all():
                what = f"{levels} with few {few} rows"
        rows = f"{pooled.to_numpy().sum():,} rows"
        actions.append(f"{len(names)} {what} ({shown}; {rows}) treated as {other}")
    if labels.isna().any():
        used = f"treated as {other}" if ABSENT in rare else "used as a level"
        actions.append(f"{_gaps(labels.isna())} {used}")
    return actions


def _gaps(absent, what: str = "value") -> str:
    count = int(np.count_nonzero(absent))
    return f"{count:,} missing {what}{'s' * (count > 1)}"


def _use_means(learning: _Learning, name, column, labels: pd.Series) -> list[str]:
    instrument = name in learning.instruments
    target = learning.s.astype(float) if instrument else learning.y
    known = np.ones(len(target), dtype=bool) if instrument else learning.s
    fitted, means, overall = cross_fitted_means(labels, target, known, learning.groups)
    levels, values = tuple(means), tuple(means.values())
    rest = tuple(sorted(set(labels.dropna()) - set(levels)))
    step = Step(name, name, MEANS, fill=overall, levels=levels, means=values, pooled=rest)
    learning.keep(step, column, pd.Series(fitted, column.index))
    what = "the share of selected rows" if instrument else "the mean outcome"
    return [f"{labels.nunique():,} levels encoded by {what} at each level (cross-fitted)"]


_USE = {
    raw.NUMBER: _use_number,
    raw.DATE: _use_date,
    raw.CATEGORY: _use_category,
    raw.ORDERED: _use_category,
}
