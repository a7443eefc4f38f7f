"""`SelectionData`: arrays of the selection model, validated once where they enter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np

from heckesel.errors import DataError, is_share

CONSTANT = "Intercept"
HOLDS_DATES = "holds dates; convert it to numbers, such as years since 2000"
# The end of the name of a 0/1 column that indicates where another column is missing.
MISSING_INDICATOR = "[missing]"
LARGEST = 1e100  # squares of larger numbers overflow when they are added up
SMALLEST = 1e-100  # squares of smaller numbers, added up, lose digits or are zero


def term_names(names) -> tuple[str, ...]:
    """Columns as terms of an equation, where `Intercept` is the constant: a column of that name is
    I(Intercept), as it could be written in a formula."""
    return tuple(f"I({CONSTANT})" if name == CONSTANT else name for name in names)


@dataclass(frozen=True)
class SelectionData:
    """n units of which some have an outcome.

    x : (n, p) outcome columns; rows of unselected units may hold NaN
    w : (n, q) selection columns, instruments among them
    s : (n,) bool, True where the outcome was observed
    y : (n,) NaN where it was not
    weight : (n,) multiplies each unit's log-likelihood
    scale : (n, k) columns of log sigma(x), if it is not constant; like x, NaN where unselected
    groups : (n,) integer codes; units with the same code may depend on one another

    Linear models have their constant as the first column of x and w; networks have biases, and
    their linear selection equation appends its constant as the last coefficient.
    """

    x: np.ndarray
    w: np.ndarray
    s: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    y_name: str
    excluded: tuple[str, ...] | None = None
    scale: np.ndarray | None = None
    scale_names: tuple[str, ...] = ()
    groups: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.s)

    @property
    def has_selection(self) -> bool:
        return not self.s.all()

    def units(self, weight_kind: str, *, selected: bool = False) -> int:
        """Units, or the selected among them; frequency weights count as rows."""
        weight = self.weight[self.s] if selected else self.weight
        frequency = weight_kind == "frequency"
        return round(weight.sum()) if frequency else int(np.count_nonzero(weight))

    def take(self, rows) -> SelectionData:
        """Some of the units, by position or by a mask; without a copy if the mask has them all."""
        if isinstance(rows, np.ndarray) and rows.dtype == np.bool_ and rows.all():
            return self
        columns = {name: getattr(self, name)[rows] for name in ("x", "w", "s", "y", "weight")}
        for name in ("scale", "groups"):
            values = getattr(self, name)
            columns[name] = None if values is None else values[rows]
        return replace(self, **columns)

    @property
    def x_starts_w(self) -> bool:
        """Whether x is the first columns of w themselves, in the same memory."""
        x, w = self.x.__array_interface__, self.w.__array_interface__
        return x["data"] == w["data"] and self.x.strides == self.w.strides

    @property
    def instruments(self) -> tuple[str, ...]:
        """Selection columns that the outcome equation excludes: `excluded` if the caller knows
        them, else by name."""
        if self.excluded is not None:
            return self.excluded
        known = {*self.x_names, "Intercept"}
        return tuple(name for name in self.w_names if name not in known)

    def to_saved(self) -> RowSummary:
        """What the file of a fit holds of its rows."""
        return row_summary(self)


def row_summary(data) -> RowSummary:
    """Names and counts of rows in memory or in files."""
    kinds = ("frequency", "probability", "analytic")
    return RowSummary(
        data.x_names,
        data.w_names,
        data.y_name,
        data.instruments,
        data.scale_names,
        data.has_selection,
        {kind: data.units(kind) for kind in kinds},
        {kind: data.units(kind, selected=True) for kind in kinds},
    )


class NoRows(DataError, AttributeError):
    """A fit that was loaded has no rows."""


@dataclass(frozen=True)
class RowSummary:
    """Names and counts of the rows of a fit that was loaded; the rows are not in its file.

    all_units, selected_units : by kind of weights
    """

    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    y_name: str
    instruments: tuple[str, ...]
    scale_names: tuple[str, ...]
    has_selection: bool
    all_units: dict[str, int]
    selected_units: dict[str, int]

    def units(self, weight_kind: str, *, selected: bool = False) -> int:
        """Units, or the selected among them; frequency weights count as rows."""
        return (self.selected_units if selected else self.all_units)[weight_kind]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoRows(
            "this needs the rows of the fit, which the file of a saved model does not hold; fit "
            "the model again, or pass rows"
        )


def concatenate(batches: list[SelectionData]) -> SelectionData:
    """The rows of all batches; everything else is that of the first."""
    columns: dict = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in ("x", "w", "s", "y", "weight")
    }
    if batches[0].scale is not None:
        columns["scale"] = np.concatenate([batch.scale for batch in batches])
    return replace(batches[0], **columns)


def selection_data(
    x, w, y, *, selected=None, weight=None, x_names=None, w_names=None, y_name="y", excluded=None
) -> SelectionData:
    """A validated `SelectionData`; a missing y means unselected unless `selected` is given.

    Values of y on unselected rows are set to NaN, so that no fit can use them.
    """
    y = numeric(y, y_name)
    if y.ndim != 1:
        raise DataError(f"{y_name!r} must be one column but has shape {y.shape}")
    n = len(y)
    if n < 2:
        raise DataError(f"the data has {n} rows; a selection model needs at least two")
    x, w = _matrix(x, "x", n), _matrix(w, "w", n)
    x_names = _names(x_names, "x", x.shape[1])
    w_names = _names(w_names, "w", w.shape[1])
    s = selected_rows(y, selected, y_name)
    data = SelectionData(
        x, w, s, np.where(s, y, np.nan), np.ones(n), x_names, w_names, y_name, excluded
    )
    check_values(data)
    return replace(data, weight=check_weights(weight, n, s))


def batch_of(x, w, s, y, weight, *, check: bool = True, **others) -> SelectionData:
    """Rows of a longer table, without those of weight zero; others : fields of `SelectionData`."""
    data = SelectionData(x, w, s, np.where(s, y, np.nan), weight, **others)
    if check:
        check_weight_values(weight)
        check_values(data)
        if data.scale is not None:
            check_complete(data.scale, data.scale_names, np.flatnonzero(s))
    return data if weight.all() else data.take(weight > 0)


def check_values(data: SelectionData) -> None:
    """Refuse missing values and values whose squares overflow, where a fit uses them."""
    selected = np.flatnonzero(data.s)
    _check_outcome_size(data.y[selected], selected, data.y_name)
    everyone = range(data.n)
    tables = [(data.w, data.w_names, everyone), (data.x, data.x_names, selected)]
    for values, names, rows in tables[:1] if data.x_starts_w else tables:
        check_complete(values, names, rows)
        check_not_tiny(values, names, rows)


def _matrix(values, name: str, n: int) -> np.ndarray:
    values = numeric(values, name)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2:
        raise DataError(f"{name} must be a table of rows and columns but has shape {values.shape}")
    if len(values) != n:
        raise DataError(f"{name} has {len(values)} rows but y has {n}")
    if values.shape[1] == 0:
        raise DataError(f"{name} has no columns; give at least one, or a constant")
    return values


def _names(names, prefix: str, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{prefix}{j}" for j in range(count))
    names = tuple(str(name) for name in names)
    if len(names) != count:
        raise DataError(f"{prefix} has {count} columns but {len(names)} names")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"the column name {repeated[0]!r} appears twice in {prefix}; rename one")
    return names


def selected_rows(y, selected, y_name: str) -> np.ndarray:
    """(n,) bool: where y is observed, or where `selected` is 1; at least one row."""
    s = marked_rows(y, selected, y_name)
    if not s.any() and selected is None:
        raise DataError(f"the outcome {y_name!r} is missing in all {len(y)} rows")
    if not s.any():
        raise DataError("no row is selected, so there is no outcome to learn from")
    return s


def marked_rows(y, selected, y_name: str) -> np.ndarray:
    """The same for some rows of a longer table, of which none need be selected."""
    if selected is None:
        return ~np.isnan(y)
    values = numeric(selected, "selected")
    if values.shape != y.shape:
        raise DataError(f"selected has shape {values.shape} but y has {y.shape}")
    s = ones_of(values, "selected")
    missing = np.flatnonzero(s & np.isnan(y))
    if len(missing):
        raise DataError(
            f"{len(missing)} selected rows have no outcome {y_name!r} (first: row {missing[0]}); "
            "mark them as unselected or drop them"
        )
    return s


def _check_outcome_size(values, rows, name: str) -> None:
    largest = max(-values.min(initial=0.0), values.max(initial=0.0))
    if largest == 0 or SMALLEST <= largest < LARGEST:
        return
    too_large = np.flatnonzero(np.abs(values) >= LARGEST)
    if len(too_large):
        at = too_large[0]
        raise DataError(
            f"the outcome {name!r} is {values[at]:g} in row {rows[at]}; "
            "rescale it, remove the row or leave the outcome missing"
        )
    if largest < SMALLEST:
        raise DataError(
            f"all values of the outcome {name!r} lie within {SMALLEST:g} of zero; rescale it"
        )


def check_complete(values, names, rows) -> None:
    """Refuse missing values and values whose squares overflow in these rows."""
    if values.size and values.min() > -LARGEST and values.max() < LARGEST:
        return  # a NaN would have made both comparisons False
    finite, rows = np.abs(values) < LARGEST, np.asarray(rows)
    good = finite[rows]
    if good.all():
        return
    bad_columns = [names[j] for j in np.flatnonzero(~good.all(axis=0))]
    bad_rows = rows[~good.all(axis=1)]
    raise DataError(
        f"{len(bad_rows)} rows (first: row {bad_rows[0]}) have no usable value "
        f"in {', '.join(map(repr, bad_columns))} (missing, infinite or beyond 1e100); "
        "impute, rescale or drop them"
    )


def check_not_tiny(values, names, rows) -> None:
    """Refuse columns so small in these rows that a fit cannot compute their variance."""
    # a glance at some rows clears most columns
    tiny = np.arange(values.shape[1])
    for glance in (rows[:64], rows[:: len(rows) // 4096 + 1]):
        tiny = tiny[(np.abs(values[np.ix_(glance, tiny)]) < SMALLEST).all(axis=0)]
    for j in tiny:
        largest = np.abs(values[rows, j]).max(initial=0.0)
        if 0 < largest < SMALLEST:
            raise DataError(
                f"all values of column {names[j]!r} are at most {largest:g} in size, so their "
                "squares underflow to zero; rescale the column"
            )


def check_weights(weight, n: int, s: np.ndarray) -> np.ndarray:
    """(n,) weights, ones where none are given."""
    if weight is None:
        return np.ones(n)
    weight = numeric(weight, "weights")
    if weight.shape != (n,):
        raise DataError(f"weights have shape {weight.shape} but there are {n} rows")
    check_weight_values(weight)
    if not weight.any():
        raise DataError("all weights are zero")
    if not weight[s].any():
        raise DataError("all selected rows have weight zero")
    return weight


def kind_of_weights(weight_kind: str | None, weight) -> str:
    """The kind asked for; by default whole numbers are frequencies."""
    if weight_kind is not None:
        return weight_kind
    return "frequency" if (weight == np.round(weight)).all() else "probability"


def scaled_weight(weight, weight_kind: str) -> np.ndarray:
    """Probability and analytic weights with an average of one, because their scale is arbitrary and
    likelihoods add them up; frequency weights as they are."""
    if weight_kind == "frequency":
        return weight
    return weight * np.count_nonzero(weight) / weight.sum()


def check_weight_values(weight: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(bad):
        raise DataError(
            f"weights must be finite and not negative, but row {bad[0]} has {weight[bad[0]]:g}"
        )
    odd = np.flatnonzero((weight > LARGEST) | ((weight > 0) & (weight < SMALLEST)))
    if len(odd):
        raise DataError(
            f"weights must lie between {SMALLEST:g} and {LARGEST:g}, or be zero, but row {odd[0]} "
            f"has {weight[odd[0]]:g}; divide all of them by the same number"
        )


@dataclass(frozen=True)
class DataScale:
    """Centre and scale of x (p,), w (q,) and y (one number each)."""

    x_centre: np.ndarray
    x_scale: np.ndarray
    w_centre: np.ndarray
    w_scale: np.ndarray
    y_centre: float
    y_scale: float

    @classmethod
    def of(cls, data: SelectionData, standardise: bool = True) -> DataScale:
        """Moments of x and w over all units, of y over the selected ones; 0 and 1 if not
        `standardise`.

        x may be missing for unselected units, so its moments ignore NaN. A weight of two counts as
        two rows. The computed sd of a constant column is rounding error, about 1e-16 of its mean,
        and becomes 1.
        """
        p, q, s = data.x.shape[1], data.w.shape[1], data.s
        if not standardise:
            return cls(np.zeros(p), np.ones(p), np.zeros(q), np.ones(q), 0.0, 1.0)

        def moments(values, weight) -> tuple[np.ndarray, np.ndarray]:
            if (weight == weight[0]).all():
                centre, scale = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
            else:
                share = np.where(np.isnan(values), 0.0, weight[:, None])
                share /= share.sum(axis=0)
                centre = np.nansum(share * values, axis=0)
                scale = np.sqrt(np.nansum(share * (values - centre) ** 2, axis=0))
            return centre, np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)

        y = moments(data.y[s, None], data.weight[s])
        x, w = moments(data.x, data.weight), moments(data.w, data.weight)
        return cls(*x, *w, float(y[0][0]), float(y[1][0]))

    def x(self, x: np.ndarray) -> np.ndarray:
        return (np.asarray(x, dtype=float) - self.x_centre) / self.x_scale

    def w(self, w: np.ndarray) -> np.ndarray:
        """(n, q + 1), a constant last."""
        scaled = (np.asarray(w, dtype=float) - self.w_centre) / self.w_scale
        return np.column_stack([scaled, np.ones(len(scaled))])

    def y(self, y: np.ndarray) -> np.ndarray:
        return (y - self.y_centre) / self.y_scale

    def unscale_gamma(self, gamma: np.ndarray) -> np.ndarray:
        """Coefficients (k, q + 1), constant last, for w in the user's units."""
        slopes = gamma[:, :-1] / self.w_scale
        constant = gamma[:, -1:] - slopes @ self.w_centre[:, None]
        return np.hstack([slopes, constant])


# Arrays and numbers that users pass, converted or refused with the value that is wrong


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


def evenly_spaced(count: int, most: int) -> np.ndarray:
    """Row numbers of at most `most` of `count` rows, at even steps."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


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
