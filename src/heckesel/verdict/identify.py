"""The verdict on a correction: one of four words, with the reason, what to do, and the evidence."""

import re
from dataclasses import asdict, dataclass, field

import numpy as np

from heckesel.classical.checks import unexplained_share
from heckesel.classical.covariance import wald_test
from heckesel.data import SelectionData
from heckesel.display import block, box, p_equation, plain
from heckesel.errors import printable, warn_user
from heckesel.tables.fit_input import question

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

# The largest error of rho from the instruments alone, if they are strong. A 95 % interval of +-.5
# cannot distinguish no correlation from a strong one.
LARGEST_RHO_ERROR = 0.25
REJECTED = 1e-3  # p-value of a test; small, because every fit is tested
FAR_APART = 3.0  # standard errors between two-step and likelihood, beyond chance
MOVED = 1.0  # standard errors by which errors that fit better may change an estimate
RIVAL, APART = 2.0, 0.3  # log-units, and difference in rho, of a second mode that matters
AT_BOUNDARY = 0.99999  # |rho| of a maximum at the end of its range
LEAK = 1e-6  # share of the outcome's variance that a column which contains it leaves unexplained
GLANCE_ROWS = 2048  # which show for most tables that rows differ
LEAKY_GLANCE = 0.9  # correlation of the outcome with a column that may contain it, in these rows
MANY_COPIES = 0.05  # share of the selected rows
CONTINUOUS = 0.9  # values of the outcome for each distinct row, above which ties are copies
UNINFORMATIVE = 0.5  # an interval from below -.5 to above .5 does not even determine the sign
INFLUENTIAL = 2.0  # change of rho by a single row, in standard errors
FIND_AN_INSTRUMENT = (
    "Look for a column that affects selection but not the outcome, such as the sensor, site, "
    "annotator or batch that produced the row, or random variation in who was selected."
)
USE_INTERVALS = (
    "Use the intervals, which show what the prior allows, rather than the corrected means alone."
)
CONFIRM = (
    "Let someone who knows the process confirm that {it} not affect the outcome directly; "
    "hk.test_instruments looks for violations."
)
TERM = re.compile(r"[^\W\d]\w*|[\w.]+\(.*\)")  # that a formula can hold: a name or a function
MOST_NAMED = 6  # columns of a formula in a sentence
WAYS = {  # error model -> the option of hk.heckman
    "Student t": "errors='t'",
    "Shape": "errors='shape'",
    "Gaussian, sigma(x)": "scale={scale}",
    "Student t, sigma(x)": "errors='t' and scale={scale}",
    "Shape, sigma(x)": "errors='shape' and scale={scale}",
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
        The numbers behind the verdict, safe to write as JSON: among others ``rho_error``, that of
        rho by the instruments alone. A number that was not computed has no key.

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
    >>> found.evidence["rho_error"] < 0.25
    True
    """

    verdict: str
    sentence: str
    action: str = ""
    evidence: dict = field(default_factory=dict)

    @property
    def is_doubtful(self) -> bool:
        """Whether the verdict is "mostly prior" or "contradicted"."""
        return self.verdict in (MOSTLY_PRIOR, CONTRADICTED)

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
        e = self.evidence
        shown = e | {"error": _error(e)} if "rho_error" in e else e
        return [line.format_map(shown) for key, line in LINES.items() if key in e]

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
    "mills_share": "variance of the inverse Mills ratio that smooth functions of x leave "
    "unexplained: {mills_share:.0%}",
    "rho_error": "error of rho from the instruments alone: {error}",
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
    "posterior_rho": "rho with the prior ({prior}): {posterior_rho:z.2f}, 90 % interval "
    "{posterior_rho_low:z.2f} to {posterior_rho_high:z.2f}",
    "bend_p": "p-value of a bend in the mean residual that neither reading allows: {bend_p:.2g}",
    "better_errors": "best error model: {better_errors}, {better_errors_gain:.1f} log-units better "
    "than normal errors, with rho {better_errors_rho:.2f}, on {form_rows:,} rows",
}


def verdict_of(data, evidence, rho, prior) -> Identification:
    """The verdict on a fit of the default method, from the numbers that it used.

    evidence : `correction.rho.Evidence`, None if every unit was selected; rho : `Posterior`
    """
    if evidence is None:
        return nothing_to_correct(data)
    low, high = rho.rho_interval()
    numbers: dict = {
        "instruments": list(data.instruments),
        "rows": data.n,
        "selected": int(data.s.sum()),
        "posterior_rho": rho.rho,
        "posterior_rho_low": low,
        "posterior_rho_high": high,
        "normal_share": rho.normal_share,
        "prior": prior.label,
    }
    if len(evidence.a):
        for name, reading in (("normal", 0), ("flat", 1)):
            value, error = evidence.rho(reading)
            numbers |= {f"{name}_rho": value, f"{name}_rho_error": error}
        numbers["rho_error"] = numbers["normal_rho_error"]
    if np.isfinite(evidence.bend):
        numbers["bend_p"] = evidence.bend
    if len(data.instruments) > 1:
        from heckesel.verdict.validity import agreement

        numbers |= agreement(data)
    return conclude(numbers | leaking_column(data) | repeated_rows(data))


def warned(found: Identification, data) -> Identification:
    """The verdict, after a warning unless the instruments support the correction."""
    if found.is_doubtful:
        warn_user(str(found))
    elif found.verdict == NOTHING_TO_CORRECT:
        warn_user(f"all {data.n} rows have an outcome, so every unit was selected; {found}")
    return found


def nothing_to_correct(data) -> Identification:
    """The verdict if every unit has an outcome; it asks about a spike of the outcome `data.y`."""
    asked = question(data)
    sentence = "every unit has an outcome, so there is no selection."
    action = (
        f"{asked[:1].upper()}{asked[1:]}." if asked else "Use an ordinary model of the outcome."
    )
    return Identification(NOTHING_TO_CORRECT, sentence, action)


def wald_evidence(instruments, names, gamma, covariance) -> dict:
    """The Wald test of the instruments; without `wald` if there is none.

    names, gamma, covariance : (q,) of the selection equation, its constant included
    """
    evidence: dict = {"instruments": list(instruments)}
    where = [names.index(name) for name in instruments]
    wald, p = wald_test(gamma[where], covariance[np.ix_(where, where)]) if where else (np.nan, 0.0)
    if not np.isfinite(wald):
        return evidence
    return evidence | {"wald": wald, "degrees_of_freedom": len(where), "p_value": p}


def leaking_column(data: SelectionData) -> dict:
    """A column of x or w that alone explains almost all of the outcome among the selected."""
    y, weight, first = data.y[data.s], data.weight[data.s], np.flatnonzero(data.s)[:GLANCE_ROWS]
    shown = data.y[first] - data.y[first].mean()
    for values, names in ((data.x, data.x_names), (data.w, data.w_names)):
        glance = values[first] - values[first].mean(axis=0)
        size = np.sqrt((glance**2).sum(axis=0) * (shown**2).sum())
        # a column that explains all rows explains the first ones, if they vary
        for j in np.flatnonzero(np.abs(shown @ glance) >= LEAKY_GLANCE * size):
            column = values[data.s, j]
            if np.ptp(column) > 0 and unexplained_share(column[:, None], y, weight) < LEAK:
                return {"leak": names[j]}
    return {}


def repeated_rows(data: SelectionData) -> dict:
    """How many selected rows repeat another one exactly, if they are many and the outcome otherwise
    has a different value in every row."""
    y, n1 = data.y[data.s], int(data.s.sum())
    values = len(np.unique(y))
    if n1 - values < MANY_COPIES * n1:
        return {}
    for chosen in (np.flatnonzero(data.s)[:GLANCE_ROWS], data.s):  # a part often shows enough
        whole = np.column_stack([data.w[chosen], data.x[chosen], data.y[chosen]])
        rows = len(np.unique(whole, axis=0))
        if values < CONTINUOUS * rows:
            return {}
    if n1 - rows < MANY_COPIES * n1:
        return {}
    return {"repeated_rows": n1 - rows}


def conclude(e: dict) -> Identification:
    """The verdict by the numbers in the evidence alone, so that they cannot contradict it.

    The data contradict a correction if a column contains the outcome, the instruments contradict
    each other, E[y | x, s = 1] changes with the probability of selection as no reading allows,
    other errors fit better and change the estimates, two-step and likelihood disagree, or rho is at
    the end of its range. It is mostly prior if instruments are missing or weak, if the likelihood
    leaves rho open, or if the rows cannot show what they seem to show. Otherwise the instruments
    support it.
    """
    weak = _weakness(e)
    contradictions, doubts = _contradictions(e, strong=weak is None), _doubts(e)
    for verdict, reasons in (
        (CONTRADICTED, contradictions),
        (MOSTLY_PRIOR, doubts if weak is None else [weak, *doubts]),
    ):
        if reasons:
            actions = dict.fromkeys(action for _, action in reasons)
            why = "; ".join(why for why, _ in reasons)
            return Identification(verdict, f"{why}.", " ".join(actions), e)
    named, one = named_instruments(e["instruments"])
    determined = f"{'determines' if one else 'determine'} rho with an error of {_error(e)}"
    if "prior" in e:
        with_prior = "; with the prior, rho is {posterior_rho:z.2f} ({posterior_rho_low:z.2f} to "
        with_prior += "{posterior_rho_high:z.2f}, 90 % interval)."
        sentence = f"{named} {determined}{with_prior.format_map(e)}"
    else:
        who = f"{_affects(e)}, and {'it' if one else 'they'}" if "wald" in e else named
        sentence = f"{who} {determined}."
    return Identification(
        SUPPORTED, sentence, CONFIRM.format(it=f"{named} {'does' if one else 'do'}"), e
    )


def _contradictions(e: dict, *, strong: bool) -> list[tuple[str, str]]:
    """Reasons with what to do about each."""
    found = []
    named, one = named_instruments(e.get("instruments", []))
    if "leak" in e:
        found.append(
            (
                f"column {e['leak']!r} determines the outcome almost exactly",
                f"Omit {e['leak']!r} if it is known only together with the outcome.",
            )
        )
    if e.get("overidentification_p", 1.0) < REJECTED:
        who = f"the levels of {named}" if one else "the instruments"
        found.append(
            (
                f"{who} contradict each other (overidentification test: "
                f"{p_equation(e['overidentification_p'])}), as they do if at least one of them "
                "affects the outcome directly",
                "Compare the instruments with hk.test_instruments.",
            )
        )
    if e.get("bend_p", 1.0) < REJECTED:
        found.append(
            (
                "the mean outcome of the selected changes with the probability of selection as no "
                f"selection model allows ({p_equation(e['bend_p'])}), so {named} "
                f"{'affects' if one else 'affect'} the outcome directly or the outcome model is "
                "wrong",
                "Do not use the correction with these instruments; hk.bounds needs none.",
            )
        )
    if e.get("better_errors_p", 1.0) < REJECTED and abs(e["most_moved"]) > MOVED:
        way, short = _way(e), WAYS[e["better_errors"]].format(scale="")
        names = {"rho": "rho", "Intercept": "the intercept"}
        term = names.get(e["most_moved_term"], f"the coefficient of {e['most_moved_term']}")
        found.append(
            (
                f"a fit with {short} is {e['better_errors_gain']:.0f} log-units better than this "
                f"and changes {term} from {e['most_moved_from']:.3g} to {e['most_moved_to']:.3g} "
                f"({abs(e['most_moved']):.1f} standard errors)",
                f"Use hk.heckman with {way}.",
            )
        )
    if abs(e.get("contrast", 0.0)) > FAR_APART:
        found.append(
            (
                "the maximum likelihood and two-step estimates of rho sigma differ by "
                f"{abs(e['contrast']):.1f} standard errors, which is evidence against normal "
                "errors",
                "Use hk.heckman with method='two-step' or errors='shape'.",
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
    """Why the instruments do not determine rho, and what does; None if they do."""
    learned = "prior" in e
    form = "so rho comes from the assumed form of the errors"
    nothing = "so the data say nothing about rho and the prior determines it"
    if "reason" in e:
        return e["reason"], e["action"]
    if not e.get("instruments"):
        flat = ", and the likelihood rejects no rho between {rho_low:.2f} and {rho_high:.2f}"
        flat = flat.format_map(e) if _flat(e) else ""
        if learned:
            return f"there is no instrument, {nothing}", f"{FIND_AN_INSTRUMENT} {USE_INTERVALS}"
        return f"there is no instrument, {form}{flat}", FIND_AN_INSTRUMENT
    named, one = named_instruments(e["instruments"])
    if "rho_error" not in e:
        if learned or "rows" in e:
            why = f"{named} {'does' if one else 'do'} not vary among comparable selected units"
            if not learned:
                return f"{why}, so the data say nothing about rho", FIND_AN_INSTRUMENT
            return f"{why}, {nothing}", f"{FIND_AN_INSTRUMENT} {USE_INTERVALS}"
        if "wald" in e:
            return (
                f"{named} {'says' if one else 'say'} nothing about rho, {form}",
                FIND_AN_INSTRUMENT,
            )
        return (
            f"the effect of {named} on selection has no covariance estimate, possibly because "
            "there are too few clusters, so its strength is unknown",
            "Use more clusters, or another covariance.",
        )
    if e["rho_error"] > LARGEST_RHO_ERROR:
        error = f"{_error(e)} (a strong instrument: at most {LARGEST_RHO_ERROR:g})"
        if learned:
            return (
                f"{named} {'determines' if one else 'determine'} rho only with an error of "
                f"{error}, so the prior matters most",
                USE_INTERVALS,
            )
        beyond = e.get("share_beyond_smooth", 1.0)
        if beyond < 0.5:
            part = "all of " if beyond < 5e-4 else f"all but {beyond:.1%} of "
            return (
                f"{_affects(e)}, but smooth functions of the outcome columns explain {part}"
                f"{'its' if one else 'their'} effect, so the "
                "correction can hardly be distinguished from a nonlinear outcome",
                "Look for an instrument that the other columns do not determine.",
            )
        who = f"{_affects(e)}, and the" if "wald" in e else "the"
        of = named if "wald" not in e else "it" if one else "them"
        return (
            f"{who} error of rho from {of} alone is {error}, {form}",
            "Use more rows or a stronger instrument.",
        )
    if _flat(e):
        return (
            "the likelihood rejects no rho between {rho_low:.2f} and {rho_high:.2f}".format_map(e),
            "Use more rows, or hk.heckman with method='two-step', which uses the instruments only.",
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
                    "Compare fit.modes.",
                )
            )
    tests = e.get("residual_normality_p", 1.0), e.get("constant_sigma_p", 1.0)
    if min(tests) < REJECTED:
        way = _way(e) if "better_errors" in e else "errors='shape'"
        found.append(
            (
                "tests reject normal errors with a constant sigma, on which the estimate relies",
                f"Try hk.heckman with {way}.",
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
                "Add squares and products of the columns, or use hk.HeckmanRegressor.",
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


def _way(e: dict) -> str:
    """The options of hk.heckman for the best error model; a long formula of sigma is described."""
    terms = e["form_columns"]
    plain_names = len(terms) <= MOST_NAMED and all(map(TERM.fullmatch, terms))
    scale = f"'~ {' + '.join(terms)}'" if plain_names else " with the outcome's columns"
    return WAYS[e["better_errors"]].format(scale=scale)


def _flat(e: dict) -> bool:
    """Whether not even the sign of rho is known."""
    return e.get("rho_low", 0.0) < -UNINFORMATIVE and e.get("rho_high", 0.0) > UNINFORMATIVE


def _affects(e: dict) -> str:
    named, one = named_instruments(e["instruments"])
    test = f"chi2({e['degrees_of_freedom']}) = {e['wald']:.1f}, {p_equation(e['p_value'])}"
    hardly = "" if e["p_value"] < 0.05 else "hardly "
    return f"{named} {hardly}{'affects' if one else 'affect'} selection ({test})"


def _error(e: dict) -> str:
    """The error of rho with as many decimals as tell it from the threshold."""
    error, text = e["rho_error"], f"{e['rho_error']:.2f}"
    if (error > LARGEST_RHO_ERROR) != (float(text) > LARGEST_RHO_ERROR):
        return f"{error:.4f}"
    return text if error < 1e3 else "more than 1000"


def named_instruments(terms) -> tuple[str, bool]:
    """The instruments as a list in words, and whether there is only one; a category with several
    levels is named once."""
    columns = [term.split("[")[0] if term.endswith("]") else term for term in terms]
    whole = {name for name in columns if columns.count(name) > 1}
    pairs = zip(columns, terms, strict=True)
    shown = dict.fromkeys(name if name in whole else term for name, term in pairs)
    return ", ".join(shown), len(shown) == 1
