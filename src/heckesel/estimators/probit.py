"""`hk.probit`: the selection equation on its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.data import check_complete, check_not_tiny, check_weights
from heckesel.errors import DataError, printable
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimable import (
    check_columns,
    check_joint_separation,
    check_separation,
    says_next_to_nothing,
)
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.results.inference import (
    cluster_freedom,
    coefficient_frame,
    labelled,
    standard_errors,
)
from heckesel.linear.results.summary import coefficient_block, covariance_words
from heckesel.tables.fit_options import covariance_kind, side_column
from heckesel.tables.formula import (
    Equation,
    build_equation,
    evaluate_column,
    split_formula,
)
from heckesel.tables.frames import as_pandas
from heckesel.tables.weights import scaled_weight


@dataclass(frozen=True, eq=False, repr=False)
class ProbitResult:
    """params, se : Series by ("select", term)."""

    params: pd.Series
    cov: pd.DataFrame
    loglik: float
    loglik_constant: float
    status: str
    covariance: str
    n: int
    name: str
    equation: Equation
    freedom: float = float("inf")

    @cached_property
    def se(self) -> pd.Series:
        return standard_errors(self.cov)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        return coefficient_frame(self.params, self.cov, level, self.freedom)

    def predict(self, data) -> np.ndarray:
        """P(s = 1) for each row."""
        return ndtr(self.equation.matrix(as_pandas(data)) @ self.params.to_numpy())

    def summary(self, level: float = 0.95) -> str:
        share = 1 - self.loglik / self.loglik_constant
        head = [
            f"Probit of {self.name}, {self.n:,} units, covariance: {covariance_words(self)}",
            f"Log-likelihood {self.loglik:.4f}, pseudo R2 {share:.4f}, status: {self.status}",
        ]
        lines = [*head, *coefficient_block(self.to_frame(level), level, self.name, self.freedom)]
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        return (
            f"<ProbitResult {self.name}: {len(self.params)} terms, {self.n} units, {self.status}>"
        )


def probit(
    formula: str,
    data,
    *,
    covariance: str | None = None,
    clusters=None,
    weights=None,
    weight_kind: str = "frequency",
) -> ProbitResult:
    """Probit of a 0/1 column, ``probit("s ~ a + b", df)``; options as in `heckman`."""
    frame = as_pandas(data)
    name, right = split_formula(formula, "probit")
    if name is None:
        raise DataError(f"the formula {formula!r} needs a left-hand side: 's ~ a + b'")
    s = _binary(evaluate_column(name, frame, "outcome"), name)
    equation, w = build_equation(right, frame, np.ones(len(frame), bool), "probit")
    check_complete(w, equation.names, np.arange(len(w)))
    check_not_tiny(w, equation.names)
    given = check_weights(side_column(weights, frame), len(frame), s)
    kind, codes = covariance_kind(
        covariance, side_column(clusters, frame), given, weight_kind, has_likelihood=True
    )
    counts = weight_kind == "frequency"
    weight = scaled_weight(given, weight_kind)
    check_columns(w, equation.names, f"over all {len(w)} rows")
    check_separation(w, s, equation.names)
    fit = fit_probit(w, s, weight)
    if says_next_to_nothing(w, fit.hessian):
        check_joint_separation(w, s, equation.names)
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
