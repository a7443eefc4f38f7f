"""The rows of the table: which bounds follow from which assumptions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End, Ends, both_ends
from heckesel.diagnostics.bounds.bound_intervals import interval_of
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.diagnostics.bounds.bounds_table import BoundsRow
from heckesel.diagnostics.bounds.double_sampling import follow_up_end
from heckesel.diagnostics.bounds.missing_at_random import missing_at_random_end
from heckesel.diagnostics.bounds.monotone_instrument import (
    check_instrument_values,
    independent_end,
    monotone_end,
)
from heckesel.diagnostics.bounds.trimming import check_strata, trimming_end
from heckesel.diagnostics.bounds.worst_case import potential_outcome_end, worst_case_end


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns in sentences about assumptions."""

    outcome: str
    treatment: str = "the treatment"
    instrument: str = "the instrument"
    covariates: tuple[str, ...] = ()


def bounds_rows(
    sample: BoundedSample, names: ColumnNames, level: float, kind: str
) -> list[BoundsRow]:
    """One row for each set of assumptions that the columns of the sample allow."""
    random = "" if sample.treated is None else f"{names.treatment} is random; "
    given = f" given {', '.join(names.covariates)}" if sample.strata is not None else ""

    def row(name, assumes, ends, of="all units"):
        limits = interval_of(sample, ends, level, kind)
        values = ends.lower.value, 0.0 - ends.mirrored.value  # not -0.0
        return BoundsRow(name, assumes, target(sample, of), *values, *limits)

    def add(name, assumes, lower_end):
        rows.append(row(name, random + assumes, _over_arms(sample, lower_end)))

    in_range = f"outcomes lie between {sample.low:g} and {sample.high:g}"
    rows: list[BoundsRow] = []
    if sample.treated is None:
        add("no assumption", in_range, worst_case_end)
    else:
        ends = _over_arms(sample, potential_outcome_end)
        rows.append(row("no assumption", in_range, ends))
        add("random treatment", in_range, worst_case_end)
    if sample.instrument is not None:
        for rows_of in _arms(sample):
            check_instrument_values(sample, rows_of)
        monotone = f"the mean outcome does not decrease with {names.instrument}"
        add("monotone instrument", monotone, monotone_end)
        independent = f"the mean outcome does not depend on {names.instrument}"
        add("instrument", independent, independent_end)
    if sample.followed is not None:
        followed = "those followed up are a random sample of the units without an outcome"
        add("random follow-up", followed, follow_up_end)
    if sample.treated is not None and sample.quantile is None:
        direction = f"{random}it changes selection in one direction"
        for name, strata, more in _trimmings(sample):
            check_strata(sample, strata)
            ends = both_ends(trimming_end, sample, strata)
            both = "units selected in both arms"
            rows.append(row(name, direction + (given if more else ""), ends, both))
    add("missing at random", f"outcomes are missing at random{given}", missing_at_random_end)
    return rows


def target(sample: BoundedSample, units: str) -> str:
    """The bounded quantity, in words."""
    of = "mean" if sample.quantile is None else f"{sample.quantile:g} quantile"
    return f"{of} of {units}" if sample.treated is None else f"effect on the {of} of {units}"


def _arms(sample: BoundedSample) -> list[np.ndarray]:
    if sample.treated is None:
        return [np.ones(sample.n, dtype=bool)]
    return [sample.treated, ~sample.treated]


def _over_arms(sample: BoundedSample, lower_end: Callable[..., End]) -> Ends:
    """Both ends for all units, or for the difference between the arms."""
    first, *other = (both_ends(lower_end, sample, rows) for rows in _arms(sample))
    return first.minus(other[0]) if other else first


def _trimmings(sample: BoundedSample):
    """(name, strata, whether these are those of the covariates)"""
    yield "trimming", np.zeros(sample.n, dtype=int), False
    if sample.strata is not None:
        yield "trimming with covariates", sample.strata, True
