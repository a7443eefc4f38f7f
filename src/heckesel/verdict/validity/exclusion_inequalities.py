r"""Huber and Mellace's test of an instrument by the inequalities that its validity implies.

Take two groups of units with equal x and different values of the instrument, such that more units
are selected in the second group.
If it affects the outcome only through selection, and affects the selection of all units in the same
direction, every unit selected in the first group would have been selected in the second. They make
up the share q = P(s=1|1)/P(s=1|2) of the selected of the second group. Their mean outcome, which is
observed in the first group, therefore lies between the means of the lowest and of the highest share
q of the outcomes of the second group (Huber and Mellace, Empirical Economics 2014).

Covariates: the inequalities hold for y - f(x) with any function f, and for any weights that give
both groups the same distribution of x. Here f is a smooth regression among the selected, and the
weights are overlap weights, P(other group|x). Groups are levels of a discrete instrument, or thirds
of the residuals of a continuous one given x; all pairs of groups are compared.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from heckesel.classical.probit import HARDLY_ANY_RIDGE, fit_probit
from heckesel.verdict.validity.validity_sample import ValiditySample

GROUPS = 3
MOST_LEVELS = 10  # an instrument with more distinct values is continuous
FEWEST_SELECTED = 20  # of each group: a trimmed mean of fewer is noise
FEWEST_EFFECTIVE = 10  # the same after weighting, by Kish's count
DRAWS = 499
BATCH_ELEMENTS = 2_000_000  # of the matrix of bootstrap weights, 16 MB


@dataclass(frozen=True)
class Pair:
    """Two groups of rows with their overlap weights, the one with fewer selected units first."""

    low: np.ndarray
    high: np.ndarray
    low_weight: np.ndarray
    high_weight: np.ndarray


@dataclass(frozen=True)
class InequalityTest:
    """statistic : the largest violation in standard errors, below 0 if there is none."""

    statistic: float
    p_value: float


def inequality_test(sample: ValiditySample, pairs: list[Pair], seed: int) -> InequalityTest:
    """The largest studentised violation, with a bootstrap p-value.

    Inequalities that are slack by more than sqrt(log n) standard errors do not enter the
    bootstrap, as in Andrews and Soares' generalised moment selection.
    """
    r, found = violations_of(sample, pairs)
    draws = _bootstrap(r, sample, pairs, seed)
    se = draws.std(axis=0)
    t = found / se
    p = p_values(t[None], draws / se - t, sample.n)[0]
    return InequalityTest(float(t.max()), float(p))


def violations_of(sample: ValiditySample, pairs: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) residuals of y, and the (j,) violations of the inequalities in the data."""
    r = np.zeros(sample.n)
    r[sample.s] = regress(sample.covariates, sample.s, sample.weight, sample.y)[sample.s]
    return r, violations(r[None], sample.s[None], sample.weight[None], pairs)[0]


def p_values(t: np.ndarray, centred: np.ndarray, n: int) -> np.ndarray:
    """(m,) p-values of the largest of each row of t.

    t : (m, j) studentised violations; centred : (b, j) draws of them under t = 0
    """
    binding = t > -np.sqrt(np.log(n))
    largest = np.where(binding[:, None], centred[None], -np.inf).max(axis=2)  # (m, b)
    above = np.sum(largest >= t.max(axis=1, keepdims=True), axis=1)
    return np.where(binding.any(axis=1), (1 + above) / (1 + centred.shape[0]), 1.0)


def regress(columns, s, weight, target) -> np.ndarray:
    """(n,) residuals of a weighted least squares among the selected."""
    root = np.sqrt(weight[s])
    coefficients = np.linalg.lstsq(columns[s] * root[:, None], target[s] * root, rcond=None)[0]
    return target - columns @ coefficients


def pairs_of(sample: ValiditySample) -> list[Pair]:
    """All pairs of groups of the instruments' joint effect on selection that overlap in x."""
    groups = _groups(sample)
    count = groups.max() + 1
    pairs = [
        _pair(sample, np.flatnonzero(groups == a), np.flatnonzero(groups == b))
        for a in range(count)
        for b in range(a + 1, count)
    ]
    return [pair for pair in pairs if _effective(sample, pair) >= FEWEST_EFFECTIVE]


def _effective(sample: ValiditySample, pair: Pair) -> float:
    """Kish's effective number of selected units in the smaller group."""
    sides = ((pair.low, pair.low_weight), (pair.high, pair.high_weight))
    masses = [(sample.weight[rows] * share)[sample.s[rows]] for rows, share in sides]
    # a group that x predicts perfectly has no mass at all
    return min(mass.sum() ** 2 / max((mass**2).sum(), 1e-300) for mass in masses)


def _groups(sample: ValiditySample) -> np.ndarray:
    """(n,) 0 for the units that the instruments make least likely to be selected."""
    value = sample.z @ sample.effects
    if len(np.unique(value)) > MOST_LEVELS:
        value = regress(sample.covariates, np.ones(sample.n, bool), sample.weight, value)
    _, level, counts = np.unique(value, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(value)  # the mean rank of each level
    groups = np.unique((GROUPS * middle[level]).astype(int), return_inverse=True)[1]
    while groups.max() > 0:
        selected = np.bincount(groups, weights=sample.s)
        least = int(selected.argmin())
        if selected[least] >= FEWEST_SELECTED:
            break
        groups = groups - (groups >= max(least, 1))  # merged with a neighbour
    return groups


def _pair(sample: ValiditySample, low: np.ndarray, high: np.ndarray) -> Pair:
    rows = np.concatenate([low, high])
    is_high = np.arange(len(rows)) >= len(low)
    columns, weight = sample.covariates[rows], sample.weight[rows]
    probit = fit_probit(columns, is_high, weight, ridge=HARDLY_ANY_RIDGE)
    share = ndtr(columns @ probit.gamma)
    overlap = np.where(is_high, 1 - share, share)
    return Pair(low, high, overlap[~is_high], overlap[is_high])


def _bootstrap(r, sample: ValiditySample, pairs, seed: int) -> np.ndarray:
    """(DRAWS, j) violations with exponential weights on the rows, or on groups of them."""
    rng = np.random.default_rng(seed)
    step = max(1, BATCH_ELEMENTS // sample.n)
    own = slice(None) if sample.groups is None else sample.groups
    drawn = sample.n if sample.groups is None else int(sample.groups.max()) + 1
    return np.concatenate(
        [
            violations(
                r[None],
                sample.s[None],
                sample.weight * rng.standard_exponential((min(step, DRAWS - begun), drawn))[:, own],
                pairs,
            )
            for begun in range(0, DRAWS, step)
        ]
    )


def violations(r, s, mass, pairs: list[Pair]) -> np.ndarray:
    """(b, 2 pairs) how far the mean of the low group is above the upper and below the lower bound.

    r, s, mass : (b, n) or (1, n) residuals, selection and weights of the rows
    """
    return np.column_stack([_violations_of(r, s, mass, pair) for pair in pairs])


def _violations_of(r, s, mass, pair: Pair) -> np.ndarray:
    low, high = _chosen(pair.low, s), _chosen(pair.high, s)
    low_mass, high_mass = mass[:, pair.low] * pair.low_weight, mass[:, pair.high] * pair.high_weight
    low_selected = low_mass[:, low] * s[:, pair.low[low]]
    high_selected = high_mass[:, high] * s[:, pair.high[high]]
    kept = low_selected.sum(axis=1)
    mean = np.einsum("bi,bi->b", *np.broadcast_arrays(low_selected, r[:, pair.low[low]])) / kept
    rate_low = kept / low_mass.sum(axis=1)
    rate_high = high_selected.sum(axis=1) / high_mass.sum(axis=1)
    values = r[:, pair.high[high]]
    order = np.argsort(values, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    if len(order) == 1:
        high_selected = high_selected[:, order[0]]
    else:
        high_selected = np.take_along_axis(high_selected, order, axis=1)
    share = np.minimum(rate_low / rate_high, 1.0)
    lower, upper = trimmed_means(values, high_selected, share)
    return np.column_stack([mean - upper, lower - mean])


def _chosen(rows, s) -> np.ndarray:
    """Positions of the rows that are selected in at least one draw."""
    return np.flatnonzero(s[:, rows].any(axis=0))


def trimmed_means(values, mass, share) -> tuple[np.ndarray, np.ndarray]:
    """Means of the lowest and of the highest `share` of a distribution, (b,) each.

    values : (b, m) or (1, m), increasing along rows; mass : (b, m); share : (b,)
    """
    below, sums = np.cumsum(mass, axis=1), np.cumsum(mass * values, axis=1)
    total, kept = below[:, -1], share * below[:, -1]
    lowest = _sum_up_to(kept, values, below, sums)
    highest = sums[:, -1] - _sum_up_to(total - kept, values, below, sums)
    return lowest / kept, highest / kept


def _sum_up_to(bound, values, below, sums) -> np.ndarray:
    """(b,) mass times values of the lowest part whose mass is `bound`."""
    rows = np.arange(len(below))
    at = np.minimum((below < bound[:, None]).sum(axis=1), below.shape[1] - 1)
    value = values[rows if len(values) > 1 else 0, at]
    return sums[rows, at] - (below[rows, at] - bound) * value
