"""Bounds from a random follow-up of the units without an outcome."""

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End, target_end
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.errors import DataError


def follow_up_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \bar s\,\bar y_1 + (1 - \bar s)\,
              \bigl(\bar r\,\bar y_2 + (1 - \bar r)\,\text{low}\bigr)

    s are the units that answered, with mean y1. Of the others, a random sample is followed up, and
    a share r of it answers, with mean y2 (Coppock, Gerber, Green and Kern, 2017). The worst case is
    assumed for the share 1 - r of the sample only, which represents all that did not answer.
    """
    assert sample.followed is not None
    missing = rows & ~sample.answered
    if sample.total(missing) and not sample.total(missing & sample.followed):
        raise DataError(
            "follow_up is 1 for no unit without an outcome"
            + (" in one treatment arm" if sample.treated is not None else "")
            + "; it must be 1 for every unit drawn for the follow-up, whether reached or not"
        )
    return double_sample_end(sample, rows, sample.answered, sample.followed)


def double_sample_end(sample: BoundedSample, rows, answered, drawn) -> End:
    """The same, with the worst case as the special case in which all others are drawn.

    Variances within those who answered, and within those reached, have n - 1 in the denominator.
    """
    first, second = rows & answered, rows & drawn & ~answered
    missing = rows & ~answered
    reached = second & ~np.isnan(sample.y)
    values = np.where(first | reached, sample.y, sample.low)
    total, drawn_total = sample.total(rows), sample.total(second)
    inverse = sample.total(missing) / drawn_total if drawn_total else 0.0
    share = sample.weight * (first + inverse * second) / total

    def contributions_of(v):
        mean = share @ v
        of_second = sample.weight @ (second * v) / drawn_total if drawn_total else 0.0
        unbiased = v.copy()
        for group in (first, reached):
            if size := sample.total(group):
                centre = sample.weight @ (group * v) / size
                factor = sample.residual_factor(group)
                unbiased = np.where(group, centre + factor * (v - centre), unbiased)
        influence = first * (unbiased - mean) + missing * (of_second - mean)
        influence = influence + inverse * second * (unbiased - of_second)
        return sample.weight * influence / total

    return target_end(sample, values, share, contributions_of)
