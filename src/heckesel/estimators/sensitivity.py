"""`hk.sensitivity`: conclusions for every rho."""

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.data import SelectionData
from heckesel.diagnostics.column_problems import check_fit
from heckesel.diagnostics.sensitivity_curves import Sensitivity, check_rho
from heckesel.errors import DataError, as_list
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.linear.fixed_rho import estimates_over_rho
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.tables.array_design import with_intercept
from heckesel.tables.fit_input import read_table
from heckesel.tables.formula import FormulaDesign

STEP = 1e-2  # of a column's sd, either side, for an average effect


def sensitivity(
    model, X=None, y=None, *, at=None, effects=(), rho=None, selected=None, sample_weight=None
) -> Sensitivity:
    """Refit a model with rho fixed at several values.

    Networks keep their hidden layers; their last layer is refitted at each rho. For
    ``method="averaged"`` these are the networks of the two-step.

    Parameters
    ----------
    model : HeckmanFit or fitted regressor
        The result of `heckesel.heckman`, or a fitted regressor.
    X, y, selected, sample_weight : array-like, optional
        The data of the fit, which regressors with networks need.
    at : frame or array-like, optional
        Rows over which the population outcome is averaged. By default all rows of the fit.
    effects : str or list of str
        Columns whose average effect is computed, for networks. Linear models report every
        coefficient.
    rho : array-like, optional
        Values of rho. By default a grid.

    Returns
    -------
    Sensitivity
        ``values``, among them ``"mean"``, at each rho; ``loglik``, which shows how plausible each
        rho is; ``breakdown(name)``, the rho at which a sign changes.

    Raises
    ------
    DataError
        If the model or the data cannot be used.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> curve = hk.sensitivity(hk.heckman("y ~ x", "~ x + z", frame), rho=[-0.5, 0.0, 0.5])
    >>> sorted(curve.values)
    ['Intercept', 'mean', 'x']
    """
    values, effects = check_rho(rho), as_list("effects", effects)
    if isinstance(model, HeckmanFit):
        _check_scale(model.transform)
        points = None if at is None else model.design.outcome_matrix(_rows_at(model, at))
        return _classic(model.data, points, effects, values)
    if not isinstance(model, SelectionRegressor):
        raise DataError(
            f"sensitivity is for hk.heckman and the regressors, not for a {type(model).__name__}"
        )
    check_is_fitted(model)
    _check_scale(model.transform_)
    if hasattr(model, "result_"):
        points = None if at is None else with_intercept(model.columns_.x(at))
        return _classic(model.result_.data, points, effects, values)
    if X is None or y is None:
        raise DataError("networks need the X and y of their fit: sensitivity(model, X, y)")
    options = ("instruments", "missing", "on_problem", "unobserved")
    table = SimpleNamespace(**{name: getattr(model, name) for name in options})
    table.target_transform = None
    rows = {"selected": selected, "sample_weight": sample_weight}
    data = read_table(table, X, y, **rows, check=check_fit, ask=False)
    return _deep(model, data, X if at is None else at, effects, values, everyone=at is None)


def _check_scale(transform) -> None:
    if transform is not None:
        raise DataError("sensitivity is on the scale of the fit; fit without target_transform")


def _rows_at(fit: HeckmanFit, at):
    """`at` in the form the design needs: a frame, or the columns x of a fit to arrays."""
    from_formulas = isinstance(fit.design, FormulaDesign)
    return fit.design.given(at if from_formulas else None, None if from_formulas else at, None)


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
            f"{len(gaps)} rows (first: row {gaps[0]}) lack a column of the outcome equation, so "
            "there is no average over all rows; pass complete rows as at="
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
    """everyone : whether `at` are the rows of the fit, which are then weighted"""
    from heckesel.networks.rho.fixed_rho import means_over_rho
    from heckesel.networks.rho.last_layer import last_layers
    from heckesel.networks.training.batches import joint_rows

    _check_selection(data)
    fitted = getattr(model.fitted_, "outcome", model.fitted_)  # baselines keep theirs there
    fitted = getattr(fitted, "two_step", fitted)
    if hasattr(fitted, "mixture"):
        raise DataError(
            "sensitivity has normal errors with one sigma; fit without errors='shape' and scale="
        )
    if hasattr(fitted, "basis"):
        basis = fitted.basis
    else:
        rows, members = joint_rows(data, fitted.scaling), fitted.members
        (basis,) = last_layers([members], [rows], [data.weight.sum()], len(members.parameters))
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
