"""`HeckmanImputer` completes tables, and Rubin's rules combine their estimates."""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from heckesel.classical.heckman import fit_in_memory
from heckesel.classical.linear_model import LinearModel, LinearProbit
from heckesel.classical.probit_results import HeckmanProbitFit, fit_binary
from heckesel.classical.results import HeckmanFit
from heckesel.classifier import HeckmanClassifier
from heckesel.correction.corrected import Corrected, CorrectedClasses
from heckesel.data import check_level, numeric, seed_of
from heckesel.errors import DataError, as_list, is_whole
from heckesel.estimators.fitted_model import rows_for_target
from heckesel.learners.crossfit import OutcomeFit
from heckesel.predictive import RHO_LIMIT, transformed
from heckesel.regressor import HeckmanRegressor
from heckesel.tables.fit_input import label_column, outcome_column, without_unobserved


@dataclass(frozen=True)
class PooledEstimates:
    """Estimates from m completed tables, combined by Rubin's rules.

    Every field but `m` has the shape of one estimate: a float, an array or a Series.

    Attributes
    ----------
    estimate, se : float, ndarray or Series
        Pooled estimates and standard errors.
    df : float, ndarray or Series
        Degrees of freedom of the t distribution for tests and intervals.
    within, between : float, ndarray or Series
        Mean of the variances, and variance of the estimates over the tables.
    missing_information : float, ndarray or Series
        Share of the variance that is due to the missing outcomes,
        :math:`\\lambda = (1 + 1/m) B / T`.
    m : int
        Number of completed tables.
    """

    estimate: Any
    se: Any
    df: Any
    within: Any
    between: Any
    missing_information: Any
    m: int

    @property
    def p_values(self):
        """P-values of the hypotheses that a parameter is zero."""
        return 2 * stdtr(self.df, -abs(self.estimate / self.se))

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Confidence intervals.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        ndarray of shape (2,) or (k, 2)
            Lower and upper ends.

        Raises
        ------
        DataError
            If `level` is not between 0 and 1.
        """
        check_level(level)
        half = stdtrit(self.df, (1 + level) / 2) * self.se
        return np.stack([self.estimate - half, self.estimate + half], axis=-1)


def pool_estimates(estimates, variances, *, df: float = np.inf) -> PooledEstimates:
    r"""Combine the estimates from m completed tables by Rubin's rules.

    Parameters
    ----------
    estimates : sequence of m floats, arrays or Series
        The estimates of each completed table.
    variances : sequence of the same shape
        Their squared standard errors.
    df : float, default=inf
        Degrees of freedom that the estimates would have with complete data, such as n - 1 for a
        mean of n rows.

    Returns
    -------
    PooledEstimates

    Raises
    ------
    DataError
        If there are fewer than two tables, or a variance is missing or negative.

    Notes
    -----
    With the mean variance W and the variance B of the estimates,

    .. math:: T = W + (1 + 1/m) B, \qquad \lambda = (1 + 1/m) B / T,

    and the degrees of freedom of Barnard and Rubin (1999) are

    .. math:: \nu = \left(\frac{\lambda^2}{m - 1}
              + \frac{\nu_c + 3}{\nu_c (\nu_c + 1)(1 - \lambda)}\right)^{-1}

    where :math:`\nu_c` is `df`.

    Examples
    --------
    >>> import heckesel as hk
    >>> pooled = hk.pool_estimates([2.0, 2.2, 2.1], [0.04, 0.05, 0.045])
    >>> print(round(pooled.estimate, 3), round(pooled.se, 3), round(pooled.df))
    2.1 0.242 38
    """
    labels = estimates[0].index if isinstance(estimates[0], pd.Series) else None
    values, squares = (
        _rows_of(each, name, labels)
        for each, name in ((estimates, "estimates"), (variances, "variances"))
    )
    m = len(values)
    if values.shape != squares.shape:
        raise DataError(f"estimates have shape {values.shape} but variances {squares.shape}")
    if m < 2:
        raise DataError(f"Rubin's rules need at least two completed tables, got {m}")
    if not (squares >= 0).all():
        raise DataError(f"variances must not be negative or missing, got {squares.min()!r}")
    if not df > 0:
        raise DataError(f"df must be positive, got {df!r}")
    within, between = squares.mean(axis=0), values.var(axis=0, ddof=1)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):  # no variance at all: a constant
        share = (1 + 1 / m) * between / total
        per_df = (1 + 3 / df) / (df + 1)  # (df + 3) / (df (df + 1)), 0 if df is infinite
        observed = np.where(share < 1, per_df / (1 - share), np.inf) if per_df else 0.0
        freedom = 1 / (share**2 / (m - 1) + observed)
    parts = (values.mean(axis=0), np.sqrt(total), freedom, within, between, share)
    estimate, se, freedom, within, between, share = (_like(each, labels) for each in parts)
    return PooledEstimates(estimate, se, freedom, within, between, share, m)


def _like(values, labels):
    """A float, an array or, with labels, a Series."""
    if labels is not None:
        return pd.Series(values, labels)
    return values if np.ndim(values) else float(values)


def _rows_of(tables, name: str, labels) -> np.ndarray:
    """(m,) or (m, k) numbers, one row per table; Series are matched by their labels."""
    if labels is not None:
        tables = [pd.Series(each).reindex(labels).to_numpy() for each in tables]
    return numeric(np.asarray(tables), name)


def draw_model(model, rng):
    """A predictor for an estimator of heckesel, with drawn parameters that are treated as known."""
    result = getattr(model, "result_", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `fit` has already warned
        if isinstance(result, HeckmanFit):
            # The same estimator and error model; the choice of method="auto" is taken as known.
            data, how = _reweighted(result, rng), {"weight_kind": "probability", "clusters": None}
            fit = fit_in_memory(data, result.design, "robust", how, result.method, result.errors)
            # a correlation that a distribution can have, and no uncertainty of the parameters
            rho = np.clip(fit.rho, -RHO_LIMIT, RHO_LIMIT)
            covariance = 0.0 * fit.cov.fillna(0.0)
            return LinearModel(replace(fit, cov=covariance, cov_given_rho=None, rho=rho))
        if isinstance(result, HeckmanProbitFit):
            return LinearProbit(
                fit_binary(
                    _reweighted(result, rng),
                    result.classes,
                    prefer_interior=model.method == "auto",
                    weight_kind="probability",
                )
            )
    fitted = model.fitted_
    if isinstance(fitted, CorrectedClasses):
        return replace(fitted, corrected=_draw_corrected(fitted.corrected, rng))
    if isinstance(fitted, Corrected):
        return _draw_corrected(fitted, rng)
    if not hasattr(fitted, "draw"):
        raise DataError(f"a fit of kind {type(model.fitted_).__name__} has no parameters to draw")
    return model.fitted_.draw(rng)


@dataclass(frozen=True)
class _DrawnOutcome:
    r"""E[y | x, s = 1] with the sampling error that its K members show, one per held-out fold: the
    mean :math:`\bar g` of the members plus
    :math:`\sqrt{(K - 1)/K}\sum_k \xi_k (g_k - \bar g)`, whose variance is that of the
    jackknife, for all rows together."""

    members: OutcomeFit
    seed: int

    def predict_members(self, x) -> np.ndarray:
        """(1, m)"""
        each = self.members.predict_members(x)  # (k, m)
        mean, k = each.mean(axis=0), len(each)
        normal = np.random.default_rng(self.seed).standard_normal(k)
        return (mean + np.sqrt((k - 1) / k) * (normal @ (each - mean)))[None]


def _draw_corrected(fitted: Corrected, rng) -> Corrected:
    """The outcome of the selected, the reading of the instrument and rho, each drawn."""
    outcome: Any = _DrawnOutcome(fitted.outcome, int(rng.integers(2**63)))
    rho = fitted.rho
    if rho is not None:
        weight = np.zeros(rho.weight.size)
        weight[rng.choice(weight.size, p=rho.weight.ravel() / rho.weight.sum())] = 1.0
        rho = replace(rho, weight=weight.reshape(rho.weight.shape))
    return replace(fitted, outcome=outcome, rho=rho)


def _reweighted(fit, rng):
    """Rows of one group have one weight in common."""
    data, codes = fit.data, fit.clusters
    code = np.arange(data.n) if codes is None else np.unique(codes, return_inverse=True)[1]
    weight = data.weight * rng.standard_exponential(code.max() + 1)[code]
    return replace(data, weight=weight / weight.mean())


@dataclass(eq=False, repr=False)
class HeckmanImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Multiple imputation of an outcome that is missing not at random.

    The outcome is a column of X with missing values. A selection model is fitted to the table, and
    missing outcomes are drawn from their distribution given that the unit was *not* selected.

    Parameters
    ----------
    outcome : str or int, default=-1
        Column of X with the outcome, by name or position.
    instruments : str, int or list of these, optional
        Columns of X that affect selection but not the outcome, by name or position.
    estimator : estimator of heckesel, optional
        The model. The default is ``HeckmanClassifier()`` if the outcome has two distinct values,
        and ``HeckmanRegressor()`` otherwise.
    shift : float, default=0.0
        Number added to every imputed value, on the scale of the outcome; for two classes, to the
        probit index of the second class. Use it to find how far the outcomes must differ from the
        model before a conclusion changes.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Attributes
    ----------
    model_ : estimator
        The fitted model; its verdict is in `identification_`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame.

    Notes
    -----
    Each table has a separate draw of the parameters, so the variation between tables includes the
    uncertainty of the model. With the default method, rho is drawn from its posterior,
    and the learner with the error that its members on held-out folds show. Linear models
    are fitted again to rows with random exponential weights (the Bayesian bootstrap of Rubin 1981),
    one for each group if there are any. For the ensembles of `DeepHeckmanRegressor` and for
    ``method="profile"``, one member or component is drawn. This includes less of the sampling
    variation, so standard errors can be too small.

    Examples
    --------
    >>> import heckesel as hk
    >>> table = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame[["x", "z", "y"]]
    >>> model = hk.HeckmanRegressor(learner="linear")
    >>> imputer = hk.HeckmanImputer("y", instruments=["z"], estimator=model).fit(table)
    >>> tables = imputer.impute(table, m=5)
    >>> n = len(table)
    >>> pooled = hk.pool_estimates(
    ...     [each["y"].mean() for each in tables],
    ...     [each["y"].var() / n for each in tables],
    ...     df=n - 1,
    ... )
    >>> bool(pooled.se > table["y"].std() / n**0.5)
    True
    """

    outcome: Any = -1
    _: KW_ONLY
    instruments: Any = None
    estimator: Any = None
    shift: float = 0.0
    random_state: Any = 0

    def fit(self, X, y=None, *, groups=None):
        """Fit the selection model to a table.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The outcome, with missing values, and the columns that explain it and its selection.
        y : ignored
            For scikit-learn.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, as in the fit of the estimator.

        Returns
        -------
        HeckmanImputer
            The fitted imputer.

        Raises
        ------
        DataError
            If a column does not exist, or the model cannot be fitted.
        """
        self._check_table(X, reset=True)
        if self.n_features_in_ < 2:
            raise DataError(
                f"X has {self.n_features_in_} feature(s); give the outcome and at least one column "
                "that explains it"
            )
        if not isinstance(self.shift, int | float | np.number) or not np.isfinite(self.shift):
            raise DataError(f"shift must be a finite number, got {self.shift!r}")
        rest, column = self._split(X)
        model = None if self.estimator is None else clone(self.estimator)
        if model is None:
            labels = label_column(column)
            two = len(set(labels[~pd.isna(labels)].tolist())) == 2
            model = HeckmanClassifier() if two else HeckmanRegressor()
        if not hasattr(model, "instruments"):
            raise DataError(
                f"estimator must be an estimator of heckesel, got {type(model).__name__}"
            )
        if self.instruments is not None:
            if model.instruments is not None:
                raise DataError("give instruments to the imputer or to its estimator, not to both")
            model.set_params(instruments=self._instruments_of_rest(X))
        self.model_ = model.fit(rest, column, **({} if groups is None else {"groups": groups}))
        return self

    def transform(self, X):
        """Impute the missing outcomes once.

        Parameters
        ----------
        X : frame or array of shape (m, columns)
            A table with the columns of the fit.

        Returns
        -------
        frame or array of shape (m, columns)
            X with imputed outcomes. Observed outcomes are unchanged.

        Notes
        -----
        One completed table understates uncertainty. Use `impute` for standard errors.
        """
        return self.impute(X, m=1)[0]

    def impute(self, X, m: int = 20, seed: int | None = None) -> list:
        """Make m completed tables.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            A table with the columns of the fit.
        m : int, default=20
            Number of tables.
        seed : int, optional
            Seed of the draws, by default from `random_state`.

        Returns
        -------
        list of m frames or arrays
            Copies of X that differ in the imputed outcomes; see `heckesel.pool_estimates`.

        Raises
        ------
        DataError
            If `m` is not a positive whole number, or X cannot be used.
        """
        check_is_fitted(self)
        if not is_whole(m) or m < 1:
            raise DataError(f"m must be a positive whole number of tables, got {m!r}")
        self._check_table(X, reset=False)
        rest, column = self._split(X)
        gaps = self._gaps(column)
        if not gaps.any():
            return [_completed(X, self.outcome, gaps, np.empty(0)) for _ in range(m)]
        x, w, _ = rows_for_target(self.model_, _rows(rest, gaps), "unselected")
        entropy = seed_of(self.random_state) if seed is None else seed
        try:
            streams = np.random.SeedSequence(entropy).spawn(m)
        except (TypeError, ValueError):
            raise DataError(f"seed must be a whole number from 0 on, got {seed!r}") from None
        return [
            _completed(X, self.outcome, gaps, self._draw(x, w, np.random.default_rng(stream)))
            for stream in streams
        ]

    def _draw(self, x, w, rng) -> np.ndarray:
        """(m,) outcomes of unselected units, under a draw of the parameters."""
        model, drawn = self.model_, draw_model(self.model_, rng)
        if hasattr(model, "classes_"):
            index = ndtri(drawn.probabilities(x, w, "unselected")[:, 1]) + self.shift
            return model.classes_[(rng.random(len(index)) < ndtr(index)).astype(int)]
        predictive = transformed(drawn.predict(x, w, "unselected"), model.transform_)
        return predictive.sample(1, rng)[0] + self.shift

    def _gaps(self, column) -> np.ndarray:
        """(n,) where the outcome is missing, or has a value that stands for a missing one."""
        unobserved = self.model_.unobserved
        if hasattr(self.model_, "classes_"):
            return pd.isna(without_unobserved(label_column(column), unobserved))
        return np.isnan(outcome_column(column, unobserved))

    def _check_table(self, X, *, reset: bool) -> None:
        """scikit-learn's checks of shape, names and number of columns."""
        validate_data(
            self,
            X,
            reset=reset,
            dtype=None,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )

    def _split(self, X):
        """The other columns, and the outcome."""
        place = _place_of(self.outcome, X, "outcome")
        if hasattr(X, "columns"):
            frame = nw.from_native(X, eager_only=True)
            name = frame.columns[place]
            return frame.drop(name).to_native(), frame.get_column(name).to_native()
        values = np.asarray(X)
        return np.delete(values, place, axis=1), values[:, place]

    def _instruments_of_rest(self, X):
        """Instruments given by position, as positions among the columns beside the outcome."""
        outcome, found = _place_of(self.outcome, X, "outcome"), []
        for item in as_list("instruments", self.instruments):
            if is_whole(item):
                place = _place_of(item, X, "instrument")
                if place == outcome:
                    raise DataError("the outcome cannot be an instrument")
                item = place - (place > outcome)
            found.append(item)
        return found

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _place_of(column, table, role: str) -> int:
    """The position of a column of the table, from 0 on, by name or position."""
    names = list(table.columns) if hasattr(table, "columns") else None
    if names is not None and column in names:
        return names.index(column)
    if not is_whole(column):
        if names is None:
            raise DataError(f"{role} {column!r} is a name but X has none; give its position")
        raise DataError(f"X has no column {column!r}, the {role}")
    count = np.asarray(table).shape[1]
    if not -count <= column < count:
        raise DataError(f"{role} {column} is beyond the {count} columns of X")
    return int(column) % count


def _rows(table, chosen):
    """Some rows of a frame or an array."""
    if hasattr(table, "columns"):
        return nw.from_native(table, eager_only=True).filter(chosen.tolist()).to_native()
    return table[chosen]


def _completed(table, outcome, gaps, values):
    """A copy of the table with `values` in the gaps of its outcome."""
    place = _place_of(outcome, table, "outcome")
    if not hasattr(table, "columns"):
        filled = np.array(table)
        filled[gaps, place] = values
        return filled
    frame = nw.from_native(table, eager_only=True)
    column = frame.get_column(frame.columns[place])
    if not gaps.any():
        return frame.clone().to_native()
    if column.dtype.is_integer() and values.dtype.kind == "f":
        column = column.cast(nw.Float64)
    rows = np.flatnonzero(gaps).tolist()
    return frame.with_columns(column.scatter(rows, values.tolist())).to_native()
