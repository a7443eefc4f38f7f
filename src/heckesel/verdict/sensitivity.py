"""`hk.sensitivity`: how much conclusions depend on rho, or on its prior."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.ml import estimates_over_rho
from heckesel.classical.results import HeckmanFit
from heckesel.correction.corrected import Corrected
from heckesel.correction.prior import rho_prior
from heckesel.correction.rho import NORMAL, posterior
from heckesel.correction.rho import RHO as GRID
from heckesel.data import SelectionData, check_level, evenly_spaced, numeric
from heckesel.display import block, html_table, number, number_text, paragraphs
from heckesel.errors import DataError
from heckesel.margins import Question, average_of, estimate_mixture, frame_of_rows, groups_of
from heckesel.tables.fit_input import observed_values
from heckesel.tables.formula import FormulaDesign, with_intercept
from heckesel.verdict.bounds import bounds

# Evenly spaced in atanh rho: |rho| up to .96, denser where estimates change faster.
RHO = np.tanh(np.linspace(-2.0, 2.0, 21))
PLAUSIBLE = 2.0  # log-likelihood units below the best within which a curve is highlighted
CAPTION = "Estimates with rho held fixed; log-likelihood minus its maximum"
NARROW, WIDE = 0.05, 0.3  # scales of the priors beside that of the fit
SCALES = (0.01, 3.0)  # between which the conclusion may turn; the widest is nearly uniform
HALVINGS = 8
MOST_ROWS = 10_000  # that means are over, at even steps


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


@dataclass(frozen=True)
class PriorSensitivity:
    """The answer of the default method under several priors of rho.

    Attributes
    ----------
    priors : DataFrame
        One row per prior: ``rho`` with ``rho_low`` and ``rho_high``, and the ``mean`` of all rows
        with ``low`` and ``high``; with y, also ``unselected``, ``unselected_low`` and
        ``unselected_high``, and a last row ``"no assumption"`` with worst-case bounds on the mean.
    naive : float
        Mean of all rows without a correction.
    turns_at : float or None
        The smallest scale of a t prior with which the interval of the mean excludes `naive`. None
        if there is no such prior, 0 if there is none with which it includes it.
    level : float
        Level of the intervals.
    curve : Sensitivity
        The mean of all rows as a function of rho, if errors are normal; its ``loglik`` is the
        logarithm of the posterior weight.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.9, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(["z"], learner="linear").fit(frame[["x", "z"]], frame["y"])
    >>> found = hk.sensitivity(model, frame[["x", "z"]], frame["y"])
    >>> list(found.to_frame().index)
    ['scale 0.05', 'of this fit', 'scale 0.3', 'uniform', 'no assumption']
    """

    priors: pd.DataFrame
    naive: float
    turns_at: float | None
    level: float
    curve: Sensitivity

    def to_frame(self):
        """Return one row per prior as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        return self.priors

    @property
    def sentence(self) -> str:
        """The prior at which the conclusion turns."""
        what = f"the {100 * self.level:g} % interval of the mean of all"
        naive = f"the naive mean {number_text(self.naive)}"
        if self.turns_at is None:
            return f"Under every prior of rho {what} includes {naive}."
        if self.turns_at == 0:
            return f"Under every prior of rho {what} excludes {naive}."
        return (
            f"{what[0].upper()}{what[1:]} excludes {naive} if the t prior of rho has a scale of "
            f"{self.turns_at:.2g} or more."
        )

    def __str__(self) -> str:
        return f"{self.priors.to_string(float_format=number_text, na_rep='')}\n{self.sentence}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.priors.to_html(float_format=number_text, na_rep="", border=0)
        return block(table, paragraphs([self.sentence]))


def sensitivity(model, X=None, y=None, *, selected=None, rho=None, level: float = 0.9):
    """How much the mean outcome depends on rho, or on the prior of rho.

    The data of a fit of `heckesel.heckman`, or of a linear regressor, are fitted again with rho
    fixed at several values. The default method of `HeckmanRegressor` and `HeckmanClassifier` takes
    rho from the instrument and a prior, so its prior is replaced; nothing is fitted again.

    Parameters
    ----------
    model : HeckmanFit, HeckmanRegressor or HeckmanClassifier
        The fitted model.
    X : frame or array-like, optional
        Rows over which the population outcome is averaged. A linear fit has its own by default.
    y : array-like, optional
        Outcomes of these rows, NaN where not observed. For the default method, adds the mean of the
        unselected, and bounds on the mean between the smallest and the largest observed outcome.
    selected : array-like, optional
        0/1 indicator of selection, if `y` has outcomes that do not count as observed.
    rho : array-like, optional
        Values of rho. By default a grid.
    level : float, default=0.9
        Level of the intervals under several priors.

    Returns
    -------
    Sensitivity or PriorSensitivity
        For linear fits ``values`` at each rho, ``loglik``, which shows how plausible each rho is,
        and ``breakdown(name)``, the rho at which a sign changes. For the default method the means
        under each prior, and ``turns_at``, the prior at which the conclusion turns.

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
    check_level(level)
    rho = RHO if rho is None else np.sort(np.atleast_1d(numeric(rho, "rho")))
    if rho.ndim != 1 or not len(rho) or not (np.abs(rho) < 1).all():
        raise DataError(f"rho must be numbers between -1 and 1, got {rho!r}")
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        corrected = getattr(model.fitted_, "corrected", model.fitted_)
        if isinstance(corrected, Corrected):
            return _over_priors(model, corrected, X, y, selected, rho, level)
    fit = getattr(model, "result_", model)
    if not isinstance(fit, HeckmanFit):
        raise DataError(
            "sensitivity is for hk.heckman, linear regressors and the default method, not for a "
            f"{type(model).__name__}"
        )
    if fit.transform is not None or getattr(model, "transform_", None) is not None:
        raise DataError("sensitivity is on the scale of the fit; fit without target_transform")
    if X is None:
        points = None
    elif hasattr(model, "columns_"):
        points = with_intercept(model.columns_.x(X))
    else:
        given = (X, None, None) if isinstance(fit.design, FormulaDesign) else (None, X, None)
        points = fit.design.outcome_matrix(fit.design.given(*given))
    return _over_rho(fit.data, points, rho)


def _over_rho(data, points, rho) -> Sensitivity:
    """A linear model, refitted at each rho; points : (m, p) to average over, constants included,
    None for all rows of the fit with their weights."""
    if not isinstance(data, SelectionData):
        raise DataError(
            "sensitivity() needs the rows of the fit, but this fit was loaded or read from files "
            "and has none; fit a frame with a sample of the rows"
        )
    if data.s.all():
        raise DataError("every unit has an outcome, so nothing depends on rho")
    weight = data.weight if points is None else np.ones(len(points))
    points = data.x if points is None else points
    gaps = np.flatnonzero(np.isnan(points).any(axis=1))
    if len(gaps):
        raise DataError(
            f"{len(gaps)} rows (first: row {gaps[0]}) have missing values in columns of the "
            "outcome equation, so there is no average over all rows; pass complete rows as X"
        )
    found = estimates_over_rho(data, rho)
    beta, loglik = (np.array([getattr(each, of) for each in found]) for of in ("beta", "loglik"))
    predictions = beta @ points.T  # (j, m)
    values = {"mean": predictions @ weight / weight.sum()}
    values |= {name: beta[:, j] for j, name in enumerate(data.x_names)}
    return Sensitivity(rho, loglik - loglik.max(), values, predictions)


def _over_priors(model, corrected: Corrected, X, y, selected, rho, level) -> PriorSensitivity:
    """Every prior multiplies the same likelihood of rho; predictions are computed once."""
    if X is None:
        raise DataError("pass the rows to average over: sensitivity(model, X)")
    if (of_fit := corrected.rho) is None:
        raise DataError("every unit has an outcome, so nothing depends on rho")
    frame = frame_of_rows(X, model.columns_.given_names)
    rows = evenly_spaced(len(frame), MOST_ROWS)
    transform, is_binary = getattr(model, "transform_", None), hasattr(model, "classes_")

    def mean_of(cases, target: str):
        """The mean of some rows, and its interval, as a function of the posterior of rho."""
        columns = model.columns_
        x, w = columns.x(cases), None if target == "population" else columns.w(cases)
        members = corrected.outcome.predict_members(x)
        averages = cast(Any, corrected.selection).averages(x)
        index = None if w is None else corrected.index(w)
        known: Any = replace(
            corrected,
            outcome=cast(Any, SimpleNamespace(predict_members=lambda x: members)),
            selection=cast(
                Any, SimpleNamespace(averages=lambda _: averages, index=lambda *_: index)
            ),
        )
        asked = [Question(average_of(groups_of(cases, None)), 1)]

        def mean(rho):
            parts = replace(known, rho=rho).component_means(x, w, target, transform=transform)
            (found,) = estimate_mixture(parts, asked, level, is_probability=is_binary)
            return float(found.value[0]), float(found.low[0]), float(found.high[0])

        plain = replace(known, selection=None).component_means(x, w, target, transform=transform)
        (naive,) = estimate_mixture(plain, asked, level, is_probability=is_binary)
        return mean, float(naive.value[0])

    def under(prior):
        return posterior(model.evidence_, rho_prior(prior))

    mean, naive = mean_of(frame.iloc[rows], "population")
    hidden = None
    if y is not None or selected is not None:
        values, s = observed_values(model, y, selected, rows=len(frame))
        unseen = rows[~s[rows]]
        hidden = mean_of(frame.iloc[unseen], "unselected")[0] if len(unseen) else None
    table = {}
    given = {
        f"scale {NARROW:g}": NARROW,
        "of this fit": None,
        f"scale {WIDE:g}": WIDE,
        "uniform": "uniform",
    }
    for name, prior in given.items():
        of_rho = of_fit if name == "of this fit" else under(prior)
        numbers = (of_rho.rho, *of_rho.rho_interval(level), *mean(of_rho))
        table[name] = numbers if hidden is None else (*numbers, *hidden(of_rho))
    names = ["rho", "rho_low", "rho_high", "mean", "low", "high"]
    if hidden is not None:
        names += ["unselected", "unselected_low", "unselected_high"]
    priors = pd.DataFrame.from_dict(table, orient="index", columns=names)
    priors.index.name = "prior"
    if y is not None and transform is None:
        ends = (0.0, 1.0) if is_binary else (float(values[s].min()), float(values[s].max()))
        if ends[0] < ends[1]:
            low, high = bounds(np.where(s, values, np.nan), *ends)
            priors.loc["no assumption", ["low", "high"]] = low, high

    def clear(scale: float) -> bool:
        _, low, high = mean(under(scale))
        return not low <= naive <= high

    narrow, wide = SCALES
    turns_at: float | None = None
    if clear(wide):
        turns_at = 0.0
        if not clear(narrow):
            for _ in range(HALVINGS):
                middle = (narrow * wide) ** 0.5
                narrow, wide = (narrow, middle) if clear(middle) else (middle, wide)
            turns_at = wide

    def fixed(value: float):
        """All weight on one rho, in the normal reading."""
        mass = np.zeros_like(of_fit.weight)
        j = np.clip(np.searchsorted(GRID, value), 1, len(GRID) - 1)
        share = (value - GRID[j - 1]) / (GRID[j] - GRID[j - 1])
        mass[NORMAL, j - 1], mass[NORMAL, j] = 1 - share, share
        return replace(of_fit, weight=mass)

    means = np.array([mean(fixed(value))[0] for value in rho])
    density = np.interp(rho, GRID, of_fit.weight[NORMAL])
    loglik = np.log(np.maximum(density, np.finfo(float).tiny))
    curve = Sensitivity(rho, loglik - loglik.max(), {"mean": means}, np.empty((len(rho), 0)))
    return PriorSensitivity(priors, naive, turns_at, level, curve)
