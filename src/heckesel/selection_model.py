"""`hk.heckman`: the linear selection model with inference and a verdict."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import check_estimable, check_scale, warn_without_density
from heckesel.classical.heckman import fit_files, fit_in_memory
from heckesel.classical.likelihood import ERROR_MODELS
from heckesel.classical.probit_results import HeckmanProbitFit, fit_binary
from heckesel.classical.results import HeckmanFit, in_given_weights
from heckesel.classical.rows import standardised_sample
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData, ones_of, scaled_weight
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.tables.fit_input import on_scale
from heckesel.tables.formula import (
    ArrayDesign,
    FormulaDesign,
    check_instruments,
    cluster_codes,
    columns_from_arrays,
    columns_from_formulas,
    covariance_kind,
    side_column,
)
from heckesel.tables.frames import as_pandas
from heckesel.verdict.linear import identify_classes, identify_fit

METHODS = ("ml", "two-step")
ERRORS = tuple(ERROR_MODELS)


def heckman(
    outcome: str | None = None,
    select: str | None = None,
    data=None,
    *,
    y=None,
    x=None,
    w=None,
    selected=None,
    instruments=None,
    method: str = "ml",
    errors: str = "normal",
    scale=None,
    covariance: str | None = None,
    groups=None,
    weights=None,
    weight_kind: str = "frequency",
    target_transform=None,
    unobserved=None,
    client=None,
) -> HeckmanFit:
    """Fit Heckman's selection model with a linear outcome.

    Pass two formulas and a frame, ``heckman("wage ~ educ", "~ educ + kids", df)``, or arrays,
    ``heckman(y=y, x=x, w=w)``. A unit whose outcome is missing is unselected, unless an indicator
    is given.

    Parameters
    ----------
    outcome : str, optional
        Formula of the outcome equation, such as ``"wage ~ educ + age"``.
    select : str, optional
        Formula of the selection equation. Its left-hand side may be a 0/1 indicator of selection.
    data : frame, dict, str or path, optional
        The columns that the formulas name: a pandas or polars frame or a dict of columns. A string
        or path names a Parquet file, a folder of them or a pattern such as ``"part-*.parquet"``.
        Files are read again for each step, so memory use does not grow with the number of rows.
    y, x, w : array-like, optional
        Outcome, outcome columns and selection columns, instead of formulas. A constant is added to
        both equations.
    selected : array-like, optional
        0/1 indicator of selection.
    instruments : str or list of str, optional
        Columns that must be excluded from the outcome equation. They are checked; the fit does not
        depend on them.
    method : {"ml", "two-step"}
        Maximum likelihood with all modes, or Heckman's two-step estimator.
    errors : {"normal", "t", "shape"}
        Error distribution; ``"t"`` and ``"shape"`` need maximum likelihood. ``"t"`` is bivariate t
        with estimated degrees of freedom; sigma is then a scale and not the standard deviation.
        ``"shape"`` is sinh-arcsinh with estimated skewness and tail weight; the mean of the outcome
        is then not x'beta.
    scale : str or list of str, optional
        Columns on which sigma depends, log sigma(x) = log_sigma + z'b: a formula such as
        ``"~ educ + age"``, or with arrays the names of columns of `x`. Needs maximum likelihood.
    covariance : {"information", "opg", "robust", "cluster"}, optional
        Covariance estimator; for two-step, ``"information"`` is Heckman's. The default is
        ``"information"``, ``"robust"`` with probability weights and ``"cluster"`` with groups.
    groups : str or array-like, optional
        Groups of dependent rows, such as the visits of one patient: a column name or values. Two
        names, or two columns of values, are clusters in two ways, such as firm and year.
    weights : str or array-like, optional
        Row weights, as a column name or as values.
    weight_kind : {"frequency", "probability", "analytic"}
        A frequency weight counts identical rows; a probability weight is the inverse of a sampling
        probability; an analytic weight is the precision of a row, such as the number of units whose
        mean it holds. Analytic weights are scaled to a mean of one.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the outcome is linear, as in `HeckmanRegressor`. Coefficients, rho, sigma and
        the log-likelihood are on this scale, which names the outcome in tables, such as
        "log(wage)". Predictions, averages and marginal effects are on the scale of the outcome.
    unobserved : number or list of numbers, optional
        Values of the outcome that stand for a missing one, such as 0 or 999.
    client : dask.distributed.Client, optional
        A cluster whose workers read the files.

    Returns
    -------
    HeckmanFit
        Estimates, standard errors, tests, predictions and the verdict on identification.

    Raises
    ------
    DataError
        If the data or the options cannot be used.

    Warns
    -----
    IdentificationWarning
        If there is no instrument, if the estimate of rho is at the boundary, if standard errors
        are based on few clusters or rows, or if every unit was selected.

    Examples
    --------
    >>> import heckesel as hk
    >>> women = hk.datasets.load_mroz()
    >>> fit = hk.heckman(
    ...     "lwage ~ educ + exper + expersq",
    ...     "~ nwifeinc + educ + exper + expersq + age + kidslt6 + kidsge6",
    ...     women,
    ... )
    >>> print(fit.params["outcome", "educ"].round(3), fit.se["outcome", "educ"].round(3))
    0.108 0.015
    """
    check_model(method, errors, scale)
    options: dict = {"method": method, "errors": errors}
    options |= {"covariance": covariance, "weight_kind": weight_kind}
    if isinstance(data, str | os.PathLike):
        if unobserved is not None:
            raise DataError(
                "unobserved= needs a frame; write missing outcomes to the files as such"
            )
        if target_transform is not None:
            raise DataError(
                "target_transform= needs a frame; with files write the scale into the formula, "
                "such as 'log(wage) ~ educ'"
            )
        arrays = {"y": y, "x": x, "w": w, "selected": selected}
        options |= {"scale": scale, "instruments": instruments, "weights": weights}
        fit = fit_files(
            outcome, select, data, arrays=arrays, clusters=groups, client=client, **options
        )
        assert isinstance(fit.data, StreamedData)
        verdict = identify_fit(fit)
        fit = replace(fit, identification=verdict, data=fit.data.without_rows())
        warn_of_fit(fit)
        return fit
    if client is not None:
        raise DataError("client= reads files on a cluster; give data= as the path of Parquet files")
    columns = {"y": y, "x": x, "w": w, "selected": selected, "weights": weights, "groups": groups}
    columns |= {"instruments": instruments, "scale": scale, "unobserved": unobserved}
    checked, design, groups = _columns(outcome, select, data, **columns)
    if np.isin(checked.y[checked.s], (0, 1)).all():
        warn_user(
            f"the outcome {checked.y_name!r} is 0 or 1, and this is a linear model of it; "
            "hk.heckprobit and hk.HeckmanClassifier estimate its probability"
        )
    checked, transform = on_scale(checked, target_transform, linear=True)
    fit = fit_checked(checked, design, clusters=groups, **options)
    return replace(fit, transform=transform)


def heckprobit(
    outcome: str | None = None,
    select: str | None = None,
    data=None,
    *,
    y=None,
    x=None,
    w=None,
    selected=None,
    instruments=None,
    covariance: str | None = None,
    groups=None,
    weights=None,
    weight_kind: str = "frequency",
) -> HeckmanProbitFit:
    """Fit a probit with sample selection to a 0/1 outcome, by maximum likelihood.

    Parameters
    ----------
    outcome, select, data, y, x, w, selected, instruments, covariance, groups, weights, weight_kind
        As in `heckman`. The outcome is 0 or 1, and missing for unselected units.

    Returns
    -------
    HeckmanProbitFit
        Estimates, standard errors, tests, probabilities and the verdict on identification.

    Raises
    ------
    DataError
        If the data or the options cannot be used.

    Warns
    -----
    IdentificationWarning
        As `heckman`, and if columns separate the classes.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(2000, seed=0).frame
    >>> columns = "log_income + debt + tenure"
    >>> fit = hk.heckprobit(f"default ~ {columns}", f"~ {columns} + leniency", loans)
    >>> fit.status, fit.predict(loans).shape
    ('converged', (2000,))
    """
    columns = {"y": y, "x": x, "w": w, "selected": selected, "weights": weights, "groups": groups}
    columns["instruments"] = instruments
    checked, design, groups = _columns(outcome, select, data, **columns)
    ones_of(checked.y[checked.s], f"the outcome {checked.y_name!r} of selected units")
    codes = None if groups is None else cluster_codes(groups, checked.n)
    fit = fit_binary(
        replace(checked, groups=codes),
        np.array([0, 1]),
        covariance=covariance,
        weight_kind=weight_kind,
        prefer_interior=True,
        design=design,
    )
    fit = replace(fit, identification=identify_classes(fit))
    warn_of_fit(fit, "a plain probit")
    return fit


def _columns(
    outcome, select, data, *, y, x, w, instruments, groups, **options
) -> tuple[SelectionData, FormulaDesign | ArrayDesign, Any]:
    """The checked columns, how to make them from other rows, and the values of the groups."""
    design: FormulaDesign | ArrayDesign
    if outcome is not None:
        checked, design = columns_from_formulas(outcome, select, data, **options)
        groups = side_column(groups, as_pandas(data))
    elif y is not None and x is not None and w is not None:
        checked, design = columns_from_arrays(y, x, w, **options)
    else:
        raise DataError("pass two formulas and a frame, or y=, x= and w=")
    check_instruments(instruments, checked, design)
    return checked, design, groups


def check_model(method, errors="normal", scale=None) -> None:
    """Refuse methods and errors that do not exist or do not go together."""
    if is_one_of(method, ("auto", "profile")):
        raise DataError(
            f"hk.heckman is linear: method must be 'ml' or 'two-step'; method={method!r} is "
            f"hk.HeckmanRegressor(instruments=[...], method={method!r}).fit(X, y)"
        )
    if not is_one_of(method, METHODS):
        raise DataError(f"method must be 'ml' or 'two-step', got {method!r}")
    if not is_one_of(errors, ERRORS):
        raise DataError(f"errors must be 'normal', 't' or 'shape', got {errors!r}")
    if method == "two-step" and scale is not None:
        raise DataError("method='two-step' assumes a constant sigma; use method='ml' with scale=")
    if method == "two-step" and errors != "normal":
        raise DataError(
            f"method='two-step' assumes normal errors; use method='ml' with errors={errors!r}"
        )


def fit_checked(
    data: SelectionData,
    design,
    *,
    method: str,
    errors: str = "normal",
    covariance=None,
    clusters=None,
    weight_kind: str = "frequency",
) -> HeckmanFit:
    """The fit with its verdict, to checked columns that include the constants."""
    selection, sample = data.has_selection, None
    has_likelihood = method == "ml" and selection
    kind, codes = covariance_kind(
        covariance, clusters, data.weight, weight_kind, has_likelihood=has_likelihood
    )
    if selection and data.weight[~data.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    if data.scale is not None and not selection:
        raise DataError(
            "every unit has an outcome, so this is least squares with a constant sigma; omit scale="
        )
    check_estimable(data)
    check_scale(data)
    if errors == "shape" and selection:
        warn_without_density(data)
    one_way = codes
    if codes is not None and codes.ndim == 2:  # tests of the verdict take the coarser clusters
        one_way = min(codes.T, key=lambda column: column.max())
    counted = replace(data, weight=scaled_weight(data.weight, weight_kind), groups=one_way)
    options = {"weight_kind": weight_kind, "clusters": codes}
    if selection:
        with threadpool_limits(1, user_api="blas"):  # as the fit itself, to the last bit
            sample = standardised_sample(counted)
    fit = fit_in_memory(counted, design, kind, options, method, errors, sample)
    fit = replace(fit, identification=identify_fit(fit, sample))
    warn_of_fit(fit)
    if weight_kind != "probability":
        return fit
    return in_given_weights(fit, replace(counted, weight=data.weight))


def warn_of_fit(fit, without_selection: str = "least squares") -> None:
    """Warn that the fit did not converge, or that the data hardly support the correction.

    without_selection : what the fit is if every unit was selected
    """
    if fit.status == "max_iterations":
        from sklearn.exceptions import ConvergenceWarning  # slow to import

        warn_user(
            "the maximum of the likelihood was not found, so estimates and standard errors are "
            "those of the last iteration; use fewer columns, or method='two-step'",
            ConvergenceWarning,
        )
    if not fit.has_selection:
        warn_user(
            f"all {fit.data.n} rows have an outcome, so every unit was selected and there is "
            f"nothing to correct: this is {without_selection}"
        )
    elif fit.identification.is_doubtful:
        warn_user(str(fit.identification))
