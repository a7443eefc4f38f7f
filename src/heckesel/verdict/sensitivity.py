"""`hk.sensitivity`: how much the conclusions of a model depend on rho, fixed at several values."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.ml import estimates_over_rho
from heckesel.classical.results import HeckmanFit
from heckesel.column_checks import check_fit
from heckesel.correction.corrected import Corrected
from heckesel.correction.rho import NORMAL
from heckesel.correction.rho import RHO as GRID
from heckesel.data import SelectionData, check_weights, numeric
from heckesel.display import block, html_table, number, number_text, paragraphs
from heckesel.errors import DataError, as_list
from heckesel.tables.fit_input import read_table
from heckesel.tables.formula import FormulaDesign, with_intercept

# Evenly spaced in atanh rho: |rho| up to .96, denser where estimates change faster.
RHO = np.tanh(np.linspace(-2.0, 2.0, 21))
STEP = 1e-2  # of a column's sd, either side, for an average effect
PLAUSIBLE = 2.0  # log-likelihood units below the best within which a curve is highlighted
CAPTION = "Estimates with rho held fixed; log-likelihood minus its maximum"


@dataclass(frozen=True)
class Sensitivity:
    """Conclusions of a model as functions of rho, which is held fixed at each value.

    Attributes
    ----------
    rho : ndarray of shape (j,)
        Increasing values of rho.
    loglik : ndarray of shape (j,)
        Log-likelihood at each rho minus its maximum.
    values : dict of str to ndarray of shape (j,)
        The conclusions: coefficients of the outcome equation and the mean prediction.
    predictions : ndarray of shape (j, m)
        Population means of the m prediction points at each rho.

    Examples
    --------
    >>> import numpy as np
    >>> from heckesel.verdict.sensitivity import Sensitivity
    >>> rho = np.array([-0.5, 0.0, 0.5])
    >>> slope = np.array([-1.0, 0.5, 1.0])
    >>> curves = Sensitivity(rho, np.zeros(3), {"slope": slope}, np.empty((3, 0)))
    >>> round(curves.breakdown("slope"), 3)
    -0.167
    """

    rho: np.ndarray
    loglik: np.ndarray
    values: dict[str, np.ndarray]
    predictions: np.ndarray

    def crossings(self, name: str, threshold: float = 0.0) -> list[float]:
        """Find every rho at which a conclusion crosses a threshold.

        Parameters
        ----------
        name : str
            A key of `values`.
        threshold : float, default 0

        Returns
        -------
        list of float
            In increasing order, by linear interpolation between grid values.

        Raises
        ------
        DataError
            If `values` has no key `name`.
        """
        if name not in self.values:
            raise DataError(
                f"there is no value named {name!r}; use one of {', '.join(self.values)}"
            )
        rho, gap = self.rho, self.values[name] - threshold
        here = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        share = gap[here] / (gap[here] - gap[here + 1])
        between = rho[here] + share * (rho[here + 1] - rho[here])
        return np.sort(np.concatenate([rho[gap == 0.0], between])).tolist()

    def breakdown(self, name: str, threshold: float = 0.0) -> float | None:
        """Find the rho closest to 0 at which the conclusion of a naive fit flips.

        Parameters
        ----------
        name : str
            A key of `values`.
        threshold : float, default 0

        Returns
        -------
        float or None
            None if the conclusion does not cross the threshold anywhere on the grid.
        """
        return min(self.crossings(name, threshold), key=abs, default=None)

    def to_frame(self):
        """Return the curves as a pandas DataFrame indexed by rho.

        Returns
        -------
        pandas.DataFrame
            The columns are ``loglik`` and the keys of `values`.
        """
        import pandas as pd

        index = pd.Index(self.rho, name="rho")
        return pd.DataFrame({"loglik": self.loglik, **self.values}, index=index)

    def __str__(self) -> str:
        fixed = {"rho": "{:.3f}".format, "loglik": "{:.2f}".format}
        rows = self.to_frame().reset_index()
        text = rows.to_string(
            index=False, formatters=dict.fromkeys(self.values, number_text) | fixed
        )
        return "\n".join([CAPTION, text, self._flips()])

    def _flips(self) -> str:
        flips = {name: self.breakdown(name) for name in self.values}
        listed = "; ".join(f"{name} at {rho:.3f}" for name, rho in flips.items() if rho is not None)
        return f"Sign changes closest to rho = 0: {listed or 'none on this grid'}."

    def _repr_html_(self) -> str:
        names = ("rho", "log-likelihood", *self.values)
        columns = (self.loglik, *self.values.values())
        rows = [
            (number(f"{rho:.3f}"), f"{loglik:.2f}", *map(number_text, values))
            for rho, loglik, *values in zip(self.rho, *columns, strict=True)
        ]
        return block(html_table(names, rows, caption=CAPTION), paragraphs([self._flips()]))


def linear_sensitivity(data: SelectionData, points, weight, rho: np.ndarray) -> Sensitivity:
    """Sensitivity of a linear model, refitted at each rho (j,); the mean is over points (m, p),
    constants included, with weight (m,)."""
    found = estimates_over_rho(data, rho)
    beta = np.array([each.beta for each in found])
    loglik = np.array([each.loglik for each in found])
    predictions = beta @ points.T  # (j, m)
    values = {"mean": predictions @ weight / weight.sum()}
    values |= {name: beta[:, j] for j, name in enumerate(data.x_names)}
    return Sensitivity(rho, loglik - loglik.max(), values, predictions)


def network_sensitivity(
    data: SelectionData, fitted, points, weight, effects: dict[str, int], rho: np.ndarray
) -> Sensitivity:
    """Sensitivity of networks, whose last layers are refitted at each rho (j,), or of splines.

    points, weight : (m, p) and (m,) of the mean; effects : columns of x with an average effect
    """
    from heckesel.classical.spline_profile import means_over_rho

    scaling = fitted.scaling
    weight = weight / weight.sum()
    blocks, widths = [points], []
    for column in effects.values():
        step = np.zeros(points.shape[1])
        step[column] = STEP * np.nanstd(data.x[:, column])
        blocks += [points + step, points - step]
        widths.append(2 * step.sum())
    seen, at = (scaling.x(each) for each in (data.x[data.s], np.concatenate(blocks)))
    if hasattr(fitted, "basis"):
        columns, columns_at = [fitted.basis.columns(seen)], [fitted.basis.columns(at)]
        ridges = [fitted.basis.membership]
    else:  # one model for the last layer of each member
        columns, columns_at = fitted.members.last_layer(seen), fitted.members.last_layer(at)
        ridge = np.append(np.ones(columns.shape[2] - 1), 0.0)[:, None]
        ridges = [ridge] * len(columns)
    means, loglik = means_over_rho(data, scaling, columns, columns_at, ridges, rho)
    here, *sides = np.split(means, len(blocks), axis=1)
    values = {"mean": here @ weight}
    for name, width, up, down in zip(effects, widths, sides[::2], sides[1::2], strict=True):
        values[name] = (up - down) @ weight / width
    return Sensitivity(rho, loglik - loglik.max(), values, here)


def check_rho(rho) -> np.ndarray:
    """(j,) increasing values inside (-1, 1); None gives the default grid."""
    if rho is None:
        return RHO
    values = np.sort(np.atleast_1d(numeric(rho, "rho")))
    if values.ndim != 1 or not len(values) or not (np.abs(values) < 1).all():
        raise DataError(f"rho must be numbers between -1 and 1, got {rho!r}")
    return values


def sensitivity(
    model, X=None, y=None, *, at=None, effects=(), rho=None, selected=None, sample_weight=None
) -> Sensitivity:
    """Refit a model with rho fixed at several values.

    Networks keep their hidden layers; their last layer is refitted at each rho. The default method
    of `HeckmanRegressor` predicts with each rho in place of its posterior.

    Parameters
    ----------
    model : HeckmanFit or fitted regressor
        The result of `heckesel.heckman`, or a fitted regressor.
    X, y, selected, sample_weight : array-like, optional
        The data of the fit, which regressors with networks need. The default method of
        `HeckmanRegressor` needs X only.
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
    if not hasattr(model, "instruments") or hasattr(type(model), "predict_proba"):
        raise DataError(
            f"sensitivity is for hk.heckman and the regressors, not for a {type(model).__name__}"
        )
    check_is_fitted(model)
    _check_scale(model.transform_)
    if hasattr(model, "result_"):
        points = None if at is None else with_intercept(model.columns_.x(at))
        return _classic(model.result_.data, points, effects, values)
    if isinstance(model.fitted_, Corrected):
        points = X if at is None else at
        if points is None:
            raise DataError("pass the rows to average over: sensitivity(model, X)")
        return _corrected(model, points, effects, values, sample_weight if at is None else None)
    if X is None or y is None:
        raise DataError("networks need the X and y of their fit: sensitivity(model, X, y)")
    options = ("instruments", "missing", "on_problem", "unobserved")
    table = SimpleNamespace(**{name: getattr(model, name) for name in options})
    table.target_transform = None
    rows = {"selected": selected, "sample_weight": sample_weight}
    data = read_table(table, X, y, **rows, check=check_fit, ask=False)
    return _deep(model, data, X if at is None else at, effects, values, everyone=at is None)


def _corrected(model, at, effects, rho, weight) -> Sensitivity:
    """The prediction of the default method in its normal reading, with all weight on one rho; the
    curve `loglik` is the logarithm of the posterior weight of rho."""
    fitted = model.fitted_
    if fitted.rho is None:
        raise DataError("every unit has an outcome, so nothing depends on rho")
    if effects:
        raise DataError("effects= is for hk.heckman and networks; average model.margins instead")
    x, lowest = model.columns_.x(at), np.finfo(float).tiny
    weight = check_weights(weight, len(x), np.ones(len(x), dtype=bool))
    known = fitted.rho.interval[NORMAL]
    found = []
    for value in rho:
        mass = np.zeros_like(fitted.rho.point)
        j = np.clip(np.searchsorted(GRID, value), 1, len(GRID) - 1)
        share = (value - GRID[j - 1]) / (GRID[j] - GRID[j - 1])
        mass[NORMAL, j - 1], mass[NORMAL, j] = 1 - share, share
        fixed = replace(fitted.rho, point=mass, interval=mass)
        found.append(replace(fitted, rho=fixed).predict(x).mean)
    loglik = np.log(np.maximum(np.interp(rho, GRID, known), lowest))
    predictions = np.array(found)
    mean = predictions @ weight / weight.sum()
    return Sensitivity(rho, loglik - loglik.max(), {"mean": mean}, predictions)


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
