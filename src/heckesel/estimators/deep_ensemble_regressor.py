"""`DeepEnsembleRegressor`: networks that assume that outcomes are missing at random."""

from __future__ import annotations

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification
from heckesel.errors import DataError
from heckesel.estimators.network_options import network_config, train
from heckesel.estimators.selection_regressor import SelectionRegressor, identify
from heckesel.tables.fit_input import read_table


class EnsembleRegressor(SelectionRegressor):
    """The options and the verdict of the ensembles that make no correction."""

    def __init__(
        self,
        instruments=None,
        *,
        n_members: int | None = None,
        hidden: tuple[int, ...] = (64, 64),
        epochs: int = 1500,
        learning_rate: float | None = None,
        weight_decay: float | str = 1e-5,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
        missing: str = "error",
        target_transform=None,
        folds: int | str | None = "auto",
        tails: str = "auto",
    ):
        self.instruments = instruments
        self.n_members = n_members
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress
        self.missing = missing
        self.target_transform = target_transform
        self.folds = folds
        self.tails = tails

    def _identify(self, data: SelectionData, *, needs_probit: bool) -> bool:
        """Set `identification_`; whether a probit of selection can be fitted."""
        try:
            self.identification_ = identify(data)
        except DataError as error:
            if needs_probit:
                raise
            self.identification_ = Identification(NOT_IDENTIFIED, f"{error}.", {})
            return False
        return True

    def _keep(self, trained, data: SelectionData, *, probit: bool):
        from heckesel.methods.beside_probit import beside_probit

        self.fitted_ = beside_probit(trained, data, possible=probit)
        self.info_ = self.fitted_.info
        return self


class DeepEnsembleRegressor(EnsembleRegressor):
    """An ensemble of networks on the observed outcomes, without a correction: the baseline.

    It assumes that outcomes are missing at random given x. It is biased if selection depends on
    something that also affects the outcome and is not in X. Compare its `log_likelihood` on
    held-out rows with that of `DeepHeckmanRegressor`.

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
        Passes over the data, at most; with folds, members stop early.
    learning_rate : float, optional
        By default 5e-3.
    weight_decay : float or "auto", default=1e-5
        L2 penalty. "auto" lets held-out rows choose.
    batch_size : int, optional
        Rows per step; by default all of them.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" is a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    progress : bool, default=True
        Whether to show a progress bar on a terminal if the fit takes more than a second.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    target_transform : None, "log" or (forward, inverse), default=None
        Scale on which the outcome is fitted. Predictions are on the scale of y.
    folds : int, "auto" or None, default="auto"
        Each member holds out one fold, for early stopping and to estimate the level of the noise.
        None trains every member on all rows. "auto" is 5 if at least 100 rows are selected.
    tails : {"auto", "normal"}, default="auto"
        "auto" lets held-out rows choose between normal and t tails.

    Attributes
    ----------
    identification_ : Identification
        Whether the data would support a correction, which this estimator does not make.
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
    >>> model = hk.DeepEnsembleRegressor(["z"], hidden=(8,), n_members=2, epochs=20)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # 20 epochs are too few, as a warning says
    ...     model = model.fit(frame[["x", "z"]], frame["y"])
    >>> mean, std = model.predict(frame[["x"]], return_std=True)
    >>> mean.shape
    (300,)
    """

    def fit(self, X, y, *, selected=None, sample_weight=None):
        """Fit the networks to the observed outcomes, and a probit to selection.

        Parameters
        ----------
        X : array-like or frame of shape (n, columns)
            Columns that explain the outcome and selection, instruments included.
        y : array-like of shape (n,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (n,), optional
            Which rows were selected, if missing y does not show it.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.

        Returns
        -------
        DeepEnsembleRegressor
            The fitted estimator itself.

        Raises
        ------
        DataError
            If the data or an option cannot be used.
        HeckeselError
            If training diverged.
        """
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight)
        probit = self._identify(data, needs_probit=False)
        trained = train(self, "deep_ensemble", data, network_config(self, int(data.s.sum())))
        return self._keep(trained, data, probit=probit)
