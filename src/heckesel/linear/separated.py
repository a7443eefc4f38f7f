r"""A probit whose outcome its columns separate, at least in part.

Where some direction g has :math:`t_i x_i'g \ge 0` for every row (t = +1 where the event happened,
-1 where not) and more than 0 for some, the log-likelihood rises along g for ever: it has a supremum
and no maximum. What is returned is the maximum under a ridge on the standardised coefficients, the
constant among them, too small to move anything the data determine. As the ridge goes to zero the
probabilities of rows that g separates go to their classes and the others' to those of the
supremum; if every row is separated, the direction goes to that of the widest margin. The size
of the coefficients along g is the ridge's and has no meaning.
"""

from dataclasses import replace

import numpy as np

from heckesel.linear.probit import ProbitFit, fit_probit
from heckesel.linear.sample.standardise import column_scale

# At the last one a coefficient of a thousand costs .005 log-units: rows more than a hundredth of an
# sd apart get their class with a probability near one. The others are stations on the way there,
# since Newton would start too far away.
RIDGES = (1e-2, 1e-4, 1e-6, 1e-8)
RIDGE = RIDGES[-1]


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
