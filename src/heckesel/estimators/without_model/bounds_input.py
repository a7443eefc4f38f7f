"""From the columns given to `hk.bounds` to the checked units."""

from numbers import Real

import numpy as np
import pandas as pd

from heckesel.data import LARGEST, kind_of_weights, numeric, ones_of, selection_data, unmasked
from heckesel.diagnostics.bounds.assumption_sets import ColumnNames
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.errors import DataError
from heckesel.tables.fit_input import outcome_column
from heckesel.tables.formula import covariance_kind
from heckesel.tables.frames import as_pandas, check_same_order


def bounded_sample(
    y, low, high, quantile: float | None, columns: dict, unobserved=None
) -> tuple[BoundedSample, ColumnNames, np.ndarray]:
    """The units of positive weight, what their columns are called, and (n,) which rows they are.

    columns : the other arguments of `hk.bounds` with a value for each row, by name
    """
    check_same_order(y, of="y", **columns)
    name = str(getattr(y, "name", None) or "y")
    values = outcome_column(y, unobserved)
    zeros = np.zeros((len(values), 1))
    sides = {"selected": columns["selected"], "weight": columns["sample_weight"], "y_name": name}
    data = selection_data(zeros, zeros, values, **sides)
    _check_range(data.y[data.s], low, high)
    kind = kind_of_weights(None, data.weight)
    _, clusters = covariance_kind(
        None, columns["clusters"], data.weight, kind, has_likelihood=False
    )
    used = data.weight > 0
    treated, followed = (_indicator(columns[of], of, data.n) for of in ("treatment", "follow_up"))
    instrument, covariates = columns["instrument"], columns["covariates"]
    covariate_names, strata = ((), None) if covariates is None else _strata(covariates, data.n)
    if instrument is not None:
        instrument = _column(instrument, "instrument", data.n)
    sample = BoundedSample(
        y=data.y[used],
        answered=(data.s if followed is None else data.s & ~followed)[used],
        low=float(low),
        high=float(high),
        weight=data.weight[used],
        weight_kind=kind,
        followed=None if followed is None else followed[used],
        clusters=_codes(clusters, used),
        treated=None if treated is None else treated[used],
        instrument=_codes(instrument, used),
        strata=_codes(strata, used),
        quantile=None if quantile is None else float(quantile),
    )
    if sample.freedom == 0:
        raise DataError("all rows of positive weight are in one cluster; two are needed")
    if sample.treated is not None and len(np.unique(sample.treated)) < 2:
        raise DataError(
            f"treatment is {int(sample.treated[0])} in every row, so there is no effect to bound"
        )
    names = ColumnNames(
        outcome=name,
        treatment=str(getattr(columns["treatment"], "name", None) or "the treatment"),
        instrument=str(getattr(columns["instrument"], "name", None) or "the instrument"),
        covariates=covariate_names,
    )
    return sample, names, used


def _check_range(seen, low: float, high: float) -> None:
    if not (isinstance(low, Real) and isinstance(high, Real) and low < high):
        raise DataError(
            f"low must be below high, and both must be numbers, got low={low!r} and high={high!r}"
        )
    large = [end for end in (low, high) if abs(end) > LARGEST and abs(end) != np.inf]
    if large:
        raise DataError(
            f"low and high must be infinite or smaller than {LARGEST:g} in size, got "
            f"{large[0]!r:.60}"
        )
    if seen.min() < low or seen.max() > high:
        raise DataError(
            f"observed outcomes range from {seen.min():g} to {seen.max():g}, beyond the bounds "
            f"{float(low):g} to {float(high):g}; give wider bounds"
        )


def _column(values, name: str, n: int) -> np.ndarray:
    """(n,) numbers without gaps."""
    column = numeric(values, name)
    if column.shape != (n,):
        raise DataError(f"{name} has shape {column.shape} but there are {n} rows")
    gaps = np.flatnonzero(~np.isfinite(column))
    if len(gaps):
        raise DataError(f"{name} is missing or infinite in row {gaps[0]}; every row needs a value")
    return column


def _indicator(values, name: str, n: int) -> np.ndarray | None:
    return None if values is None else ones_of(_column(values, name, n), name)


def _strata(covariates, n: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the columns, and (n,) codes of the combinations of their values."""
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame()
    if not hasattr(covariates, "columns") and not isinstance(covariates, dict):
        array = unmasked(covariates, "covariates")
        if array.ndim not in (1, 2):
            raise DataError(f"covariates must be a table but has shape {array.shape}")
        table = array if array.ndim == 2 else array[:, None]
        names = [f"covariate {j}" for j in range(table.shape[1])]
        covariates = pd.DataFrame(table, columns=names)
    frame = as_pandas(covariates, "covariates")
    if not len(frame.columns):
        raise DataError("covariates have no columns; omit covariates=")
    if len(frame) != n:
        raise DataError(f"covariates have {len(frame)} rows but there are {n} rows of y")
    for name, gaps in frame.isna().items():
        if gaps.any():
            row = int(np.flatnonzero(gaps)[0])
            raise DataError(
                f"the covariate {name!r} is missing in row {row}; impute it or make it a level"
            )
    codes = frame.groupby(list(frame.columns), sort=True, observed=True).ngroup()
    return tuple(map(str, frame.columns)), codes.to_numpy()


def _codes(column, used):
    """Positions of the values among the sorted values that occur in the used rows."""
    return None if column is None else np.unique(column[used], return_inverse=True)[1]
