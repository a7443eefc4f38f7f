"""How the columns of X become the numbers of x and w: steps learned in the fit, applied afterwards.

x has every column but the instruments, w has all of them. A category becomes one 0/1 column per
level; w, and x of a linear outcome, omit the first level. Neither x nor w has a constant column.

Strictly (on_problem="error"), a missing value or a level that did not occur in the fit raises an
error. With missing="indicator" the mean of the fit is imputed (a category: no level) and a 0/1
column `name[missing]` indicates it. With on_problem="fix" (`heckesel.tables.problems` learns the
steps) there is no such error: missing values are imputed, and unseen levels are treated as `other`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from heckesel.data import MISSING_INDICATOR, check_scalars, term_names, unmasked
from heckesel.errors import ColumnError, DataError, as_list, did_you_mean, is_one_of, warn_user
from heckesel.tables import values as raw
from heckesel.tables.frames import as_pandas, numbers_of

NUMBER, CATEGORY, MISSING = "number", "category", "missing"
TREND, MONTH, WEEKDAY = "trend", "month", "weekday"
DATE_PARTS = (TREND, MONTH, WEEKDAY)
STEPS = (NUMBER, CATEGORY, MISSING, *DATE_PARTS)
MISSING_OPTIONS = ("error", "indicator")
OTHER, ABSENT = "other", "missing"  # levels
WEEKDAYS = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
DAYS_PER_YEAR = 365.25
MOST_DENSE_BYTES = 2 * 2**30  # of a sparse X; a fit holds several copies
# Strings of which more than half are distinct identify units and contain nothing about others
# like it. Below so many values it may still be chance.
FEWEST_NAMES = 20
EMPTY = "no column has a value"


@dataclass(frozen=True)
class Filled:
    """The numbers of a step, (m,), or the places of levels, -1 for one that is neither known nor
    OTHER; and the rows with a missing, unreadable or unseen value."""

    values: np.ndarray
    absent: np.ndarray
    unreadable: np.ndarray
    unseen: np.ndarray


@dataclass(frozen=True)
class Step:
    """The rule by which columns of x and w are made from a column of the table.

    kind : number; category; missing, an indicator; or trend (in years), month or weekday of a date
    instrument : whether x omits it
    strict : whether values that were not in the fit raise an error
    fill : the imputed value of a number or a trend; None if a missing value raises an error, and 0
        for a category without an error
    gaps : words that mean a missing value
    levels : of a category; OTHER is that of rare and unseen ones, ABSENT that of missing ones
    shares : of the levels in the fit, which stand for a level that is neither known nor OTHER
    pooled : rare levels, which are OTHER; merged : levels that are treated as the first, since
        other columns determine them
    origin : first date of a trend; day_first : whether 1/2/2013 is in February
    """

    name: str
    source: str
    kind: str
    instrument: bool = False
    strict: bool = False
    fill: float | None = None
    gaps: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    pooled: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    origin: str = ""
    day_first: bool = False

    @property
    def is_category(self) -> bool:
        return self.kind in (CATEGORY, MONTH, WEEKDAY)

    def terms(self, skipped: int) -> tuple[str, ...]:
        """Names of its columns; skipped : how many levels are omitted"""
        if not self.is_category:
            return (self.name,)
        return tuple(f"{self.name}[{level}]" for level in self.levels[skipped:])

    def read(self, column: pd.Series, *, indicated: bool = False) -> Filled:
        """The numbers of a column of a table; indicated : whether some column has an indicator"""
        if column.dtype == object:
            check_scalars(column, self.source)
        nothing = np.zeros(len(column), dtype=bool)
        if self.is_category:
            return self._read_levels(column, nothing, indicated)
        if self.kind == MISSING and self.strict:
            numbers, bad = np.where(missing_in(column), np.nan, 0.0), nothing
        elif self.kind == TREND:
            dates, bad = raw.dates_in(column, day_first=self.day_first)
            numbers = years_since(dates, self.origin)
        elif self.strict:
            numbers, bad = self._strict_numbers(column, indicated), nothing
        else:
            numbers, bad = raw.numbers_in(column, self.gaps)
        absent = np.isnan(numbers)
        if self.kind == MISSING:
            numbers = absent.astype(float)
        elif absent.any():
            assert self.fill is not None  # else a missing value was an error
            numbers = np.where(absent, self.fill, numbers)
        return Filled(numbers, absent & ~bad, bad, nothing)

    def _strict_numbers(self, column: pd.Series, indicated: bool) -> np.ndarray:
        absent = column.isna().to_numpy()
        try:
            numbers = numbers_of(column, self.source)
        except DataError as error:
            raise ColumnError(str(error)) from None
        self._refuse_missing(absent | np.isnan(numbers), indicated)
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            row = infinite[0]
            raise ColumnError(
                f"column {self.source!r} is {numbers[row]} in row {row}; remove the row"
            )
        return numbers

    def _refuse_missing(self, absent: np.ndarray, indicated: bool) -> None:
        rows = np.flatnonzero(absent)
        if self.fill is not None or not len(rows):
            return
        way_out = "fill or drop them, or fit with missing='indicator'"
        if indicated:
            way_out = (
                "it had no missing value in the fit, so there is no value to impute; fill or drop "
                "them"
            )
        raise ColumnError(
            f"column {self.source!r} is missing (NaN) in {len(rows)} row{'s' * (len(rows) > 1)} "
            f"(first: row {rows[0]}); {way_out}"
        )

    def _read_levels(self, column: pd.Series, bad: np.ndarray, indicated: bool) -> Filled:
        if self.kind == CATEGORY:
            labels = raw.labels_of(column)
        else:
            dates, bad = raw.dates_in(column, day_first=self.day_first)
            labels = date_labels(dates, self.kind)
        absent = labels.isna().to_numpy()
        codes = pd.Index([*self.levels, *self.merged], dtype=object).get_indexer(pd.Index(labels))
        unseen = (codes < 0) & ~absent
        if self.strict:
            self._refuse_missing(absent, indicated)
            if unseen.any():
                row = int(np.flatnonzero(unseen)[0])
                raise DataError(
                    f"column {self.source!r} has the level {column.iloc[row]!r} (row {row}), which "
                    "did not occur in the fit"
                )
        else:
            other = self.levels.index(OTHER) if OTHER in self.levels else -1
            codes[codes < 0] = other
            codes[absent] = self.levels.index(ABSENT) if ABSENT in self.levels else other
            unseen &= ~labels.isin(self.pooled).to_numpy()
        codes = np.where(codes >= len(self.levels), 0, codes)
        return Filled(codes, absent & ~bad, bad, unseen)


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
class Columns:
    """given_names, instruments : columns of the table
    steps : those of outcome columns first
    linear : whether x also omits the first level of each category
    entries : with on_problem="fix", one per column of the table, in their order
    """

    given_names: tuple[str, ...]
    instruments: tuple[str, ...]
    steps: tuple[Step, ...]
    from_frame: bool
    linear: bool = False
    entries: tuple[ColumnEntry, ...] = ()

    @property
    def fixes(self) -> bool:
        """Whether on_problem="fix" made them."""
        return bool(self.entries)

    @property
    def actions(self) -> tuple[str, ...]:
        """One sentence for each column that is changed or omitted."""
        return tuple(str(entry) for entry in self.entries if entry.acted)

    @property
    def names(self) -> tuple[str, ...]:
        """Prepared columns, indicators of missing values apart."""
        names = [step.name for step in self.steps]
        return tuple(name for name in names if not name.endswith(MISSING_INDICATOR))

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        return {step.name: step.levels for step in self.steps if step.is_category}

    @property
    def varied(self) -> tuple[str, ...]:
        """Columns of the table whose values have a meaning by themselves: neither omitted nor
        dates."""
        known = {step.source for step in self.steps if step.kind in (NUMBER, CATEGORY)}
        return tuple(name for name in self.given_names if name in known)

    def sources(self, target: str) -> tuple[str, ...]:
        """Columns of the table that predictions of `target` depend on."""
        return tuple(dict.fromkeys(step.source for step in self.steps_of(target)))

    def steps_of(self, target: str) -> tuple[Step, ...]:
        every = self.steps
        return tuple(s for s in every if not s.instrument) if target == "population" else every

    @property
    def x_names(self) -> tuple[str, ...]:
        return _terms(self.steps_of("population"), int(self.linear))

    @property
    def w_names(self) -> tuple[str, ...]:
        return _terms(self.steps, 1)

    def x_names_of(self, chosen, role: str) -> tuple[str, ...]:
        """Names in x of some outcome columns, given by name or position."""
        names = chosen_names(chosen, self.given_names, self.from_frame, role)
        made = {step.name: step for step in self.steps}
        for name in names:
            if name in self.instruments:
                raise DataError(
                    f"{role} names the instrument {name!r}, which is not in the outcome equation"
                )
            if name not in made:
                raise DataError(
                    f"{role} names the column {name!r}, which on_problem='fix' omits or replaces"
                )
        with_gaps = {step.name for step in self.steps if step.kind == MISSING and step.strict}
        indicators = [made[each] for n in names if (each := n + MISSING_INDICATOR) in with_gaps]
        return _terms((*(made[name] for name in names), *indicators), int(self.linear))

    def x(self, table) -> np.ndarray:
        """(m, p) without the instruments, which a frame may lack."""
        return self._numbers(table, self.steps_of("population"), int(self.linear))

    def w(self, table) -> np.ndarray:
        """(m, q)"""
        return self._numbers(table, self.steps, 1)

    def learned(self, table) -> tuple[np.ndarray, np.ndarray]:
        """x and w of the table that they were learned from, which is not warned about."""
        found = list(self.read(self.frame_of(table), self.steps))
        outcome = [(step, f.values) for step, f in found if not step.instrument]
        x = joined(outcome, int(self.linear))
        return x, joined([(step, f.values) for step, f in found], 1)

    def _numbers(self, table, steps: Iterable[Step], skipped: int) -> np.ndarray:
        found = list(self.read(self.frame_of(table), steps))
        notes: dict[str, str] = {}
        for step, filled in found:
            for rows, what in (
                (filled.unseen, "a level that did not occur in the fit"),
                (filled.unreadable, "a value that cannot be read, treated as missing"),
            ):
                if rows.any():
                    notes[step.source] = f"{step.source}: {rows_have(rows.sum())} {what}"
        # an indicator says that a value is missing
        said = [f.absent & (s.kind != MISSING) for s, f in found if not s.strict]
        if said and np.all(said, axis=0).any():
            empty = int(np.all(said, axis=0).sum())
            notes[""] = f"{rows_have(empty)} no value in the columns of the prediction"
        if notes:
            warn_user(". ".join(notes.values()), UserWarning)
        return joined([(step, filled.values) for step, filled in found], skipped)

    def read(self, frame: pd.DataFrame, steps: Iterable[Step]) -> Iterator[tuple[Step, Filled]]:
        """Each step, with its numbers and the rows that had no usable value."""
        indicated = any(step.kind == MISSING for step in self.steps)
        for step in steps:
            if step.source not in frame.columns:
                hint = did_you_mean(step.source, frame.columns)
                role = "instrument" if step.source in self.instruments else "column"
                raise DataError(f"X lacks the {role} {step.source!r} of the fit{hint}")
            yield step, step.read(frame[step.source], indicated=indicated)

    def frame_of(self, table) -> pd.DataFrame:
        """X with the names of the fit."""
        if self.from_frame and hasattr(table, "columns"):
            return _named(table)
        values = as_pandas(table, "X") if hasattr(table, "columns") else _two_dimensional(table)
        names = self.given_names
        if values.shape[1] != len(names):
            raise DataError(
                f"X has {values.shape[1]} features, but heckesel is expecting {len(names)} "
                "features as input: an array must have all of them, instruments included"
            )
        return pd.DataFrame(np.asarray(values), columns=list(names))

    def with_numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table in which numbers written as strings are converted to numbers."""
        found = {
            step.source: raw.numbers_in(frame[step.source], step.gaps)[0]
            for step in self.steps
            if step.kind == NUMBER
            and not step.strict
            and step.source in frame.columns
            and not pd.api.types.is_numeric_dtype(frame[step.source])
        }
        return frame.assign(**found)

    def row_problems(self, frame: pd.DataFrame, target: str) -> "RowProblems":
        """What fixed columns do with rows to predict.

        A row cannot be predicted if a number or a date in it cannot be read, or if it has no value.
        """
        found = {s.source: (s, f) for s, f in self.read(frame, self.steps_of(target))}
        reasons = np.full(len(frame), None, dtype=object)
        for step, filled in found.values():
            for row in np.flatnonzero(filled.unreadable):
                what = "a date" if step.kind in DATE_PARTS else "a finite number"
                reasons[row] = f"{step.source} is {frame[step.source].iloc[row]!r:.40}, not {what}"
        reasons[np.all([filled.absent for _, filled in found.values()], axis=0)] = EMPTY
        usable = pd.isna(reasons)
        unseen: dict = {}
        imputed: dict[str, int] = {}
        for step, filled in found.values():
            if (rows := filled.unseen & usable).any():
                unseen[step.source] = frame[step.source][rows].astype(str).value_counts().to_dict()
            if count := int((filled.absent & usable).sum()):
                imputed[step.source] = count
        return RowProblems(reasons, unseen, imputed)

    def without_term(self, term: str, reason: str) -> "Columns":
        """The columns without one term of w: a number, or one level of a category.

        reason : why, as the end of a sentence
        """
        for place, step in enumerate(self.steps):
            whole = term == step.name and not step.is_category
            if not whole and term not in step.terms(1):
                continue
            steps, levels = list(self.steps), step.levels
            if whole or len(levels) == 2:
                del steps[place]
                done = f"{step.name} omitted, since it {reason}"
            else:
                at = levels.index(term.removeprefix(f"{step.name}[").removesuffix("]"))
                level, left = levels[at], levels[:at] + levels[at + 1 :]
                others = np.delete(np.array(step.shares), at)
                shares = tuple(float(each) for each in others / others.sum())
                merged, pooled = step.merged, step.pooled
                if any(word in reason for word in ("linear combination", "equals")):
                    merged, done = (*merged, level), f"level {level} needs no column"
                else:
                    treated = OTHER if OTHER in left else "the average of the other levels"
                    pooled, done = (*pooled, level), f"level {level} treated as {treated}"
                steps[place] = replace(
                    step, levels=left, shares=shares, merged=merged, pooled=pooled
                )
                done = f"{done}, since {term} {reason}"
            return replace(self, steps=tuple(steps), entries=self._also(step, done))
        raise DataError(f"the term {term!r} {reason}; drop its column from X")

    def _also(self, step: Step, done: str) -> tuple[ColumnEntry, ...]:
        """The entries with one more action on the column of a step."""
        entries = []
        for entry in self.entries:
            if entry.name == step.source:
                action = f"{entry.action}; {done}" if entry.acted else done
                if step.name == entry.name and " omitted, " in done:
                    action = done.removeprefix(f"{entry.name} ")
                entry = replace(entry, action=action, acted=True)
            entries.append(entry)
        return tuple(entries)

    def check_loaded(self) -> None:
        """Raise an exception if the fields of a loaded file contradict each other."""
        names = set(self.given_names)
        if len(names) != len(self.given_names) or not set(self.instruments) < names:
            raise ValueError("a column twice, or an instrument that is not a column")
        if self.entries and tuple(entry.name for entry in self.entries) != self.given_names:
            raise ValueError("entries that are not its columns")
        made = {step.name for step in self.steps}
        if len(made) != len(self.steps) or all(step.instrument for step in self.steps):
            raise ValueError("a rule twice, or none for the outcome")
        for step in self.steps:
            known = [*step.levels, *step.merged]
            good = step.source in names and step.kind in STEPS
            good &= step.instrument == (step.source in self.instruments) or step.kind == MISSING
            good &= len(set(known)) == len(known) and bool(step.levels) == step.is_category
            good &= len(step.shares) in (0, len(step.levels))
            good &= bool(np.isfinite(step.shares).all())
            good &= step.fill is None or bool(np.isfinite(step.fill))
            good &= step.strict or step.kind == MISSING or step.fill is not None
            if not good:
                raise ValueError(f"a rule for {step.name!r:.60} that contradicts itself")
            if step.kind == TREND:
                years_since(pd.Series(pd.to_datetime(["2000-01-01"])), step.origin)


@dataclass(frozen=True)
class RowProblems:
    """reasons : (m,) why a row cannot be predicted, None where it can; unseen : by column, levels
    and their rows; imputed : by column, how many missing values"""

    reasons: np.ndarray
    unseen: dict[str, dict[str, int]] = field(default_factory=dict)
    imputed: dict[str, int] = field(default_factory=dict)


def _terms(steps: Iterable[Step], skipped: int) -> tuple[str, ...]:
    return term_names(term for step in steps for term in step.terms(skipped))


def joined(found: Sequence[tuple[Step, np.ndarray]], skipped: int) -> np.ndarray:
    """(m, p) the numbers of several steps, categories as 0/1 columns.

    skipped : levels of each category that are omitted
    """
    matrix = np.empty((len(found[0][1]), sum(len(step.terms(skipped)) for step, _ in found)))
    first = 0
    for step, values in found:
        if not step.is_category:
            matrix[:, first] = values
            first += 1
            continue
        part = matrix[:, first : first + len(step.levels) - skipped]
        part[:] = values[:, None] == np.arange(skipped, len(step.levels))
        if step.shares:
            part[values < 0] = step.shares[skipped:]
        first += part.shape[1]
    return matrix


def learn_columns(table, instruments, *, missing: str = "error", linear: bool = False) -> Columns:
    """Strict columns: names, categories and which are instruments, given by name or position.

    Columns that are missing in the same rows share an indicator, which would otherwise be twice in
    w. An instrument shares one with the outcome columns, so that x does not depend on it.
    """
    if not is_one_of(missing, MISSING_OPTIONS):
        raise DataError(f"missing must be one of {', '.join(MISSING_OPTIONS)}, got {missing!r}")
    frame, chosen, from_frame = table_of(table, instruments)
    names = tuple(frame.columns)
    steps, indicators = [], []
    rows: set[bytes] = set()
    for name in (*(each for each in names if each not in chosen), *chosen):
        column = frame[name]
        how: dict[str, Any] = {"instrument": name in chosen, "strict": True}
        levels: tuple = ()
        if raw.kind_of(column) == raw.CATEGORIES:
            levels = tuple(dict.fromkeys(map(raw.label_of, raw.column_levels(column))))
            levels = tuple(level for level in levels if level is not None)
            _refuse_names(column, name, levels)
        absent = missing_in(column)
        if missing == "indicator" and absent.any():
            if absent.all():
                raise ColumnError(f"column {name!r} is missing in all {len(frame)} rows; drop it")
            fill = 0.0 if levels else float(numbers_of(column[~absent], name).mean())
            how |= {"fill": fill}
            if absent.tobytes() not in rows:
                rows.add(absent.tobytes())
                indicator = f"{name}{MISSING_INDICATOR}"
                instrument = name in chosen
                indicators.append(Step(indicator, name, MISSING, instrument, strict=True))
        kind = CATEGORY if levels else NUMBER
        steps.append(Step(name, name, kind, levels=levels, **how))
    return Columns(names, chosen, (*steps, *indicators), from_frame, linear)


def missing_in(column: pd.Series) -> np.ndarray:
    """(n,) bool; blank strings are missing, too."""
    return (raw.labels_of(column) if raw.is_text(column) else column).isna().to_numpy()


def _refuse_names(column: pd.Series, name: str, levels: Sequence) -> None:
    rows = int(column.notna().sum())
    if raw.is_text(column) and len(levels) > max(FEWEST_NAMES, rows / 2):
        raise ColumnError(
            f"column {name!r} has {len(levels):,} different strings in {rows:,} rows; drop it"
        )


def table_of(table, instruments) -> tuple[pd.DataFrame, tuple[str, ...], bool]:
    """X as a frame, the names of the instruments, and whether it was a frame."""
    frame, from_frame = named_columns(table)
    names = tuple(frame.columns)
    chosen = chosen_names(instruments, names, from_frame)
    if not names:
        raise DataError(
            f"X has 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required."
        )
    if len(chosen) == len(names):
        raise DataError("every column of X is an instrument; the outcome needs at least one other")
    return frame, chosen, from_frame


def named_columns(table) -> tuple[pd.DataFrame, bool]:
    """X as a frame, and whether it was one; the columns of an array are x0, x1, ..."""
    if hasattr(table, "columns"):
        return _named(table), True
    return pd.DataFrame(_two_dimensional(table)).add_prefix("x"), False


def rows_have(count: int) -> str:
    """The start of a sentence about so many rows."""
    return f"{count:,} row{'s have' if count > 1 else ' has'}"


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


def _named(table) -> pd.DataFrame:
    frame = as_pandas(table, "X")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _two_dimensional(table) -> np.ndarray:
    if hasattr(table, "toarray"):  # sparse, as a ColumnTransformer returns it
        rows, columns = table.shape
        size = 8 * rows * columns
        if size > MOST_DENSE_BYTES:
            raise DataError(
                f"X is sparse with {rows:,} rows and {columns:,} columns, which as numbers take "
                f"{size / 2**30:,.0f} GB; reduce its columns, such as with "
                "OneHotEncoder(max_categories=40), TargetEncoder or TruncatedSVD, or pass "
                "X.toarray() if there is memory for several copies"
            )
        table = table.toarray()
    array = unmasked(table, "X")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported; pass real and imaginary parts as columns")
    if array.dtype.names is not None:
        raise DataError("X is a structured array; pass pd.DataFrame(X)")
    if array.ndim != 2:
        raise DataError(
            f"X must be a table of rows and columns but has shape {array.shape}. Reshape your "
            "data: a single column is X.reshape(-1, 1), a single row X.reshape(1, -1)"
        )
    return array


def chosen_names(given, names, from_frame, role: str = "instruments") -> tuple[str, ...]:
    """Columns given by name or position as names; role : the option that gives them."""
    if given is None:
        return ()
    one = role.removesuffix("s")
    found: list[Any] = []
    for item in as_list(role, given):
        if isinstance(item, int | np.integer):
            if not -len(names) <= item < len(names):
                raise DataError(f"{one} {item} is beyond the {len(names)} columns of X")
            found.append(names[item])
        elif item in names:
            found.append(item)
        elif not from_frame:
            raise DataError(
                f"{one} {item!r} is a name but X has none; give its position, or pass a "
                "frame (in a Pipeline, set_output(transform='pandas') keeps names)"
            )
        else:
            hint = did_you_mean(item, names)
            prefixed = [name for name in names if name.endswith(f"__{item}")]
            if prefixed:
                hint = (
                    f"; a ColumnTransformer renamed it to {prefixed[0]!r}, set "
                    "verbose_feature_names_out=False to keep the name"
                )
            what = ", the instrument" if role == "instruments" else f", which {role} names"
            raise DataError(f"X has no column {item!r}{what}{hint}")
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise DataError(f"the {one} {repeated[0]!r} is given twice")
    return tuple(found)
