"""The value that the bounds have in common if outcomes are missing at random."""

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End, target_end
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.errors import DataError


def missing_at_random_end(sample: BoundedSample, rows) -> End:
    """The mean, or the quantile, of some rows if each stratum's outcomes are missing at random.

    Those who answered are weighted to the shares of the strata among all units.
    """
    strata = np.zeros(sample.n, dtype=int) if sample.strata is None else sample.strata
    count, first = strata.max() + 1, rows & sample.answered
    size = np.bincount(strata, sample.weight * rows, count)
    answered = np.bincount(strata, sample.weight * first, count)
    without = np.count_nonzero((size > 0) & (answered == 0))
    if without:
        raise DataError(
            f"{without} of {np.count_nonzero(size)} combinations of the covariates have no "
            "observed outcome"
            + (" in one treatment arm" if sample.treated is not None else "")
            + "; merge levels or give fewer columns as covariates="
        )
    total = size.sum()
    inverse = np.divide(size, answered, out=np.zeros(count), where=answered > 0)[strata]
    share = sample.weight * first * inverse / total
    factor = sample.residual_factor(first)

    def contributions_of(v):
        sums = np.bincount(strata, sample.weight * first * v, count)
        centre = np.divide(sums, answered, out=np.zeros(count), where=answered > 0)[strata]
        influence = rows * (centre - share @ v) + first * inverse * factor * (v - centre)
        return sample.weight * influence / total

    values = np.where(first, sample.y, 0.0)
    return target_end(sample, values, share, contributions_of)
