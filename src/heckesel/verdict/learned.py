"""The verdict on a fit of `HeckmanRegressor`: what instrument and prior contributed."""

import numpy as np

from heckesel.errors import warn_user
from heckesel.verdict.fitted import leaking_column
from heckesel.verdict.identify import (
    CONFIRM,
    CONTRADICTED,
    FIND_AN_INSTRUMENT,
    LARGEST_RHO_ERROR,
    MOSTLY_PRIOR,
    REJECTED,
    SUPPORTED,
    Identification,
    named_instruments,
    nothing_to_correct,
)

USE_INTERVALS = (
    "Use the intervals, which show what the prior allows, rather than the corrected means alone."
)


def verdict_of(data, evidence, rho, prior, *, asked: str = "") -> Identification:
    """The verdict from the numbers that the fit used; warns if there is no instrument.

    evidence : `correction.rho.Evidence`, None if every unit was selected; rho : `Posterior`
    """
    if evidence is None:
        warn_user(
            f"all {data.n} rows have an outcome, so every unit was selected and there is nothing "
            "to correct"
        )
        return nothing_to_correct(asked)
    numbers = _numbers(data, evidence, rho, prior)
    numbers |= leaking_column(data)
    found = _conclude(numbers)
    if not data.instruments:
        warn_user(str(found))
    return found


def _numbers(data, evidence, rho, prior) -> dict:
    low, high = rho.rho_interval()
    numbers = {
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
    return numbers


def _conclude(e: dict) -> Identification:
    instruments = e["instruments"]
    named, one = named_instruments(instruments) if instruments else ("", True)
    if "leak" in e:
        return Identification(
            CONTRADICTED,
            f"column {e['leak']!r} contains the outcome almost exactly.",
            f"Omit {e['leak']!r}.",
            e,
        )
    if e.get("bend_p", 1.0) < REJECTED:
        return Identification(
            CONTRADICTED,
            "the mean residual of the selected changes with the probability of selection in a way "
            f"that no selection model allows (p = {e['bend_p']:.2g}), so {named} "
            f"{'affects' if one else 'affect'} the outcome directly or the outcome model is wrong.",
            "Do not use the correction with these instruments; hk.bounds needs none.",
            e,
        )
    if not instruments:
        return Identification(
            MOSTLY_PRIOR,
            "there is no instrument, so the data say nothing about rho and the prior determines "
            "it.",
            f"{FIND_AN_INSTRUMENT} {USE_INTERVALS}",
            e,
        )
    if "rho_error" not in e:
        return Identification(
            MOSTLY_PRIOR,
            f"{named} {'does' if one else 'do'} not vary among comparable selected units, so the "
            "data say nothing about rho and the prior determines it.",
            f"{FIND_AN_INSTRUMENT} {USE_INTERVALS}",
            e,
        )
    if e["rho_error"] > LARGEST_RHO_ERROR:
        return Identification(
            MOSTLY_PRIOR,
            f"{named} {'determines' if one else 'determine'} rho only with an error of "
            f"{e['rho_error']:.2f}, so the prior matters most.",
            USE_INTERVALS,
            e,
        )
    return Identification(
        SUPPORTED,
        f"{named} {'determines' if one else 'determine'} rho with an error of "
        f"{e['rho_error']:.2f}; such corrections came true on real outcomes with known truth.",
        CONFIRM.format(it=f"{named} {'does' if one else 'do'}"),
        e,
    )
