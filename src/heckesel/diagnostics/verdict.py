"""The verdict on identification, one of five strings, with a sentence and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import chdtrc

IDENTIFIED = "identified by an instrument"
WEAK = "weak instrument"
FUNCTIONAL_FORM = "functional form only"
NOT_IDENTIFIED = "not identified"
NO_SELECTION = "no selection"

# Below ten per instrument the correction's error is dominated by the instrument's own noise;
# the rule of thumb of instrumental variables. An irrelevant column passes it once in 600.
STRONG_WALD_PER_INSTRUMENT = 10.0

NATURAL_INSTRUMENTS = (
    "which sensor, site, annotator or batch produced the row, or randomness in who was chosen"
)


@dataclass(frozen=True)
class Identification:
    """verdict: one of the five strings above; evidence: JSON-safe numbers behind it."""

    verdict: str
    sentence: str
    evidence: dict = field(default_factory=dict)
    profile: object = None

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"


def exclusion_verdict(instruments, gamma, covariance, *, varying_columns: int) -> Identification:
    """Judge by the Wald test of the excluded columns in the selection equation.

    instruments : their names; gamma : (k,) their coefficients; covariance : (k, k)
    varying_columns : how many selection columns are not constant
    """
    if varying_columns == 0:
        return Identification(
            NOT_IDENTIFIED,
            "nothing in the selection equation varies, so the correction cannot be told from the "
            "intercept; add what drove the selection.",
            {"instruments": []},
        )
    if not len(instruments):
        return Identification(
            FUNCTIONAL_FORM,
            "every selection column is also in the outcome equation, so rho rests on the normal "
            "shape of the errors alone; look for a column that moved selection and not the "
            f"outcome: {NATURAL_INSTRUMENTS}.",
            {"instruments": []},
        )
    wald, p = wald_test(gamma, covariance)
    if not np.isfinite(wald):
        return Identification(
            WEAK,
            f"the effect of {', '.join(instruments)} on selection has no covariance (too few "
            "clusters?), so nothing shows that it moves selection.",
            {"instruments": list(instruments)},
        )
    evidence = {
        "instruments": list(instruments),
        "wald": wald,
        "degrees_of_freedom": len(instruments),
        "p_value": p,
    }
    named = ", ".join(instruments)
    test = f"chi2({len(instruments)}) = {wald:.1f}, {_p_text(p)}"
    if wald >= STRONG_WALD_PER_INSTRUMENT * len(instruments):
        return Identification(
            IDENTIFIED,
            f"{named} moves selection ({test}) and is left out of the outcome equation; that it "
            "has no effect of its own on the outcome is your assumption.",
            evidence,
        )
    return Identification(
        WEAK,
        f"{named} hardly moves selection ({test}; {STRONG_WALD_PER_INSTRUMENT:.0f} per instrument "
        "would be strong), so rho rests mostly on the normal shape of the errors.",
        evidence,
    )


def wald_test(estimate, covariance) -> tuple[float, float]:
    """estimate' V^-1 estimate and its chi-squared p-value; NaN where V is no covariance."""
    if not np.isfinite(covariance).all():
        return float("nan"), float("nan")
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # not a covariance, as a two-step rho beyond one can make it
        return float("nan"), float("nan")
    statistic = float(estimate @ np.linalg.solve(covariance, estimate))
    return statistic, float(chdtrc(len(estimate), statistic))


def _p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
