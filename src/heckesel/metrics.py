r"""Metrics of a `Predictive`, all of which `evaluate` computes, and of scores for two classes.

Scores are proper: lower is better, and no predictive has a lower expected score than the truth.

Calibration errors: how far predicted probabilities are from observed frequencies.

Let u_i = F_i(y_i) be the probability integral transform (PIT) of y_i. It is uniform if the
predictive is right, and y_i lies below the predicted p-quantile exactly if u_i <= p. Where F_i
jumps at y_i, as for counts and shares with zeros, the transform is randomised over the jump,

    u_i = F_i(y_i-) + v_i (F_i(y_i) - F_i(y_i-)),    v_i uniform on (0, 1),

which is uniform if the predictive is right, while F_i(y_i) is not. Instead of drawing v_i, its
average is taken: y_i counts below level p with the probability min(max((p - F_i(y_i-)) /
(F_i(y_i) - F_i(y_i-)), 0), 1). Both errors are means over the 19 levels .05, ..., .95. They differ
from the error of Kuleshov et al., which is a weighted sum of *squared* gaps.
"""

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from heckesel.data import check_level, numeric, ones_of
from heckesel.errors import DataError, is_share, is_whole
from heckesel.predictive import Normal, Predictive

__all__ = [
    "bias",
    "calibration_error",
    "calibration_table",
    "central_calibration_error",
    "coverage",
    "crps",
    "evaluate",
    "gaussian_nll",
    "gini",
    "interval_score",
    "ks",
    "regions",
    "rmse",
    "sharpness",
    "swap_set",
]

LEVEL = 0.9  # of the intervals that `evaluate` uses
# Without a closed form the integral of the CRPS extends this many standard deviations to either
# side of the mean, with this many Gauss-Legendre nodes on either side of y. Even for an
# exponential tail, (1 - F)^2 has only e^-20 = 2e-9 of its mass outside.
CRPS_REACH = 10.0
CRPS_NODES = 64
LEVELS = np.arange(1, 20) / 20
# A jump at y is seen between y and a point this far below, relative to |y| + std: far enough for
# the rounding of a transformed outcome. A continuous law rises by less than the smallest jump.
JUMP_STEP = 1e-13
SMALLEST_JUMP = 1e-9
# The band contains all points of this share of right models. A pointwise band of 90 % would fail
# 56 % of them, and a joint one of 90 % one in ten, too many for a check that changes advice.
JOINT_LEVEL = 0.99
DRAWS = 20_000  # of right models: the width of the band then has an error of 1 %
SEED = 1307  # the same data give the same band
AGAINST_BELOW = 0.3
WELL_FROM = 0.7
# Metrics of a region with fewer points depend more on the draw than on the method.
FEWEST_POINTS = 10


def evaluate(y, predictive: Predictive, *, f0=None, propensity_x=None) -> dict[str, float]:
    """Compute every metric, over all points and by region.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes of the population, selected or not.
    predictive : Predictive
        Predictions for the same points.
    f0 : array-like of shape (m,), optional
        The true regression function. Without it there are no ``bias_f0`` and ``rmse_f0``.
    propensity_x : array-like of shape (m,), optional
        True P(s = 1 | x). Without it there are no metrics by region.

    Returns
    -------
    dict of str to float
        The metrics over all points, then those of each region with the region as suffix, as in
        ``coverage90_against``. ``n_against``, ``n_mid`` and ``n_well`` count the points; a region
        with fewer than ten has no keys.

    Raises
    ------
    DataError
        If an array does not have one finite value per point.

    Examples
    --------
    >>> import heckesel as hk
    >>> row = evaluate([0.0, 1.0], hk.Predictive.normal([0.0, 0.0], 0.0, 1.0), f0=[0.0, 0.0])
    >>> row["coverage90"], row["bias_f0"]
    (1.0, 0.0)
    """
    y = points_of(y, "y", predictive)
    f0 = None if f0 is None else points_of(f0, "f0", predictive)
    lower, upper = predictive.interval(LEVEL).T
    per_point = {
        "coverage90": covered(y, lower, upper),
        "width90": upper - lower,
        "nll": gaussian_losses(y, predictive),
        "crps": crps_at_points(y, predictive),
        "interval_score90": interval_scores(y, lower, upper, LEVEL),
        "transform": transforms(y, predictive),  # (m, 2), the others (m,)
    }
    if f0 is not None:
        per_point["error"] = predictive.mean - f0
    row = _averages(per_point, slice(None))
    if propensity_x is None:
        return row
    propensity_x = points_of(propensity_x, "propensity_x", predictive)
    for name, rows in regions(propensity_x).items():
        averages = _averages(per_point, rows)
        row |= {f"{metric}_{name}": value for metric, value in averages.items()}
        row[f"n_{name}"] = len(rows)
    return row


def _averages(per_point: dict[str, np.ndarray], rows) -> dict[str, float]:
    """The metrics over some of the points."""
    terms = {name: values[rows] for name, values in per_point.items()}
    u, error = terms.pop("transform"), terms.pop("error", None)
    row = {name: float(np.mean(values)) for name, values in terms.items()}
    row |= {"ece": mean_gap(reliability(u)), "ece_central": mean_gap(central_reliability(u))}
    if error is not None:
        row |= {"bias_f0": float(np.mean(error)), "rmse_f0": float(np.sqrt(np.mean(error**2)))}
    return row


def bias(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Mean error of the predicted mean.

    Parameters
    ----------
    f0 : ndarray of shape (m,)
        The true regression function at each point.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float
        Positive if predictions are too high on average.

    Notes
    -----
    .. math:: \frac1m \sum_i (\mu_i - f_0(x_i))

    Positive and negative errors cancel.

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([1.0, 2.0], 0.0, 1.0)
    >>> bias([0.5, 2.0], predictive)
    0.25
    """
    return float(np.mean(predictive.mean - points_of(f0, "f0", predictive)))


def rmse(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Root mean squared error of the predicted mean.

    Parameters
    ----------
    f0 : ndarray of shape (m,)
        The true regression function at each point.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \sqrt{\frac1m\sum_i(\mu_i - f_0(x_i))^2}

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([1.0, 2.0], 0.0, 1.0)
    >>> rmse([0.0, 1.0], predictive)
    1.0
    """
    return float(np.sqrt(np.mean((predictive.mean - points_of(f0, "f0", predictive)) ** 2)))


def coverage(y: np.ndarray, predictive: Predictive, *, level: float = 0.9) -> float:
    r"""Share of outcomes inside the central interval.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.
    level : float, default 0.9
        Nominal coverage.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1m \sum_i 1\{l_i \le y_i \le u_i\},
              \qquad l_i, u_i = F_i^{-1}\big((1 \mp \text{level})/2\big)

    Overall coverage close to the level can hide undercoverage in one region and overcoverage in
    another, so also look at coverage by region.

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([0.0, 0.0], 0.0, 1.0)
    >>> coverage([1.0, 2.0], predictive)
    0.5
    """
    y = points_of(y, "y", predictive)
    return float(np.mean(covered(y, *predictive.interval(level).T)))


def sharpness(predictive: Predictive, *, level: float = 0.9) -> float:
    """Mean width of the central interval, in units of y.

    Parameters
    ----------
    predictive : Predictive
    level : float, default 0.9
        Nominal coverage.

    Returns
    -------
    float
        Of two predictives with the right coverage, prefer the one with the smaller width.

    Examples
    --------
    >>> import heckesel as hk
    >>> round(sharpness(hk.Predictive.normal([0.0, 5.0], 0.0, 1.0)), 3)
    3.29
    """
    lower, upper = predictive.interval(level).T
    return float(np.mean(upper - lower))


def covered(y, lower, upper) -> np.ndarray:
    """(m,) bool: whether y lies inside the interval."""
    return (lower <= y) & (y <= upper)


def gaussian_nll(y: np.ndarray, predictive: Predictive) -> float:
    r"""Mean negative log-density of a normal with the predictive's mean and std.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1m \sum_i \tfrac12 \log 2\pi\,\sigma_i^2 + \frac{(y_i - \mu_i)^2}{2\sigma_i^2}

    It depends on the two moments only. For a predictive that is not normal it is the score of the
    normal approximation, which is still proper for mean and variance.

    Examples
    --------
    >>> import heckesel as hk
    >>> round(gaussian_nll([0.0], hk.Predictive.normal([0.0], 0.0, 1.0)), 3)
    0.919
    """
    return float(np.mean(gaussian_losses(points_of(y, "y", predictive), predictive)))


def gaussian_losses(y: np.ndarray, predictive: Predictive) -> np.ndarray:
    """(m,) the terms of `gaussian_nll`."""
    variance = predictive.std**2
    return 0.5 * np.log(2 * np.pi * variance) + (y - predictive.mean) ** 2 / (2 * variance)


def crps(y: np.ndarray, predictive: Predictive) -> float:
    r"""Mean continuous ranked probability score, in units of y.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1m \sum_i \int \big(F_i(t) - 1\{t \ge y_i\}\big)^2 dt

    It is exact for a normal predictive and computed by quadrature otherwise. Given selection, the
    error at each point is below 1e-8 standard deviations for abs(rho) <= .9 and below 5e-3 at
    abs(rho) = 1, where F has a kink.

    Examples
    --------
    >>> import heckesel as hk
    >>> round(crps([0.0], hk.Predictive.normal([0.0], 0.0, 1.0)), 4)
    0.2337
    """
    return float(np.mean(crps_at_points(points_of(y, "y", predictive), predictive)))


def crps_at_points(y: np.ndarray, predictive: Predictive) -> np.ndarray:
    """(m,) the terms of `crps`."""
    if isinstance(predictive.distribution, Normal):
        return _crps_normal(y, predictive.mean, predictive.std)
    return _crps_by_quadrature(y, predictive)


def interval_score(y: np.ndarray, predictive: Predictive, *, level: float = 0.9) -> float:
    r"""Mean width of the central interval plus a penalty for each outcome outside it.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.
    level : float, default 0.9
        Nominal coverage.

    Returns
    -------
    float
        In units of y.

    Notes
    -----
    .. math:: \frac1m \sum_i (u_i - l_i)
              + \frac{2}{1 - \text{level}} \big[(l_i - y_i)_+ + (y_i - u_i)_+\big]

    Examples
    --------
    >>> import heckesel as hk
    >>> round(interval_score([0.0], hk.Predictive.normal([0.0], 0.0, 1.0)), 3)
    3.29
    """
    y = points_of(y, "y", predictive)
    lower, upper = predictive.interval(level).T
    return float(np.mean(interval_scores(y, lower, upper, level)))


def interval_scores(y, lower, upper, level: float) -> np.ndarray:
    """(m,) the terms of `interval_score`."""
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return upper - lower + 2 / (1 - level) * outside


def _crps_normal(y, mean, std):
    r"""sigma [ e (2 Phi(e) - 1) + 2 phi(e) - 1/sqrt(pi) ], e = (y - mean)/sigma."""
    e = (y - mean) / std
    density = np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi)
    return std * (e * (2 * ndtr(e) - 1) + 2 * density - 1 / np.sqrt(np.pi))


def _crps_by_quadrature(y, predictive):
    r"""\int_{low}^y F^2 + \int_y^{high} (1 - F)^2, (m,).

    The integrand jumps at y and is smooth on either side, so each side has a separate rule.
    Outside `low` and `high` the integrand is 0, or 1 between y and the range.
    """
    nodes, weights = np.polynomial.legendre.leggauss(CRPS_NODES)
    low = predictive.mean - CRPS_REACH * predictive.std
    high = predictive.mean + CRPS_REACH * predictive.std
    inside = np.clip(y, low, high)
    half_below, half_above = (inside - low) / 2, (high - inside) / 2
    total = np.abs(y - inside)
    for node, weight in zip(nodes, weights, strict=True):
        below = predictive.cdf(low + half_below * (1 + node))
        above = predictive.cdf(high - half_above * (1 + node))
        total += weight * (half_below * below**2 + half_above * (1 - above) ** 2)
    return total


def calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""One-sided calibration error: mean gap between quantile levels and observed shares below.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i P(u_i \le p) - p \Big|

    Here :math:`u_i = F_i(y_i)` where F is continuous, and u is uniform between
    :math:`F_i(y_i-)` and :math:`F_i(y_i)` where it jumps, so that ties of a discrete outcome do
    not count as errors.

    It detects errors of location and of scale: a biased predictive misses at every level. Computed
    on the points of one region it is the region ECE. With m points its expectation under the right
    predictive is about .33/sqrt(m), not 0.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> calibration_error(y, hk.Predictive.normal(np.zeros(1000), 0.0, 1.0)) < 0.02
    True
    """
    return mean_gap(reliability(transforms(points_of(y, "y", predictive), predictive)))


def central_calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""Mean gap between the levels of central intervals and their coverage.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i P(|2u_i - 1| \le p) - p \Big|

    The transforms u are those of `calibration_error`.

    It detects errors of scale and can hide bias: a biased predictive that is too wide by the right
    amount has the right coverage at every level. Most libraries call this one the calibration
    error.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> central_calibration_error(y, hk.Predictive.normal(np.zeros(1000), 0.0, 4.0)) > 0.1
    True
    """
    return mean_gap(central_reliability(transforms(points_of(y, "y", predictive), predictive)))


def transforms(y, predictive: Predictive) -> np.ndarray:
    """(m, 2) F(y-) and F(y), equal where the distribution function does not jump at y."""
    std = predictive.std
    step = JUMP_STEP * (np.abs(y) + np.where(np.isfinite(std), std, 1.0))
    before, at = predictive.cdf(y - step), predictive.cdf(y)
    return np.column_stack([np.where(at - before > SMALLEST_JUMP, before, at), at])


def _shares_below(u, levels) -> np.ndarray:
    """(levels,) mean probability that the transforms u (m, 2), randomised, reach each level."""
    before, at = u[:, :1], u[:, 1:]
    jump = at - before
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.where(jump > 0, (levels - before) / jump, at <= levels)
    return np.clip(reached, 0.0, 1.0).mean(axis=0)


def reliability(u: np.ndarray) -> np.ndarray:
    """(19,) share of the transforms u (m, 2) at or below each level.

    These are the points of a reliability diagram, on the diagonal if the predictive is right.
    """
    return _shares_below(u, LEVELS)


def central_reliability(u: np.ndarray) -> np.ndarray:
    """(19,) share of the transforms u (m, 2) inside the central interval of each level."""
    return _shares_below(u, (1 + LEVELS) / 2) - _shares_below(u, (1 - LEVELS) / 2)


def mean_gap(share: np.ndarray) -> float:
    """Mean distance of the shares (19,) from their levels."""
    return float(np.mean(np.abs(share - LEVELS)))


def half_band(m: int) -> np.ndarray:
    r"""(19,) half the width of the band for m transforms.

    The share below level p has sd :math:`\sqrt{p(1-p)/m}` if the model is right. The largest of the
    19 correlated deviations, in sd, is simulated, because with few points it is far from normal at
    the outer levels.
    """
    sd = np.sqrt(LEVELS * (1 - LEVELS) / m)
    bins = np.full(len(LEVELS) + 1, 1 / (len(LEVELS) + 1))  # the levels are evenly spaced
    counts = np.random.default_rng(SEED).multinomial(m, bins, size=DRAWS)
    shares = counts.cumsum(axis=1)[:, :-1] / m
    furthest = np.abs((shares - LEVELS) / sd).max(axis=1)
    return np.quantile(furthest, JOINT_LEVEL) * sd


def class_half_band(probability: np.ndarray, count: np.ndarray) -> np.ndarray:
    r"""(j,) half the width of the band for the shares of a class among `count` (j,) units.

    probability : (j,) mean predicted probability of each group. Within a group probabilities are
    taken as equal, which makes the variance :math:`p(1-p)/n` slightly too large.
    """
    sd = np.sqrt(probability * (1 - probability) / count)
    rng = np.random.default_rng(SEED)
    shares = rng.binomial(count, probability, size=(DRAWS, len(count))) / count
    gaps = np.abs(shares - probability) / np.where(sd > 0, sd, np.inf)
    return np.quantile(gaps.max(axis=1), JOINT_LEVEL) * sd


def regions(propensity_x: np.ndarray) -> dict[str, np.ndarray]:
    """Split points into regions by their probability of selection.

    Parameters
    ----------
    propensity_x : array-like of shape (m,)
        True P(s = 1 | x). Because it does not depend on a fitted model, every method is evaluated
        on the same points.

    Returns
    -------
    dict of str to ndarray
        Row numbers of the regions ``"against"`` (below .3), ``"mid"`` (from .3 to .7) and
        ``"well"`` (.7 and above). A region with fewer than ten points has no key.

    Examples
    --------
    >>> import numpy as np
    >>> {name: len(rows) for name, rows in regions(np.linspace(0, 1, 101)).items()}
    {'against': 30, 'mid': 40, 'well': 31}
    """
    propensity_x = numeric(propensity_x, "propensity_x")
    against, well = propensity_x < AGAINST_BELOW, propensity_x >= WELL_FROM
    members = {"against": against, "mid": ~against & ~well, "well": well}
    rows = {name: np.flatnonzero(member) for name, member in members.items()}
    return {name: index for name, index in rows.items() if len(index) >= FEWEST_POINTS}


def points_of(values, name: str, predictive: Predictive) -> np.ndarray:
    """(m,) values, none of them missing or masked."""
    values, m = numeric(values, name), len(predictive)
    if values.shape != (m,):
        raise DataError(f"{name} has shape {values.shape} but the predictive has {m} points")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"{name} is {values[row]} in row {row}; metrics need a finite value at every point, so "
            "evaluate only the rows that have one"
        )
    return values


def gini(y, score) -> float:
    """Gini coefficient, 2 AUC - 1, of a score.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    score : array-like of shape (m,)
        Larger where 1 is more likely.

    Returns
    -------
    float
        1 if the score separates the classes, 0 if it is unrelated to them.

    Raises
    ------
    DataError
        If an outcome is not 0 or 1, or a class is missing.

    Examples
    --------
    >>> gini([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8])
    0.5
    """
    ones, zeros = _by_class(y, score)
    below = np.searchsorted(zeros, ones, side="left") + np.searchsorted(zeros, ones, side="right")
    return float(below.mean() / len(zeros) - 1)


def ks(y, score) -> float:
    """Kolmogorov-Smirnov distance between the scores of the two classes.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    score : array-like of shape (m,)
        Scores.

    Returns
    -------
    float
        Largest difference between the two distribution functions.

    Raises
    ------
    DataError
        If an outcome is not 0 or 1, or a class is missing.

    Examples
    --------
    >>> ks([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8])
    0.5
    """
    ones, zeros = _by_class(y, score)
    at = np.concatenate([ones, zeros])
    shares = [np.searchsorted(each, at, side="right") / len(each) for each in (ones, zeros)]
    return float(np.abs(shares[0] - shares[1]).max())


def calibration_table(y, probability, *, bins: int = 10, level: float = 0.9) -> pd.DataFrame:
    """Predicted probabilities and observed shares, in bins with equally many rows.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes, 0 or 1.
    probability : array-like of shape (m,)
        Predicted probability of 1.
    bins : int, default=10
        Number of bins.
    level : float, default=0.9
        Confidence level of the intervals of the observed shares (Wilson).

    Returns
    -------
    DataFrame
        One row per bin: ``n``, mean ``predicted``, ``observed``, ``low`` and ``high``.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> table = calibration_table([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], bins=2)
    >>> table["observed"].tolist()
    [0.0, 1.0]
    """
    y, probability = _outcomes(y), numeric(probability, "probability")
    _check_length(y, probability, "probability")
    if not is_whole(bins) or not 1 <= bins <= len(y):
        raise DataError(f"bins must be between 1 and the {len(y)} rows, got {bins!r}")
    check_level(level)
    order = np.argsort(probability, kind="stable")
    place = np.empty(len(y), dtype=int)
    place[order] = np.arange(len(y)) * bins // len(y)
    n = np.bincount(place, minlength=bins)
    predicted, observed = (np.bincount(place, each, bins) / n for each in (probability, y))
    z = ndtri((1 + level) / 2)
    middle = (observed + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(observed * (1 - observed) / n + z**2 / (4 * n**2))
    found = {"n": n, "predicted": predicted, "observed": observed}
    return pd.DataFrame(found | {"low": middle - half, "high": middle + half})


def swap_set(old, new, *, accept: float, y=None) -> pd.DataFrame:
    """Compare the units accepted by an old and by a new risk score at the same acceptance rate.

    Parameters
    ----------
    old, new : array-like of shape (m,)
        Scores of risk, such as probabilities of default; the lowest are accepted.
    accept : float
        Share of the rows that is accepted, between 0 and 1.
    y : array-like of shape (m,), optional
        Outcomes, 0 or 1, NaN where unknown.

    Returns
    -------
    DataFrame
        One row each for ``both``, ``swapped in`` (by the new score only), ``swapped out`` and
        ``neither``. Columns: ``n``, its ``share``, the means of ``old`` and ``new`` and, with y,
        ``observed``, the share of ones among the rows with a known outcome.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> swap_set([0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.2, 0.4], accept=0.5)["n"].to_dict()
    {'both': 1, 'swapped in': 1, 'swapped out': 1, 'neither': 1}
    """
    old, new = numeric(old, "old"), numeric(new, "new")
    _check_length(old, new, "new")
    if not is_share(accept):
        raise DataError(f"accept must lie between 0 and 1, got {accept!r}")
    count = round(accept * len(old))
    by_old, by_new = (np.argsort(np.argsort(each, kind="stable")) < count for each in (old, new))
    groups = {
        "both": by_old & by_new,
        "swapped in": ~by_old & by_new,
        "swapped out": by_old & ~by_new,
        "neither": ~by_old & ~by_new,
    }
    columns = {"old": old, "new": new}
    if y is not None:
        columns["observed"] = numeric(y, "y")
        _check_length(old, columns["observed"], "y")
    frame = pd.DataFrame(columns)
    rows = {name: frame[chosen].mean() for name, chosen in groups.items()}
    n = pd.Series({name: int(chosen.sum()) for name, chosen in groups.items()})
    table = pd.DataFrame(rows).T
    table.insert(0, "n", n)
    table.insert(1, "share", n / len(old))
    return table


def _by_class(y, score) -> tuple[np.ndarray, np.ndarray]:
    """Sorted scores of the ones and of the zeros."""
    y, score = _outcomes(y), numeric(score, "score")
    _check_length(y, score, "score")
    ones, zeros = np.sort(score[y == 1]), np.sort(score[y == 0])
    if not len(ones) or not len(zeros):
        raise DataError(f"y has one class only, {y[0]:g}; a score needs both to be compared")
    return ones, zeros


def _outcomes(y) -> np.ndarray:
    return ones_of(numeric(y, "y"), "y").astype(float)


def _check_length(first, second, name: str) -> None:
    if first.shape != second.shape:
        raise DataError(f"{name} has {len(second)} rows, but there are {len(first)}")
    if np.isnan(second).any() and name != "y":
        raise DataError(f"{name} is missing in row {int(np.flatnonzero(np.isnan(second))[0])}")
