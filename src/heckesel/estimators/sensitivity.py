"""`hk.sensitivity`: conclusions for every rho."""

from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.results import HeckmanFit
from heckesel.data import SelectionData
from heckesel.diagnostics.column_problems import check_fit
from heckesel.diagnostics.sensitivity_curves import (
    Sensitivity,
    check_rho,
    linear_sensitivity,
    network_sensitivity,
)
from heckesel.errors import DataError, as_list
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.tables.fit_input import read_table
from heckesel.tables.formula import FormulaDesign, with_intercept


def sensitivity(
    model, X=None, y=None, *, at=None, effects=(), rho=None, selected=None, sample_weight=None
) -> Sensitivity:
    """Refit a model with rho fixed at several values.

    Networks keep their hidden layers; their last layer is refitted at each rho. For
    ``method="averaged"`` and ``method="auto"`` these are the networks of the two-step.

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
            "sensitivity() needs the rows of the fit, but this fit was loaded or read from files "
            "and has none; fit a frame with a sample of the rows"
        )
    _check_selection(data)
    for name in effects:
        _check_name(name, data.x_names)
    weight = data.weight if points is None else np.ones(len(points))
    points = data.x if points is None else points
    gaps = np.flatnonzero(np.isnan(points).any(axis=1))
    if len(gaps):
        raise DataError(
            f"{len(gaps)} rows (first: row {gaps[0]}) have missing values in columns of the "
            "outcome equation, so there is no average over all rows; pass complete rows as at="
        )
    return linear_sensitivity(data, points, weight, rho)


def _check_selection(data: SelectionData) -> None:
    if data.s.all():
        raise DataError("every unit has an outcome, so nothing depends on rho")


def _check_name(name: str, names) -> None:
    if name not in names:
        raise DataError(f"there is no outcome column {name!r}; there are {', '.join(names)}")


def _deep(model, data: SelectionData, at, effects, rho, *, everyone: bool) -> Sensitivity:
    """everyone : whether `at` are the rows of the fit, which are then weighted"""
    _check_selection(data)
    fitted = getattr(model.fitted_, "main", model.fitted_)
    if fitted is None:
        raise DataError(
            "sensitivity refits networks, and method='auto' used splines alone; fit with "
            "method='two-step' or 'profile'"
        )
    if hasattr(fitted, "mixture"):
        raise DataError(
            "sensitivity() needs normal errors with a constant sigma; fit without errors='shape' "
            "and scale="
        )
    names = list(model.columns_.x_names)
    for name in effects:
        _check_name(name, names)
    columns, points = {name: names.index(name) for name in effects}, model.columns_.x(at)
    weight = data.weight if everyone else np.ones(len(points))
    return network_sensitivity(data, fitted, points, weight, columns, rho)
