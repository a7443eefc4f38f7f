"""`WeightedEnsembleRegressor`: networks with inverse propensity weights."""

import numpy as np

from heckesel.data import SelectionData, numeric
from heckesel.diagnostics.column_problems import check_fit
from heckesel.errors import DataError, warn_user
from heckesel.estimators.deep_ensemble_regressor import EnsembleRegressor
from heckesel.estimators.identify import listing_problems
from heckesel.estimators.network_options import network_config, train
from heckesel.tables.fit_input import read_table
from heckesel.tables.frames import check_same_order


class WeightedEnsembleRegressor(EnsembleRegressor):
    """An ensemble of networks on the observed outcomes, with inverse propensity weights.

    The propensity is estimated by a probit on all columns of X, instruments included, or passed
    to `fit`. Weighting corrects for differences in X between selected and unselected units. It
    cannot correct for selection on anything that is not in X: if the errors of selection and
    outcome are correlated, the observed outcomes at each x are biased, however they are weighted.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the outcome
        (exclusion restrictions). Only the probit of selection uses them.
    n_members : int, optional
        Networks in the ensemble. By default 10 on folds and 5 without.
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    epochs : int, default=1500
        Largest number of passes over the data; with folds, members stop early.
    learning_rate : float, optional
        By default 5e-3.
    weight_decay : float or "auto", default=1e-5
        L2 penalty. "auto" chooses it by held-out rows.
    batch_size : int, optional
        Rows per step; by default all of them.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" uses a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    progress : bool, default=True
        Whether to show a progress bar on a terminal if the fit takes more than a second.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    on_problem : {"error", "fix"}, default="error"
        "fix" omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the outcome is fitted. Predictions are on the scale of y. "sqrt" is the
        signed root. "yeo-johnson" estimates its parameter. "auto" is the simplest scale whose
        held-out likelihood of y is within one standard error of the best.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    folds : int, "auto" or None, default="auto"
        Each member holds out one fold, for early stopping and to estimate the level of the noise.
        None trains every member on all rows. "auto" is 5 if at least 100 rows are selected.
    tails : {"auto", "normal"}, default="auto"
        "auto" chooses between normal and t tails by held-out rows.

    Attributes
    ----------
    identification_ : Identification
        Whether the data would support a correction, which this estimator does not make.
    propensity_ : ndarray of shape (n,)
        Probability of selection of each row, as used for the weights.
    info_ : dict
        Summary of the training.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame.

    Examples
    --------
    >>> import warnings
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(300, rho=0.9, alpha=1.0, seed=0).frame
    >>> model = hk.WeightedEnsembleRegressor(["z"], hidden=(8,), n_members=2, epochs=20)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # 20 epochs are too few, as a warning says
    ...     model = model.fit(frame[["x", "z"]], frame["y"])
    >>> mean, std = model.predict(frame[["x"]], return_std=True)
    >>> mean.shape
    (300,)
    """

    unsaved = ("propensity_",)

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None, propensity=None):
        """Fit the networks to the weighted outcomes, and a probit to selection.

        Parameters
        ----------
        X : array-like or frame of shape (n, columns)
            Columns that explain the outcome and selection, instruments included.
        y : array-like of shape (n,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (n,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.
        propensity : array-like of shape (n,), optional
            Probability of selection of each row, if it is known.

        Returns
        -------
        WeightedEnsembleRegressor
            The fitted estimator itself.

        Raises
        ------
        DataError
            If the data or an option cannot be used.
        HeckeselError
            If training diverged.
        """
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        data = read_table(self, X, y, **sides, check=check_fit)
        check_same_order(X, propensity=propensity)
        given = None if propensity is None else _checked(propensity, data)
        probit = self._identify(data, needs_probit=given is None)
        trained, self.propensity_ = _train(self, data, given)
        return self._keep(trained, data, probit=probit)


def _train(model, data: SelectionData, propensity):
    """The ensemble and the propensities used; all are one if every unit was selected."""
    from heckesel.methods.weighted_ensemble import (
        SMALLEST_PROPENSITY,
        WeightedConfig,
        estimated_propensity,
    )

    network = network_config(model, int(data.s.sum()))
    if propensity is None:
        propensity = np.ones(data.n) if data.s.all() else estimated_propensity(data)
    tiny = np.count_nonzero(propensity[data.s] < SMALLEST_PROPENSITY)
    if tiny:
        warn_user(
            f"{tiny} rows with an outcome have a propensity below {SMALLEST_PROPENSITY:g}; their "
            f"weights use {SMALLEST_PROPENSITY:g} instead"
        )
    config = WeightedConfig(propensity=propensity, network=network)
    return train(model, "weighted_ensemble", data, network, config), propensity


def _checked(propensity, data: SelectionData) -> np.ndarray:
    values = numeric(propensity, "propensity")
    if values.shape != (data.n,):
        raise DataError(f"propensity has shape {values.shape} but there are {data.n} rows")
    bad = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(bad):
        raise DataError(
            f"propensity must be above 0 and at most 1, but row {bad[0]} has {values[bad[0]]:g}"
        )
    return values
