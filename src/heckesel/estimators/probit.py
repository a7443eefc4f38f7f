"""`hk.probit`: the selection equation alone."""

import numpy as np

from heckesel.data import check_complete, check_not_tiny, check_weights
from heckesel.errors import DataError
from heckesel.linear.results.selection_probit_fit import ProbitResult, fit_selection_probit
from heckesel.numeric_input import ones_of
from heckesel.tables.fit_options import covariance_kind, groups_or_clusters, side_column
from heckesel.tables.formula import build_equation, evaluate_column, split_formula
from heckesel.tables.frames import as_pandas


def probit(
    formula: str,
    data,
    *,
    covariance: str | None = None,
    groups=None,
    clusters=None,
    weights=None,
    weight_kind: str = "frequency",
) -> ProbitResult:
    """Fit a probit to a 0/1 column.

    Parameters
    ----------
    formula : str
        Formula with a left-hand side, such as ``"s ~ a + b"``.
    data : frame or dict
        The columns that the formula names.
    covariance, groups, clusters, weights, weight_kind
        As in `heckesel.heckman`.

    Returns
    -------
    ProbitResult

    Raises
    ------
    DataError
        If the data or the options cannot be used.

    Examples
    --------
    >>> import heckesel as hk
    >>> fit = hk.probit("inlf ~ educ + kidslt6", hk.datasets.load_mroz())
    >>> fit
    <ProbitResult inlf: 3 terms, 753 units, converged>
    >>> print(fit.params["select", "kidslt6"].round(3))
    -0.621
    """
    frame, groups = as_pandas(data), groups_or_clusters(groups, clusters)
    name, right = split_formula(formula, "probit")
    if name is None:
        raise DataError(f"the formula {formula!r} needs a left-hand side: 's ~ a + b'")
    s = _binary(evaluate_column(name, frame, "outcome"), name)
    equation, w = build_equation(right, frame, np.ones(len(frame), bool), "probit")
    rows = np.arange(len(w))
    check_complete(w, equation.names, rows)
    check_not_tiny(w, equation.names, rows)
    weight = check_weights(side_column(weights, frame), len(frame), s)
    kind, codes = covariance_kind(
        covariance, side_column(groups, frame), weight, weight_kind, has_likelihood=True
    )
    options = {"covariance": kind, "weight_kind": weight_kind, "clusters": codes}
    return fit_selection_probit(w, s, weight, equation, name=name, **options)


def _binary(values, name: str) -> np.ndarray:
    s = ones_of(values, f"column {name!r}")
    if s.all() or not s.any():
        raise DataError(
            f"column {name!r} is {values[0]:g} in every row; there is nothing to explain"
        )
    return s
