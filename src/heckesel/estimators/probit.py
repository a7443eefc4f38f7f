"""`hk.probit`: the selection equation alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.data import check_complete, check_not_tiny, check_weights, scaled_weight
from heckesel.display import html_table as web
from heckesel.display.summary_text import Summary
from heckesel.errors import DataError, printable
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimable import checked_probit
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.result_tables.augment import augment_probit
from heckesel.linear.result_tables.fit_facts import covariance_words
from heckesel.linear.results.inference import NamedEstimates, cluster_freedom, labelled
from heckesel.linear.results.summary import coefficient_block, coefficient_html
from heckesel.tables.fit_options import covariance_kind, groups_or_clusters, side_column
from heckesel.tables.formula import Equation, build_equation, evaluate_column, split_formula
from heckesel.tables.frames import as_pandas


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProbitResult(NamedEstimates):
    """A fitted probit, the result of `hk.probit`.

    Attributes
    ----------
    params, se : Series
        Estimates and standard errors by ``("select", term)``.
    cov : DataFrame
        Covariance of `params`.
    loglik, loglik_constant : float
        Log-likelihood, and that of a probit with a constant only.
    status : str
        ``"converged"`` or ``"max_iterations"``.
    n : int
        Number of units; frequency weights count as rows.
    covariance, name, equation, freedom
        The covariance estimator, the outcome, how columns are made from new rows, and the degrees
        of freedom of tests and intervals.

    Examples
    --------
    >>> import heckesel as hk
    >>> fit = hk.probit("inlf ~ educ + kidslt6", hk.datasets.load_mroz())
    >>> fit.to_frame().shape
    (3, 6)
    """

    loglik: float
    loglik_constant: float
    status: str
    covariance: str
    n: int
    name: str
    equation: Equation
    freedom: float = float("inf")

    def predict(self, data) -> np.ndarray:
        """Probability of selection.

        Parameters
        ----------
        data : frame
            New rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        return ndtr(self.equation.matrix(as_pandas(data)) @ self.params.to_numpy())

    def augment(self, data) -> pd.DataFrame:
        """Rows with their probability of selection.

        Parameters
        ----------
        data : frame
            Rows with the columns of the formula.

        Returns
        -------
        DataFrame
            The columns of the rows, ``fitted``, the probability, and ``residual``, the outcome
            minus that.
        """
        return augment_probit(self, data)

    @property
    def pseudo_r2(self) -> float:
        """McFadden's: 1 - loglik / loglik_constant."""
        return 1 - self.loglik / self.loglik_constant

    def summary(self, level: float = 0.95) -> Summary:
        """Summary for printing.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        Summary
            A string, which a notebook shows as HTML.
        """
        head = [
            f"Probit of {self.name}, {self.n:,} units, covariance: {covariance_words(self)}",
            f"Log-likelihood {self.loglik:.4f}, pseudo R2 {self.pseudo_r2:.4f}, "
            f"status: {self.status}",
        ]
        table = (self.to_frame(level), level, self.name, self.freedom)
        html = web.block(
            web.heading(f"Probit of {self.name}"),
            web.paragraphs([f"{self.n:,} units, covariance: {covariance_words(self)}", head[1]]),
            coefficient_html(*table),
        )
        return Summary(printable("\n".join([*head, *coefficient_block(*table)])), html)

    def __repr__(self) -> str:
        return (
            f"<ProbitResult {self.name}: {len(self.params)} terms, {self.n} units, {self.status}>"
        )


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
    given = check_weights(side_column(weights, frame), len(frame), s)
    kind, codes = covariance_kind(
        covariance, side_column(groups, frame), given, weight_kind, has_likelihood=True
    )
    counts = weight_kind == "frequency"
    weight = scaled_weight(given, weight_kind)
    fit = checked_probit(w, s, equation.names, weight)
    cov = covariance_of(
        kind,
        fit.hessian,
        probit_scores(w, s, fit.gamma),
        weight,
        weight_kind=weight_kind,
        clusters=codes,
    )
    params, cov = labelled([("select", term) for term in equation.names], fit.gamma, cov)
    constant = fit_probit(np.ones((len(s), 1)), s, weight)
    loglik, loglik_constant = (one.loglik * given.sum() / weight.sum() for one in (fit, constant))
    n = round(given.sum()) if counts else int(np.count_nonzero(given))
    return ProbitResult(
        params=params,
        cov=cov,
        loglik=loglik,
        loglik_constant=loglik_constant,
        status=fit.status,
        covariance=kind,
        n=n,
        name=name,
        equation=equation,
        freedom=cluster_freedom(codes, given),
    )


def _binary(values, name: str) -> np.ndarray:
    odd = ~np.isin(values, (0.0, 1.0))
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise DataError(f"column {name!r} must be 0 or 1 but row {row} holds {values[row]:g}")
    if values.min() == values.max():
        raise DataError(
            f"column {name!r} is {values[0]:g} in every row; there is nothing to explain"
        )
    return values == 1.0
