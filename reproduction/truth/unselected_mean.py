"""The mean of hidden outcomes, with an interval, from each kind of fit."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.results.prediction import matrices, mean_and_gradient
from heckesel.numerics.normal import inverse_mills
from heckesel.predictive.mean_estimates import average_of
from heckesel.tables.column_moves import groups_of
from reproduction.truth.sources import KnownOutcome


@dataclass(frozen=True)
class Mean:
    """An estimate with its interval and the rho of its fit, NaN where it has none."""

    value: float
    low: float
    high: float
    rho: float = np.nan


def _with_constant(frame: pd.DataFrame) -> np.ndarray:
    return np.column_stack([np.ones(len(frame)), frame.to_numpy()])


def _hidden_rows(known: KnownOutcome) -> tuple[pd.DataFrame, pd.DataFrame]:
    """x and w of the hidden units."""
    rows = known.x[known.hidden]
    return rows[known.covariates], rows


def _half_width(level: float, variance: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(variance))


def least_squares_mean(known: KnownOutcome, level: float) -> Mean:
    """Least squares on the selected with the covariance HC1."""
    x = _with_constant(known.x.loc[~known.hidden, known.covariates])
    y = known.y[~known.hidden].to_numpy()
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ x.T @ y
    scores = x * (y - x @ beta)[:, None]
    hidden = _with_constant(_hidden_rows(known)[0]).mean(axis=0)
    at = hidden @ inverse
    n, p = x.shape
    half = _half_width(level, n / (n - p) * at @ scores.T @ scores @ at)
    value = float(hidden @ beta)
    return Mean(value, value - half, value + half)


def bootstrap_mean(fit: HeckmanFit, known: KnownOutcome, replicates: int, level: float) -> Mean:
    """Percentile interval of a two-step fit; a replicate without an estimate does not count."""
    x, w, _ = matrices(fit, None, *_hidden_rows(known), "unselected")
    value = float(mean_and_gradient(fit, x, w, "unselected")[0].mean())
    draws = fit.bootstrap(replicates)
    beta, gamma = draws["outcome"].to_numpy(), draws["select"].to_numpy()
    mills = np.array([inverse_mills(-(w @ each)).mean() for each in gamma])
    means = beta @ x.mean(axis=0) - draws["mills", "lambda"].to_numpy() * mills
    low, high = np.nanquantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Mean(value, float(low), float(high), float(fit.rho))


def likelihood_mean(fit: HeckmanFit, known: KnownOutcome, level: float) -> Mean:
    """With the interval that the fit has for its averages."""
    rows = _hidden_rows(known)
    version = matrices(fit, None, *rows, "unselected")
    average = average_of(groups_of(rows[0], None))
    found = fit.means("unselected").estimate([version], average, level)
    value, low, high = (float(each[0]) for each in (found.value, found.low, found.high))
    return Mean(value, low, high, float(fit.rho))


def network_mean(model, rows: pd.DataFrame, level: float) -> Mean:
    """The epistemic errors of all units are treated as perfectly correlated."""
    found = model.predict_distribution(rows, target="unselected")
    half = _half_width(level, float(np.sqrt(found.epistemic).mean()) ** 2)
    value = float(found.mean.mean())
    return Mean(value, value - half, value + half)
