"""How the columns of X become the numbers of x and w: learned in the fit, applied at prediction.

x has every column but the instruments, w has all of them. A category becomes one 0/1 column per
level; w, and x of a linear outcome, omit the first level. A level that did not occur in the fit
raises an error.

A missing value also raises an error. On request the mean of the fit is imputed (a category: no
level) and a 0/1 column `name[missing]` indicates it. Neither x nor w has a constant column.

With a `ColumnPlan` there is no such error: before the conversion, missing values are imputed and
unseen levels are replaced by known ones.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from heckesel.data import MISSING_INDICATOR, term_names
from heckesel.errors import ColumnError, DataError, as_list, did_you_mean, is_one_of
from heckesel.numeric_input import unmasked
from heckesel.tables.column_kinds import CATEGORIES, column_levels, is_text, kind_of
from heckesel.tables.frames import as_pandas, numbers_of
from heckesel.tables.preparation.column_plan import ColumnPlan

MISSING = ("error", "indicator")
# Strings of which more than half are distinct identify units; below so many it may be chance.
FEWEST_NAMES = 20
MOST_DENSE_BYTES = 2 * 2**30  # of a sparse X; a fit holds several copies


@dataclass(frozen=True)
class Columns:
    """names : the columns in order; levels : the categories of those that have any

    linear : whether x also omits the first level
    fill : the imputed value of each column with missing values (NaN for a category: no level)
    indicators : groups of columns that were missing together in the fit and share an indicator
    plan : how these columns are made from those of X; None if they are the columns of X
    """

    names: tuple[str, ...]
    instruments: tuple[str, ...]
    levels: dict[str, tuple]
    from_frame: bool
    linear: bool = False
    fill: dict[str, float] = field(default_factory=dict)
    indicators: tuple[tuple[str, ...], ...] = ()
    plan: ColumnPlan | None = None

    def check_loaded(self) -> None:
        """Refuse columns that contradict each other."""
        groups = [(self.names, self.names), (self.instruments, self.names)]
        groups += [(tuple(self.levels), self.names), (tuple(self.fill), self.names)]
        for found, known in [*groups, *((group, tuple(self.fill)) for group in self.indicators)]:
            if len(set(found)) != len(found) or not set(found) <= set(known):
                raise ValueError("a column twice, or one that it does not have")
        if not len(self.instruments) < len(self.names):
            raise ValueError("no columns but instruments")
        for levels in self.levels.values():
            if not len(set(levels)) == len(levels) > 0:
                raise ValueError("a category twice, or a column without any")
            if not all(isinstance(level, str | int | float) for level in levels):
                raise ValueError("a category that is neither a string nor a number")
        for name, value in self.fill.items():
            if not (np.isnan(value) if name in self.levels else np.isfinite(value)):
                raise ValueError("an imputed value that is not a number")
        if self.plan is not None:
            steps = {step.name: step for step in self.plan.steps}
            categories = {name: each.levels for name, each in steps.items() if each.is_category}
            if tuple(steps) != self.names or self.plan.clean_instruments != self.instruments:
                raise ValueError("a plan for other columns")
            if categories != self.levels or self.fill:
                raise ValueError("a plan for other levels")

    @property
    def given_names(self) -> tuple[str, ...]:
        """The columns of X."""
        return self.names if self.plan is None else self.plan.names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.instruments)

    @property
    def x_names(self) -> tuple[str, ...]:
        return self._expanded(self.outcome_names, int(self.linear))

    @property
    def w_names(self) -> tuple[str, ...]:
        return self._expanded((*self.outcome_names, *self.instruments), 1)

    def x_names_of(self, chosen, role: str) -> tuple[str, ...]:
        """Names in x of some outcome columns, given by name or position."""
        names = chosen_names(chosen, self.given_names, self.from_frame, role)
        for name in names:
            if name not in self.names:
                raise DataError(
                    f"{role} names the column {name!r}, which on_problem='fix' omits or replaces"
                )
            if name in self.instruments:
                raise DataError(
                    f"{role} names the instrument {name!r}, which is not in the outcome equation"
                )
        return self._expanded(names, int(self.linear))

    def _expanded(self, names, skipped: int) -> tuple[str, ...]:
        labels = []
        for name in names:
            kept = self.levels[name][skipped:] if name in self.levels else None
            labels += [name] if kept is None else [f"{name}[{level}]" for level in kept]
        groups = [group[0] for group in self.indicators if group[0] in names]
        return term_names([*labels, *(f"{name}{MISSING_INDICATOR}" for name in groups)])

    def x(self, table) -> np.ndarray:
        """(m, p) without the instruments, which a frame may lack."""
        return self._numbers(table, self.outcome_names, int(self.linear))

    def w(self, table) -> np.ndarray:
        """(m, q): outcome columns, then instruments."""
        return self._numbers(table, (*self.outcome_names, *self.instruments), 1)

    def _numbers(self, table, names, skipped: int) -> np.ndarray:
        frame = self.frame_of(table)
        if self.plan is not None:
            frame = self.plan.apply(frame, names)
        parts = []
        for name in names:
            if name not in frame.columns:
                hint = did_you_mean(name, frame.columns)
                role = "instrument " if name in self.instruments else "column "
                raise DataError(f"X lacks the {role}{name!r} of the fit{hint}")
            part = self._encode(frame[name], name)
            parts.append(part[:, skipped:] if name in self.levels else part)
        for group in self.indicators:
            if group[0] in names:
                absent = frame[list(group)].isna().to_numpy().any(axis=1)
                parts.append(absent.astype(float)[:, None])
        return np.concatenate(parts, axis=1)

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

    def _encode(self, column: pd.Series, name: str) -> np.ndarray:
        absent = column.isna().to_numpy()
        if absent.any() and name not in self.fill:
            _refuse_missing(absent, name, indicated=bool(self.fill))
        if name not in self.levels:
            try:
                values = numbers_of(column, name)
            except DataError as error:
                raise ColumnError(str(error)) from None
            values = np.where(absent, self.fill[name], values) if absent.any() else values
            infinite = np.flatnonzero(~np.isfinite(values))
            if len(infinite):
                row = infinite[0]
                raise ColumnError(f"column {name!r} is {values[row]} in row {row}; remove the row")
            return values[:, None]
        levels = self.levels[name]
        codes = pd.Index(levels).get_indexer(column)
        unseen = (codes < 0) & ~absent
        if unseen.any():
            row = int(np.flatnonzero(unseen)[0])
            raise DataError(
                f"column {name!r} has the level {column.iloc[row]!r} (row {row}), which did not "
                "occur in the fit"
            )
        return (codes[:, None] == np.arange(len(levels))).astype(float)


def learn_columns(table, instruments, *, missing: str = "error", linear: bool = False) -> Columns:
    """Names, categories and which columns are instruments, given by name or position."""
    if not is_one_of(missing, MISSING):
        raise DataError(f"missing must be one of {', '.join(MISSING)}, got {missing!r}")
    frame, from_frame = named_columns(table)
    names = tuple(frame.columns)
    chosen = chosen_names(instruments, names, from_frame)
    if not names:
        raise DataError(
            f"X has 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required."
        )
    if len(chosen) == len(names):
        raise DataError("every column of X is an instrument; the outcome needs at least one other")
    levels = {
        name: column_levels(frame[name]) for name in names if kind_of(frame[name]) == CATEGORIES
    }
    for name, found in levels.items():
        rows = frame[name].notna().sum()
        if is_text(frame[name]) and len(found) > max(FEWEST_NAMES, rows / 2):
            raise ColumnError(
                f"column {name!r} has {len(found):,} different strings in {rows:,} rows; drop it"
            )
    columns = Columns(names, chosen, levels, from_frame, linear)
    return _with_missing(columns, frame) if missing == "indicator" else columns


def named_columns(table) -> tuple[pd.DataFrame, bool]:
    """X as a frame, and whether it was one; the columns of an array are x0, x1, ..."""
    if hasattr(table, "columns"):
        return _named(table), True
    return pd.DataFrame(_two_dimensional(table)).add_prefix("x"), False


def _with_missing(columns: Columns, frame: pd.DataFrame) -> Columns:
    """The columns with imputed values and missing indicators.

    Columns that are missing in the same rows share an indicator, which would otherwise be twice in
    w. An instrument shares one with the outcome columns, so that x does not depend on it.
    """
    fill: dict[str, float] = {}
    groups: dict[bytes, list[str]] = {}  # those of outcome columns first
    for name in (*columns.outcome_names, *columns.instruments):
        absent = frame[name].isna().to_numpy()
        if not absent.any():
            continue
        if absent.all():
            raise ColumnError(f"column {name!r} is missing in all {len(frame)} rows; drop it")
        category = name in columns.levels
        fill[name] = np.nan if category else float(numbers_of(frame[name][~absent], name).mean())
        group = groups.setdefault(absent.tobytes(), [])
        if name not in columns.instruments or not set(group) & set(columns.outcome_names):
            group.append(name)
    return replace(columns, fill=fill, indicators=tuple(map(tuple, groups.values())))


def _refuse_missing(absent, name: str, *, indicated: bool) -> None:
    rows = np.flatnonzero(absent)
    way_out = "fill or drop them, or fit with missing='indicator'"
    if indicated:
        way_out = (
            "it had no missing value in the fit, so there is no value to impute; fill or drop them"
        )
    raise ColumnError(
        f"column {name!r} is missing (NaN) in {len(rows)} row{'s' * (len(rows) > 1)} (first: row "
        f"{rows[0]}); {way_out}"
    )


def _named(table) -> pd.DataFrame:
    frame = as_pandas(table, "X")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _two_dimensional(table) -> np.ndarray:
    if hasattr(table, "toarray"):
        _check_dense_size(*table.shape)
        table = table.toarray()  # sparse, as a ColumnTransformer returns it
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


def _check_dense_size(rows: int, columns: int) -> None:
    """Refuse a sparse table that would not fit into memory as the dense one that a fit needs."""
    if 8 * rows * columns > MOST_DENSE_BYTES:
        raise DataError(
            f"X is sparse with {rows:,} rows and {columns:,} columns, which as numbers take "
            f"{8 * rows * columns / 2**30:,.0f} GB; reduce its columns, such as with "
            "OneHotEncoder(max_categories=40), TargetEncoder or TruncatedSVD, or pass X.toarray() "
            "if there is memory for several copies"
        )


def chosen_names(given, names, from_frame, role: str = "instruments") -> tuple[str, ...]:
    """Columns given by name or position as names; role : the option that gives them."""
    if given is None:
        return ()
    one = role.removesuffix("s")
    found = []
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
        elif role == "instruments":
            raise DataError(f"X has no column {item!r}, the instrument{_hint(item, names)}")
        else:
            raise DataError(f"X has no column {item!r}, which {role} names{_hint(item, names)}")
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise DataError(f"the {one} {repeated[0]!r} is given twice")
    return tuple(found)


def _hint(item, names) -> str:
    prefixed = [name for name in names if name.endswith(f"__{item}")]
    if prefixed:
        return (
            f"; a ColumnTransformer renamed it to {prefixed[0]!r}, set "
            "verbose_feature_names_out=False to keep the name"
        )
    return did_you_mean(item, names)
