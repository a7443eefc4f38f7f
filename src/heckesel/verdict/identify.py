"""The verdict on a correction: one of four words, with the reason, what to do, and the evidence."""

from dataclasses import asdict, dataclass, field

from heckesel.display import block, box, p_equation, plain
from heckesel.errors import printable

SUPPORTED = "supported by the instrument"
MOSTLY_PRIOR = "mostly prior"
CONTRADICTED = "contradicted"
NOTHING_TO_CORRECT = "nothing to correct"
VERDICTS = (SUPPORTED, MOSTLY_PRIOR, CONTRADICTED, NOTHING_TO_CORRECT)
# How each is coloured, in notebooks and reports.
TONES = {
    SUPPORTED: "good",
    MOSTLY_PRIOR: "caution",
    CONTRADICTED: "bad",
    NOTHING_TO_CORRECT: "plain",
}

# The threshold of strength: the largest error of rho as estimated from the instruments alone (see
# `strength`). A 95 % interval of +-.5 cannot distinguish no correlation from a strong one.
LARGEST_RHO_ERROR = 0.25
REJECTED = 1e-3  # p-value of a test; small, because every fit is tested
FAR_APART = 3.0  # standard errors between two-step and likelihood, beyond chance
MOVED = 1.0  # standard errors by which errors that fit better may change an estimate
RIVAL, APART = 2.0, 0.3  # log-units, and difference in rho, of a second mode that matters
AT_BOUNDARY = 0.99999  # |rho| of a maximum at the end of its range
UNINFORMATIVE = 0.5  # an interval from below -.5 to above .5 does not even determine the sign
INFLUENTIAL = 2.0  # change of rho by a single row, in standard errors
FIND_AN_INSTRUMENT = (
    "Look for a column that affects selection but not the outcome, such as the sensor, site, "
    "annotator or batch that produced the row, or random variation in who was selected."
)
CONFIRM = (
    "Let someone who knows the process confirm that {it} not affect the outcome directly; "
    "hk.test_instruments looks for violations."
)
WAYS = {  # error model -> the option of hk.heckman
    "Student t": "errors='t'",
    "Shape": "errors='shape'",
    "Gaussian, sigma(x)": "scale=",
    "Student t, sigma(x)": "errors='t' with scale=",
    "Shape, sigma(x)": "errors='shape' with scale=",
}


@dataclass(frozen=True, repr=False)
class Identification:
    """Whether the data support a correction for selection, and why.

    Attributes
    ----------
    verdict : str
        ``"supported by the instrument"``, ``"mostly prior"`` (rho comes from the assumed form of
        the errors, or from a prior), ``"contradicted"`` (by the data: do not use the correction as
        it is) or ``"nothing to correct"`` (every unit has an outcome).
    sentence : str
        The reason for the verdict.
    action : str
        What to do next.
    evidence : dict
        The numbers behind the verdict, safe to write as JSON: among others ``wald`` and
        ``rho_error`` of the instruments. A number that was not computed has no key.

    Notes
    -----
    ``print(identification)`` shows the verdict, the sentence and the action. The evidence follows
    in its repr and in a notebook.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> found = hk.identify(frame[["x", "z"]], frame["y"], instruments=["z"])
    >>> found.verdict
    'supported by the instrument'
    >>> round(found.evidence["wald"], 1)
    109.7
    """

    verdict: str
    sentence: str
    action: str = ""
    evidence: dict = field(default_factory=dict)

    def __str__(self) -> str:
        return printable(f"{self.verdict}: {self.sentence} {self.action}".rstrip())

    def __repr__(self) -> str:
        lines = "".join(f"\n  {line}" for line in self.evidence_lines())
        return f"<Identification {self}{lines}>"

    def _repr_html_(self) -> str:
        return block(self.as_box())

    def as_box(self) -> str:
        """Return verdict, sentence, action and evidence as a coloured box of HTML.

        Returns
        -------
        str
        """
        why = f"{self.sentence} {self.action}".rstrip()
        return box(TONES[self.verdict], self.verdict, why, self.evidence_lines())

    def evidence_lines(self) -> list[str]:
        """List the evidence in words.

        Returns
        -------
        list of str
        """
        return [
            line.format_map(self.evidence) for key, line in LINES.items() if key in self.evidence
        ]

    def to_dict(self) -> dict:
        """Return the four attributes as a dict that is safe to write as JSON.

        Returns
        -------
        dict
        """
        return plain(asdict(self))


# A line of `evidence_lines` for each key of the evidence.
LINES = {
    "wald": "instruments in the selection equation: Wald statistic chi2({degrees_of_freedom}) = "
    "{wald:.1f}",
    "likelihood_ratio": "their likelihood ratio statistic: {likelihood_ratio:.1f}",
    "mills_share": "variance of the inverse Mills ratio that smooth functions of x leave "
    "unexplained: {mills_share:.0%}",
    "rho_error": "error of rho from the instruments alone: {rho_error:.2f}",
    "overidentification": "agreement of the instruments: chi2 {overidentification:.1f}, p-value "
    "{overidentification_p:.2g}",
    "rho": "rho: {rho:.2f}",
    "rho_low": "{rho_level:.0%} profile interval of rho: {rho_low:.2f} to {rho_high:.2f}",
    "independent_rows": "the profile interval assumes independent rows",
    "near_modes": "maxima of the likelihood within 2 log-units of the best: {near_modes}",
    "member_rho_low": "rho of the members: {member_rho_low:.2f} to {member_rho_high:.2f}",
    "residual_normality_p": "residuals: skewness {residual_skewness:.2f}, excess kurtosis "
    "{residual_excess_kurtosis:.2f}, p-value of normality {residual_normality_p:.2g}, of a "
    "constant sigma {constant_sigma_p:.2g}",
    "contrast": "rho sigma: {lambda_ml:.3g} by maximum likelihood, {lambda_two_step:.3g} by the "
    "two-step, {contrast:+.1f} standard errors apart",
    "linearity_p": "p-value of squares and products of the outcome columns: {linearity_p:.2g}, "
    "mainly {most_curved}",
    "normal_rho": "rho that the instruments show: {normal_rho:.2f} with an error of "
    "{normal_rho_error:.2f} if errors are normal, {flat_rho:.2f} with an error of "
    "{flat_rho_error:.2f} if the unselected have the same mean residual whatever the instrument",
    "posterior_rho": "rho with the prior ({prior}): {posterior_rho:.2f}, 90 % interval "
    "{posterior_rho_low:.2f} to {posterior_rho_high:.2f}",
    "bend_p": "p-value of a bend in the mean residual that neither reading allows: {bend_p:.2g}",
    "better_errors": "best error model: {better_errors}, {better_errors_gain:.1f} log-units better "
    "than normal errors, with rho {better_errors_rho:.2f}, on {form_rows:,} rows",
}


def nothing_to_correct(asked: str = "") -> Identification:
    """asked : the question about a spike of the outcome, if there is one"""
    sentence = "every unit has an outcome, so there is no selection."
    action = "Use an ordinary model of the outcome." if not asked else f"{_upper(asked)}."
    return Identification(NOTHING_TO_CORRECT, sentence, action)


def conclude(evidence: dict) -> Identification:
    """The verdict by the numbers in `evidence` alone, so that they cannot contradict it.

    The data contradict a correction if the instruments contradict each other, a column contains the
    outcome, other errors fit better and change the estimates, two-step and likelihood disagree, or
    rho is at the end of its range. It is mostly prior if instruments are missing or weak, if the
    likelihood leaves rho open, or if the rows cannot show what they seem to show. Otherwise the
    instruments support it.
    """
    instruments, doubts = evidence.get("instruments", []), _doubts(evidence)
    weakness = _weakness(evidence)
    for verdict, reasons in (
        (CONTRADICTED, _contradictions(evidence, strong=weakness is None)),
        (MOSTLY_PRIOR, [*([] if weakness is None else [weakness]), *doubts]),
    ):
        if reasons:
            sentence = f"{'; '.join(why for why, _ in reasons)}."
            actions = dict.fromkeys(action for _, action in reasons)
            return Identification(verdict, sentence, " ".join(actions), evidence)
    named, one = named_instruments(instruments)
    sentence = (
        f"{_affects(evidence)}, and {'it determines' if one else 'they determine'} rho with an "
        f"error of {evidence['rho_error']:.2f}."
    )
    action = CONFIRM.format(it=f"{named} {'does' if one else 'do'}")
    return Identification(SUPPORTED, sentence, action, evidence)


def _contradictions(e: dict, *, strong: bool) -> list[tuple[str, str]]:
    """Reasons with what to do about each."""
    found = []
    if "leak" in e:
        found.append(
            (f"column {e['leak']!r} contains the outcome almost exactly", f"Omit {e['leak']!r}.")
        )
    if e.get("overidentification_p", 1.0) < REJECTED:
        found.append(
            (
                "the instruments contradict each other (overidentification test: "
                f"{p_equation(e['overidentification_p'])}), so at least one of them affects the "
                "outcome directly",
                "Compare the instruments with hk.test_instruments.",
            )
        )
    if e.get("better_errors_p", 1.0) < REJECTED and abs(e["most_moved"]) > MOVED:
        way = WAYS[e["better_errors"]]
        names = {"rho": "rho", "Intercept": "the intercept"}
        term = names.get(e["most_moved_term"], f"the coefficient of {e['most_moved_term']}")
        found.append(
            (
                f"{way} fits {e['better_errors_gain']:.0f} log-units better than normal errors and "
                f"changes {term} from {e['most_moved_from']:.3g} to {e['most_moved_to']:.3g} "
                f"({abs(e['most_moved']):.1f} standard errors)",
                f"Use {way}.",
            )
        )
    if abs(e.get("contrast", 0.0)) > FAR_APART:
        found.append(
            (
                "the maximum likelihood and two-step estimates of rho sigma differ by "
                f"{abs(e['contrast']):.1f} standard errors, which is evidence against normal "
                "errors",
                "Use method='two-step' or errors='shape'.",
            )
        )
    known = strong or ("rho_low" in e and not _flat(e))  # a flat likelihood may peak anywhere
    if abs(e.get("rho", 0.0)) > AT_BOUNDARY and known:
        found.append(_at_the_end(e))
    return found


def _at_the_end(e: dict) -> tuple[str, str]:
    if abs(e["rho"]) > 1:
        where = f"is {e['rho']:.2f}, which is not a possible correlation"
    else:
        where = f"is {e['rho']:+.0f}, the end of its range"
    return (
        f"the estimate of rho {where}",
        "Check whether the errors are normal on this scale of the outcome (target_transform='log' "
        "is another), and whether a column that explains selection is missing.",
    )


def _weakness(e: dict) -> tuple[str, str] | None:
    """Why rho comes from the form of the errors instead of the instruments; None if it does not."""
    form = "so rho comes from the assumed form of the errors"
    if "reason" in e:
        return e["reason"], e["action"]
    if not e.get("instruments"):
        flat = ", and the likelihood rejects no rho between {rho_low:.2f} and {rho_high:.2f}"
        flat = flat.format_map(e) if _flat(e) else ""
        return f"there is no instrument, {form}{flat}", FIND_AN_INSTRUMENT
    named, one = named_instruments(e["instruments"])
    if "wald" not in e:
        return (
            f"the effect of {named} on selection has no covariance estimate, possibly because "
            "there are too few clusters, so its strength is unknown",
            "Use more clusters, or another covariance.",
        )
    if e["rho_error"] > LARGEST_RHO_ERROR:
        limit = f"(a strong instrument: at most {LARGEST_RHO_ERROR:g}), {form}"
        if e["share_beyond_smooth"] < 0.5:
            return (
                f"{_affects(e)}, but smooth functions of the outcome columns explain all but "
                f"{e['share_beyond_smooth']:.1%} of {'its' if one else 'their'} effect, so the "
                "correction can hardly be distinguished from a nonlinear outcome",
                "Look for an instrument that the other columns do not determine.",
            )
        return (
            f"{_affects(e)}, and the error of rho from {'it' if one else 'them'} alone is "
            f"{e['rho_error']:.2g} {limit}",
            "Use more rows or a stronger instrument.",
        )
    if _flat(e):
        return (
            "the likelihood rejects no rho between {rho_low:.2f} and {rho_high:.2f}".format_map(e),
            "Use more rows, or method='two-step', which uses the instruments only.",
        )
    return None


def _doubts(e: dict) -> list[tuple[str, str]]:
    """Reasons that leave the instruments as strong as they are, but the correction open."""
    found = []
    if abs(e.get("rho", 0.0)) > AT_BOUNDARY:
        found.append(_at_the_end(e))
    used = [mode["loglik"] for mode in e.get("modes", []) if mode["rho"] == e["rho"]]
    for mode in e.get("modes", []) if used else []:
        behind = used[0] - mode["loglik"]
        if abs(mode["rho"] - e["rho"]) > APART and 0 <= behind < RIVAL:
            found.append(
                (
                    f"the likelihood has another maximum at rho = {mode['rho']:.2f}, "
                    f"{behind:.1f} log-units lower",
                    "Compare the modes of the fit.",
                )
            )
    tests = e.get("residual_normality_p", 1.0), e.get("constant_sigma_p", 1.0)
    if min(tests) < REJECTED:
        way = WAYS.get(e.get("better_errors", ""), "errors='shape'")
        found.append(
            (
                "tests reject normal errors with a constant sigma, on which the estimate relies",
                f"Try {way}.",
            )
        )
    if "repeated_rows" in e:
        found.append(
            (
                f"{e['repeated_rows']:,} selected rows are exact copies of other rows, but count "
                "as separate units",
                "Drop the copies if they are the same units.",
            )
        )
    if e.get("linearity_p", 1.0) < REJECTED:
        found.append(
            (
                f"the outcome is not linear in its columns ({p_equation(e['linearity_p'])}, mainly "
                f"in {e['most_curved']}), which can look like selection",
                "Add squares and products of the columns, or use the default method of "
                "hk.HeckmanRegressor.",
            )
        )
    if e.get("largest_influence", 0.0) > INFLUENTIAL:
        found.append(
            (
                f"a single row changes rho by {e['largest_influence']:.1f} standard errors",
                "Look for outliers.",
            )
        )
    return found


def _flat(e: dict) -> bool:
    """Whether not even the sign of rho is known."""
    return e.get("rho_low", 0.0) < -UNINFORMATIVE and e.get("rho_high", 0.0) > UNINFORMATIVE


def _affects(e: dict) -> str:
    named, one = named_instruments(e["instruments"])
    test = f"chi2({e['degrees_of_freedom']}) = {e['wald']:.1f}, {p_equation(e['p_value'])}"
    hardly = "" if e["p_value"] < 0.05 else "hardly "
    return f"{named} {hardly}{'affects' if one else 'affect'} selection ({test})"


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def named_instruments(terms) -> tuple[str, bool]:
    """The instruments as a list in words, and whether there is only one; a category with several
    levels is named once."""
    columns = [term.split("[")[0] if term.endswith("]") else term for term in terms]
    whole = {name for name in columns if columns.count(name) > 1}
    pairs = zip(columns, terms, strict=True)
    shown = dict.fromkeys(name if name in whole else term for name, term in pairs)
    return ", ".join(shown), len(shown) == 1
