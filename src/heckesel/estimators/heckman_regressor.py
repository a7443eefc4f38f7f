"""`HeckmanRegressor`: the linear selection model as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace

from heckesel.data import kind_of_weights, scaled_weight
from heckesel.estimators.heckman import check_model, fit_checked
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.methods import fit_one, linear_heckman
from heckesel.methods.linear_heckman import LinearModel
from heckesel.tables.both_equations import with_constants
from heckesel.tables.fit_input import read_table


class HeckmanRegressor(SelectionRegressor):
    """Heckman's selection model with a linear outcome, for scikit-learn.

    y is missing (NaN) for unselected units, or `fit` is given `selected`.

    Parameters
    ----------
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    method : {"ml", "two-step"}
        Maximum likelihood with all modes, or Heckman's two-step estimator.
    covariance : {"information", "opg", "robust"}, optional
        Covariance estimator; the default is as in `heckesel.heckman`.
    weight_kind : {"frequency", "probability"}, optional
        The meaning of `sample_weight`. By default whole numbers are frequencies and other weights
        are probability weights. The estimates are the same.
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.
    target_transform : None, "log" or (forward, inverse)
        The scale on which the outcome is linear. Predictions are on the scale of y.

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
        Coefficients of the outcome equation. A category has one for each level but the first;
        instruments have none.
    coef_names_ : tuple of str
        The names of `coef_`.
    rho_, sigma_ : float
        Correlation of the errors, and standard deviation of the outcome error.
    result_ : HeckmanFit
        The fit with standard errors, tests and tables.
    identification_ : Identification
        The verdict on whether the data support the correction.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> model.identification_.verdict
    'identified by an instrument'
    >>> model.predict(frame[["x", "z"]]).shape
    (1000,)
    """

    takes_categories = False  # their codes, rounded, make constant columns

    def __init__(
        self,
        instruments=None,
        *,
        method: str = "ml",
        covariance: str | None = None,
        weight_kind: str | None = None,
        missing: str = "error",
        target_transform=None,
    ):
        self.instruments = instruments
        self.method = method
        self.covariance = covariance
        self.weight_kind = weight_kind
        self.missing = missing
        self.target_transform = target_transform

    def fit(self, X, y, *, selected=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : frame or array-like of shape (n, columns)
            Columns of both equations, instruments included.
        y : array-like of shape (n,)
            The outcome, NaN where it was not observed.
        selected : array-like of shape (n,), optional
            0/1 indicator of selection.
        sample_weight : array-like of shape (n,), optional
            Row weights.

        Returns
        -------
        HeckmanRegressor
            The fitted estimator.

        Raises
        ------
        DataError
            If the data or the options cannot be used.
        """
        check_model(self.method)
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight, linear=True)
        weight_kind = kind_of_weights(self.weight_kind, data.weight)
        checked, design = with_constants(data)
        self.result_ = fit_checked(
            checked,
            design,
            method=self.method,
            covariance=self.covariance,
            weight_kind=weight_kind,
        )
        self.fitted_ = LinearModel(self.result_)
        if self.result_.status == "boundary":
            counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
            self.fitted_ = LinearModel(self.result_, fit_one(linear_heckman, counted))
        self.identification_ = self.result_.identification
        outcome = self.result_.params["outcome"]
        self.intercept_ = float(outcome["Intercept"])
        self.coef_ = outcome.drop("Intercept").to_numpy()
        self.coef_names_ = data.x_names
        self.rho_, self.sigma_ = self.result_.rho, self.result_.sigma
        return self
