"""`average` and `margins` of every fitted estimator."""

import pandas as pd

from heckesel.classical.prediction import averages_table, effects_table
from heckesel.estimators.effects.model_means import model_means
from heckesel.margins import frame_of_rows, groups_of


class GroupAverages:
    """Methods that regressors and classifiers share.

    A subclass has `columns_`, `identification_` and `fitted_`. A linear `fitted_` has `.means` and
    `.matrices`, any other `.component_means`.
    """

    def average(
        self, X, target: str = "population", *, by: str | None = None, level: float = 0.9
    ) -> pd.DataFrame:
        """Average the expected outcome over rows, with an interval of the average.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            The units to average over, as in `predict`. For the average outcome of rejected units,
            pass these rows with ``target="unselected"``.
        target : {"population", "selected", "unselected", "selection"}, default="population"
            The mean outcome, as in `predict`, or the probability of selection itself. For a
            classifier the outcome is the probability of `classes_[1]`.
        by : str, optional
            Column of X with groups. It need not be a column of the fit.
        level : float, default=0.9
            Confidence level, between 0 and 1.

        Returns
        -------
        DataFrame
            One row per group, or one row ``"all"``: ``n`` rows, ``mean``, ``se``, ``low`` and
            ``high``.

        Raises
        ------
        DataError
            If X or an option cannot be used.

        Warns
        -----
        UserWarning
            If all networks were trained on the same rows, or if the target is "selection" and the
            selection equation has no standard errors: ``se``, ``low`` and ``high`` are then NaN.

        Notes
        -----
        The interval is for the expected mean of these rows. The mean of the outcomes themselves
        also varies with the noise, whose variance is the mean of ``std**2 - epistemic``, divided by
        n. The errors of two predictions are correlated, because both come from the same estimates.
        The interval is therefore not an average of those of `predict_interval`. It comes from:

        - linear fits: the delta method or, if the instruments are weak, all values of rho that the
          data allow (`result_.inference`);
        - splines and the method "profile": the delta method within each point of the mixture, and
          the variation of the mean between points;
        - networks on folds: the jackknife over the members that held out each fold.

        Intervals of probabilities are computed on the probit scale. With a linear fit and a
        `target_transform`, the mean is evaluated at the estimates, while `predict` also averages
        over their uncertainty.

        Examples
        --------
        >>> import heckesel as hk
        >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
        >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
        >>> rejected = frame[frame["y"].isna()]
        >>> found = model.average(rejected, target="unselected")
        >>> list(found.columns), int(found.loc["all", "n"]) == len(rejected)
        (['n', 'mean', 'se', 'low', 'high'], True)
        """
        means = model_means(self, target, level)
        frame = frame_of_rows(X, self.columns_.given_names)  # type: ignore[attr-defined]
        return averages_table(means.estimate, frame, groups_of(frame, by))

    def margins(
        self,
        X,
        target: str = "population",
        *,
        at=None,
        by: str | None = None,
        kind: str = "effect",
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Average marginal effects of the columns of X over its rows.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            The units to average over, as in `predict`.
        target : {"population", "selected", "unselected", "selection"}, default="population"
            The mean outcome that changes, as in `average`.
        at : dict, optional
            Values to which columns are set in all rows, such as ``{"age": 40}``. With lists,
            ``{"age": [30, 40]}``, there is one set of effects for each combination.
        by : str, optional
            Column of X with groups.
        kind : {"effect", "elasticity"}, default="effect"
            ``"effect"`` is the derivative of the prediction with respect to a numeric column. For a
            category, or a column with the values 0 and 1 only, it is the difference between each
            level and the first. ``"elasticity"`` is the mean of (dy/dx)(x/y), for numeric columns
            only.
        level : float, default=0.95
            Confidence level, between 0 and 1.

        Returns
        -------
        DataFrame
            ``effect``, ``se``, ``z``, ``p``, ``low`` and ``high``, one row per variable or, with
            `at` and `by`, per set of values, group and variable.

        Raises
        ------
        DataError
            If X or an option cannot be used.

        Warns
        -----
        UserWarning
            As `average`.

        Notes
        -----
        Effects are differences of predictions, and their uncertainty is that of `average`. A
        derivative is a central difference with a step of 1e-4 standard deviations of the column.
        Dates, and columns that ``on_problem="fix"`` omits, have no effects.

        Examples
        --------
        >>> import heckesel as hk
        >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
        >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
        >>> list(model.margins(frame[["x", "z"]], "selection").index)
        ['x', 'z']
        """
        means = model_means(self, target, level)
        columns = self.columns_  # type: ignore[attr-defined]
        frame = frame_of_rows(X, columns.given_names)
        names = [
            name
            for name in columns.given_names
            if means.target != "population" or name not in columns.instruments
        ]
        means.check(frame)
        names = [name for name in names if name in columns.varied]
        frame = columns.with_numbers(frame)
        return effects_table(
            frame,
            names,
            means.estimate,
            at=at,
            by=by,
            kind=kind,
            contrast_indicators=True,
        )
