"""`hk.sensitivity`: what a model would say if rho were this, for every rho."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.classic.fixed_rho import estimates_over_rho
from heckesel.classic.stream import StreamedData
from heckesel.data import SelectionData
from heckesel.diagnostics.sensitivity import Sensitivity, check_rho, worst_case_bounds
from heckesel.errors import DataError
from heckesel.estimators.fit import HeckmanFit
from heckesel.estimators.regression import read_table

STEP = 1e-2  # of a column's sd, either side, for an average effect


def sensitivity(model, X=None, y=None, *, at=None, effects=(), rho=None) -> Sensitivity:
    """Conclusions of a fitted model with rho held at each of several values.

    model : the result of `hk.heckman`, which needs nothing else, or a fitted regressor with the
    X and y it was fitted to. Every model has the value "mean", the average population outcome
    of the rows `at` (default: all rows of the fit); a linear one has each coefficient of the
    outcome; a deep one the average effect of each column named in `effects`.

    `loglik` says which rho the data find plausible, `breakdown(name)` at which rho the sign, or
    the side of a threshold, flips. Networks keep their hidden layers: what is linear in the last
    one is fitted anew at each rho.
    """
    values = check_rho(rho)
    if isinstance(model, HeckmanFit):
        if isinstance(model.data, StreamedData):
            raise DataError(
                "sensitivity() needs rows, and this fit read its rows from files and kept none; "
                "fit a frame with a sample of the rows"
            )
        return _classic(model.data, values)
    check_is_fitted(model)
    if hasattr(model, "result_"):
        return _classic(model.result_.data, values)
    if X is None or y is None:
        raise DataError("networks need the X and y of their fit: sensitivity(model, X, y)")
    if model.transform_ is not None:
        raise DataError("sensitivity is on the scale of the fit; fit without target_transform")
    return _deep(model, X, y, X if at is None else at, effects, values)


def bounds(y, low: float, high: float, *, selected=None, sample_weight=None):
    """The average outcome of all units can only lie between these two numbers, if unseen outcomes
    lie in [low, high]; no model is behind them."""
    table = SimpleNamespace(instruments=None, missing="error", target_transform=None)
    zeros = np.zeros((len(y), 1))
    data = read_table(table, zeros, y, selected=selected, sample_weight=sample_weight)
    return worst_case_bounds(data.y, data.s, data.weight, low, high)


def _classic(data: SelectionData, rho) -> Sensitivity:
    if data.s.all():
        raise DataError("nothing was selected, so nothing depends on rho")
    found = estimates_over_rho(data, rho)
    known = ~np.isnan(data.x).any(axis=1)
    predictions = np.array([data.x[known] @ each.beta for each in found])  # (j, m)
    loglik = np.array([each.loglik for each in found])
    beta = np.array([each.beta for each in found])
    values = {"mean": predictions @ data.weight[known] / data.weight[known].sum()}
    values |= {name: beta[:, j] for j, name in enumerate(data.x_names)}
    return Sensitivity(rho, loglik - loglik.max(), values, predictions)


def _deep(model, X, y, at, effects, rho) -> Sensitivity:
    from heckesel.deep.cells import all_rows
    from heckesel.deep.fixed_rho import means_over_rho
    from heckesel.deep.last_layer import last_layers

    table = SimpleNamespace(**{k: getattr(model, k) for k in ("instruments", "missing")})
    table.target_transform = None
    data = read_table(table, X, y, selected=None, sample_weight=None)
    if data.s.all():
        raise DataError("nothing was selected, so nothing depends on rho")
    fitted = getattr(model.fitted_, "outcome", model.fitted_)  # baselines keep theirs there
    if hasattr(fitted, "basis"):
        basis = fitted.basis
    else:
        rows, members = all_rows(data, fitted.scaling), fitted.members
        (basis,) = last_layers([members], [rows], [data.weight.sum()], len(members.theta))
    points = model.columns_.x(at)
    names = list(model.columns_.x_names)
    blocks = [points]
    for name in effects:
        if name not in names:
            raise DataError(f"there is no outcome column {name!r}; there are {', '.join(names)}")
        step = np.zeros(points.shape[1])
        step[names.index(name)] = STEP * np.nanstd(data.x[:, names.index(name)])
        blocks += [points + step, points - step]
    means, loglik = means_over_rho(data, fitted.scaling, basis, rho, np.concatenate(blocks))
    parts = np.split(means, len(blocks), axis=1)
    values = {"mean": parts[0].mean(axis=1)}
    for place, name in enumerate(effects):
        width = 2 * STEP * np.nanstd(data.x[:, names.index(name)])
        up, down = parts[1 + 2 * place], parts[2 + 2 * place]
        values[name] = (up - down).mean(axis=1) / width
    return Sensitivity(rho, loglik - loglik.max(), values, parts[0])
