"""`ColumnPlan`: how the columns of a table become numbers and categories without gaps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heckesel.errors import DataError, did_you_mean, warn_user
from heckesel.numeric_input import check_scalars
from heckesel.tables.preparation.raw_values import dates_in, labels_of, numbers_in

NUMBER, CATEGORY, MEANS, MISSING = "number", "category", "means", "missing"
TREND, MONTH, WEEKDAY = "trend", "month", "weekday"
DATE_PARTS = (TREND, MONTH, WEEKDAY)
STEPS = (NUMBER, CATEGORY, MEANS, MISSING, *DATE_PARTS)
WEEKDAYS = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
DAYS_PER_YEAR = 365.25


@dataclass(frozen=True)
class Step:
    """The rule by which one prepared column is made from a column of the table.

    kind : number; category; means, a category as the mean of a target; missing, an indicator;
        or trend (in years), month or weekday of a date
    fill : the imputed value; for means, also that of unseen levels
    gaps : words that mean a missing value
    levels : of a category after preparation; of means, those with a mean
    other : the level of rare and unseen ones; gap : the level where the value is missing
    pooled : rare levels, and those without a mean
    merged : levels that are treated as the first, since other columns determine them
    origin : first date of a trend; day_first : whether 1/2/2013 is in February
    """

    name: str
    source: str
    kind: str
    fill: float = 0.0
    gaps: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    other: str = ""
    gap: str = ""
    pooled: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    origin: str = ""
    day_first: bool = False

    def check_loaded(self) -> None:
        """Refuse a rule that contradicts itself."""
        known = (*self.levels, *self.merged)
        if self.kind not in STEPS or not np.isfinite((self.fill, *self.means)).all():
            raise ValueError(f"a rule of kind {self.kind!r}, or with a value that is not finite")
        if len(self.means) != (len(self.levels) if self.kind == MEANS else 0):
            raise ValueError("means that do not match the levels")
        if len(set(known)) != len(known):
            raise ValueError("a level twice")
        if self.is_category and not (self.levels and {self.other, self.gap} <= set(known)):
            raise ValueError("a category without the level of unseen values")
        if self.kind == TREND:
            years_since(pd.Series(pd.to_datetime(["2000-01-01"])), self.origin)

    @property
    def is_category(self) -> bool:
        return self.kind in (CATEGORY, MONTH, WEEKDAY)


@dataclass(frozen=True)
class ColumnEntry:
    """One column of the table: what it is, and what is done with it.

    levels : different values; missing : share of the rows; acted : whether the plan changes it
    """

    name: str
    role: str
    kind: str
    levels: int
    missing: float
    action: str
    acted: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.action}"


@dataclass(frozen=True)
class Filled:
    """A prepared column, and the rows with a missing, unreadable or unseen value."""

    values: pd.Series
    absent: np.ndarray
    unreadable: np.ndarray
    unseen: np.ndarray


@dataclass(frozen=True)
class ColumnPlan:
    """names, instruments : columns of the table; entries : one per column, in their order"""

    names: tuple[str, ...]
    instruments: tuple[str, ...]
    steps: tuple[Step, ...]
    entries: tuple[ColumnEntry, ...]

    def check_loaded(self) -> None:
        """Refuse a plan for other columns than its own."""
        known = set(self.names)
        if len(known) != len(self.names) or not set(self.instruments) <= known:
            raise ValueError("a column twice, or an instrument that is not a column")
        if tuple(entry.name for entry in self.entries) != self.names:
            raise ValueError("entries that are not its columns")
        if not {step.source for step in self.steps} <= known:
            raise ValueError("a rule for a column that it does not have")

    @property
    def actions(self) -> tuple[str, ...]:
        """One sentence for each column that is changed or omitted."""
        return tuple(str(entry) for entry in self.entries if entry.acted)

    @property
    def clean_instruments(self) -> tuple[str, ...]:
        """Instruments among the prepared columns."""
        return tuple(step.name for step in self.steps if step.source in self.instruments)

    @property
    def varied(self) -> tuple[str, ...]:
        """Columns of the table whose values have a meaning by themselves: neither omitted nor
        dates."""
        known = {step.source for step in self.steps if step.kind in (NUMBER, CATEGORY, MEANS)}
        return tuple(name for name in self.names if name in known)

    def with_numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table in which numbers written as strings are converted to numbers."""
        found = {
            step.source: numbers_in(frame[step.source], step.gaps)[0]
            for step in self.steps
            if step.kind == NUMBER
            and step.source in frame.columns
            and not pd.api.types.is_numeric_dtype(frame[step.source])
        }
        return frame.assign(**found)

    def apply(self, frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
        """The prepared columns `names` of a table."""
        found, notes, empty = {}, {}, np.ones(len(frame), dtype=bool)
        for step, filled in self.filled(frame, names):
            found[step.name] = filled.values
            empty &= filled.absent & (step.kind != MISSING)  # an indicator says so
            for rows, what in (
                (filled.unseen, "a level that did not occur in the fit"),
                (filled.unreadable, "a value that cannot be read, treated as missing"),
            ):
                if rows.any():
                    notes[step.source] = f"{step.source}: {rows_have(rows.sum())} {what}"
        if found and empty.any():
            notes[""] = f"{rows_have(empty.sum())} no value in the columns of the prediction"
        if notes:
            warn_user(". ".join(notes.values()), UserWarning)
        return pd.DataFrame(found, frame.index)

    def filled(self, frame: pd.DataFrame, names: Iterable[str]) -> Iterator[tuple[Step, Filled]]:
        """Each of the columns `names`, with the rows that had no usable value."""
        wanted = set(names)
        for step in self.steps:
            if step.name not in wanted:
                continue
            if step.source not in frame.columns:
                role = "instrument" if step.source in self.instruments else "column"
                hint = did_you_mean(step.source, frame.columns)
                raise DataError(f"X lacks the {role} {step.source!r} of the fit{hint}")
            column = frame[step.source]
            if column.dtype == object:
                check_scalars(column, step.source)
            yield step, fill_column(step, column)


def rows_have(count: int) -> str:
    """The start of a sentence about so many rows."""
    return f"{count:,} row{'s have' if count > 1 else ' has'}"


def fill_column(step: Step, column: pd.Series) -> Filled:
    """The prepared column; a value that cannot be read is treated as missing."""
    nothing = np.zeros(len(column), dtype=bool)
    if step.kind in (NUMBER, MISSING):
        numbers, bad = numbers_in(column, step.gaps)
        absent = np.isnan(numbers)
        values = absent.astype(float) if step.kind == MISSING else _imputed(numbers, step.fill)
        return Filled(pd.Series(values, column.index), absent & ~bad, bad, nothing)
    if step.kind == MEANS:
        labels = labels_of(column)
        codes = pd.Index(step.levels, dtype=object).get_indexer(pd.Index(labels.fillna("")))
        values = np.append(step.means, step.fill)[codes]
        absent = labels.isna().to_numpy()
        unseen = (codes < 0) & ~absent & ~labels.isin(step.pooled).to_numpy()
        return Filled(pd.Series(values, column.index), absent, nothing, unseen)
    if step.kind == CATEGORY:
        labels, bad = labels_of(column), nothing
    else:
        dates, bad = dates_in(column, day_first=step.day_first)
        if step.kind == TREND:
            years = years_since(dates, step.origin)
            absent = np.isnan(years)
            values = pd.Series(_imputed(years, step.fill), column.index)
            return Filled(values, absent & ~bad, bad, nothing)
        labels = date_labels(dates, step.kind)
    absent = labels.isna().to_numpy()
    names = [*step.levels, *step.merged]
    codes = pd.Index(names, dtype=object).get_indexer(pd.Index(labels))
    unseen = (codes < 0) & ~absent & ~labels.isin(step.pooled).to_numpy()
    codes[codes < 0] = names.index(step.other)
    codes[absent] = names.index(step.gap)
    codes = np.where(codes >= len(step.levels), 0, codes)
    values = pd.Series(pd.Categorical.from_codes(codes, pd.Index(step.levels)), column.index)
    return Filled(values, absent & ~bad, bad, unseen)


def years_since(dates: pd.Series, origin: str) -> np.ndarray:
    """(n,) years, NaN where there is no date."""
    return ((dates - pd.Timestamp(origin)) / pd.Timedelta(days=DAYS_PER_YEAR)).to_numpy(dtype=float)


def date_labels(dates: pd.Series, part: str) -> pd.Series:
    """Months as 01 to 12, or days of the week; None where there is no date."""
    known = dates.notna().to_numpy()
    labels = np.full(len(dates), None, dtype=object)
    if part == WEEKDAY:
        labels[known] = WEEKDAYS[dates[known].dt.day_of_week.to_numpy()]
    else:
        labels[known] = dates[known].dt.strftime("%m").to_numpy(dtype=object)
    return pd.Series(labels, dates.index, dtype=object)


def _imputed(values: np.ndarray, fill: float) -> np.ndarray:
    return np.where(np.isnan(values), fill, values)


def without_term(plan: ColumnPlan, term: str, reason: str) -> ColumnPlan:
    """The plan without one term of the equations: a number, or one level of a category.

    reason : why, as the end of a sentence
    """
    for place, step in enumerate(plan.steps):
        prefix, levels = f"{step.name}[", step.levels
        level = term.removeprefix(prefix).removesuffix("]") if term.startswith(prefix) else None
        whole = term == step.name and not step.is_category
        if whole or (step.is_category and level in levels[1:]):
            rest = list(plan.steps)
            if whole or len(levels) == 2:
                rest.pop(place)
                done = f"{step.name} omitted, since it {reason}"
            else:
                assert level is not None
                left = tuple(each for each in levels if each != level)
                rest[place] = replace(step, levels=left, merged=(*step.merged, level))
                done = f"level {level} treated as {levels[0]}, since {term} {reason}"
            entries = tuple(
                _also(entry, done, whole_column=step.name == entry.name)
                if entry.name == step.source
                else entry
                for entry in plan.entries
            )
            return replace(plan, steps=tuple(rest), entries=entries)
    raise DataError(f"the term {term!r} {reason}; drop its column from X")


def _also(entry: ColumnEntry, done: str, *, whole_column: bool) -> ColumnEntry:
    if whole_column and " omitted, " in done:
        done = done.removeprefix(f"{entry.name} ")
        return replace(entry, action=done, acted=True)
    action = f"{entry.action}; {done}" if entry.acted else done
    return replace(entry, action=action, acted=True)


def reduced(frame: pd.DataFrame, plan: ColumnPlan) -> pd.DataFrame:
    """The columns of a fit, after terms were removed from the plan."""
    found = {}
    for step in plan.steps:
        column = frame[step.name]
        if step.is_category and tuple(column.cat.categories) != step.levels:
            kept = column.astype(object).where(column.isin(step.levels), step.levels[0])
            column = pd.Series(pd.Categorical(kept, list(step.levels)), frame.index)
        found[step.name] = column
    return pd.DataFrame(found, frame.index)
