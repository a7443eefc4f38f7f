r"""Poisson bootstrap of the two-step estimator, many replicates in each pass over the rows.

A replicate counts row i a number of times that is Poisson with mean one, independently for all
rows: resampling n rows with replacement, except that the total varies by :math:`\sqrt n`. The
counts of a row do not depend on other rows. They are functions of (seed, replicate, position of the
row) only, so they are the same in memory and in files, on one machine and on a cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import pdtr, pdtrik

from heckesel.likelihoods.normal import unselected_units
from heckesel.linear.sample.blocks import add_up
from heckesel.linear.sample.sample import Rows, Sample, SampleScale
from heckesel.numerics.normal import inverse_mills, mills_delta

REPLICATES_AT_ONCE = 64  # with a block of 8192 rows 4 MB an array
PROBIT_STEPS = 25
STEP_TOLERANCE = 1e-10
SELECTED, UNSELECTED, CLUSTERS = range(3)  # streams of one replicate
PER_BLOCK = 4  # 64-bit numbers that Philox makes of one value of its counter
# Beyond this mean counts are inverted one by one; up to it 150 of them hold all but 1e-20.
LARGEST_TABULATED, MOST_COUNTED = 50, 150


def poisson_counts(seed, numbers: range, stream: int, first: int, mean: np.ndarray) -> np.ndarray:
    """(b, n) counts of rows number `first` on, in the replicates with these numbers.

    mean : (n,). Philox is a function of a key and a counter, so the counts of a row do not require
    those of the rows before it.
    """
    words = np.empty((len(numbers), len(mean)), np.uint64)
    skipped = first % PER_BLOCK
    for row, number in zip(words, numbers, strict=True):
        sequence = np.random.SeedSequence(seed, spawn_key=(number, stream))
        generator = np.random.Philox(
            key=sequence.generate_state(2, np.uint64), counter=[first // PER_BLOCK, 0, 0, 0]
        )
        row[:] = generator.random_raw(skipped + len(mean))[skipped:]
    uniform = (words >> np.uint64(11)) * 2.0**-53
    counts = np.empty(words.shape)
    for value in np.unique(mean):
        here = mean == value
        counts[:, here] = _poisson_quantile(uniform[:, here], float(value))
    return counts


def _poisson_quantile(uniform, mean: float) -> np.ndarray:
    """The smallest k with P(at most k) above `uniform`."""
    if mean <= LARGEST_TABULATED:
        return np.searchsorted(pdtr(np.arange(MOST_COUNTED), mean), uniform, side="right")
    return np.ceil(pdtrik(np.maximum(uniform, 2.0**-54), mean))


@dataclass(frozen=True)
class Resampled:
    """How often each row counts in each replicate.

    frequency : a weight of two is two rows; else rows are drawn and keep their weight
    clusters : codes from 0 of the selected and of the unselected rows; rows of one are drawn
        together
    """

    seed: int
    numbers: range
    frequency: bool = True
    clusters: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def _by_cluster(self) -> np.ndarray:
        """(b, clusters) counts, small numbers all of them."""
        assert self.clusters is not None
        each = np.ones(1 + max(codes.max(initial=0) for codes in self.clusters))
        return poisson_counts(self.seed, self.numbers, CLUSTERS, 0, each).astype(np.uint8)

    def mass(self, block: Sample, stream: int) -> np.ndarray:
        """(b, n) of the selected or the unselected rows of a block."""
        weight = block.weight_selected if stream == SELECTED else block.weight_unselected
        first = block.start[stream]
        if self.clusters is not None:
            codes = self.clusters[stream][first : first + len(weight)]
            return self._by_cluster[:, codes] * weight
        if self.frequency:
            return poisson_counts(self.seed, self.numbers, stream, first, weight)
        ones = np.ones(len(weight))
        return poisson_counts(self.seed, self.numbers, stream, first, ones) * weight


def bootstrap_two_step(
    rows: Rows, scalings: SampleScale, start, *, replicates: int, run: Callable = map, **resampling
) -> np.ndarray:
    """(replicates, p + 1 + q + 2) draws of (beta, lambda, gamma, rho, sigma).

    start : (q,) the probit of the data itself; run : a `map` over blocks of replicates;
    resampling : fields of `Resampled`. A replicate without a finite estimate is NaN.
    """
    blocks = [
        Resampled(numbers=range(replicates)[first : first + REPLICATES_AT_ONCE], **resampling)
        for first in range(0, replicates, REPLICATES_AT_ONCE)
    ]
    start = np.linalg.solve(scalings.w.back, start)
    task = partial(fit_replicates, rows=rows, scalings=scalings, start=start)
    return np.concatenate(list(run(task, blocks)))


def fit_replicates(resampled, *, rows: Rows, scalings: SampleScale, start) -> np.ndarray:
    """The two-step estimates of the replicates in `resampled`, which has their `numbers` and gives
    the `mass` of a block's rows; start : (q,) for standardised w."""
    gamma = np.tile(start, (len(resampled.numbers), 1))
    for _ in range(PROBIT_STEPS):
        task = partial(_probit_sums, gamma=gamma, resampled=resampled)
        gradient, packed = rows.sum(task)
        step = _solve(_unpack(packed, rows.q), gradient)
        gamma = gamma + step
        moved = np.abs(step).max(axis=1)
        if not (moved >= STEP_TOLERANCE).any():  # replicates that are NaN remain NaN
            break
    gamma = np.where((moved < STEP_TOLERANCE)[:, None], gamma, np.nan)
    at: dict = {"gamma": gamma, "resampled": resampled}
    packed, cross, squares, target, mills_target, total = rows.sum(partial(_stage_sums, **at))
    p = rows.p
    gram = np.zeros((len(gamma), p + 1, p + 1))
    gram[:, :p, :p] = _unpack(packed, p)
    gram[:, :p, p] = gram[:, p, :p] = cross
    gram[:, p, p] = squares
    coefficients = _solve(gram, np.column_stack([target, mills_target]))
    (variance,) = rows.sum(partial(_variance_sums, coefficients=coefficients, **at))
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = np.sqrt(variance / total)
    return _in_user_units(coefficients, gamma, sigma, scalings)


def _probit_sums(block: Sample, *, gamma, resampled) -> tuple:
    """Gradient (b, q) and packed information; second derivatives of all replicates are one
    matrix product."""

    def sums(w, stream, sign):
        units = unselected_units(-sign * (gamma @ w.T))
        mass = resampled.mass(block, stream)
        return (
            -sign * ((mass * units.d_index) @ w),
            -((mass * units.d_index_index) @ _products(w)),
        )

    both = ((block.w_selected, SELECTED, 1.0), (block.w_unselected, UNSELECTED, -1.0))
    return tuple(add_up(sums(*side) for side in both if len(side[0])))


def _stage_sums(block: Sample, *, gamma, resampled) -> tuple:
    """Cross products of [x, lambda] and with y, and the mass, over the selected."""
    if not len(block.w_selected):
        return ()
    mass = resampled.mass(block, SELECTED)
    mills = inverse_mills(gamma @ block.w_selected.T)  # (b, n1)
    x, y = -block.residual_columns[:, :-1], block.residual_columns[:, -1]
    leaning = mass * mills
    return (
        mass @ _products(x),
        leaning @ x,
        (leaning * mills).sum(axis=1),
        (mass * y) @ x,
        leaning @ y,
        mass.sum(axis=1),
    )


def _variance_sums(block: Sample, *, gamma, resampled, coefficients) -> tuple:
    """Sums of squared residuals, and of the variance that selection removed."""
    if not len(block.w_selected):
        return ()
    index = gamma @ block.w_selected.T
    mills = inverse_mills(index)
    x, y = -block.residual_columns[:, :-1], block.residual_columns[:, -1]
    c = coefficients[:, -1:]
    residual = y - coefficients[:, :-1] @ x.T - c * mills
    unit = residual**2 + c**2 * mills_delta(index, mills)
    return ((resampled.mass(block, SELECTED) * unit).sum(axis=1),)


def _in_user_units(coefficients, gamma, sigma, scalings: SampleScale) -> np.ndarray:
    unit = scalings.y_scale
    beta = unit * coefficients[:, :-1] @ scalings.x.back.T
    constant = scalings.x.constant
    if constant is not None:
        beta[:, constant] += scalings.y_centre / scalings.x.scale[constant]
    c = coefficients[:, -1]
    return np.column_stack([beta, unit * c, gamma @ scalings.w.back.T, c / sigma, unit * sigma])


def _products(columns) -> np.ndarray:
    """(n, q (q + 1) / 2) products of all pairs of columns, packed."""
    left, right = np.triu_indices(columns.shape[1])
    return columns[:, left] * columns[:, right]


def _unpack(packed, size) -> np.ndarray:
    rows, columns = np.triu_indices(size)
    full = np.empty((len(packed), size, size))
    full[:, rows, columns] = full[:, columns, rows] = packed
    return full


def _solve(matrices, vectors) -> np.ndarray:
    """Batched solve; a singular or unfinished replicate becomes NaN."""
    solved = np.full_like(vectors, np.nan)
    usable = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(vectors).all(axis=1)
    usable[usable] = np.linalg.matrix_rank(matrices[usable]) == matrices.shape[1]
    solved[usable] = np.linalg.solve(matrices[usable], vectors[usable][..., None])[..., 0]
    return solved
