"""A fitted probit of selection and its inference: what `hk.probit` returns."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel import display as web
from heckesel.data import scaled_weight
from heckesel.display import Summary
from heckesel.errors import printable
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimable import checked_probit
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.result_tables.augment import augment_probit
from heckesel.linear.result_tables.fit_facts import covariance_words
from heckesel.linear.results.inference import NamedEstimates, cluster_freedom, labelled
from heckesel.linear.results.summary import coefficient_block, coefficient_html
from heckesel.tables.formula import Equation
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


def fit_selection_probit(
    w, s, weight, equation: Equation, *, name: str, covariance: str, weight_kind: str, clusters
) -> ProbitResult:
    """The probit of s (n,) on w (n, q), the columns that `equation` makes."""
    counted = scaled_weight(weight, weight_kind)
    fit = checked_probit(w, s, equation.names, counted)
    scores = probit_scores(w, s, fit.gamma)
    options = {"weight_kind": weight_kind, "clusters": clusters}
    cov = covariance_of(covariance, fit.hessian, scores, counted, **options)
    params, cov = labelled([("select", term) for term in equation.names], fit.gamma, cov)
    constant = fit_probit(np.ones((len(s), 1)), s, counted)
    loglik, loglik_constant = (one.loglik * weight.sum() / counted.sum() for one in (fit, constant))
    return ProbitResult(
        params=params,
        cov=cov,
        loglik=loglik,
        loglik_constant=loglik_constant,
        status=fit.status,
        covariance=covariance,
        n=round(weight.sum()) if weight_kind == "frequency" else int(np.count_nonzero(weight)),
        name=name,
        equation=equation,
        freedom=cluster_freedom(clusters, weight),
    )
