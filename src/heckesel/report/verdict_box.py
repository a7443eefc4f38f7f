"""The box at the top of the page: whether to use the corrected predictions, and why."""

from dataclasses import dataclass

import numpy as np

from heckesel.diagnostics.verdict import (
    AT_BOUNDARY,
    DO_NOT_USE,
    FUNCTIONAL_FORM,
    IDENTIFIED,
    NO_SELECTION,
    NOT_IDENTIFIED,
    TONES,
    UNCERTAIN,
    WEAK,
    Identification,
)
from heckesel.fit_info import RhoInfo
from heckesel.predictive.distribution import RHO_LIMIT

# Tone: the colour and icon of the box. Advice: what a reader may do with the predictions.
GOOD, CAUTION, BAD = "good", "caution", "bad"
ADVICE = {
    IDENTIFIED: "The corrected predictions can be used for everyone, provided that someone who "
    "knows the process confirms the assumption above.",
    WEAK: "Use the direction of the correction, not its size, and look for a stronger instrument "
    "before you base a decision on it.",
    FUNCTIONAL_FORM: "Treat the correction as one scenario among others: the data cannot "
    "contradict it.",
    NOT_IDENTIFIED: "Do not use the correction: the data do not support it.",
    NO_SELECTION: "There is nothing to correct: these are ordinary predictions.",
    DO_NOT_USE: "Do not use the corrected predictions as they are.",
}
ADVICE_WITH_CAVEATS = (
    "Resolve the problems named in the verdict before you base a decision on the corrected "
    "predictions."
)
WRONG_SHAPE = (
    "do not rely on prediction intervals or on probabilities for single cases: the outcomes do not "
    "follow the distribution that the model assumes."
)
ADVICE_IF_CHECK_FAILED = ADVICE | {
    IDENTIFIED: f"Use the corrected means with caution, and {WRONG_SHAPE}",
    NO_SELECTION: f"There is nothing to correct, but {WRONG_SHAPE}",
}
GRID_END = 0.99  # the profile method tries |rho| up to .9967
MISFIT = (
    "which usually means that the model does not fit: the outcome may be on the wrong scale (try "
    'target_transform="log"), or an instrument may affect the outcome directly.'
)


@dataclass(frozen=True)
class VerdictBox:
    """reasons : sentences, the most important first"""

    tone: str
    heading: str
    reasons: tuple[str, ...]
    advice: str

    @property
    def usable(self) -> bool:
        """Whether the page may show the correction as a result."""
        return self.tone != BAD


def verdict_box(
    found: Identification, *, boundary: float | None, passed: bool = True
) -> VerdictBox:
    """boundary : -1 or 1 if the estimate of rho is there (`boundary_reached`), else None
    passed : False if the held-out check failed
    """
    tone, verdict = TONES[found.verdict], found.verdict
    if boundary is not None:
        at = f"ρ = {'+1' if boundary > 0 else '−1'}"
        reasons = (
            f"The estimate is {at}, the end of the range, {MISFIT}",
            f"The verdict from the columns alone would be: {verdict}; {found.sentence}",
        )
        heading = f"do not use, the estimate is {at}"
        return VerdictBox(BAD, heading, reasons, ADVICE[DO_NOT_USE])
    why: tuple[str, ...] = (f"Why: {found.sentence}",)
    if found.evidence.get("at_boundary") and tone == GOOD:
        if abs(found.evidence["rho"]) <= AT_BOUNDARY:  # otherwise the sentence already states it
            why += (f"However, the likelihood behind the verdict peaks near ρ = ±1, {MISFIT}",)
        advice = "Until you know the reason, use the direction of the correction, not its size."
        return VerdictBox(CAUTION, verdict, why, advice)
    if not passed:
        bad = tone == BAD
        why += (f"{'Also' if bad else 'However'}, the held-out check failed, as shown below.",)
        tone = BAD if bad else CAUTION
        heading = f"{verdict}, {'and' if bad else 'but'} the held-out check failed"
        return VerdictBox(tone, heading, why, ADVICE_IF_CHECK_FAILED[verdict])
    if tone == GOOD and found.level == UNCERTAIN:
        return VerdictBox(CAUTION, f"{verdict}, with caveats", why, ADVICE_WITH_CAVEATS)
    return VerdictBox(tone, verdict, why, ADVICE[verdict])


def boundary_reached(model) -> float | None:
    """-1 or 1 if the estimated correlation of the errors is there (or beyond, in two steps)."""
    if model.identification_.verdict == NO_SELECTION:
        return None
    if hasattr(model, "result_"):
        result, rho = model.result_, float(model.rho_)
        reached = result.status == "boundary" and result.near_boundary  # else a skewness, say, is
    elif isinstance(model.fitted_.info, RhoInfo):
        best = model.fitted_.info.modes[0]
        rho = best.rho
        reached = best.boundary and abs(rho) > GRID_END  # a prior interval can end inside
    elif hasattr(model, "classes_"):
        reached, rho = False, float(model.rho_[0])
    else:
        reached, weight = False, getattr(model.fitted_.info, "weight", None)
        rho = float(np.average(model.rho_, weights=weight))
    return float(np.sign(rho)) if reached or abs(rho) >= RHO_LIMIT else None
