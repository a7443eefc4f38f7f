"""The verdict on a correction: one of six strings, with a sentence and its evidence."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.classical.covariance import wald_test
from heckesel.classical.probit import STRONG_WALD_PER_INSTRUMENT
from heckesel.diagnostics.profile_curve import ProfileCurve
from heckesel.display import block, box, p_equation
from heckesel.errors import printable

IDENTIFIED = "identified by an instrument"
WEAK = "weak instrument"
FUNCTIONAL_FORM = "functional form only"
NOT_IDENTIFIED = "not identified"
NO_SELECTION = "no selection"
DO_NOT_USE = "do not use"
# The order is part of the results: committed rows hold a position in this tuple.
VERDICTS = (IDENTIFIED, WEAK, FUNCTIONAL_FORM, NOT_IDENTIFIED, NO_SELECTION, DO_NOT_USE)

# What a person can do with the correction.
SUPPORTED = "the correction is supported"
UNCERTAIN = "the correction rests on assumptions that the data cannot test"
UNUSABLE = "the correction must not be used as it is"
NOTHING_TO_CORRECT = "there is nothing to correct"

# How it is coloured.
TONES = {
    IDENTIFIED: "good",
    WEAK: "caution",
    FUNCTIONAL_FORM: "caution",
    NOT_IDENTIFIED: "bad",
    NO_SELECTION: "plain",
    DO_NOT_USE: "bad",
}

AT_BOUNDARY = 0.99999  # |rho| of a maximum at the end of its range
WORTH_LISTING = 10.0  # modes further below the best, in log-likelihood, do not matter
# Standard error of rho up to which the instruments alone determine the correction: a 95 % interval
# of +-.5, which cannot distinguish no correlation from a strong one.
LARGEST_RHO_ERROR = 0.25
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
        ``"functional form only"``, ``"not identified"``, ``"no selection"`` and ``"do not use"``.
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

    def as_box(self) -> str:
        """The verdict with its sentence and evidence as a coloured box of HTML.

        Returns
        -------
        str
        """
        tone = "caution" if self.evidence.get("caveats") else "good"
        tone = tone if self.verdict == IDENTIFIED else TONES[self.verdict]
        return box(tone, self.verdict, self.sentence, self.details())

    def _repr_html_(self) -> str:
        return block(self.as_box())

    @property
    def level(self) -> str:
        """How the correction can be used, from "the correction is supported" to "the
        correction must not be used as it is"."""
        if self.verdict == IDENTIFIED:
            return UNCERTAIN if self.evidence.get("caveats") else SUPPORTED
        levels = {NO_SELECTION: NOTHING_TO_CORRECT, DO_NOT_USE: UNUSABLE}
        return levels.get(self.verdict, UNCERTAIN)

    @property
    def caveat(self) -> str | None:
        """The caveat that accompanies every prediction; None if the correction is supported."""
        if self.level in (SUPPORTED, NOTHING_TO_CORRECT):
            return None
        return str(self)

    def details(self) -> list[str]:
        """List the evidence in words.

        Returns
        -------
        list of str
            One line for each piece of evidence that was computed.
        """
        return [line(self.evidence) for key, line in LINES.items() if key in self.evidence]


def nothing_selected(asked: str = "") -> Identification:
    """asked : the question about a spike of the outcome, if there is one"""
    sentence = "every unit has an outcome, so there is nothing to correct."
    return Identification(NO_SELECTION, f"{sentence} But {asked}." if asked else sentence, {})


def with_profile(
    found: Identification, profile: ProfileCurve, *, independent: bool = True
) -> Identification:
    """The verdict with the evidence of the profile likelihood.

    Without an instrument, a likelihood that rejects neither a large positive nor a large negative
    rho identifies nothing.

    independent : False if rows are clustered, which this likelihood ignores
    """
    rho, (low, high) = profile.modes[profile.selected][0], profile.interval
    evidence = found.evidence | {
        "rho": rho,
        "rho_low": low,
        "rho_high": high,
        "rho_level": profile.level,
        "modes": [{"rho": at, "loglik": height} for at, height in profile.modes],
        "at_boundary": profile.at_boundary,
        "rows_profiled": profile.rows,
    }
    if not independent:
        evidence["independent_rows"] = False
    verdict, sentence = found.verdict, found.sentence
    if verdict == FUNCTIONAL_FORM and profile.uninformative:
        verdict = NOT_IDENTIFIED
        sentence = (
            "there is no exclusion restriction, and the likelihood rejects no rho between "
            f"{low:.2f} and {high:.2f}; {FIND_AN_INSTRUMENT}"
        )
    elif abs(rho) > AT_BOUNDARY:
        sentence += (
            f" The likelihood is largest at rho = {rho:+.0f}, the end of its range. This usually "
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
    if found.verdict != IDENTIFIED:
        return found
    named, one = named_instruments(evidence["instruments"])
    if share * evidence["wald"] >= needed:
        if evidence.get("rho_error", 0.0) <= LARGEST_RHO_ERROR:
            return found
        return replace(
            found,
            verdict=WEAK,
            sentence=f"{named} {'affects' if one else 'affect'} selection "
            f"(chi2({len(evidence['instruments'])}) = {evidence['wald']:.1f}), but the standard "
            f"error of rho is {evidence['rho_error']:.2f} (a strong instrument gives at most "
            f"{LARGEST_RHO_ERROR:g}), so the correction depends mostly on the assumed error "
            "distribution; use more rows or a stronger instrument.",
        )
    return replace(
        found,
        verdict=WEAK,
        sentence=f"{named} {'affects' if one else 'affect'} selection, but smooth functions of the "
        f"outcome columns explain all but {100 * share:.1f} % of {'its' if one else 'their'} "
        "effect, so the correction can hardly be distinguished from a nonlinear outcome; look "
        "for an instrument that these columns do not determine.",
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
    named, one = named_instruments(instruments)
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
    test = f"chi2({len(instruments)}) = {wald:.1f}, {p_equation(p)}"
    if wald >= STRONG_WALD_PER_INSTRUMENT * len(instruments):
        return Identification(
            IDENTIFIED,
            f"{named} {verb} selection ({test}) and {'is' if one else 'are'} excluded from the "
            f"outcome equation; the correction assumes that {'it has' if one else 'they have'} no "
            "direct effect on the outcome.",
            evidence,
        )
    return Identification(
        WEAK,
        f"{named} hardly {verb} selection ({test}; strong instruments have at least "
        f"{STRONG_WALD_PER_INSTRUMENT:.0f} per instrument), so rho is identified mostly by the "
        "assumption of normal errors.",
        evidence,
    )


def named_instruments(terms) -> tuple[str, bool]:
    """The instruments as a list in words, and whether there is only one; a category with several
    levels is named once."""
    columns = [term.split("[")[0] if term.endswith("]") else term for term in terms]
    whole = {name for name in columns if columns.count(name) > 1}
    pairs = zip(columns, terms, strict=True)
    shown = dict.fromkeys(name if name in whole else term for name, term in pairs)
    return ", ".join(shown), len(shown) == 1


def _sigma_text(evidence: dict) -> str:
    """Empty for models that were saved before the test of a constant sigma existed."""
    p = evidence.get("constant_sigma_p")
    return "" if p is None else f"; of a constant sigma: {p_equation(p)}"


def _assumptions(evidence: dict) -> str:
    """Assumptions of the profile likelihood beyond those of the model."""
    smooth = ["an outcome smooth in each column"] if evidence.get("smooth_outcome") else []
    rows = [] if evidence.get("independent_rows", True) else ["independent rows"]
    return f" (assuming {' and '.join(smooth + rows)})" if smooth or rows else ""


def _other_modes(evidence: dict) -> str:
    others = [
        f"{mode['rho']:.2f} ({mode['loglik']:.1f})"
        for mode in evidence.get("modes", [])
        if mode["loglik"] > -WORTH_LISTING and mode["rho"] != evidence["rho"]
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
    "overidentification": lambda e: (
        f"agreement of the instruments (overidentification test): {e['overidentification']:.1f}, "
        f"{p_equation(e['overidentification_p'])}"
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
        f"{p_equation(e['residual_normality_p'])}{_sigma_text(e)})"
    ),
    "contrast": lambda e: (
        f"rho sigma: {e['lambda_ml']:.3g} by maximum likelihood, {e['lambda_two_step']:.3g} by the "
        f"two-step ({abs(e['contrast']):.1f} standard errors apart)"
    ),
    "linearity_p": lambda e: (
        "squares and products of the outcome columns: "
        f"{p_equation(e['linearity_p'])} (Wald test), "
        f"mainly {e['most_curved']}"
    ),
    "better_errors": lambda e: (
        f"best error model: {e['better_errors']}, {e['better_errors_gain']:.1f} log-units better "
        f"than normal errors, with rho {e['better_errors_rho']:.2f}, on {e['form_rows']:,} rows"
    ),
    "tau_low": lambda e: (
        f"Kendall's tau of the errors: {e['tau_low']:.2f} to {e['tau_high']:.2f} over the error "
        "models that fit about as well as the best or no worse than the normal one, on "
        f"{e['form_rows']:,} rows"
    ),
    "rows_profiled": lambda e: f"rows used for the profile likelihood: {e['rows_profiled']:,}",
}
