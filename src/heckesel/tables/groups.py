"""Rows that belong together: `groups=`, a column of X or one value per row, as integer codes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.errors import DataError, as_list, did_you_mean
from heckesel.numeric_input import unmasked
from heckesel.tables.frames import as_pandas, check_same_order

# Names of columns that say which unit a row belongs to.
UNIT_NAME = re.compile(
    r"(^|[_. ])(id|key|uuid|guid|person|patient|subject|household|firm)([_ ]?(id|no|nr|number))?$"
    r"|^(nr|pid|seqn|caseid)$",
    re.IGNORECASE,
)
CAMEL_CASE_ID = re.compile(r"[a-z]I[dD]$")  # customerID
FEWEST_UNITS = 20  # a column with fewer values is a category


@dataclass(frozen=True)
class Groups:
    """name : of the column, None if it has none; codes : (n,) integers from 0"""

    name: str | None
    codes: np.ndarray


def group_codes(values, n: int | None = None) -> np.ndarray:
    """(n,) integer codes of labels, from 0 in the order of their first rows."""
    values = unmasked(values, "groups")
    n = len(values) if n is None and values.ndim else n
    if values.shape != (n,):
        raise DataError(f"groups have shape {values.shape} but there are {n} rows")
    if pd.isna(values).any():
        raise DataError("groups have missing values; every row needs a group")
    if values.dtype == object:
        values = np.array([str(value) for value in values])
    codes, labels = pd.factorize(values)
    if len(labels) < 2:
        raise DataError("all rows are in one group; standard errors and folds need at least two")
    return codes


def split_groups(X, groups, model):
    """X without the column that `groups` names, and the `Groups`, or None.

    model : has `instruments` and perhaps `scale`, which must not name that column
    """
    if groups is None:
        return X, None
    if not isinstance(groups, str):
        check_same_order(X, groups=groups)
        name = getattr(groups, "name", None)
        return X, Groups(None if name is None else str(name), group_codes(groups))
    if not (hasattr(X, "columns") or isinstance(X, dict)):
        raise DataError(f"groups={groups!r} is a name but X has none; pass one value per row")
    frame = as_pandas(X, "X")
    names = [str(name) for name in frame.columns]
    if groups not in names:
        hint = did_you_mean(groups, names)
        raise DataError(f"X has no column {groups!r}, given as groups{hint}")
    _check_roles(groups, model)
    position = names.index(groups)
    codes = group_codes(frame.iloc[:, position])
    return frame.drop(columns=frame.columns[position]), Groups(groups, codes)


def _check_roles(name: str, model) -> None:
    """Refuse an instrument or a column of sigma that is the group, or that is given by position."""
    for option in ("instruments", "scale"):
        given = getattr(model, option, None)
        for item in [] if given is None else as_list(option, given):
            if item == name:
                raise DataError(f"{name!r} is given both as {option} and as groups")
            if not isinstance(item, str):
                raise DataError(
                    f"groups={name!r} is not a column of the model, so positions in {option} would "
                    "not be those of X; give names"
                )


def repeated_units(frame: pd.DataFrame) -> str:
    """The question whether rows belong together; empty if no column names the units of rows."""
    for position, name in enumerate(frame.columns):
        asked = unit_question(str(name), frame.iloc[:, position])
        if asked:
            return asked
    return ""


def unit_question(name: str, column: pd.Series) -> str:
    """The question about one column; empty if it does not name units that have several rows."""
    if not (UNIT_NAME.search(name) or CAMEL_CASE_ID.search(name)):
        return ""
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 != 0).any():
        return ""
    counts = column.value_counts()
    repeated = int((counts > 1).sum())
    if len(counts) < FEWEST_UNITS or 2 * repeated < len(counts):
        return ""
    return (
        f"column {name!r} repeats {repeated:,} values; if rows of one {name} belong together, "
        f"pass groups={name!r} (--groups {name} in the shell)"
    )
