"""What is wrong with the columns of a table, and the steps that fix it (on_problem="fix").

One pass over the columns finds every problem. Columns are read in their order, instruments last, so
that of two equal columns the instrument is the one that is omitted.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from heckesel.data import MISSING_INDICATOR, SelectionData, selection_data
from heckesel.errors import ColumnError, DataError
from heckesel.math.moments import COLLINEAR_BELOW, dependent_in
from heckesel.tables import values as raw
from heckesel.tables.columns import (
    ABSENT,
    CATEGORY,
    FEWEST_NAMES,
    MISSING,
    MONTH,
    NUMBER,
    OTHER,
    TREND,
    WEEKDAY,
    ColumnEntry,
    Columns,
    Step,
    date_labels,
    joined,
    years_since,
)

# A level needs so many selected and so many unselected rows for a separate coefficient. Of 3, 5,
# 10, 20 and 40 rows, 10 lost the least held-out log-likelihood over five public tables. In
# simulations 40 is best if levels hardly differ, and 3 if they differ by as much as the errors do.
FEWEST_ROWS = 10
MOST_LEVELS = 40  # the most frequent ones; the rest is `other`
# If most rows are in rare levels, levels need FEWER_ROWS, but there is one per ROWS_PER_LEVEL rows.
FEWER_ROWS, ROWS_PER_LEVEL = 3, 50
NUMBERED = 0.95  # share of distinct values in a column that numbers the units
TEXT_LENGTH = 30  # characters: longer strings are sentences
# A column that is missing in more of the rows on one side, and in fewer on the other, repeats
# selection.
MOSTLY, HARDLY = 0.9, 0.1
REVEALING = 0.3  # a difference of these shares that is questioned
MOST_COMPARED = 2000  # levels of all categories, of which one may determine another; and rows
# Linear functions of up to MOST_TERMS columns are searched for from this correlation on.
MOST_TERMS, LEAST_RELATED = 6, 0.3
MOST_CHECKED = 20_000  # rows on which columns are compared; what is found is confirmed on all
# The outcome can be computed from columns that explain this share of the variance of its ranks.
LEAK, FEWEST_FOR_LEAK, MOST_GLANCED, MOST_RELATED = 0.9999, 30, 300, 8
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

    seen : digest of a column -> its name; indicated : missing indicator -> the rows where it is 1
    numbers, labels : values of columns that are used as they are, to compare them
    checked : (n,) rows on which columns are compared
    """

    y: np.ndarray
    s: np.ndarray
    instruments: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    entries: dict[str, ColumnEntry] = field(default_factory=dict)
    seen: dict[bytes, str] = field(default_factory=dict)
    indicated: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, pd.Series] = field(default_factory=dict)

    def __post_init__(self):
        self.checked = np.zeros(len(self.s), dtype=bool)
        self.checked[:: max(1, len(self.s) // MOST_CHECKED)] = True

    def enough(self, selected, unselected, fewest: int | None = None):
        """Whether so many rows determine a coefficient in both equations."""
        fewest = FEWEST_ROWS if fewest is None else fewest
        return (selected >= fewest) & (self.s.all() | (unselected >= fewest))

    def enough_of(self, rows: np.ndarray) -> bool:
        return bool(self.enough(rows[self.s].sum(), rows[~self.s].sum()))

    def check_also(self, codes: np.ndarray) -> None:
        """Check some rows of each level among the selected and the unselected."""
        if not self.checked.all():
            cell = pd.Series(2 * codes + self.s)
            self.checked |= cell.groupby(cell).cumcount().to_numpy() < 2 * FEWEST_ROWS

    def omit(self, name: str, reason: str) -> None:
        """Omit a column that was to be used."""
        self.steps = [step for step in self.steps if step.source != name]
        self.numbers.pop(name, None)
        self.labels.pop(name, None)
        self.entries[name] = replace(
            self.entries[name], action=f"omitted, since {reason}", acted=True
        )


def learn_fixes(
    frame: pd.DataFrame,
    instruments: tuple[str, ...],
    y: np.ndarray,
    s: np.ndarray,
    weight: np.ndarray,
    y_name: str,
    *,
    check: Callable[[SelectionData], None],
    from_frame: bool,
    linear: bool = False,
) -> tuple[Columns, DataError | None]:
    """Columns that fix every problem of the table, and why they still cannot be used.

    y : (n,) the outcome, NaN where it is not observed; s : (n,) bool
    check : raises a `ColumnError` for data that no model can be fitted to

    A problem of all rows is also one of any part of them. A long table is therefore compared on a
    part, which has some rows of each level, and what is found there is confirmed on all rows.
    """
    learning = _Learning(y, s, instruments)
    names = tuple(frame.columns)
    for name in (*(name for name in names if name not in instruments), *instruments):
        learning.entries[name] = _learn_column(learning, name, frame[name])
    _omit_leaks(learning)
    _omit_functions(learning)
    columns = Columns(
        names,
        instruments,
        tuple(learning.steps),
        from_frame,
        linear,
        tuple(learning.entries[name] for name in names),
    )
    every = Rows(frame, s)
    rows = every if learning.checked.all() else every.take(learning.checked)
    for part in (rows, every) if rows is not every else (every,):
        chosen = slice(None) if part is every else learning.checked
        columns = _without_terms(columns, part, every)
        while any(not step.instrument for step in columns.steps):
            x, w = part.matrices(columns)
            try:
                check(
                    selection_data(
                        x,
                        w,
                        y[chosen],
                        weight=weight[chosen],
                        x_names=columns.x_names,
                        w_names=columns.w_names,
                        y_name=y_name,
                    )
                )
            except DataError as error:
                if part is not every:
                    break  # all rows decide
                if not isinstance(error, ColumnError):
                    return columns, error
                term = [*error.terms, *(each for each in error.terms if each in columns.x_names)][
                    -1
                ]
                columns = columns.without_term(term, error.reason)
            else:
                return columns, None
    return columns, None


class Rows:
    """Rows of a table, and the numbers of the steps that were read there."""

    def __init__(self, frame: pd.DataFrame, s: np.ndarray):
        self.frame, self.s = frame, s
        self._read: dict[Step, np.ndarray] = {}

    def take(self, rows: np.ndarray) -> "Rows":
        return Rows(self.frame[rows], self.s[rows])

    def values(self, step: Step) -> np.ndarray:
        if step not in self._read:
            self._read[step] = step.read(self.frame[step.source]).values
        return self._read[step]

    def matrices(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """x and w."""
        made = [(step, self.values(step)) for step in columns.steps]
        outcome = [(step, values) for step, values in made if not step.instrument]
        return joined(outcome, int(columns.linear)), joined(made, 1)

    def terms(self, columns: Columns, names: list[str]) -> np.ndarray:
        """(n, k) some terms of w."""
        steps = [step for step in columns.steps if not set(names).isdisjoint(step.terms(1))]
        values = joined([(step, self.values(step)) for step in steps], 1)
        made = [term for step in steps for term in step.terms(1)]
        return values[:, [made.index(name) for name in names]]


def check_usable(columns: Columns) -> None:
    """Refuse columns that leave no instrument where there was one, or no other column."""
    instruments = [step for step in columns.steps if step.instrument]
    if columns.instruments and not instruments:
        reasons = [str(each) for each in columns.entries if each.name in columns.instruments]
        way = "name another instrument, or none"
        if any("linear combination" in each or "since it equals" in each for each in reasons):
            way = "exclude the columns that determine it, name them as instruments, too, or " + way
        raise DataError(
            f"no instrument can be used ({'; '.join(reasons)}), and without one the correction "
            f"rests on the functional form; {way}"
        )
    if len(instruments) == len(columns.steps):
        raise DataError(
            "no column is left to predict the outcome from: "
            + "; ".join(str(e) for e in columns.entries if e.name not in columns.instruments)
        )


# One column


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
    notes, how = [], {"instrument": name in learning.instruments}
    if found.kind == raw.NUMBER:
        numbers = raw.numbers_in(column, found.gaps)[0]
        known = numbers[~np.isnan(numbers)]
        if len(known) and raw.is_code(name, known):
            found = raw.RawKind(raw.CATEGORY, code=f"{known[0]:.0f}")
        for code in raw.sentinels(known) if found.kind == raw.NUMBER else ():
            found = replace(found, gaps=(*found.gaps, f"{code:g}"))
            rows = np.count_nonzero(numbers == code)
            notes.append(f"{code:g} ({rows:,} rows) taken for a missing value")
            numbers = np.where(numbers == code, np.nan, numbers)
        values = pd.Series(numbers, column.index)
    if found.kind == raw.DATE:
        values = raw.dates_in(column, day_first=found.day_first)[0]
    elif found.kind != raw.NUMBER:
        values = raw.labels_of(column)
    absent = values.isna().to_numpy()
    codes, levels = pd.factorize(values)
    if not len(levels):
        return entry(raw.EMPTY, 0, 1.0, "omitted, since it has no value that can be read")
    kind, reason = _useless(learning, name, found, values, absent, levels) or (found.kind, "")
    if not reason:  # an earlier column that is equal, or has the same levels under other names
        named = found.kind in (raw.CATEGORY, raw.ORDERED)
        same = codes.astype(np.int64) if named else values.to_numpy()
        content = (b"levels" if named else kind.encode()) + np.ascontiguousarray(same).tobytes()
        first = learning.seen.setdefault(hashlib.blake2b(content).digest(), name)
        if first != name:
            kind, reason = raw.DUPLICATE, f"it equals {first}"
    if reason:
        action = "; ".join([*notes, f"omitted, since {reason}"])
        return entry(kind, len(levels), absent, action)
    if kind == raw.NUMBER:
        plain = "used as a number"
        actions = notes + _use_number(learning, name, column, found, values, how)
        learning.check_also(codes if len(levels) <= MOST_LEVELS else absent.astype(int))
    elif kind == raw.DATE:
        plain, actions = "used as a date", _use_date(learning, name, found, values, how)
    else:
        plain = f"used as a category of {len(levels)} levels"
        actions = _use_category(learning, name, found, values, how)
    actions += _revealing(absent, learning.s, name in learning.instruments)
    return entry(kind, len(levels), absent, "; ".join(actions) or plain, acted=bool(actions))


def _useless(learning, name, found, values, absent, levels) -> tuple[str, str] | None:
    """The kind of a column that no model can use, and why."""
    if len(levels) == 1 and (not absent.any() or found.kind == raw.DATE):
        value = f"{levels[0]:g}" if found.kind == raw.NUMBER else levels[0]
        return raw.CONSTANT, f"it is constant ({value})"
    reason = consequence(absent, learning.s)
    if reason:
        return found.kind, reason
    if found.kind == raw.CATEGORY and len(levels) > max(FEWEST_NAMES, (~absent).sum() / 2):
        long = np.mean([len(str(each)) for each in levels[:1000]]) > TEXT_LENGTH
        kind = raw.TEXT if long else raw.IDENTIFIER
        return kind, f"it has {len(levels):,} different strings in {(~absent).sum():,} rows"
    if found.kind == raw.NUMBER and _is_identifier(name, values, absent, levels):
        return raw.IDENTIFIER, "its values are row numbers or unit names"
    return None


def consequence(absent: np.ndarray, s: np.ndarray) -> str:
    """Why a column that is missing in these rows is a consequence of selection; else empty."""
    if s.all() or not absent.any():
        return ""
    inside, outside = absent[s].mean(), absent[~s].mean()
    never = not inside and outside > 0.5
    if not never and (max(inside, outside) < MOSTLY or min(inside, outside) > HARDLY):
        return ""
    return f"{_missing_shares(absent, s)}, so it is a consequence of selection"


def _missing_shares(absent: np.ndarray, s: np.ndarray) -> str:
    inside, outside = absent[s].mean(), absent[~s].mean()
    shares = [f"{100 * share:.0f} % of the" if share else "no" for share in (inside, outside)]
    rows = f"{shares[0]} selected row{'s' if inside else ''}"
    return f"it is missing in {rows} and in {shares[1]} unselected rows"


def _revealing(absent: np.ndarray, s: np.ndarray, instrument: bool) -> list[str]:
    """The question about a column that is missing much more often on one side of selection."""
    if s.all() or not absent.any():
        return []
    if abs(absent[s].mean() - absent[~s].mean()) < REVEALING:
        return []
    asked = "drop it if it is recorded only after selection"
    if instrument:
        asked = "as an instrument it is doubtful"
    return [f"{_missing_shares(absent, s)}: {asked}"]


def _is_identifier(name: str, values: pd.Series, absent, levels) -> bool:
    """Whole numbers that count the rows, perhaps with gaps, or most of which differ in a column
    called id."""
    if absent.any() or len(levels) <= FEWEST_NAMES or (values % 1 != 0).any():
        return False
    if len(levels) >= NUMBERED * len(values) and values.max() - values.min() < 2 * len(values):
        return True
    return ID_NAME.search(name) is not None and len(levels) > len(values) / 2


def _use_number(learning: _Learning, name, column, found, values, how) -> list[str]:
    numbers = values.to_numpy()
    absent, actions = np.isnan(numbers), []
    words = [repr(each) for each in found.gaps if not raw.NUMERAL.fullmatch(each)]
    if words:
        actions.append(f"{' and '.join(words)} treated as missing")
    elif not found.gaps and absent.sum() > column.isna().sum():
        actions.append("values that are not finite numbers treated as missing")
    if (numbers[~absent] == numbers[~absent][0]).all():  # with gaps
        learning.steps.append(Step(name, name, MISSING, gaps=found.gaps, **how))
        return [*actions, f"used as an indicator of missing values ({numbers[~absent][0]:g} else)"]
    fill = float(numbers[~absent].mean())
    learning.steps.append(Step(name, name, NUMBER, fill=fill, gaps=found.gaps, **how))
    learning.numbers[name] = numbers
    if not absent.any():
        return actions
    imputed = f"{_gaps(absent)} imputed by the mean"
    if learning.enough_of(absent):
        twin = next(
            (n for n, rows in learning.indicated.items() if not learning.enough_of(absent != rows)),
            None,
        )
        if twin is None:
            indicator = f"{name}{MISSING_INDICATOR}"
            learning.indicated[indicator] = absent
            learning.steps.append(Step(indicator, name, MISSING, gaps=found.gaps, **how))
        # few rows would distinguish it from an earlier one
        imputed += ", with a missing indicator" if twin is None else f", with the indicator {twin}"
    return [*actions, imputed]


def _use_date(learning: _Learning, name, found, values, how) -> list[str]:
    origin, absent = str(values.min()), values.isna().to_numpy()
    how |= {"origin": origin, "day_first": found.day_first, "fill": 0.0}
    years = float(np.nanmean(years_since(values, origin)))
    learning.steps.append(Step(f"{name}[{TREND}]", name, TREND, **how | {"fill": years}))
    used = ["trend in years"]
    for part in (MONTH, WEEKDAY):
        labels = date_labels(values, part)
        if labels.nunique() > 1:
            step, _ = _category(learning, f"{name}[{part}]", name, part, labels, how)
            if step is not None and len(step.levels) > 1:
                learning.steps.append(step)
                used.append(part)
    actions = [f"turned into {', '.join(used)}"]
    if absent.any():
        actions.append(f"{_gaps(absent, 'date')} imputed by the mean")
    return actions


def _use_category(learning: _Learning, name, found, values, how) -> list[str]:
    step, actions = _category(learning, name, name, CATEGORY, values, how | {"fill": 0.0})
    if found.code:
        actions.insert(0, f"codes such as {found.code} taken for categories")
    if step is None:
        return ["omitted, since no level has enough rows", *actions]
    if len(step.levels) == 1:
        return [f"omitted, since only the level {step.levels[0]} has enough rows", *actions]
    learning.steps.append(step)
    learning.labels[name] = values
    return actions


def _category(learning: _Learning, name, source, kind, labels: pd.Series, how: dict[str, Any]):
    """The step of a category with rare levels pooled, and a description of it.

    There is no step if no level has enough rows.
    """
    s = learning.s
    given = labels.where(labels.notna(), ABSENT)
    counts = pd.DataFrame({"in": given[s].value_counts(), "out": given[~s].value_counts()})
    counts = counts.fillna(0).astype(int)
    total = counts.sum(axis=1)
    few = ~learning.enough(counts["in"], counts["out"]) & (len(counts) > 2)
    most = MOST_LEVELS
    if total[few].sum() > len(given) / 2:
        few = ~learning.enough(counts["in"], counts["out"], FEWER_ROWS)
        most = min(MOST_LEVELS, len(s) // ROWS_PER_LEVEL)
    if (~few).sum() > most:
        few |= ~total.index.isin(total[~few].nlargest(most).index)
    kept, rare = sorted(total.index[~few]), sorted(total.index[few])
    if not kept:
        return None, []
    pooled = counts.loc[rare].sum()
    alone = len(kept) == 1 and not learning.enough(pooled["in"], pooled["out"])
    levels = tuple(kept) if alone or not rare or OTHER in kept else (*kept, OTHER)
    codes = pd.Index(levels, dtype=object).get_indexer(given)
    if OTHER in levels:
        codes[codes < 0] = levels.index(OTHER)
    learning.check_also(codes)
    rows = np.bincount(codes[codes >= 0], minlength=len(levels))
    shares = tuple(float(share) for share in rows / rows.sum())
    rest = tuple(each for each in rare if each not in levels)
    step = Step(name, source, kind, levels=levels, shares=shares, pooled=rest, **how)
    return step, _pooling(rare, counts, labels)


def _pooling(rare: list[str], counts: pd.DataFrame, labels: pd.Series) -> list[str]:
    actions = []
    names = [each for each in rare if each != ABSENT]
    if names:
        quote = repr if any("," in str(each) for each in names[:3]) else str
        shown = ", ".join(map(quote, names[:3])) + (", ..." if len(names) > 3 else "")
        pooled = counts.loc[names]
        levels = f"level{'s' * (len(names) > 1)}"
        what = f"rare {levels}"
        for side, few in (("in", "unselected"), ("out", "selected")):
            if (pooled[side] >= FEWEST_ROWS).all():
                what = f"{levels} with few {few} rows"
        if (pooled >= FEWEST_ROWS).all(axis=None):
            what = f"less frequent {levels}"
        rows = f"{pooled.to_numpy().sum():,} rows"
        actions.append(f"{len(names)} {what} ({shown}; {rows}) treated as {OTHER}")
    if labels.isna().any():
        used = f"treated as {OTHER}" if ABSENT in rare else "used as a level"
        actions.append(f"{_gaps(labels.isna())} {used}")
    return actions


def _gaps(absent, what: str = "value") -> str:
    count = int(np.count_nonzero(absent))
    return f"{count:,} missing {what}{'s' * (count > 1)}"


# Columns together


def _omit_functions(learning: _Learning) -> None:
    """Omit columns that are functions of others in the rows that have all of them, which imputed
    values would hide: linear functions of numbers, and categories that another one determines."""
    numbers = learning.numbers
    # of two, the instrument is omitted, or else the one with more missing values
    holes = {name: int(np.isnan(values).sum()) for name, values in numbers.items()}
    order = sorted(numbers, key=lambda name: (name in learning.instruments, holes[name]))
    omitted: dict[str, str] = {}
    if any(holes.values()):
        rows = learning.checked
        values = np.column_stack([numbers[name][rows] for name in order])
        for column, others in _dependent_where_complete(values):
            names = [order[j] for j in others]
            if not any(holes[each] for each in (order[column], *names)):
                continue  # found below, in all rows
            shown = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
            which = "all of them" if len(names) > 1 else "both"
            found = f"it is a linear combination of {shown} in the rows that have {which}"
            omitted[order[column]] = found
    for name, other in _determined(learning):
        omitted[name] = f"it is determined by {other} in the rows that have both"
    for name, reason in omitted.items():
        learning.omit(name, reason)


def _omit_leaks(learning: _Learning) -> None:
    """Omit columns from which the outcome can be computed, alone or with one other.

    Alone: the ranks of y hardly vary within the values of the column, or between neighbouring
    values. Together: the same holds for the product or the ratio of two numbers.
    """
    chosen = np.flatnonzero(learning.s)
    if len(chosen) > MOST_COMPARED:
        chosen = np.sort(np.random.default_rng(0).permutation(chosen)[:MOST_COMPARED])
    rank = pd.Series(learning.y[chosen]).rank().to_numpy()
    if len(chosen) < FEWEST_FOR_LEAK or (rank != np.median(rank)).sum() < FEWEST_FOR_LEAK:
        return
    numbers = {name: values[chosen] for name, values in learning.numbers.items()}
    for name in [*numbers, *learning.labels]:
        if name in numbers:
            values = numbers[name]
        else:
            values = pd.factorize(learning.labels[name].iloc[chosen])[0].astype(float)
            values[values < 0] = np.nan
        there = ~np.isnan(values)
        if there.mean() > 0.5 and _explained(values[there], rank[there]) > LEAK:
            learning.omit(name, "it is the outcome or determines it in the selected rows")
            numbers.pop(name, None)
    full = {name: values for name, values in numbers.items() if not np.isnan(values).any()}
    full = {name: values for name, values in full.items() if len(np.unique(values[:200])) > 2}
    if len(full) < 2:
        return
    names, values = list(full), np.column_stack(list(full.values()))
    related = np.abs(pd.DataFrame(values).rank().corrwith(pd.Series(rank)).to_numpy())
    glance = np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_GLANCED)).astype(int)
    for j in np.argsort(-related)[:MOST_RELATED]:
        for how, sign in (("product", 1.0), ("ratio", -1.0)):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                made = values[:, [j]] * np.abs(values) ** sign
            good = np.isfinite(made).all(axis=0) & (np.arange(len(names)) != j)
            good &= np.isin(names, list(learning.numbers))
            order = np.argsort(made[glance], axis=0)
            steps = np.diff(rank[glance][order], axis=0)
            near = 1 - (steps**2).mean(axis=0) / (2 * rank[glance].var()) > 0.9
            for k in np.flatnonzero(good & near):
                if _explained(made[:, k], rank) > LEAK:
                    what = f"the outcome can be computed from its {how} with {names[k]}"
                    learning.omit(names[j], what)
                    break
            else:
                continue
            break


def _explained(values: np.ndarray, rank: np.ndarray) -> float:
    """The share of the variance of ranks between the values of a column; if it has many, how
    little the ranks differ between neighbouring values."""
    levels, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(levels) < 2 or not rank.var():
        return 0.0
    if len(levels) <= len(values) / 5:
        means = np.bincount(codes, rank) / counts
        return float(1 - ((rank - means[codes]) ** 2).mean() / rank.var())
    order = np.argsort(values, kind="stable")
    apart = (np.diff(rank[order]) ** 2).mean() - 1  # ranks in order differ by one
    return float(1 - max(apart, 0) / (2 * rank.var()))


def _dependent_where_complete(values: np.ndarray) -> list[tuple[int, list[int]]]:
    """Columns that earlier ones explain in the complete rows, or of which a few explain one with
    missing values in the rows that have all of them."""
    there = ~np.isnan(values)
    found: dict[int, list[int]] = {}
    complete = there.all(axis=1)
    if complete.sum() >= 2 * values.shape[1] + FEWEST_NAMES:
        found |= dict(_dependent(values[complete]))
    centre, scale = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    z = np.where(there, (values - centre) / np.where(scale > 0, scale, 1.0), 0.0)
    one = there.astype(float)
    n = np.maximum(one.T @ one, 1.0)  # rows that have both
    related = np.abs(z.T @ z) / n
    np.fill_diagonal(related, 0.0)
    for column in np.flatnonzero(~there.all(axis=0) & (related.max(axis=0) > LEAST_RELATED))[::-1]:
        if int(column) not in found:
            few = _few_terms(z, there, n[column], int(column), found)
            found |= {int(column): few} if few else {}
    return sorted(found.items())


def _few_terms(z, there, rows_with, column: int, omitted) -> list[int]:
    """A few columns of which one is a linear function where all of them are there; each is the
    one that is most correlated with what the earlier ones leave.

    z : (n, p) standardised, 0 where missing; rows_with : (p,) rows that have both
    """
    chosen: list[int] = []
    left, share = z[:, column], 1.0
    size = np.sqrt(rows_with)
    while len(chosen) < MOST_TERMS:
        score = np.abs(left @ z) / size
        score[[column, *chosen, *omitted]] = 0.0
        chosen.append(int(score.argmax()))
        both = there[:, [column, *chosen]].all(axis=1)
        if both.sum() < FEWEST_NAMES + 2 * len(chosen):
            return []
        design = np.column_stack([np.ones(both.sum()), z[np.ix_(both, chosen)]])
        y = z[both, column]
        slopes = np.linalg.lstsq(design, y, rcond=None)[0]
        now = float(np.var(y - design @ slopes) / np.var(y)) if np.ptp(y) else 1.0
        if now < 10 * COLLINEAR_BELOW:
            return chosen
        if now > 0.9 * share:
            return []
        share = now
        left = np.where(there[:, column], z[:, column] - z[:, chosen] @ slopes[1:], 0.0)
    return []


def _determined(learning: _Learning) -> list[tuple[str, str]]:
    """Categories that another one determines in the rows that have both, where some lack one."""
    steps = {step.name: step for step in learning.steps if step.name in learning.labels}
    if not steps or sum(len(step.levels) for step in steps.values()) > MOST_COMPARED:
        return []
    codes = {}
    for name, step in steps.items():
        known = [level for level in step.levels if level not in (OTHER, ABSENT)]
        codes[name] = pd.Index(known, dtype=object).get_indexer(pd.Index(learning.labels[name]))
    found: dict[str, str] = {}
    order = sorted(steps, key=lambda name: (name in learning.instruments, -len(steps[name].levels)))
    for place, name in enumerate(order):
        for other in order[:place]:
            both = (codes[name] >= 0) & (codes[other] >= 0)
            few = both.sum() < FEWEST_NAMES or other in found
            if few or not (learning.labels[name].isna() | learning.labels[other].isna()).any():
                continue
            table = np.zeros((codes[other].max() + 1, codes[name].max() + 1), dtype=bool)
            table[codes[other][both], codes[name][both]] = True
            lost = (codes[name] >= 0) & (codes[other] < 0) & learning.labels[other].notna()
            if (table.sum(axis=1) <= 1).all() and (table.any(axis=0)).sum() > 1 and not lost.any():
                found[name] = other
                break
    return list(found.items())


def _dependent(values: np.ndarray) -> list[tuple[int, list[int]]]:
    """All columns that earlier ones and a constant explain, and which."""
    z = values - values.mean(axis=0)
    varies = np.flatnonzero((z != 0).any(axis=0))
    z = z[:, varies] / np.sqrt(np.sum(z[:, varies] ** 2, axis=0))
    return [
        (int(varies[column]), [int(varies[j]) for j in others])
        for column, others in dependent_in(z.T @ z)
    ]


def _without_terms(columns: Columns, rows: Rows, every: Rows) -> Columns:
    """The columns without terms of w that are constant, linear combinations of others or predict
    selection perfectly; all of them at once, since a check of the whole fit finds one at a time.

    every : all rows, which confirm what `rows` show
    """
    for everyone in (False, True):
        if everyone and rows.s.all():
            break
        n = int(every.s.sum())
        where = f"over all {len(every.s)} rows" if everyone else f"among the {n} selected rows"
        for problems in (_constants, _combinations, _predictors):
            steps = columns.steps if everyone else columns.steps_of("population")
            names = [term for step in steps for term in step.terms(1)]
            if not names or (problems is _predictors and not everyone):
                continue
            values = joined([(step, rows.values(step)) for step in steps], 1)
            for term, reason, others in problems(values, names, where, rows.s, everyone):
                if term not in columns.w_names:  # a category with one level left was omitted
                    continue
                if rows is not every:
                    involved = [each for each in (*others, term) if each in columns.w_names]
                    again = every.terms(columns, involved)
                    sure = problems(again, involved, where, every.s, everyone)
                    if term not in [each for each, *_ in sure]:
                        continue
                columns = columns.without_term(term, reason)
    return columns


def _constants(values, names, where, s, everyone) -> list[tuple[str, str, list[str]]]:
    used = values if everyone else values[s]
    constant = np.flatnonzero(used.min(axis=0) == used.max(axis=0))
    return [(names[j], f"is constant {where}", []) for j in constant]


def _combinations(values, names, where, s, everyone) -> list[tuple[str, str, list[str]]]:
    used = values if everyone else values[s]
    found = []
    for column, others in _dependent(used):
        shown = ", ".join(names[j] for j in others[:3]) + ", ..." * (len(others) > 3)
        reason = f"is a linear combination of {shown}"
        if len(others) == 1 and np.array_equal(used[:, column], used[:, others[0]]):
            reason = f"equals {shown}"
        found.append((names[column], reason, [names[j] for j in others]))
    return found


def _predictors(values, names, where, s, everyone) -> list[tuple[str, str, list[str]]]:
    """Columns that predict selection perfectly, at one of two values or beyond a threshold."""
    inside, outside = values[s], values[~s]
    low, high = values.min(axis=0), values.max(axis=0)
    two = ((values == low) | (values == high)).all(axis=0)
    low_in, high_in = inside.min(axis=0), inside.max(axis=0)
    low_out, high_out = outside.min(axis=0), outside.max(axis=0)
    at_end = ((low_in == low) != (low_out == low)) | ((high_in == high) != (high_out == high))
    beyond = (high_in <= low_out) | (high_out <= low_in)
    found = np.flatnonzero(((two & at_end) | beyond) & (low < high))
    return [(names[j], "predicts selection perfectly", []) for j in found]


# Rows that belong together

# Names of columns that identify the unit of a row.
UNIT_NAME = re.compile(
    r"(^|[_. ])(id|key|uuid|guid|unit|person|patient|subject|household|firm|company|customer|client"
    r"|user|student|employee)([_ ]?(id|no|nr|number))?$"
    r"|^(nr|pid|seqn|caseid)$",
    re.IGNORECASE,
)
CAMEL_CASE_ID = re.compile(r"[a-z]I[dD]$")  # customerID
FEWEST_UNITS = 20  # a column with fewer values is a category
MOST_ROWS = 50_000  # are compared, the first ones
# Codes of letters and digits as on aircraft, and numbers of five digits as of stations.
UNIT_CODE = r"(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9-]{5,}"
LEAST_NUMBER = 10_000
FIRST_YEAR, LAST_YEAR = 1900, 2100
LEAST_FILLED = 0.5  # of all pairs of a unit and a period, in a panel
GLANCE_ROWS = 200  # in which most columns are seen to vary


def repeated_units(frame: pd.DataFrame) -> str:
    """The question whether rows belong together; empty if no column names the units of rows.

    A column does by its name, or else by its values: they look like numbers of units, they have one
    row in each period, or other columns are constant among the rows of each.
    """
    columns = [(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    for name, column in columns:
        if UNIT_NAME.search(name) or CAMEL_CASE_ID.search(name):
            asked = _question(name, column)
            if asked:
                return asked
    first = [(name, column.iloc[:MOST_ROWS]) for name, column in columns]
    kinds = [raw.raw_kind(column).kind for _, column in first]
    readable = (raw.NUMBER, raw.CATEGORY, raw.ORDERED)
    usable = [pair for pair, kind in zip(first, kinds, strict=True) if kind in readable]
    if not usable:
        return ""
    codes = np.column_stack([pd.factorize(column)[0] for _, column in usable])
    periods = [
        pd.factorize(column)[0]
        for (_, column), kind in zip(first, kinds, strict=True)
        if kind == raw.DATE or (kind == raw.NUMBER and _is_year(column))
    ]
    for place, (name, column) in enumerate(usable):
        own = codes[:, place]
        if _has_fractions(column) or not _several(np.bincount(own + 1)[1:]):
            continue
        if (
            _looks_like_units(column)
            or any(_one_row_in_each(own, period) for period in periods)
            or _constant_within(place, column, codes)
        ):
            return _question(name, frame.get(name, column))
    return ""


def _question(name: str, column: pd.Series) -> str:
    """The question about one column; empty if it does not name units that have several rows."""
    counts = column.value_counts().to_numpy()
    if _has_fractions(column) or not _several(counts):
        return ""
    return (
        f"column {name!r} repeats {int((counts > 1).sum()):,} values; if rows with the same {name} "
        f"belong to one unit, pass groups={name!r} (--groups {name} in the shell)"
    )


def _has_fractions(column: pd.Series) -> bool:
    return pd.api.types.is_float_dtype(column.dtype) and bool((column.dropna() % 1 != 0).any())


def _several(counts: np.ndarray) -> bool:
    """Whether there are enough units, and most of them have several rows."""
    return len(counts) >= FEWEST_UNITS and 2 * int((counts > 1).sum()) >= len(counts)


def _looks_like_units(column: pd.Series) -> bool:
    """Whether values are codes such as N14228, or numbers such as 20417 that are not amounts."""
    levels = pd.Series(column.dropna().unique())
    if pd.api.types.is_numeric_dtype(levels):
        same_length = levels.min() >= LEAST_NUMBER and levels.max() < 10 * LEAST_NUMBER
        return bool(same_length and (levels % 5 == 0).mean() < 0.5)  # amounts are round
    return len(levels) > 0 and bool(levels.astype(str).str.fullmatch(UNIT_CODE).mean() >= 0.95)


def _is_year(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    years = column.dropna().between(FIRST_YEAR, LAST_YEAR)
    return bool(years.all()) and not _has_fractions(column)


def _one_row_in_each(unit: np.ndarray, period: np.ndarray) -> bool:
    """Whether no unit has two rows in one period, though most pairs of both have a row."""
    shape = unit.max() + 1, period.max() + 1
    if shape[1] < 2 or shape[0] * shape[1] * LEAST_FILLED > len(unit):
        return False
    known = (unit >= 0) & (period >= 0)
    pairs = np.bincount(unit[known] * shape[1] + period[known])
    return bool(pairs.max(initial=0) == 1)


def _constant_within(place: int, column: pd.Series, codes: np.ndarray) -> bool:
    """Whether at least two other columns are constant among the rows of each value.

    A column that could be so by chance does not count, nor one that repeats the values under other
    names, nor one that groups neighbouring values, as an age group does.

    codes : (n, p) of the first rows of each column
    """
    unit = codes[:, place]
    if (unit < 0).any():
        return False
    levels = pd.factorize(column)[1]
    order = np.argsort(levels.astype(str) if levels.dtype == object else levels, kind="stable")
    first = np.zeros(len(levels), dtype=int)
    first[unit[::-1]] = np.arange(len(unit))[::-1]
    glance = slice(0, GLANCE_ROWS)
    constant = (codes[first[unit[glance]]] == codes[glance]).all(axis=0)
    constant[place] = False
    found = 0
    for other in np.flatnonzero(constant):
        own = codes[:, other]
        if (own < 0).any() or (own[first][unit] != own).any():
            continue
        shares = np.bincount(own) / len(own)
        by_chance = (len(own) - len(levels)) * (1 - np.sum(shares**2))  # rows that would differ
        # also where each value has its own
        neighbours = np.count_nonzero(np.diff(own[first][order])) == len(shares) - 1
        found += int(by_chance >= FEWEST_UNITS and not neighbours)
    return found >= 2
