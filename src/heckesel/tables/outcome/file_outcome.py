"""The outcome column of a table file without the values that stand for a missing one."""

from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.tables.column_kinds import is_text, parsed_numbers, stripped
from heckesel.tables.table_file import TableFile


def without_values(table: TableFile, name: str, values: list[str]) -> TableFile:
    """The table with these values of the outcome set to missing; 0 is also 0.0 and 00."""
    table.check(name, "outcome")
    column = table.frame[name]
    strings = stripped(column)[0] if is_text(column) else column.astype(object).map(str)
    numbers = parsed_numbers(strings, table.decimal)
    hidden = np.zeros(len(column), dtype=bool)
    for value in values:
        number = parsed_numbers(pd.Series([value]), table.decimal)[0]
        found = (strings == value).to_numpy() | (numbers == number)
        if not found.any():
            raise DataError(
                f"--unobserved {value}: column {name!r} has this value in no row of {table.path}"
            )
        hidden |= found
    kept = column.where(~hidden, "") if is_text(column) else column.mask(hidden)
    return replace(table, frame=table.frame.assign(**{name: kept}))
