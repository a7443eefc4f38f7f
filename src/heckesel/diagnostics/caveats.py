"""What evidence on rows and on the error model adds to a verdict: caveats, or `do not use`."""

from dataclasses import replace

from heckesel.diagnostics.verdict import AT_BOUNDARY, DO_NOT_USE, NOT_IDENTIFIED, Identification

REJECTED = 1e-3  # p-value below which a test of the errors gives a caveat
FAR_APART = 3.0  # standard errors between two-step and likelihood, beyond chance
MOVED = 1.0  # standard errors by which better-fitting errors may change an estimate
RIVAL = 2.0  # log-units: a second maximum this close is about as likely as the one used
APART = 0.3  # difference in rho at which a second maximum matters
TESTS_OF_RESIDUALS = ("residual_normality_p", "constant_sigma_p")
INFLUENTIAL = 2.0  # change of rho by a single row, in standard errors


def with_model(found: Identification, evidence: dict) -> Identification:
    """The verdict with `row_evidence` and, on a fit with normal errors, `model_evidence`.

    The correction must not be used if other errors fit better and change the estimates, if two-step
    and likelihood disagree, or if rho is at the end of its range. Less serious problems become
    caveats.
    """
    everything = found.evidence | evidence
    grave: list[str] = []
    slight: list[str] = []
    if "better_errors" in evidence and evidence["better_errors_p"] < REJECTED:
        moved = abs(evidence["most_moved"]) > MOVED
        (grave if moved else slight).append(_better_errors(evidence))
    elif min(evidence.get(name, 1.0) for name in TESTS_OF_RESIDUALS) < REJECTED:
        slight.append("tests reject normal errors with a constant sigma; try errors='shape'")
    if abs(evidence.get("contrast", 0.0)) > FAR_APART:
        grave.append(
            "the maximum likelihood and two-step estimates of rho sigma differ by "
            f"{abs(evidence['contrast']):.1f} standard errors, which is evidence against normal "
            "errors; use method='two-step', method='auto' or errors='shape'"
        )
    if abs(everything.get("rho", 0.0)) > AT_BOUNDARY:
        grave.append("the estimate of rho is at the end of its range")
    of_rows = _doubts_of_rows(evidence)
    slight += [*_rival_modes(everything), *of_rows]
    if evidence.get("largest_influence", 0.0) > INFLUENTIAL:
        slight.append(
            f"a single row changes rho by {evidence['largest_influence']:.1f} standard errors; "
            "look for outliers"
        )
    if grave and found.verdict != NOT_IDENTIFIED:
        sentence = f"{'; '.join(grave + of_rows)}. Verdict on the instruments alone: {found}"
        return replace(found, verdict=DO_NOT_USE, sentence=sentence, evidence=everything)
    return with_doubts(found, grave + slight, everything)


def with_doubts(found: Identification, doubts: list[str], evidence: dict) -> Identification:
    """The verdict with caveats."""
    if not doubts:
        return replace(found, evidence=evidence)
    caveats = [*evidence.get("caveats", []), *doubts]
    sentence = f"{found.sentence} However, {'; '.join(doubts)}."
    return replace(found, sentence=sentence, evidence=evidence | {"caveats": caveats})


def with_copies(found: Identification, evidence: dict) -> Identification:
    """The verdict with `repeated_rows`."""
    return with_doubts(found, _copies(evidence), found.evidence | evidence)


def _doubts_of_rows(evidence: dict) -> list[str]:
    doubts = _copies(evidence)
    if evidence.get("linearity_p", 1.0) < REJECTED:
        doubts.append(
            f"the outcome is not linear in its columns (p = {evidence['linearity_p']:.1g}, mainly "
            f"in {evidence['most_curved']}), which can look like selection; add squares and "
            "products of the columns or use DeepHeckmanRegressor"
        )
    if abs(evidence.get("two_step_rho", 0.0)) > 1:
        doubts.append(
            f"the two-step estimate of rho is {evidence['two_step_rho']:.2f}, which is not a "
            "possible correlation"
        )
    return doubts


def _copies(evidence: dict) -> list[str]:
    if "repeated_rows" not in evidence:
        return []
    return [
        f"{evidence['repeated_rows']:,} selected rows are exact copies of other rows; if they are "
        "the same units, drop the copies, because intervals treat every row as a separate unit"
    ]


def _better_errors(evidence: dict) -> str:
    way = {
        "Student t": "errors='t'",
        "Shape": "errors='shape'",
        "Gaussian, sigma(x)": "scale=",
        "Student t, sigma(x)": "errors='t' with scale=",
        "Shape, sigma(x)": "errors='shape' with scale=",
    }[evidence["better_errors"]]
    return (
        f"{way} fits {evidence['better_errors_gain']:.0f} log-units better than normal errors and "
        f"changes {_moved_name(evidence['most_moved_term'])} from "
        f"{evidence['most_moved_from']:.3g} to {evidence['most_moved_to']:.3g} "
        f"({abs(evidence['most_moved']):.1f} standard errors); use it or method='auto'"
    )


def _moved_name(term: str) -> str:
    return {"rho": "rho", "Intercept": "the intercept"}.get(term, f"the coefficient of {term}")


def _rival_modes(evidence: dict) -> list[str]:
    """Maxima of the likelihood that are about as high as the one used, with another rho."""
    used = evidence.get("rho")
    own = next((mode["loglik"] for mode in evidence.get("modes", []) if mode["rho"] == used), None)
    if own is None:
        return []
    return [
        f"the likelihood has another maximum at rho = {mode['rho']:.2f}, "
        f"{own - mode['loglik']:.1f} log-units lower"
        for mode in evidence["modes"]
        if abs(mode["rho"] - used) > APART and 0 <= own - mode["loglik"] < RIVAL
    ]
