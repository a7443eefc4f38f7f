"""The box at the top of the page: what a reader may do with the corrected predictions, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.diagnostics.verdict import (
    AT_THE_END,
    FUNCTIONAL_FORM,
    IDENTIFIED,
    NO_SELECTION,
    NOT_IDENTIFIED,
    WEAK,
    Identification,
)
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.predictive.distribution import RHO_LIMIT

# tone: the colour and sign on the page; advice: what a reader may do with the predictions
TONES = {
    IDENTIFIED: "good",
    WEAK: "doubtful",
    FUNCTIONAL_FORM: "doubtful",
    NOT_IDENTIFIED: "bad",
    NO_SELECTION: "plain",
}
ADVICE = {
    IDENTIFIED: "The corrected predictions can be used for everyone, as long as someone who knows "
    "the process vouches for the assumption named above.",
    WEAK: "Treat the correction as a direction, not a size: look for an instrument that moved "
    "selection more before anything is decided on it.",
    FUNCTIONAL_FORM: "Treat the correction as one scenario among others: nothing in the data "
    "could contradict it.",
    NOT_IDENTIFIED: "Do not use the correction: this data cannot carry it.",
    NO_SELECTION: "There is nothing to correct: these are ordinary predictions.",
}
GRID_END = 0.99  # the profile method tries |rho| up to .9967
MISFIT = (
    "which mostly means that the model does not fit: the outcome may be on the wrong scale (try "
    'target_transform="log"), or an instrument may have moved the outcome too.'
)
UNTIL_FOUND = "Treat the correction as a direction, not a size, until the reason is found."
NOT_HELD = "But the check on cases left out was not passed, as shown below."
UNLESS_IT_HOLDS = {
    IDENTIFIED: "Do not rely on intervals and chances of single cases, and take the corrected "
    "means with care: outcomes are not distributed as this model says.",
    NO_SELECTION: "There is nothing to correct, but do not rely on intervals and chances of single "
    "cases: outcomes are not distributed as this model says.",
}
DO_NOT_USE = "Do not use the corrected predictions as they are."


@dataclass(frozen=True)
class Judgement:
    """reasons : a sentence each, the weightiest first"""

    tone: str
    heading: str
    reasons: tuple[str, ...]
    advice: str


def judge(found: Identification, *, edge: float | None, holds: bool = True) -> Judgement:
    """edge : -1 or 1 where the fit ran to this rho (`edge_reached`), else None
    holds : False where the check on cases left out was made and not passed
    """
    tone, advice = TONES[found.verdict], ADVICE[found.verdict]
    if edge is not None:
        at = f"ρ = {'+1' if edge > 0 else '−1'}"
        of_columns = f"What the columns alone would allow: {found.verdict}; {found.sentence}"
        reasons = (f"The fit ran to {at}, {MISFIT}", of_columns)
        return Judgement("bad", f"the fit ran to {at}", reasons, DO_NOT_USE)
    why = (f"Why: {found.sentence}",)
    if found.evidence.get("at_boundary") and tone == "good":
        reason = f"But the likelihood that the verdict looked at is highest near ρ = ±1, {MISFIT}"
        said = abs(found.evidence["rho"]) > AT_THE_END  # by the sentence itself
        return Judgement("doubtful", found.verdict, why if said else (*why, reason), UNTIL_FOUND)
    if not holds:
        tone = "bad" if tone == "bad" else "doubtful"
        advice = UNLESS_IT_HOLDS.get(found.verdict, advice)
        return Judgement(tone, f"{found.verdict}, but a check failed", (*why, NOT_HELD), advice)
    return Judgement(tone, found.verdict, why, advice)


def edge_reached(model) -> float | None:
    """-1 or 1 where the fit put the correlation of the errors there, or in two steps beyond."""
    if model.identification_.verdict == NO_SELECTION:
        return None
    if isinstance(model, HeckmanRegressor):
        reached, rho = model.result_.status == "boundary", float(model.rho_)
    elif "modes" in model.info_:
        best = model.info_["modes"][0]
        rho = float(best["rho"])
        reached = best["boundary"] and abs(rho) > GRID_END  # an interval given as prior ends inside
    else:
        reached, rho = False, float(np.mean(model.rho_))
    return float(np.sign(rho)) if reached or abs(rho) >= RHO_LIMIT else None
