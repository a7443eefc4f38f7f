r"""How much the instruments alone say about rho.

The Wald test of their coefficients in the selection equation measures their effect on selection.
rho itself is estimated among the selected, by the part of the inverse Mills ratio that no smooth
function of x can replace: an instrument that moves only units of which none is selected, or that
is a function of x, is strong in the first sense and useless in the second. The evidence holds both,
and the error of rho from the instruments alone,

.. math:: \sqrt{\frac{d\,q_m^2}{\sum m^2} + \Big(\frac{k}{c W}\Big)^2},
          \qquad q_m = \frac{t_{.975}(u)}{t_{.975}(\infty)},
          \quad u = \frac{(\sum m^2)^2}{\sum m^4}.

m is the unexplained part of the inverse Mills ratio of the selected units, d a design effect of
dependent rows, u the effective number of units behind the estimate (a few units of an arm that is
hardly ever selected support little), k the number of instruments, W their Wald statistic, and c the
share of their effect that functions of x cannot replace. The second term is the relative bias by
noise in the first stage.
"""

from itertools import combinations

import numpy as np
from scipy.special import ndtri, stdtrit

from heckesel.classical.checks import residual, unexplained_share
from heckesel.classical.covariance import meat, wald_test
from heckesel.data import CONSTANT, SelectionData
from heckesel.math.special import inverse_mills
from heckesel.math.splines import spline_knots, spline_on, width_on

SMOOTH_KNOTS = (6, 4, 2, 1)  # interior knots; the first that rows and columns allow is used
ROWS_PER_COLUMN = 20  # selected rows needed for each column of the smooth outcome
MOST_COLUMNS = 40  # of the smooth outcome: the cost grows with their square
STEPS, STEP_ROWS = 4, 200  # steps in x that could replace instruments, if there are STEP_ROWS rows
MOST_ROWS = 10_000
SEED = 20_790  # fixed, so that the same data always give the same verdict
HIGH = 0.975
LARGEST_ERROR = 1e6  # replaces an infinite error, which JSON cannot represent


def wald_evidence(instruments, names, gamma, covariance) -> dict:
    """The Wald test of the instruments; without `wald` if there is none.

    names, gamma, covariance : (q,) of the selection equation, its constant included
    """
    evidence: dict = {"instruments": list(instruments)}
    if all(name == CONSTANT for name in names):
        evidence["reason"] = (
            "no column of the selection equation varies, so the correction cannot be distinguished "
            "from the intercept"
        )
        evidence["action"] = "Add columns that explain selection."
    where = [names.index(name) for name in instruments]
    if not where:
        return evidence
    wald, p = wald_test(gamma[where], covariance[np.ix_(where, where)])
    if not np.isfinite(wald):
        return evidence
    return evidence | {"wald": wald, "degrees_of_freedom": len(where), "p_value": p}


def error_of_rho(
    evidence: dict, data: SelectionData, slopes, constant: float, *, mass: float | None = None
) -> dict:
    """`wald_evidence` with the error of rho, computed on at most 10,000 rows of `data`.

    slopes : (q,) of w; mass : of all selected rows, if `data` is a part of the rows
    """
    if "wald" not in evidence:
        return evidence
    known = np.flatnonzero(~np.isnan(data.x).any(axis=1) & (data.weight > 0))
    known = known[random_rows(len(known), MOST_ROWS)]
    selected = np.flatnonzero(data.s)
    selected = selected[random_rows(len(selected), MOST_ROWS)]
    smooth = smooth_columns(data.x[selected])
    same = np.array_equal(known, selected)  # often: x may be missing for the unselected
    of_known = smooth if same else smooth_columns(data.x[known])
    share = _share_beyond_smooth(data, known, of_known, slopes)

    mills, weight = inverse_mills(constant + data.w[selected] @ slopes), data.weight[selected]
    own, repeated = residual(smooth, mills, weight), 1.0
    if data.groups is not None:
        e = residual(np.column_stack([smooth, mills]), data.y[selected], weight)
        moments = (own * e)[:, None]
        independent = meat(moments, weight, weight_kind="probability")[0, 0]
        grouped = meat(moments, weight, clusters=data.groups[selected])[0, 0]
        repeated = max(grouped / independent, 1.0)
    mass = (data.weight[data.s].sum() if mass is None else mass) / weight.sum()
    squares = weight @ own**2
    usable = share * evidence["wald"] / len(evidence["instruments"])
    error = LARGEST_ERROR
    if squares > 0 and usable > 0:
        units = mass * squares**2 / (weight @ own**4)
        few = stdtrit(units, HIGH) / ndtri(HIGH)
        error = np.hypot(few * np.sqrt(repeated / (mass * squares)), 1 / usable)
    return evidence | {
        "mills_share": unexplained_share(smooth, mills, weight),
        "share_beyond_smooth": share,
        "rho_error": float(min(error, LARGEST_ERROR)),
    }


def _share_beyond_smooth(data: SelectionData, some, smooth, slopes) -> float:
    """Share of the instruments' effect, given x, that functions of x do not explain: curves,
    products of two columns, and steps.

    some : rows with x, whose smooth columns are `smooth`
    """
    chosen = [j for j, name in enumerate(data.w_names) if name in data.instruments]
    part, x, weight = data.w[some][:, chosen] @ slopes[chosen], data.x[some], data.weight[some]
    curved = _with_steps(_with_products(smooth, x), x, part, weight)
    freedom = [max(len(some) - 1 - columns.shape[1], 1) for columns in (curved, x)]
    left = [unexplained_share(columns, part, weight) for columns in (curved, x)]
    if left[1] == 0:
        return 0.0
    return min(left[0] / left[1] * freedom[1] / freedom[0], 1.0)


def random_rows(count: int, most: int) -> np.ndarray:
    """All of `count` rows, or a fixed random sample of `most`, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).choice(count, most, replace=False))


def smooth_columns(x: np.ndarray) -> np.ndarray:
    """x and cubic splines of its columns, with as many knots as rows and columns allow."""
    distinct = [np.unique(column) for column in x.T]
    for count in SMOOTH_KNOTS:
        knots = [spline_knots(values, count) for values in distinct]
        width = x.shape[1] + sum(map(width_on, knots))
        if width <= min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
            pairs = zip(knots, x.T, strict=True)
            curves = [spline_on(on, column)[1] for on, column in pairs if on is not None]
            return np.column_stack([x, *curves])
    return x


def _with_products(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The columns, and the products of all pairs of x as far as rows allow."""
    pairs = list(combinations(range(x.shape[1]), 2))
    if columns.shape[1] + len(pairs) > min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
        return columns
    centred = x - x.mean(axis=0)
    return np.column_stack([columns, *(centred[:, i] * centred[:, j] for i, j in pairs)])


def _with_steps(columns: np.ndarray, x: np.ndarray, values, weight) -> np.ndarray:
    """The columns, a few steps of single columns of x, and the products of these steps. Each step
    is the one that explains most of the residual of `values` on the columns before it."""
    steps: list[np.ndarray] = []
    if len(x) >= STEP_ROWS:
        orders = [np.argsort(column, kind="stable") for column in x.T]
        for _ in range(STEPS):
            left = residual(np.column_stack([columns, *steps]), values, weight)
            found = [_best_step(*one, left, weight) for one in zip(x.T, orders, strict=True)]
            _, column, cut = max(found, key=lambda step: step[0])
            steps.append((column > cut).astype(float))
    products = [a * b for a, b in combinations(steps, 2)]
    return np.column_stack([columns, *steps, *products])


def _best_step(column: np.ndarray, order, left, weight) -> tuple[float, np.ndarray, float]:
    """The reduction of the sum of squares by the best split of a column, the column, and the value
    at which it is split; order : the one that sorts the column."""
    ordered, below = column[order], np.cumsum((weight * left)[order])[:-1]
    mass = np.cumsum(weight[order])
    gain = below**2 * (1 / mass[:-1] + 1 / (mass[-1] - mass[:-1]))  # all residuals add up to 0
    gain[ordered[1:] == ordered[:-1]] = -1.0  # equal values cannot be split
    best = int(gain.argmax())
    return float(gain[best]), column, float(ordered[best])
