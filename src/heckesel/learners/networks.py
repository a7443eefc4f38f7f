"""`Networks`: an ensemble of networks as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from heckesel.data import SelectionData, seed_of
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.saving import Savable

FOLDS = 5
ROUNDS = 2  # networks that hold out the same fold, at least: one alone varies with its start
LEAST_FOR_FOLDS = 100  # rows, so that a fold has twenty for early stopping


class Networks(Savable, RegressorMixin, BaseEstimator):
    """An ensemble of neural networks, for `HeckmanRegressor(learner=...)` or on its own.

    Members are trained side by side. With `folds` each holds out one fold for early stopping. The
    same settings configure `DeepHeckmanRegressor(networks=...)`.

    Parameters
    ----------
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    n_members : int, default=5
        Networks in the ensemble.
    epochs : int, default=1500
        Largest number of passes over the data.
    learning_rate : float, optional
        By default 5e-3, and 1e-2 in `DeepHeckmanRegressor`.
    weight_decay : float, default=1e-5
        L2 penalty.
    batch_size : int, optional
        Rows per step; by default all of them.
    folds : int, "auto" or None, default="auto"
        Parts of the rows, one of which each member holds out. None trains every member on all rows
        for all epochs, as in the paper. "auto" is 5, or one per member if these are fewer, and None
        with fewer than 100 rows or a single member. As the learner of `HeckmanRegressor`, networks
        hold out the folds of that estimator, at least two networks each, unless this is None.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" uses a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    n_jobs : int, optional
        Processes that train members on a CPU, as in joblib. Results are the same.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.

    Attributes
    ----------
    fitted_ : GaussianEnsemble
        The trained networks.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> import heckesel as hk
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> model = hk.Networks(hidden=(8,), n_members=2, epochs=200).fit(X, 3 * X[:, 0])
    >>> model.predict(X).shape, model.predict_members(X).shape
    ((50,), (2, 50))
    """

    def __init__(
        self,
        hidden=(64, 64),
        *,
        n_members: int = 5,
        epochs: int = 1500,
        learning_rate: float | None = None,
        weight_decay: float = 1e-5,
        batch_size: int | None = None,
        folds: int | str | None = "auto",
        device: str = "auto",
        dtype: str = "float32",
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.hidden = hidden
        self.n_members = n_members
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.folds = folds
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None) -> Networks:
        """Train the networks.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        Networks
            The fitted estimator itself.
        """
        x, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weight = _check_sample_weight(sample_weight, x, dtype=float, ensure_non_negative=True)
        if not weight.any():
            raise DataError("all weights are zero")
        used = weight > 0
        x, y, weight, n = x[used], y[used].astype(float), weight[used], int(used.sum())
        self._train(rows_of(x, y, weight), network_config(self, n))
        return self

    def _train(self, data: SelectionData, config) -> None:
        from heckesel.deep.methods import check_training, fit_plain

        (self.fitted_,) = fit_plain([data], [seed_of(self.random_state)], config)
        if np.ptp(data.y) > 0:
            check_training(self.fitted_, config, data)

    def predict(self, X) -> np.ndarray:
        """Predict the mean outcome.

        Parameters
        ----------
        X : array-like of shape (m, columns)

        Returns
        -------
        ndarray of shape (m,)
        """
        return self.predict_members(X).mean(axis=0)

    def predict_members(self, X) -> np.ndarray:
        """Predict the mean outcome by each of the k networks.

        Parameters
        ----------
        X : array-like of shape (m, columns)

        Returns
        -------
        ndarray of shape (k, m)
        """
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        scaling = self.fitted_.scaling
        f = self.fitted_.members.outputs(scaling.x(x))[..., 0]
        return scaling.y_centre + scaling.y_scale * f


@dataclass(frozen=True)
class NetworksByFold:
    """Networks of which network j holds out fold j modulo `count`."""

    networks: Networks
    count: int

    def predict_members(self, x) -> np.ndarray:
        """(count, m) the mean of the networks that hold out one fold"""
        each = self.networks.predict_members(x)
        return each.reshape(-1, self.count, len(x)).mean(axis=0)


def cross_fit_networks(learner: Networks, x, y, weight, folds):
    """Out-of-fold predictions (n,) and the members.

    The held-out rows stop the networks early, too, as they stop boosting. So one ensemble is
    trained rather than one per fold.
    """
    from heckesel.deep.training import assign_folds

    model, count = clone(learner), int(folds.max()) + 1
    rounds = max(ROUNDS, -(-network_config(model, len(y)).n_members // count))
    config = network_config(model, len(y), folds=count, n_members=rounds * count)
    data = rows_of(x, y, weight, folds)
    model.n_features_in_ = x.shape[1]
    model._train(data, config)
    members = NetworksByFold(model, count)
    held_by = assign_folds(data, count, seed_of(model.random_state))  # numbers folds in its way
    return members.predict_members(x)[held_by, np.arange(len(y))], members


def rows_of(x, y, weight, groups=None) -> SelectionData:
    """groups : (n,) rows of one group are in one fold"""
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    everyone = np.ones(len(y), dtype=bool)
    return SelectionData(x, x[:, :0], everyone, y, weight, names, (), "y", groups=groups)


def network_config(networks: Networks, rows: int, **more):
    """The `NetworkConfig` of these settings for so many rows; more : its other fields"""
    from heckesel.deep.training import NetworkConfig, check_whole

    given = networks.get_params()
    del given["random_state"]
    folds, members = given["folds"], given["n_members"]
    check_whole("n_members", members, 1)
    if not (folds is None or is_one_of(folds, ("auto",)) or is_whole(folds)):
        raise DataError(f"folds must be a whole number, 'auto' or None, got {folds!r}")
    if folds == "auto":
        given["folds"] = min(FOLDS, members) if rows >= LEAST_FOR_FOLDS and members > 1 else None
    return NetworkConfig(**given | more)
