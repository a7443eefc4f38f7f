"""Arrays and numbers that users pass, converted or refused with the value that is wrong."""

from datetime import date, timedelta

import numpy as np

from heckesel.errors import DataError, is_share

HOLDS_DATES = "holds dates; convert it to numbers, such as years since 2000"


def check_scalars(values, name) -> None:
    """Refuse values that hold others, such as the lists and structs of Parquet files."""
    if any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in values):
        raise DataError(
            f"column {name!r} holds lists or records; give each of their values a separate column, "
            "or drop the column"
        )


def is_date(value) -> bool:
    """Whether a value is a date, a time or a difference of two, of any library."""
    return isinstance(value, date | timedelta | np.datetime64 | np.timedelta64)


def numeric(values, name: str) -> np.ndarray:
    """`values` as float64, or an error that shows the first value that is not a number.

    Masked values are missing: NaN.
    """
    array = unmasked(values, name)
    if array.dtype.kind in "fiub":
        return array.astype(float, copy=False)
    if array.dtype.kind in "mM":  # as objects, nanoseconds would be whole numbers
        raise DataError(f"column {name!r} {HOLDS_DATES}")
    flat = array.astype(object).ravel()
    check_scalars(flat, name)
    numbers = np.empty(len(flat))
    for row, value in enumerate(flat):
        try:
            numbers[row] = np.nan if _is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            if is_date(value):
                raise DataError(f"column {name!r} {HOLDS_DATES}") from None
            raise DataError(
                f"column {name!r} must hold numbers but row {row} holds {_shown(value)}; "
                "convert it to a number"
            ) from None
    return numbers.reshape(array.shape)


def unmasked(values, name: str) -> np.ndarray:
    """`values` as a plain array; values masked by `numpy.ma` become NaN, or None among objects.

    `np.asarray` alone would ignore the mask.
    """
    try:
        if isinstance(values, list | tuple) and any(map(np.ma.isMaskedArray, values)):
            values = np.ma.array(values)
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors on a device
        reason = str(error).replace(". ", "; ").rstrip(".")
        if "inhomogeneous" in reason:
            reason = "its rows differ in length; give every row the same columns"
        raise DataError(f"{name} cannot be read as an array: {reason}") from None
    if not np.ma.is_masked(values):
        return array
    if array.dtype.names is not None:
        raise DataError(f"{name} is a structured array with masked values; pass a data frame")
    numbers = array.dtype.kind in "fiub"
    array = array.astype(float if numbers else object)
    array[np.ma.getmaskarray(values)] = np.nan if numbers else None
    return array


def _is_missing(value) -> bool:
    """None or a missing value of pandas, recognised by name, since networks are also trained where
    pandas is not installed."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _shown(value, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def ones_of(values: np.ndarray, what: str) -> np.ndarray:
    """(n,) whether `values`, which must be 0 or 1, are 1."""
    odd = np.flatnonzero((values != 0) & (values != 1))
    if len(odd):
        raise DataError(f"{what} must be 0 or 1 but row {odd[0]} holds {values[odd[0]]:g}")
    return values == 1


def check_level(level: float) -> None:
    """Refuse a level of confidence or coverage that is none."""
    if not is_share(level):
        raise DataError(f"level must lie between 0 and 1, got {level!r}")


def seed_of(random_state) -> int:
    """The seed of a fit, from `random_state`: a number, a generator or None."""
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError:
        raise DataError(
            "random_state must be a whole number from 0 to 4294967295, a RandomState or None, got "
            f"{random_state!r}"
        ) from None
