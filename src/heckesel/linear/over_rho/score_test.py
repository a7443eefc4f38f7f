r"""Score tests of rho = 0: whether the inverse Mills ratio belongs in the outcome equation.

At rho = 0 the derivative of the log-likelihood in atanh rho is a sum over the selected of
lambda(w'gamma) times the residual of the outcome equation without correction. Its variance does not
depend on how well rho is identified, so the test keeps its level with weak instruments and with
none. If the errors are normal and independent, the t statistic of lambda in least squares has
exactly a t distribution.
"""

from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.covariance import inverse, meat, meat_of_rows, sandwich
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.sample.sample import Rows, Sample, SampleScale
from heckesel.linear.two_step import MillsColumn, second_stage, two_steps
from heckesel.numerics.normal import inverse_mills


def linear_score_test(
    rows: Rows,
    scalings: SampleScale,
    kind: str,
    *,
    weight_kind="frequency",
    clusters=None,
    start=None,
) -> tuple[float, float]:
    """The squared t statistic of lambda in least squares, and its degrees of freedom.

    kind : of covariance; clusters : (n,) integer codes, those of the selected units first
    start : of the probit, see `maximise_probit`
    """
    stage = two_steps(rows, scalings, start)
    bread, freedom = inverse(stage.gram), np.inf
    if kind in ("information", "opg"):
        freedom = stage.mass - rows.p - 1
        covariance = stage.squares / freedom * bread
    else:
        moments = partial(_moments, mills=stage.mills, coefficients=stage.coefficients)
        middle, units = meat_of_rows(rows, moments, weight_kind=weight_kind, clusters=clusters)
        covariance = sandwich(bread, middle, units)
        if clusters is not None:
            freedom = units - 1
    return float(stage.coefficients[-1] ** 2 / covariance[-1, -1]), float(freedom)


def _moments(block: Sample, *, mills: MillsColumn, coefficients) -> np.ndarray:
    """(n, p + 1) of the second step, zero for the unselected, which come last."""
    columns, _ = second_stage(block, mills)
    moments = np.zeros((block.n, columns.shape[1]))
    residual = block.residual_columns[:, -1] - columns @ coefficients
    moments[: len(columns)] = columns * residual[:, None]
    return moments


def binary_score_test(data: SelectionData, kind: str, weight_kind: str, clusters=None) -> float:
    """The statistic for a binary outcome, chi-squared with one degree of freedom.

    The probit of the outcome is fitted without lambda. Its information says which part of lambda
    the other columns do not explain; that part times the residual is the score.

    clusters : (n,) integer codes in the order of `data`
    """
    s, weight = data.s, data.weight[data.s]
    x, happened = data.x[s], data.y[s] == 1.0
    mills = inverse_mills(data.w[s] @ fit_probit(data.w, s, data.weight).gamma)
    columns = np.column_stack([x, mills])
    beta = fit_probit(x, happened, weight).gamma
    f = x @ beta
    density = weight * inverse_mills(f) * inverse_mills(-f)  # expected information of each unit
    information = columns.T @ (columns * density[:, None])
    unexplained = np.append(-inverse(information[:-1, :-1]) @ information[:-1, -1], 1.0)
    scores = probit_scores(columns, happened, np.append(beta, 0.0))
    middle = information
    if kind not in ("information", "opg"):
        own = None if clusters is None else clusters[s]
        middle = meat(scores, weight, weight_kind=weight_kind, clusters=own)
    return float((unexplained @ (weight @ scores)) ** 2 / (unexplained @ middle @ unexplained))
