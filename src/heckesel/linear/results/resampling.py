"""Bootstraps and profile intervals of a linear fit, on this machine or on a cluster."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import chdtri
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_whole
from heckesel.linear.bootstrap import bootstrap_two_step
from heckesel.linear.over_rho.conditional_fits import critical_value, highest
from heckesel.linear.profile_intervals import atanh_rho_interval, theta_interval
from heckesel.linear.sample.sample import Rows, SampleScale, standardised_sample
from heckesel.linear.sample.stream import StreamedData
from heckesel.tables.cluster import cluster_of


def rows_of(data: SelectionData | StreamedData, client) -> tuple[Rows, SampleScale, Callable]:
    """Standardised rows, and a `map` for work on them. Workers read parts
    of files; of rows in memory each worker gets all, and a part of the work."""
    run: Callable = map if client is None else cluster_of(client)
    if not isinstance(data, StreamedData):
        return *standardised_sample(data), run
    rows = data.rows
    if client is not None:
        rows = replace(rows, stream=replace(rows.stream, run=run))
    return rows, data.scalings, map


def profile_interval(fit, parameter: str, level: float, *, client) -> tuple[float, float]:
    """Of rho or sigma, from the scan of a fit."""
    rows, scalings, run = rows_of(fit.data, client)
    lowest = profile_level(fit, level)
    if parameter == "rho":
        low, high = atanh_rho_interval(rows, fit.scan.modes, lowest, run)
        return float(np.tanh(low)), float(np.tanh(high))
    low, high = theta_interval(rows, fit.scan.modes, lowest, run)
    return float(scalings.y_scale / high), float(scalings.y_scale / low)


def profile_level(fit, level: float) -> float:
    """The profile log-likelihood at the ends of an interval."""
    c = float(chdtri(1, 1 - level))
    if fit.inference == "profile":
        c = critical_value(level)
    return highest(fit.scan, fit.selected) - 0.5 * c


def bootstrap_frame(fit, replicates: int, seed: int, client) -> pd.DataFrame:
    """One row per replicate: every parameter of a two-step fit, rho and sigma."""
    if not (is_whole(replicates) and is_whole(seed)) or replicates < 1 or seed < 0:
        raise DataError(
            f"replicates must be positive and seed not negative, got {replicates!r}, {seed!r}"
        )
    if fit.method != "two-step":
        raise DataError("bootstrap() is for method='two-step'; ml has standard errors for rho")
    data, clusters = _used(fit.data, fit.clusters)
    rows, scalings, run = rows_of(data, client)
    gamma = fit.params["select"].to_numpy()
    with threadpool_limits(1, user_api="blas"):
        how = {"frequency": fit.weight_kind == "frequency", "clusters": clusters, "seed": seed}
        draws = bootstrap_two_step(rows, scalings, gamma, replicates=replicates, run=run, **how)
    p = len(data.x_names)
    order = [*range(p), *range(p + 1, p + 1 + len(gamma)), p, -2, -1]
    extra = pd.MultiIndex.from_tuples([("derived", "rho"), ("derived", "sigma")])
    return pd.DataFrame(draws[:, order], columns=fit.params.index.append(extra))


def _used(data, clusters):
    """Rows of positive weight, as files are read, and the codes of their clusters: those of the
    selected rows and those of the unselected ones."""
    if isinstance(data, StreamedData):
        return data, None
    used = data.weight > 0
    if not used.all():
        data, clusters = data.take(used), None if clusters is None else clusters[used]
    if clusters is None:
        return data, None
    codes = np.unique(clusters, return_inverse=True)[1]
    return data, (codes[data.s], codes[~data.s])
