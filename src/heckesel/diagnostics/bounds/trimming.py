"""Lee's trimming bounds for the effect of a treatment that changes selection in one direction."""

import numpy as np

from heckesel.diagnostics.bounds.bound_estimates import End
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.errors import DataError, warn_user

ROUNDING = 1e-12  # relative; cumulative weights err by less


def trimming_end(sample: BoundedSample, strata) -> End:
    """Lower end of the effect on units that are selected with and without the treatment.

    strata : (n,) codes within which the arms are compared; zeros for all units together

    The arm in which selection is more frequent also contains others. They are at worst those with
    the largest outcomes, so that a share of these is trimmed (Lee, 2009).
    """
    treated = sample.treated
    assert treated is not None
    rate = [sample.total(arm & sample.answered) / sample.total(arm) for arm in (treated, ~treated)]
    if rate[0] >= rate[1]:
        return _trimmed_end(sample, sample.y, treated, strata)
    return _trimmed_end(sample, -sample.y, ~treated, strata)


def check_strata(sample: BoundedSample, strata) -> None:
    """Refuse strata without an outcome in one arm, and warn of those that are not trimmed."""
    treated, count = sample.treated, strata.max() + 1
    assert treated is not None
    arms = [treated, ~treated]
    size = [np.bincount(strata, sample.weight * arm, count) for arm in arms]
    answered = [np.bincount(strata, sample.weight * (arm & sample.answered), count) for arm in arms]
    empty = np.count_nonzero(np.minimum(*answered) == 0)
    if empty:
        raise DataError(
            f"{empty} of {count} combinations of the covariates have no observed outcome in one "
            "treatment arm; merge levels or give fewer columns as covariates="
        )
    difference = answered[0] / size[0] - answered[1] / size[1]
    overall = np.sign(answered[0].sum() / size[0].sum() - answered[1].sum() / size[1].sum())
    reverse = np.count_nonzero(np.sign(difference) == -overall)
    if overall and reverse:
        warn_user(
            f"in {reverse} of {count} combinations of the covariates selection differs between the "
            "arms in the other direction than overall; nothing is trimmed there"
        )


def _trimmed_end(sample: BoundedSample, y, trimmed, strata) -> End:
    r"""Mean of the smallest outcomes of the arm `trimmed` minus the mean of the other arm.

    In each stratum a share of the arm equal to the rate of selection p of the other arm is kept. If
    q is the largest outcome kept, its mean is

    .. math:: m = q - \mathrm{E}[(q - y)^+ s]/p

    whose derivative in q is zero, so that what q contributes to the error vanishes. Strata are
    weighted by their share among the selected units of the other arm, which are all selected with
    and without the treatment.
    """
    weight, s, count = sample.weight, sample.answered, strata.max() + 1
    arm, other = trimmed & s, ~trimmed & s
    y = np.where(s, y, 0.0)
    size, of_arm, others, of_other = (
        np.bincount(strata, weight * rows, count) for rows in (trimmed, arm, ~trimmed, other)
    )
    rate = of_other / others
    kept = np.minimum(rate * size, of_arm)
    whole = kept >= of_arm * (1 - ROUNDING)
    q = _largest_kept(y, weight, strata, arm, kept)[strata]
    shortfall = np.where(arm, np.maximum(q - y, 0.0), 0.0)
    lacking = np.bincount(strata, weight * shortfall, count)
    sums = np.bincount(strata, weight * arm * y, count)
    largest = np.zeros(count)
    largest[strata] = q
    mean = np.where(whole, sums / of_arm, largest - lacking / kept)

    selected = of_other.sum()
    of_strata = of_other / selected
    factor = np.where(other, sample.residual_factor(other), 1.0)
    mean_other = weight @ (other * y) / selected
    overall = of_strata @ mean
    in_arm = np.where(
        whole[strata],
        arm * (y - mean[strata]) / of_arm[strata],
        trimmed * ((lacking / size)[strata] - shortfall) / kept[strata],
    )
    in_other = np.where(
        whole[strata],
        0.0,
        ~trimmed * (lacking / size / rate**2 / others)[strata] * (s - rate[strata]),
    )
    contributions = of_strata[strata] * (in_arm + in_other)
    contributions += other * (mean[strata] - overall - factor * (y - mean_other)) / selected
    return End(float(overall - mean_other), weight * contributions)


def _largest_kept(y, weight, strata, arm, kept) -> np.ndarray:
    """(c,) the outcome at which the weights of the smallest ones reach `kept` in each stratum."""
    order = np.lexsort((y, strata))
    order = order[arm[order]]
    codes, of_rows = strata[order], weight[order]
    start = np.searchsorted(codes, np.arange(len(kept)))
    before = np.concatenate([[0.0], np.cumsum(of_rows)])
    within = before[1:] - before[start][codes]
    below = within < (kept * (1 - ROUNDING))[codes]
    return y[order[start + np.bincount(codes, below, len(kept)).astype(int)]]
