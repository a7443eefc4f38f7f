"""Bounds that assume nothing but the range of the outcome."""

from dataclasses import replace

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.diagnostics.bounds.double_sampling import double_sample_end


def worst_case_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \frac{1}{n}\Bigl(\sum_{s=1} y_i + n_0\,\text{low}\Bigr)

    Every missing outcome is replaced by low, and for the upper end by high (Manski, 1990; Horowitz
    and Manski, 2000).
    """
    return _filled_end(sample, rows, sample.answered)


def potential_outcome_end(sample: BoundedSample, arm) -> End:
    """Lower end for the outcome that all units would have in one arm of the treatment.

    Unless the treatment is random, that of units in the other arm is also missing.
    """
    return _filled_end(sample, np.ones(sample.n, dtype=bool), sample.answered & arm)


def _filled_end(sample: BoundedSample, rows, answered) -> End:
    hidden = np.where(answered, sample.y, np.nan)
    return double_sample_end(replace(sample, y=hidden), rows, answered, ~answered)
