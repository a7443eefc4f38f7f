"""`HeckmanRegressor`: the linear selection model as a scikit-learn estimator."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from sklearn.base import clone

from heckesel.classical.checks import check_estimable
from heckesel.classical.heckman import fit_in_memory
from heckesel.classical.ml import Scan
from heckesel.classical.results import HeckmanFit, keep_result
from heckesel.data import SelectionData, kind_of_weights, scaled_weight
from heckesel.diagnostics.column_problems import check_fit
from heckesel.estimators.identify import listing_problems
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.methods import fit_one, linear_heckman
from heckesel.methods.linear_auto import LinearChoice, choose
from heckesel.methods.linear_heckman import LinearModel
from heckesel.selection_model import METHODS, check_model, checked_fit, fit_checked, with_verdict
from heckesel.tables.fit_input import group_codes, read_table
from heckesel.tables.formula import with_constants


@dataclass(eq=False, repr=False)
class HeckmanRegressor(SelectionRegressor):
    """Heckman's selection model with a linear outcome, for scikit-learn.

    y is missing (NaN) for unselected units, or `fit` is given `selected`.

    Parameters
    ----------
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    method : {"auto", "ml", "two-step"}, default="auto"
        ``"ml"`` is maximum likelihood with all modes, ``"two-step"`` Heckman's two-step estimator.
        ``"auto"`` fits maximum likelihood with normal and shape errors, with a constant sigma and
        one that varies with x, and chooses by the likelihood of held-out rows; see Notes.
    errors : {"normal", "t", "shape"}, default="normal"
        Error distribution of ``"ml"``, as in `heckesel.heckman`. With ``"shape"`` the mean of the
        outcome is not x'beta; `predict` returns the mean.
    scale : str, int or list of these, optional
        Columns of X on which sigma depends with ``"ml"``, by name or position.
    covariance : {"information", "opg", "robust", "cluster"}, optional
        Covariance estimator; by default ``"cluster"`` if `fit` is given `groups`, ``"robust"`` for
        ``"auto"`` and otherwise as in `heckesel.heckman`.
    weight_kind : {"frequency", "probability"}, optional
        The meaning of `sample_weight`. By default whole numbers are frequencies and other weights
        are probability weights. The estimates are the same.
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.
    on_problem : {"error", "fix"}
        ``"fix"`` omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the outcome is linear. Predictions are on the scale of y. "sqrt" is the
        signed root. "yeo-johnson" estimates its parameter. "auto" is the simplest scale whose
        held-out likelihood of y is within one standard error of the best.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.

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
    scale_ : str
        The outcome on the scale of the fit, such as "log(wage)".
    explanation_ : str
        With method ``"auto"``, what was chosen and why.
    candidates_ : DataFrame
        With method ``"auto"``, one row for each candidate: ``estimator``, ``errors``, ``scale``,
        ``rho``, ``loglik``, ``held_out_loglik``, its ``difference`` from the highest with a
        ``standard_error``, ``status`` and ``chosen``.

    Notes
    -----
    ``"auto"`` uses the simplest candidate whose held-out log-likelihood is within one standard
    error of the highest. It avoids candidates whose estimate of rho is -1 or 1 unless they are
    clearly better. It uses the two-step if the outcome has at most 12 distinct values, if one
    value makes up more than 10 % of the outcomes, or if every candidate has rho = -1 or 1. With a
    `target_transform` it considers normal errors only, since with heavier tails the mean of y need
    not exist. The standard errors are those of the chosen fit. They do not account for the choice.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> model.identification_.verdict
    'supported by the instrument'
    >>> model.predict(frame[["x", "z"]]).shape
    (1000,)
    """

    takes_categories = False  # their codes, rounded, make constant columns

    instruments: Any = None
    _: KW_ONLY
    method: str = "auto"
    errors: str = "normal"
    scale: Any = None
    covariance: str | None = None
    weight_kind: str | None = None
    missing: str = "error"
    on_problem: str = "error"
    target_transform: Any = None
    unobserved: Any = None

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None):
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
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.

        Returns
        -------
        HeckmanRegressor
            The fitted estimator.

        Raises
        ------
        DataError
            If the data or the options cannot be used.
        """
        check_model(self.method, self.errors, self.scale, methods=("auto", *METHODS))
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        data = read_table(self, X, y, **sides, check=check_fit, linear=True)
        weight_kind = kind_of_weights(self.weight_kind, data.weight)
        names = () if self.scale is None else self.columns_.x_names_of(self.scale, "scale")
        checked, design = with_constants(data, names)
        options = {"covariance": self.covariance, "weight_kind": weight_kind}
        if self.method == "auto":
            transformed = self.transform_ is not None
            choice = fit_auto(checked, design, transformed=transformed, **options)
            result = choice.fit
            self.explanation_, self.candidates_ = choice.explanation, choice.candidates
        else:
            result = fit_checked(
                checked,
                design,
                method=self.method,
                errors=self.errors,
                clusters=data.groups,
                **options,
            )
        keep_result(self, result)
        self.fitted_ = _linear_model(result, data, weight_kind)
        self.identification_ = result.identification
        return self


def refit_alike(
    model: HeckmanRegressor, X, y, *, sample_weight=None, groups=None
) -> HeckmanRegressor:
    """A copy of `model` that predicts from these rows. Most of the time of a fit is spent on the
    choice of the error model and on the verdict; both are those of `model`."""
    twin, was = clone(model), model.result_
    sides = {"selected": None, "sample_weight": sample_weight, "groups": groups}
    data = read_table(twin, X, y, **sides, check=check_fit, linear=True)
    weight_kind = kind_of_weights(model.weight_kind, data.weight)
    checked, design = with_constants(data, was.data.scale_names)
    check_estimable(checked)
    counted = replace(checked, weight=scaled_weight(checked.weight, weight_kind))
    clusters = None if was.covariance != "cluster" else group_codes(data.groups, data.n)
    options = {"weight_kind": weight_kind, "clusters": clusters}
    twin.result_ = fit_in_memory(counted, design, was.covariance, options, was.method, was.errors)
    twin.fitted_ = _linear_model(twin.result_, data, weight_kind)
    twin.identification_ = model.identification_
    return twin


def _linear_model(result: HeckmanFit, data: SelectionData, weight_kind: str) -> LinearModel:
    """The fit as a model; at rho = +-1 with `LinearModel.at_boundary`."""
    if not (isinstance(result.scan, Scan) and result.status == "boundary"):
        return LinearModel(result)
    counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
    return LinearModel(result, fit_one(linear_heckman, counted))


def fit_auto(
    data: SelectionData, design, *, covariance=None, weight_kind: str, transformed: bool = False
) -> LinearChoice:
    """The same by the estimator and error model that held-out units prefer. The default covariance
    is robust (by groups, if the data have any), since the error model that is nearest to the data
    need not be the right one.

    transformed : whether y was transformed; its mean on the scale of the user need not exist under
        tails that are heavier than normal
    """
    robust = "robust" if data.groups is None else None
    wanted = robust if covariance is None else covariance
    counted, kind, options = checked_fit(
        data, wanted, data.groups, weight_kind, has_likelihood=True
    )
    errors = ("normal",) if transformed else ("normal", "shape")
    choice = choose(counted, design, kind, options, errors=errors)
    return replace(choice, fit=with_verdict(choice.fit, data))
