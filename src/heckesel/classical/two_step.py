r"""Heckman's two-step estimator with its correct covariance.

Probit on all units, then least squares of y on x* = [x, lambda(w'gamma)] over the selected. Both
steps, and the covariance, are sums over blocks of standardised rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import block_diag
from scipy.special import pdtr, pdtrik

from heckesel.classical.covariance import cluster_freedom, inverse, meat, meat_of_rows
from heckesel.classical.likelihood import unselected_units
from heckesel.classical.probit import (
    fit_probit,
    maximise_probit,
    probit_scores,
)
from heckesel.classical.rows import Rows, Sample, SampleScale, add_up
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.optimise import Optimum
from heckesel.math.special import inverse_mills, mills_delta


@dataclass(frozen=True)
class MillsColumn:
    """How lambda(w'gamma) becomes the last, standardised column of x*."""

    gamma: np.ndarray
    centre: float
    scale: float


@dataclass(frozen=True)
class SecondStage:
    """Sums over the selected, with x* = [x, (lambda - centre)/scale] and Delta = diag(delta).

    gram = X*'X*, gram_delta = X*'Delta X*, cross = X*'Delta W, all weighted
    coefficients : (p + 1,) of x*; squares = sum of weighted squared residuals
    """

    probit: Optimum
    mills: MillsColumn
    gram: np.ndarray
    gram_delta: np.ndarray
    cross: np.ndarray
    delta: float
    coefficients: np.ndarray
    squares: float
    mass: float

    @property
    def c(self) -> float:
        """The coefficient of lambda itself, for standardised y."""
        return float(self.coefficients[-1] / self.mills.scale)

    @property
    def variance(self) -> float:
        return (self.squares + self.c**2 * self.delta) / self.mass

    def back(self, scalings: SampleScale) -> np.ndarray:
        """(p + 1, p + 1) matrix that maps coefficients of x* to those of [x, lambda]."""
        p = len(self.coefficients) - 1
        matrix = scalings.y_scale * block_diag(scalings.x.back, [[1.0 / self.mills.scale]])
        constant = scalings.x.constant
        if constant is not None:
            shift = -scalings.y_scale * self.mills.centre / self.mills.scale
            matrix[constant, p] = shift / scalings.x.scale[constant]
        return matrix


def two_steps(rows: Rows, scalings: SampleScale, start: np.ndarray | None = None) -> SecondStage:
    r"""beta and c by weighted least squares; then

    .. math:: \sigma^2 = \overline{r^2} + c^2\,\overline{\delta},\qquad \rho = c/\sigma

    with means over the selected (divisor n, as Stata and R have it). The normal equations are
    solved twice, the second time for the residuals of the first: this regains the digits that
    squaring the columns costs.

    start : of the probit, see `maximise_probit`
    """
    probit = maximise_probit(rows, start)
    centred = scalings.x.constant is not None
    mills = _mills_column(rows, probit.point, centred, in_passes=start is not None)
    gram, target, gram_delta, cross, delta = rows.sum(partial(_stage_sums, mills=mills))
    coefficients = _solve(gram, target)
    gradient, squares = rows.sum(partial(_residual_sums, mills=mills, coefficients=coefficients))
    step = _solve(gram, gradient)
    squares = float(squares - gradient @ step)
    return SecondStage(
        probit=probit,
        mills=mills,
        gram=gram,
        gram_delta=gram_delta,
        cross=cross,
        delta=float(delta),
        coefficients=coefficients + step,
        squares=squares,
        mass=rows.mass_selected,
    )


def _mills_column(rows: Rows, gamma, centred: bool, *, in_passes: bool) -> MillsColumn:
    """Centre and scale, which need not be exact: of a part of the rows, or by a pass over all."""
    if in_passes:
        mass, total, squares = rows.sum(partial(_mills_sums, gamma=gamma))
        centre = float(total / mass) if centred else 0.0
        scale = float(np.sqrt(max(squares / mass - centre**2, 0.0))) or 1.0
        return MillsColumn(gamma, centre, scale)
    some = inverse_mills(rows.part().w_selected @ gamma)
    centre = float(some.mean()) if centred else 0.0
    scale = float(np.sqrt(np.mean((some - centre) ** 2))) or 1.0
    return MillsColumn(gamma, centre, scale)


def _mills_sums(block: Sample, *, gamma) -> tuple:
    ratio, mass = inverse_mills(block.w_selected @ gamma), block.weight_selected
    return mass.sum(), mass @ ratio, mass @ ratio**2


def in_user_units(stage: SecondStage, scalings: SampleScale) -> np.ndarray:
    """(p + q + 1,) estimates (beta, gamma, lambda), as the parameters are listed."""
    coefficients = stage.back(scalings) @ stage.coefficients
    constant = scalings.x.constant
    if constant is not None:
        coefficients[constant] += scalings.y_centre / scalings.x.scale[constant]
    gamma = scalings.w.back @ stage.probit.point
    return np.concatenate([coefficients[:-1], gamma, coefficients[-1:]])


def _solve(gram, target) -> np.ndarray:
    return np.linalg.lstsq(gram, target, rcond=None)[0]


def second_stage(block: Sample, mills: MillsColumn):
    """x* (n1, p + 1) of the selected in a block, and delta (n1,)."""
    index = block.w_selected @ mills.gamma
    ratio = inverse_mills(index)
    columns = -block.residual_columns  # the last column, y, makes room for lambda
    columns[:, -1] = (ratio - mills.centre) / mills.scale
    return columns, mills_delta(index, ratio)


def _stage_sums(block: Sample, *, mills) -> tuple:
    columns, delta = second_stage(block, mills)
    mass = block.weight_selected
    weighted, thinned = columns * mass[:, None], columns * (mass * delta)[:, None]
    return (
        columns.T @ weighted,
        block.residual_columns[:, -1] @ weighted,
        columns.T @ thinned,
        thinned.T @ block.w_selected,
        mass @ delta,
    )


def _residual_sums(block: Sample, *, mills, coefficients) -> tuple:
    columns, _ = second_stage(block, mills)
    residual = block.residual_columns[:, -1] - columns @ coefficients
    weighted = block.weight_selected * residual
    return weighted @ columns, weighted @ residual


def two_step_covariance(
    rows: Rows, scalings: SampleScale, stage: SecondStage, kind: str, **meat
) -> np.ndarray:
    """(p + q + 1, p + q + 1) covariance of (beta, gamma, lambda), as the parameters are listed.

    meat : options of `meat_of_rows`
    """
    model = kind == "information"
    joint = _model_covariance(stage) if model else _stacked_sandwich(rows, stage, **meat)
    order = [*range(rows.p), *range(rows.p + 1, rows.p + 1 + rows.q), rows.p]
    transform = block_diag(stage.back(scalings), scalings.w.back)[order]
    return transform @ joint @ transform.T


def _model_covariance(stage: SecondStage) -> np.ndarray:
    r"""Under the model, with G = (X*'X*)^-1:

    .. math:: V_\beta = \sigma^2 G\,[X^{*\prime}(I - \rho^2\Delta)X^* +
              \rho^2 (X^{*\prime}\Delta W) V_\gamma (W'\Delta X^*)]\,G

    The first bracket is selection's heteroskedasticity, the second the first stage. Under the
    model the second stage's own error is uncorrelated with the probit's, so the block between
    them is what the first stage passes on: c G X*'Delta W V_gamma.
    """
    v_gamma, gram = inverse(-stage.probit.hessian), inverse(stage.gram)
    own = stage.variance * stage.gram - stage.c**2 * stage.gram_delta
    cross = stage.c * stage.cross
    v_beta = gram @ (own + cross @ v_gamma @ cross.T) @ gram
    v_cross = gram @ cross @ v_gamma
    return np.block([[v_beta, v_cross], [v_cross.T, v_gamma]])


def _stacked_sandwich(rows: Rows, stage: SecondStage, **meat) -> np.ndarray:
    """Both stages as one set of moment conditions: x* r and probit scores."""
    middle = meat_of_rows(rows, partial(_unit_moments, **_at(stage)), **meat)
    bread = _stacked_bread(rows, stage)
    return bread @ middle @ bread.T


def lambda_influence(sample: Sample, stage: SecondStage) -> np.ndarray:
    """(n,) by how much each unit, selected units first, moves the coefficient of lambda."""
    row = _stacked_bread(sample, stage)[len(stage.gram) - 1]
    return _unit_moments(sample, **_at(stage)) @ row / stage.mills.scale


def _at(stage: SecondStage) -> dict:
    return {"mills": stage.mills, "coefficients": stage.coefficients}


def _stacked_bread(rows: Rows, stage: SecondStage) -> np.ndarray:
    r"""The inverse of the derivative of all moments. Those of the second stage move with gamma
    through lambda, in the residual and in the column itself:

    .. math:: \partial(x^* r)/\partial\gamma' = c\,\delta\,x^* w' - \delta\,r\,e_\lambda w'
    """
    k, q = len(stage.gram), rows.q
    slope = stage.c * stage.cross
    (own,) = rows.sum(partial(_lambda_slope, **_at(stage)))
    slope[-1] -= own / stage.mills.scale
    derivative = np.zeros((k + q, k + q))
    derivative[:k, :k] = stage.gram
    derivative[:k, k:] = -slope
    derivative[k:, k:] = -stage.probit.hessian
    return np.linalg.inv(derivative)


def _lambda_slope(block: Sample, *, mills, coefficients) -> tuple:
    columns, delta = second_stage(block, mills)
    residual = block.residual_columns[:, -1] - columns @ coefficients
    return ((block.weight_selected * delta * residual) @ block.w_selected,)


def _unit_moments(block: Sample, *, mills, coefficients) -> np.ndarray:
    """(n, p + 1 + q) moments of each unit, selected units first."""
    columns, _ = second_stage(block, mills)
    n1, k = columns.shape
    moments = np.zeros((block.n, k + block.q))
    moments[:n1, :k] = columns * (block.residual_columns[:, -1] - columns @ coefficients)[:, None]
    moments[:n1, k:] = probit_scores(block.w_selected, np.ones(n1, bool), mills.gamma)
    moments[n1:, k:] = probit_scores(block.w_unselected, np.zeros(block.n - n1, bool), mills.gamma)
    return moments


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
        task = partial(_replicate_probit_sums, gamma=gamma, resampled=resampled)
        gradient, packed = rows.sum(task)
        step = _solve_each(_unpack(packed, rows.q), gradient)
        gamma = gamma + step
        moved = np.abs(step).max(axis=1)
        if not (moved >= STEP_TOLERANCE).any():  # replicates that are NaN remain NaN
            break
    gamma = np.where((moved < STEP_TOLERANCE)[:, None], gamma, np.nan)
    at: dict = {"gamma": gamma, "resampled": resampled}
    packed, cross, squares, target, mills_target, total = rows.sum(
        partial(_replicate_stage_sums, **at)
    )
    p = rows.p
    gram = np.zeros((len(gamma), p + 1, p + 1))
    gram[:, :p, :p] = _unpack(packed, p)
    gram[:, :p, p] = gram[:, p, :p] = cross
    gram[:, p, p] = squares
    coefficients = _solve_each(gram, np.column_stack([target, mills_target]))
    (variance,) = rows.sum(partial(_replicate_variance_sums, coefficients=coefficients, **at))
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = np.sqrt(variance / total)
    return _replicates_in_user_units(coefficients, gamma, sigma, scalings)


def _replicate_probit_sums(block: Sample, *, gamma, resampled) -> tuple:
    """Gradient (b, q) and packed information; second derivatives of all replicates are one
    matrix product."""

    def sums(w, stream, sign):
        _, slope, bend = unselected_units(-sign * (gamma @ w.T))
        mass = resampled.mass(block, stream)
        return (
            -sign * ((mass * slope) @ w),
            -((mass * bend) @ _products(w)),
        )

    both = ((block.w_selected, SELECTED, 1.0), (block.w_unselected, UNSELECTED, -1.0))
    return tuple(add_up(sums(*side) for side in both if len(side[0])))


def _replicate_stage_sums(block: Sample, *, gamma, resampled) -> tuple:
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


def _replicate_variance_sums(block: Sample, *, gamma, resampled, coefficients) -> tuple:
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


def _replicates_in_user_units(coefficients, gamma, sigma, scalings: SampleScale) -> np.ndarray:
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


def _solve_each(matrices, vectors) -> np.ndarray:
    """Batched solve; a singular or unfinished replicate becomes NaN."""
    solved = np.full_like(vectors, np.nan)
    usable = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(vectors).all(axis=1)
    usable[usable] = np.linalg.matrix_rank(matrices[usable]) == matrices.shape[1]
    solved[usable] = np.linalg.solve(matrices[usable], vectors[usable][..., None])[..., 0]
    return solved


def linear_score_test(
    rows: Rows,
    scalings: SampleScale,
    kind: str,
    *,
    weight_kind="frequency",
    clusters=None,
    start=None,
) -> tuple[float, float]:
    """The squared t statistic of lambda in least squares, and its degrees of freedom.

    kind : of covariance; clusters : (n,) integer codes, those of the selected units first
    start : of the probit, see `maximise_probit`
    """
    stage = two_steps(rows, scalings, start)
    bread, freedom = inverse(stage.gram), np.inf
    if kind in ("information", "opg"):
        freedom = stage.mass - rows.p - 1
        if freedom <= 0:
            raise DataError(
                f"the test of rho needs more than {rows.p + 1} rows with an outcome, as many as "
                f"the outcome equation has columns, got {stage.mass:g}"
            )
        covariance = stage.squares / freedom * bread
    else:
        moments = partial(_moments, mills=stage.mills, coefficients=stage.coefficients)
        covariance = bread @ meat_of_rows(rows, moments, weight_kind, clusters) @ bread
        if clusters is not None:
            assert isinstance(rows, Sample)
            freedom = cluster_freedom(clusters, rows.weight)
    return float(stage.coefficients[-1] ** 2 / covariance[-1, -1]), float(freedom)


def _moments(block: Sample, *, mills: MillsColumn, coefficients) -> np.ndarray:
    """(n, p + 1) of the second step, zero for the unselected, which come last."""
    columns, _ = second_stage(block, mills)
    moments = np.zeros((block.n, columns.shape[1]))
    residual = block.residual_columns[:, -1] - columns @ coefficients
    moments[: len(columns)] = columns * residual[:, None]
    return moments


def binary_score_test(data: SelectionData, kind: str, weight_kind: str, clusters=None) -> float:
    """The statistic for a binary outcome, chi-squared with one degree of freedom.

    The probit of the outcome is fitted without lambda. Its information says which part of lambda
    the other columns do not explain; that part times the residual is the score.

    clusters : (n,) integer codes in the order of `data`
    """
    s, weight = data.s, data.weight[data.s]
    x, happened = data.x[s], data.y[s] == 1.0
    mills = inverse_mills(data.w[s] @ fit_probit(data.w, s, data.weight).gamma)
    columns = np.column_stack([x, mills])
    beta = fit_probit(x, happened, weight).gamma
    f = x @ beta
    density = weight * inverse_mills(f) * inverse_mills(-f)  # expected information of each unit
    information = columns.T @ (columns * density[:, None])
    unexplained = np.append(-inverse(information[:-1, :-1]) @ information[:-1, -1], 1.0)
    scores = probit_scores(columns, happened, np.append(beta, 0.0))
    middle = information
    if kind not in ("information", "opg"):
        own = None if clusters is None else clusters[s]
        middle = meat(scores, weight, weight_kind=weight_kind, clusters=own)
    return float((unexplained @ (weight @ scores)) ** 2 / (unexplained @ middle @ unexplained))
