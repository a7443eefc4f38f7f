r"""Probits whose outcome is separated by its columns, completely or in part.

Suppose that some direction g has :math:`t_i x_i'g \ge 0` for every row (t = +1 if the event
happened, -1 if not) and more than 0 for some. The log-likelihood then increases along g without
limit, so it has no maximum. `fit_separated` adds a ridge on the standardised coefficients, the
constant included, that is too small to affect what the data determine. As the ridge goes to zero,
the probabilities of the rows that g separates go to 0 and 1, and those of the other rows to the
values that maximise their likelihood. If every row is separated, the direction goes to that of the
widest margin. The size of the coefficients along g depends on the ridge and has no meaning.

If g separates only some of the rows, these do not affect the coefficients. The other rows, the
overlap, determine every combination of coefficients except those that vanish on all of them. A
coefficient has a standard error if it is determined.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import qr

from heckesel.linear.estimable import LEAST_INFORMATION, separating_direction
from heckesel.linear.probit import ProbitFit, fit_probit
from heckesel.linear.sample.standardise import column_scale

# At the last one a coefficient of a thousand costs .005 log-units: rows more than a hundredth of an
# sd apart get their class with a probability near one. The others are stations on the way there,
# since Newton would start too far away.
RIDGES = (1e-2, 1e-4, 1e-6, 1e-8)
RIDGE = RIDGES[-1]
# Scaled columns depend on one another below this share of their size: collinear columns leave
# 1e-16, and those that a fit accepts 3e-6 (`COLLINEAR_BELOW` is its square).
DEPENDENT_BELOW = 1e-8
STRICTLY = 1e-6  # margin of a separated row; the linear program has tolerances of 1e-7


def fit_separated(x, happened, weight=None) -> ProbitFit:
    """The probit under `RIDGE`; `loglik` is that of the data alone. status: `separated`."""
    found = None
    for ridge in RIDGES:
        found = fit_probit(
            x, happened, weight, start=None if found is None else found.gamma, ridge=ridge
        )
    assert found is not None
    standardised = np.linalg.solve(column_scale(x).back, found.gamma)
    paid = 0.5 * RIDGE * float(standardised @ standardised)
    return replace(found, loglik=found.loglik + paid, status="separated")


def separates_all_rows(x, happened, gamma) -> bool:
    """Whether x'gamma is on the side of its class in every row."""
    return bool(((x @ gamma > 0) == happened).all())


@dataclass(frozen=True)
class Overlap:
    """rows : (n,) that no direction separates; columns : positions of independent columns among
    them; determined : (p,) coefficients that these rows determine"""

    rows: np.ndarray
    columns: np.ndarray
    determined: np.ndarray


def overlap_of(x, happened) -> Overlap | None:
    """The overlap of classes that columns separate; None if they separate all rows.

    x : (n, p) with its constant; happened : (n,) bool
    """
    rows = np.ones(len(x), dtype=bool)
    while True:
        inside, event = x[rows], happened[rows]
        if event.all() or not event.any():
            return None
        columns, determined = _independent(inside)
        apart = _separated_rows(inside[:, columns], event)
        if not apart.any():
            return Overlap(rows, columns, determined)
        rows[np.flatnonzero(rows)[apart]] = False


def _independent(x) -> tuple[np.ndarray, np.ndarray]:
    """Positions of columns that span all of x, and which coefficients every choice agrees on."""
    size = np.abs(x).max(axis=0)
    triangle = np.linalg.qr(x / np.where(size > 0, size, 1.0), mode="r")
    _, singular, directions = np.linalg.svd(triangle)
    rank = int((singular >= DEPENDENT_BELOW * singular[0]).sum())
    determined = (np.abs(directions[rank:]) < DEPENDENT_BELOW).all(axis=0)
    pivots = qr(triangle, mode="r", pivoting=True)[1]
    return np.sort(pivots[:rank]), determined


def _separated_rows(x, happened) -> np.ndarray:
    """(n,) rows that a level of a column, or else a combination of columns, separates."""
    low, high = x.min(axis=0), x.max(axis=0)
    two_values = ((x == low) | (x == high)).all(axis=0) & (low < high)
    apart = np.zeros(len(x), dtype=bool)
    for j in np.flatnonzero(two_values):
        for value in (low[j], high[j]):
            level = x[:, j] == value
            apart |= level & (happened[level].all() or not happened[level].any())
    if apart.any():
        return apart
    back = column_scale(x).back
    hessian = fit_probit(x, happened).hessian
    if np.linalg.eigvalsh(-back.T @ hessian @ back).min() >= LEAST_INFORMATION:
        return apart
    direction = separating_direction(x, happened)
    return apart if direction is None else direction.margins > STRICTLY
