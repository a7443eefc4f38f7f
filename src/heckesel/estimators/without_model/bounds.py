"""`hk.bounds`: bounds on a mean, a quantile or an effect under several sets of assumptions."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.results import HeckmanFit
from heckesel.classical.summary import ERRORS, NAMES
from heckesel.data import SelectionData, check_level
from heckesel.diagnostics.bounds.assumption_sets import bounds_rows, target
from heckesel.diagnostics.bounds.bound_intervals import INTERVALS
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.diagnostics.bounds.bounds_table import Bounds, BoundsRow
from heckesel.errors import DataError, is_one_of, is_share
from heckesel.estimators.without_model.bounds_input import bounded_sample
from heckesel.tables.formula import groups_or_clusters


def bounds(
    y,
    low: float,
    high: float,
    *,
    treatment=None,
    instrument=None,
    covariates=None,
    follow_up=None,
    model=None,
    quantile: float | None = None,
    selected=None,
    sample_weight=None,
    groups=None,
    clusters=None,
    unobserved=None,
    level: float = 0.95,
    interval: str = "imbens-manski",
) -> Bounds:
    """Bounds on the outcome of all units, from no assumption to the full model.

    Each optional column or model adds rows to the table. A row states an assumption and the bounds
    that follow from it.

    Parameters
    ----------
    y : array-like of shape (n,)
        The outcome, NaN where it was not observed.
    low, high : float
        The range of unobserved outcomes; infinite if there is none.
    treatment : array-like of shape (n,), optional
        0/1 indicator of a treatment. The bounds are then those of its effect, and Lee's trimming
        bounds are added.
    instrument : array-like of shape (n,), optional
        A column with a few ordered values. Adds bounds under two assumptions: the mean outcome does
        not decrease with the instrument (pass its negative if it does not increase), and the mean
        outcome does not depend on it.
    covariates : frame or array-like, optional
        Columns with few values, known for all units. Adds trimming bounds within their
        combinations. The row ``"missing at random"`` is then conditional on these columns.
    follow_up : array-like of shape (n,), optional
        1 for the units that were drawn at random among those without an outcome and were contacted
        again, reached or not; 0 for all others. y has the outcomes of those reached. Only the row
        ``"random follow-up"`` uses these outcomes.
    model : HeckmanFit or HeckmanRegressor, optional
        A fit to the same rows. Adds a last row with the average outcome or, with `treatment`, the
        average marginal effect of the column that has the name of `treatment`.
    quantile : float, optional
        Between 0 and 1: bounds of a quantile, or of the effect on it, instead of the mean.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights. Whole numbers are frequency weights, other numbers probability weights.
    groups : array-like of shape (n,), optional
        Groups of dependent units.
    clusters : array-like of shape (n,), optional
        Alias of `groups`.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    level : float, default 0.95
        Confidence level, above 0.5.
    interval : {"imbens-manski", "stoye"}, default "imbens-manski"
        Confidence intervals of the bounded quantity. Imbens and Manski use one critical value for
        both ends, Stoye the pair that makes the interval shortest.

    Returns
    -------
    Bounds
        A printable table with ``rows`` and ``to_frame()``. It unpacks into the bounds without
        assumptions.

    Raises
    ------
    DataError
        If an observed outcome is outside the range, or the data cannot be used.

    Notes
    -----
    Standard errors are computed from the contribution of each unit to the bounds. The rows
    ``"monotone instrument"`` and ``"instrument"`` are maxima over estimates, so these bounds are
    too narrow on average. Their intervals account for this by simulation and are the same for both
    values of `interval`.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> low, high = hk.bounds([1.0, 2.0, np.nan, np.nan], 0.0, 4.0)
    >>> float(low), float(high)
    (0.75, 2.75)
    >>> rng = np.random.default_rng(0)
    >>> treatment = rng.integers(0, 2, 500)
    >>> y = np.where(rng.random(500) < 0.6 + 0.2 * treatment, rng.random(500), np.nan)
    >>> found = hk.bounds(y, 0.0, 1.0, treatment=treatment)
    >>> list(found.to_frame().index)
    ['no assumption', 'random treatment', 'trimming', 'missing at random']
    """
    check_level(level)
    if level <= 0.5:
        raise DataError(
            f"level must be above 0.5, got {level:g}; otherwise intervals end inside the bounds"
        )
    if not is_one_of(interval, INTERVALS):
        raise DataError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    if quantile is not None and not is_share(quantile):
        raise DataError(f"quantile must be a number between 0 and 1, got {quantile!r}")
    if quantile is not None and not (instrument is None and model is None):
        raise DataError("instrument= and model= give bounds for means; omit them with quantile=")
    columns = {
        "selected": selected,
        "sample_weight": sample_weight,
        "treatment": treatment,
        "instrument": instrument,
        "covariates": covariates,
        "follow_up": follow_up,
        "clusters": groups_or_clusters(groups, clusters),
    }
    sample, names, used = bounded_sample(y, low, high, quantile, columns, unobserved)
    rows = bounds_rows(sample, names, level, interval)
    if model is not None:
        rows.append(_model_row(model, getattr(treatment, "name", None), sample, len(used), level))
    return Bounds(tuple(rows), level, interval, names.outcome)


def _model_row(model, treatment, sample: BoundedSample, n: int, level: float) -> BoundsRow:
    fit = model
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    if hasattr(model, "transform_"):
        if model.transform_ is not None:
            raise DataError("model= must be on the scale of y; fit without target_transform")
        fit = getattr(model, "result_", None)
        if fit is not None and not isinstance(fit, HeckmanFit):
            raise DataError("a saved model does not contain the rows of the fit; pass a new fit")
    if not isinstance(fit, HeckmanFit):
        raise DataError(
            f"model= is for hk.heckman and linear regressors, not for a {type(model).__name__}"
        )
    if isinstance(fit.data, SelectionData) and fit.data.n != n:
        raise DataError(f"the model was fitted to {fit.data.n} rows but y has {n}")
    if sample.treated is None:
        estimate, low, high = fit.average(level=level)[["mean", "low", "high"]]
    else:
        effects = fit.margins(level=level)
        if treatment not in effects.index:
            raise DataError(
                f"the model has no column {treatment!r}, the name of treatment=; "
                f"it has {', '.join(map(str, effects.index))}"
            )
        estimate, low, high = effects.loc[treatment, ["effect", "low", "high"]]
    method = NAMES.get(fit.method, fit.method)
    assumes = f"{fit.title}, {method}{ERRORS[fit.errors] or ', normal errors'}"
    limits = np.array([estimate, estimate, low, high], dtype=float).tolist()
    return BoundsRow("model", assumes, target(sample, "all units"), *limits)
