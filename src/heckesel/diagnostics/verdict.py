"""The verdict on identification: one of five strings, with a sentence and its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.diagnostics.profile_curve import ProfileCurve
from heckesel.errors import printable
from heckesel.linear.wald import STRONG_WALD_PER_INSTRUMENT, wald_test

IDENTIFIED = "identified by an instrument"
WEAK = "weak instrument"
FUNCTIONAL_FORM = "functional form only"
NOT_IDENTIFIED = "not identified"
NO_SELECTION = "no selection"
# The order is part of the results: committed rows hold a position in this tuple.
VERDICTS = (IDENTIFIED, WEAK, FUNCTIONAL_FORM, NOT_IDENTIFIED, NO_SELECTION)

AT_BOUNDARY = 0.99999  # |rho| of a maximum at the end of its range
WORTH_LISTING = 10.0  # modes further below the best, in log-likelihood, do not matter
FIND_AN_INSTRUMENT = (
    "look for a column that affects selection but not the outcome, such as the sensor, site, "
    "annotator or batch that produced the row, or random variation in who was selected."
)


@dataclass(frozen=True, repr=False)
class Identification:
    """Whether the data support a correction for selection, and why.

    Attributes
    ----------
    verdict : str
        One of ``"identified by an instrument"``, ``"weak instrument"``,
        ``"functional form only"``, ``"not identified"`` and ``"no selection"``.
    sentence : str
        The reason for the verdict, in one or two sentences.
    evidence : dict
        The numbers behind the verdict, safe to write as JSON: among others ``wald`` and
        ``p_value`` of the instruments, and ``rho``, ``rho_low`` and ``rho_high`` of the profile
        likelihood. A number that was not computed has no key.
    profile : ProfileCurve or None
        The profile likelihood over rho; None if it was not computed.

    Notes
    -----
    ``print(identification)`` shows the verdict with its sentence; ``details()`` lists the evidence.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> found = hk.identify(frame[["x", "z"]], frame["y"], instruments=["z"])
    >>> found.verdict
    'identified by an instrument'
    >>> round(found.evidence["wald"], 1)
    109.7
    """

    verdict: str
    sentence: str
    evidence: dict = field(default_factory=dict)
    profile: ProfileCurve | None = None

    def __str__(self) -> str:
        return printable(f"{self.verdict}: {self.sentence}")

    def __repr__(self) -> str:
        return "\n".join(
            [f"<Identification {self}", *(f"  {line}" for line in self.details()), ">"]
        )

    def details(self) -> list[str]:
        """List the evidence in words.

        Returns
        -------
        list of str
            One line for each piece of evidence that was computed.
        """
        return [line(self.evidence) for key, line in LINES.items() if key in self.evidence]


def nothing_selected() -> Identification:
    return Identification(
        NO_SELECTION, "every unit has an outcome, so there is nothing to correct.", {}
    )


def with_profile(
    found: Identification, profile: ProfileCurve, *, independent: bool = True
) -> Identification:
    """The verdict with the evidence of the profile likelihood.

    Without an instrument, a likelihood that rejects neither a large positive nor a large negative
    rho identifies nothing.

    independent : False if rows are clustered, which this likelihood ignores
    """
    best, (low, high) = profile.modes[0][0], profile.interval
    evidence = found.evidence | {
        "rho": best,
        "rho_low": low,
        "rho_high": high,
        "rho_level": profile.level,
        "modes": [{"rho": rho, "loglik": height} for rho, height in profile.modes],
        "at_boundary": profile.at_boundary,
        "rows_profiled": profile.rows,
    }
    if not independent:
        evidence["independent_rows"] = False
    verdict, sentence = found.verdict, found.sentence
    if verdict == FUNCTIONAL_FORM and profile.says_nothing:
        verdict = NOT_IDENTIFIED
        sentence = (
            "no column affects selection alone, and the likelihood rejects no rho from "
            f"{low:.2f} to {high:.2f}; {FIND_AN_INSTRUMENT}"
        )
    elif abs(best) > AT_BOUNDARY:
        sentence += (
            f" The likelihood is largest at rho = {best:+.0f}, the end of its range. This usually "
            "means that the errors are not normal on this scale of the outcome, or that a column "
            "that explains selection is missing; do not use the correction as it is."
        )
    return Identification(verdict, sentence, evidence, profile)


def beyond_smooth(found: Identification) -> Identification:
    """The verdict once smooth functions of x are allowed to take the instruments' place.

    The share of the instruments' effect that they cannot replace must be strong by itself.
    Otherwise curvature of the outcome in x would look like a correction.
    """
    evidence = found.evidence
    share = evidence.get("share_beyond_smooth", 1.0)
    needed = STRONG_WALD_PER_INSTRUMENT * len(evidence["instruments"])
    if found.verdict != IDENTIFIED or share * evidence["wald"] >= needed:
        return found
    named, one = _named(evidence["instruments"])
    return replace(
        found,
        verdict=WEAK,
        sentence=f"{named} {'affects' if one else 'affect'} selection, but smooth functions of the "
        f"outcome's columns explain all but {100 * share:.1f} % of {'its' if one else 'their'} "
        "effect, so the correction can hardly be distinguished from curvature in the outcome; look "
        "for an instrument that those columns do not determine.",
    )


def with_members(found: Identification, rho) -> Identification:
    """The verdict with the range of rho over the members of an ensemble, unless rho is None."""
    if rho is None:
        return found
    ends = {"member_rho_low": float(np.min(rho)), "member_rho_high": float(np.max(rho))}
    return replace(found, evidence=found.evidence | ends)


def exclusion_verdict(instruments, gamma, covariance, *, varying_columns: int) -> Identification:
    """The verdict by the Wald test of the excluded columns in the selection equation.

    instruments : their names; gamma : (k,) their coefficients; covariance : (k, k)
    varying_columns : how many selection columns are not constant
    """
    if varying_columns == 0:
        return Identification(
            NOT_IDENTIFIED,
            "no column of the selection equation varies, so the correction cannot be distinguished "
            "from the intercept; add columns that explain selection.",
            {"instruments": []},
        )
    if not len(instruments):
        return Identification(
            FUNCTIONAL_FORM,
            "every selection column is also in the outcome equation, so only the assumption of "
            f"normal errors identifies rho; {FIND_AN_INSTRUMENT}",
            {"instruments": []},
        )
    named, one = _named(instruments)
    wald, p = wald_test(gamma, covariance)
    if not np.isfinite(wald):
        return Identification(
            WEAK,
            f"the effect of {named} on selection has no covariance estimate, possibly because "
            "there are too few clusters, so its strength cannot be tested.",
            {"instruments": list(instruments)},
        )
    evidence = {
        "instruments": list(instruments),
        "wald": wald,
        "degrees_of_freedom": len(instruments),
        "p_value": p,
    }
    verb = "affects" if one else "affect"
    test = f"chi2({len(instruments)}) = {wald:.1f}, {_p_text(p)}"
    if wald >= STRONG_WALD_PER_INSTRUMENT * len(instruments):
        return Identification(
            IDENTIFIED,
            f"{named} {verb} selection ({test}) and {'is' if one else 'are'} excluded from the "
            f"outcome equation; that {'it has' if one else 'they have'} no direct effect on the "
            "outcome is your assumption.",
            evidence,
        )
    return Identification(
        WEAK,
        f"{named} hardly {verb} selection ({test}; {STRONG_WALD_PER_INSTRUMENT:.0f} per instrument "
        "would be strong), so rho is identified mostly by the assumption of normal errors.",
        evidence,
    )


def _named(instruments) -> tuple[str, bool]:
    """The instruments as a list in words, and whether there is only one."""
    return ", ".join(instruments), len(instruments) == 1


def _p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _assumptions(evidence: dict) -> str:
    """What the profile likelihood assumes beyond the model."""
    smooth = ["an outcome smooth in each column"] if evidence.get("smooth_outcome") else []
    rows = [] if evidence.get("independent_rows", True) else ["independent rows"]
    return f" (assuming {' and '.join(smooth + rows)})" if smooth or rows else ""


def _other_modes(evidence: dict) -> str:
    others = [
        f"{mode['rho']:.2f} ({mode['loglik']:.1f})"
        for mode in evidence.get("modes", [])[1:]
        if mode["loglik"] > -WORTH_LISTING
    ]
    return f"; other modes {', '.join(others)}" if others else ""


# A line of `Identification.details` for each key of the evidence.
LINES: dict[str, Callable[[dict], str]] = {
    "wald": lambda e: (
        f"instruments in the selection equation: Wald statistic {e['wald']:.1f} with "
        f"{e['degrees_of_freedom']} degree{'s' if e['degrees_of_freedom'] > 1 else ''} of freedom"
    ),
    "likelihood_ratio": lambda e: f"their likelihood ratio statistic: {e['likelihood_ratio']:.1f}",
    "mills_share": lambda e: (
        f"smooth functions of x leave {100 * e['mills_share']:.0f} % of the variance of the "
        "inverse Mills ratio unexplained"
    ),
    "rho_low": lambda e: (
        f"rho {e['rho']:.2f}, {100 * e['rho_level']:.0f} % profile interval {e['rho_low']:.2f} to "
        f"{e['rho_high']:.2f}{_assumptions(e)}{_other_modes(e)}"
    ),
    "member_rho_low": lambda e: (
        f"rho of the members: {e['member_rho_low']:.2f} to {e['member_rho_high']:.2f}"
    ),
    "residual_normality_p": lambda e: (
        f"residuals under the model: skewness {e['residual_skewness']:.2f}, excess kurtosis "
        f"{e['residual_excess_kurtosis']:.2f} (test of normality: "
        f"{_p_text(e['residual_normality_p'])})"
    ),
    "tau_low": lambda e: (
        f"Kendall's tau of the errors: {e['tau_low']:.2f} to {e['tau_high']:.2f} over the error "
        "models that fit about as well as the best or no worse than the normal one, on "
        f"{e['form_rows']:,} rows"
    ),
    "rows_profiled": lambda e: f"rows used for the profile likelihood: {e['rows_profiled']:,}",
}
