"""`HeckmanImputer`: completed tables, with outcomes drawn given that a unit was not selected."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from heckesel.errors import DataError, is_whole
from heckesel.estimators.heckman_classifier import HeckmanClassifier
from heckesel.regressor import HeckmanRegressor
from heckesel.estimators.imputation.parameter_draws import draw_model
from heckesel.estimators.network_options import seed_of
from heckesel.estimators.selection_regressor import rows_for_target
from heckesel.predictive import transformed
from heckesel.tables.fit_input import label_column, outcome_column, without_unobserved


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
        and ``HeckmanRegressor(method="ml")`` otherwise.
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
    uncertainty of the model. Linear models are fitted again to rows with random exponential weights
    (the Bayesian bootstrap of Rubin 1981), one for each group if there are any. For networks and
    splines, one of their members or components is drawn. This includes less of the sampling
    variation, so standard errors can be too small.

    Examples
    --------
    >>> import heckesel as hk
    >>> table = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame[["x", "z", "y"]]
    >>> model = hk.HeckmanRegressor(method="two-step")
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
        model = self._default_model(column) if self.estimator is None else clone(self.estimator)
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
        entropy = seed_of(self) if seed is None else seed
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

    def _default_model(self, column):
        observed = label_column(column)
        distinct = set(observed[~pd.isna(observed)].tolist())
        return HeckmanClassifier() if len(distinct) == 2 else HeckmanRegressor(method="ml")

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
        if hasattr(X, "columns"):
            frame = nw.from_native(X, eager_only=True)
            name = _name_of(self.outcome, frame.columns)
            return frame.drop(name).to_native(), frame.get_column(name).to_native()
        values = np.asarray(X)
        place = _place_of(self.outcome, values.shape[1])
        return np.delete(values, place, axis=1), values[:, place]

    def _instruments_of_rest(self, X):
        """Instruments given by position, as positions among the columns beside the outcome."""
        given = self.instruments
        given = list(given) if isinstance(given, list | tuple) else [given]
        columns = list(X.columns) if hasattr(X, "columns") else None
        outcome = self.outcome
        if columns is not None:
            outcome = columns.index(_name_of(outcome, columns))
        count = self.n_features_in_
        outcome = _place_of(outcome, count)
        found = []
        for item in given:
            if isinstance(item, int | np.integer) and not isinstance(item, bool):
                place = _place_of(item, count, "instrument")
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


def _place_of(column, count: int, role: str = "outcome") -> int:
    """A position from 0 on among `count` columns."""
    if not is_whole(column):
        raise DataError(f"{role} {column!r} is a name but X has none; give its position")
    if not -count <= column < count:
        raise DataError(f"{role} {column} is beyond the {count} columns of X")
    return int(column) % count


def _name_of(column, names):
    if column in names:
        return column
    if is_whole(column):
        return names[_place_of(column, len(names))]
    raise DataError(f"X has no column {column!r}, the outcome")


def _rows(table, chosen):
    """Some rows of a frame or an array."""
    if hasattr(table, "columns"):
        return nw.from_native(table, eager_only=True).filter(chosen.tolist()).to_native()
    return table[chosen]


def _completed(table, outcome, gaps, values):
    """A copy of the table with `values` in the gaps of its outcome."""
    if not hasattr(table, "columns"):
        filled = np.array(table)
        filled[gaps, outcome] = values
        return filled
    frame = nw.from_native(table, eager_only=True)
    column = frame.get_column(_name_of(outcome, frame.columns))
    if not gaps.any():
        return frame.clone().to_native()
    if column.dtype.is_integer() and values.dtype.kind == "f":
        column = column.cast(nw.Float64)
    rows = np.flatnonzero(gaps).tolist()
    return frame.with_columns(column.scatter(rows, values.tolist())).to_native()
