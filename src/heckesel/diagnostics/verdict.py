"""The verdict on identification, one of five strings, with a sentence and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtrc

from heckesel.diagnostics.profile_curve import ProfileCurve

IDENTIFIED = "identified by an instrument"
WEAK = "weak instrument"
FUNCTIONAL_FORM = "functional form only"
NOT_IDENTIFIED = "not identified"
NO_SELECTION = "no selection"
# The order is part of the results: committed rows hold a position in this tuple.
VERDICTS = (IDENTIFIED, WEAK, FUNCTIONAL_FORM, NOT_IDENTIFIED, NO_SELECTION)

# Below ten per instrument the correction's error is dominated by the instrument's own noise;
# the rule of thumb of instrumental variables. An irrelevant column passes it once in 600.
STRONG_WALD_PER_INSTRUMENT = 10.0

AT_THE_END = 0.99999  # |rho| of a maximum at the end of the range
WORTH_SAYING = 10.0  # a mode further below the best, in log-likelihood, is as good as absent
# Evidence that `details` puts into words; what a fit did not look at is left out there.
NUMBERS = (
    "wald",
    "degrees_of_freedom",
    "likelihood_ratio",
    "mills_share",
    "rho",
    "rho_low",
    "rho_high",
    "rho_level",
    "member_rho_low",
    "member_rho_high",
    "residual_skewness",
    "residual_excess_kurtosis",
    "residual_normality_p",
    "tau_low",
    "tau_high",
    "form_rows",
    "rows_profiled",
)

NATURAL_INSTRUMENTS = (
    "which sensor, site, annotator or batch produced the row, or randomness in who was chosen"
)


@dataclass(frozen=True, repr=False)
class Identification:
    """verdict: one of `VERDICTS`; evidence: JSON-safe numbers behind it.

    profile : the likelihood over rho, with `plot()`; None where no likelihood was looked at
    """

    verdict: str
    sentence: str
    evidence: dict = field(default_factory=dict)
    profile: ProfileCurve | None = None

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"

    def __repr__(self) -> str:
        return "\n".join(
            [f"<Identification {self}", *(f"  {line}" for line in self.details()), ">"]
        )

    def details(self) -> list[str]:
        """The evidence, a line each."""
        return [text for key, text in self._lines().items() if key in self.evidence]

    def _lines(self) -> dict[str, str]:
        known = {**dict.fromkeys(NUMBERS, float("nan")), **self.evidence}
        return {
            "wald": f"instruments in the selection equation: Wald {known['wald']:.1f} on "
            f"{known['degrees_of_freedom']} degrees of freedom",
            "likelihood_ratio": f"the same by likelihood ratio: {known['likelihood_ratio']:.1f}",
            "mills_share": f"{100 * known['mills_share']:.0f} % of the Mills ratio's variance is "
            "beyond smooth functions of x",
            "rho_low": f"rho {known['rho']:.2f}, {100 * known['rho_level']:.0f} % profile interval "
            f"{known['rho_low']:.2f} to {known['rho_high']:.2f}{_aside(known)}"
            f"{_other_modes(known.get('modes'))}",
            "member_rho_low": f"members put rho between {known['member_rho_low']:.2f} and "
            f"{known['member_rho_high']:.2f}",
            "residual_normality_p": "residuals given the model: skewness "
            f"{known['residual_skewness']:.2f}, excess kurtosis "
            f"{known['residual_excess_kurtosis']:.2f} (if normal, "
            f"{_p_text(known['residual_normality_p'])})",
            "tau_low": f"Kendall's tau of the errors from {known['tau_low']:.2f} to "
            f"{known['tau_high']:.2f} over error models that fit about as well as the best or no "
            f"worse than the normal one, on {known['form_rows']:,} rows",
            "rows_profiled": f"the likelihood over rho is that of {known['rows_profiled']:,} rows",
        }


def _at_the_end(rho: float) -> str:
    return (
        f"The likelihood is largest at rho = {rho:+.0f}, the end of its range: mostly the errors "
        "are not normal on this scale of the outcome, or what drove selection is missing; do not "
        "use the correction as it is."
    )


def _aside(known: dict) -> str:
    """What the likelihood over rho took for granted."""
    taken = [
        text
        for text, holds in (
            ("outcome smooth in each column", known.get("smooth_outcome")),
            ("as if rows were independent", not known.get("independent_rows", True)),
        )
        if holds
    ]
    return f" ({', '.join(taken)})" if taken else ""


def _other_modes(modes) -> str:
    others = [
        f"{mode['rho']:.2f} ({mode['loglik']:.1f})"
        for mode in (modes or [])[1:]
        if mode["loglik"] > -WORTH_SAYING
    ]
    return f"; other modes {', '.join(others)}" if others else ""


def nothing_selected() -> Identification:
    return Identification(
        NO_SELECTION, "every unit has an outcome, so there is nothing to correct.", {}
    )


def with_profile(
    found: Identification, profile: ProfileCurve, *, independent: bool = True
) -> Identification:
    """The verdict once the likelihood over rho is known: without an instrument, one that rejects
    neither a large positive nor a large negative rho has nothing to say.

    independent : False where rows come in clusters, which this likelihood does not know of
    """
    low, high = profile.interval
    rho = profile.modes[profile.selected][0]
    seen = {
        "rho": rho,
        "rho_low": low,
        "rho_high": high,
        "rho_level": profile.level,
        "modes": [{"rho": at, "loglik": height} for at, height in profile.modes],
        "at_boundary": profile.at_boundary,
        "rows_profiled": profile.rows,
    }
    if not independent:
        seen["independent_rows"] = False
    found = replace(found, evidence=found.evidence | seen)
    if abs(rho) > AT_THE_END:
        found = replace(found, sentence=f"{found.sentence} {_at_the_end(rho)}")
    if found.verdict == FUNCTIONAL_FORM and profile.says_nothing:
        return Identification(
            NOT_IDENTIFIED,
            "no column moves selection alone, and the likelihood allows any rho from "
            f"{low:.2f} to {high:.2f}; look for a column that moved selection and not the outcome: "
            f"{NATURAL_INSTRUMENTS}.",
            found.evidence,
            profile,
        )
    return replace(found, profile=profile)


def beyond_smooth(found: Identification) -> Identification:
    """The verdict once it is known what share of the instruments' work curves in x could do: the
    rest must be strong by itself, or an outcome that bends with x passes for a correction."""
    evidence = found.evidence
    share = evidence.get("share_beyond_smooth", 1.0)
    needed = STRONG_WALD_PER_INSTRUMENT * len(evidence["instruments"])
    if found.verdict != IDENTIFIED or share * evidence["wald"] >= needed:
        return found
    one, named = len(evidence["instruments"]) == 1, ", ".join(evidence["instruments"])
    return replace(
        found,
        verdict=WEAK,
        sentence=f"{named} {'moves' if one else 'move'} selection, but {100 * share:.1f} % of "
        f"{'its' if one else 'their'} effect is beyond smooth functions of the outcome's columns: "
        "the correction can hardly be told from a bend in the outcome; look for a column that "
        "those do not determine.",
    )


def with_members(found: Identification, rho) -> Identification:
    """The verdict with the range of rho over the members of an ensemble, where it has one."""
    if rho is None:
        return found
    spread = {"member_rho_low": float(np.min(rho)), "member_rho_high": float(np.max(rho))}
    return replace(found, evidence=found.evidence | spread)


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
            "clusters?), so nothing shows that there is any.",
            {"instruments": list(instruments)},
        )
    evidence = {
        "instruments": list(instruments),
        "wald": wald,
        "degrees_of_freedom": len(instruments),
        "p_value": p,
    }
    one = len(instruments) == 1
    named = ", ".join(instruments)
    test = f"chi2({len(instruments)}) = {wald:.1f}, {_p_text(p)}"
    if wald >= STRONG_WALD_PER_INSTRUMENT * len(instruments):
        return Identification(
            IDENTIFIED,
            f"{named} {'moves' if one else 'move'} selection ({test}) and "
            f"{'is' if one else 'are'} left out of the outcome equation; that "
            f"{'it has no effect of its' if one else 'they have no effect of their'} own on the "
            "outcome is your assumption.",
            evidence,
        )
    return Identification(
        WEAK,
        f"{named} hardly {'moves' if one else 'move'} selection ({test}; "
        f"{STRONG_WALD_PER_INSTRUMENT:.0f} per instrument would be strong), so rho rests "
        "mostly on the normal shape of the errors.",
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
