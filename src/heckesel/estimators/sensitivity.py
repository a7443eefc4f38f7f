"""`hk.sensitivity`: what a model would say if rho were this, for every rho."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.data import SelectionData
from heckesel.diagnostics.sensitivity_curves import Sensitivity, check_rho, worst_case_bounds
from heckesel.errors import DataError, as_list
from heckesel.estimators.regression import outcome_column, read_table
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.linear.fixed_rho import estimates_over_rho
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.tables.array_design import with_intercept
from heckesel.tables.formula import FormulaDesign

STEP = 1e-2  # of a column's sd, either side, for an average effect


def sensitivity(
    model, X=None, y=None, *, at=None, effects=(), rho=None, selected=None, sample_weight=None
) -> Sensitivity:
    """Conclusions of a fitted model with rho held at each of several values.

    model : the result of `hk.heckman` or a fitted `HeckmanRegressor`, which need nothing else, or
    a fitted regressor of networks with the X, y, selected and sample_weight of its fit. Every
    model has the value "mean", the average population outcome of the rows `at` (default: all rows
    of the fit); a linear one has each coefficient of the outcome; a deep one the average effect of
    each column named in `effects`.

    `loglik` says which rho the data find plausible, `breakdown(name)` at which rho the sign, or
    the side of a threshold, flips. Networks keep their hidden layers: what is linear in the last
    one is fitted anew at each rho. Of `method="averaged"` they are those of the two-step.
    """
    values, effects = check_rho(rho), as_list("effects", effects)
    if isinstance(model, HeckmanFit):
        points = None if at is None else model.design.outcome_matrix(_rows_at(model, at))
        return _classic(model.data, points, effects, values)
    if not isinstance(model, SelectionRegressor):
        raise DataError(
            f"sensitivity is for hk.heckman and the regressors, not for a {type(model).__name__}"
        )
    check_is_fitted(model)
    if model.transform_ is not None:
        raise DataError("sensitivity is on the scale of the fit; fit without target_transform")
    if hasattr(model, "result_"):
        points = None if at is None else with_intercept(model.columns_.x(at))
        return _classic(model.result_.data, points, effects, values)
    if X is None or y is None:
        raise DataError("networks need the X and y of their fit: sensitivity(model, X, y)")
    table = SimpleNamespace(instruments=model.instruments, missing=model.missing)
    table.target_transform = None
    data = read_table(table, X, y, selected=selected, sample_weight=sample_weight)
    return _deep(model, data, X if at is None else at, effects, values, everyone=at is None)


def _rows_at(fit: HeckmanFit, at):
    """`at` as the fit's design takes it: a frame, or the columns x of a fit to arrays."""
    from_formulas = isinstance(fit.design, FormulaDesign)
    return fit.design.given(at if from_formulas else None, None if from_formulas else at, None)


def bounds(y, low: float, high: float, *, selected=None, sample_weight=None):
    """The average outcome of all units can only lie between these two numbers, if unseen outcomes
    lie in [low, high]; no model is behind them."""
    table = SimpleNamespace(instruments=None, missing="error", target_transform=None)
    zeros = np.zeros((len(outcome_column(y)), 1))
    data = read_table(table, zeros, y, selected=selected, sample_weight=sample_weight)
    return worst_case_bounds(data.y, data.s, data.weight, low, high)


def _classic(data, points, effects, rho) -> Sensitivity:
    """points : (m, p) to average over, constants included; None for all rows of the fit."""
    if not isinstance(data, SelectionData):
        raise DataError(
            "sensitivity() needs rows, and this fit has none: it was loaded, or read its rows from "
            "files; fit a frame with a sample of the rows"
        )
    _check_selection(data)
    for name in effects:
        _check_name(name, data.x_names)
    weight = data.weight if points is None else np.ones(len(points))
    points = data.x if points is None else points
    gaps = np.flatnonzero(np.isnan(points).any(axis=1))
    if len(gaps):
        raise DataError(
            f"{len(gaps)} rows (first: row {gaps[0]}) lack an outcome column, so that there is no "
            "average over all of them; give rows that have them as at="
        )
    found = estimates_over_rho(data, rho)
    beta = np.array([each.beta for each in found])
    loglik = np.array([each.loglik for each in found])
    predictions = beta @ points.T  # (j, m)
    values = {"mean": predictions @ weight / weight.sum()}
    values |= {name: beta[:, j] for j, name in enumerate(data.x_names)}
    return Sensitivity(rho, loglik - loglik.max(), values, predictions)


def _check_selection(data: SelectionData) -> None:
    if data.s.all():
        raise DataError("every unit has an outcome, so nothing depends on rho")


def _check_name(name: str, names) -> None:
    if name not in names:
        raise DataError(f"there is no outcome column {name!r}; there are {', '.join(names)}")


def _deep(model, data: SelectionData, at, effects, rho, *, everyone: bool) -> Sensitivity:
    """everyone : whether `at` are the rows of the fit, which their weights then count"""
    from heckesel.networks.rho.fixed_rho import means_over_rho
    from heckesel.networks.rho.last_layer import last_layers
    from heckesel.networks.training.ensemble_training import all_rows

    _check_selection(data)
    fitted = getattr(model.fitted_, "outcome", model.fitted_)  # baselines keep theirs there
    fitted = getattr(fitted, "two_step", fitted)
    if hasattr(fitted, "basis"):
        basis = fitted.basis
    else:
        rows, members = all_rows(data, fitted.scaling), fitted.members
        (basis,) = last_layers([members], [rows], [data.weight.sum()], len(members.theta))
    points = model.columns_.x(at)
    weight = data.weight if everyone else np.ones(len(points))
    weight = weight / weight.sum()
    names = list(model.columns_.x_names)
    blocks, widths = [points], []
    for name in effects:
        _check_name(name, names)
        step = np.zeros(points.shape[1])
        step[names.index(name)] = STEP * np.nanstd(data.x[:, names.index(name)])
        blocks += [points + step, points - step]
        widths.append(2 * step.sum())
    means, loglik = means_over_rho(data, fitted.scaling, basis, rho, np.concatenate(blocks))
    here, *sides = np.split(means, len(blocks), axis=1)
    values = {"mean": here @ weight}
    for name, width, up, down in zip(effects, widths, sides[::2], sides[1::2], strict=True):
        values[name] = (up - down) @ weight / width
    return Sensitivity(rho, loglik - loglik.max(), values, here)
