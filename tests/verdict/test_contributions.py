"""What each unit contributes to a bound: the derivative of the bound in the unit's weight."""

from dataclasses import replace

import numpy as np
import pytest

from heckesel.verdict.bounds import (
    BoundedSample,
    follow_up_end,
    instrument_end,
    missing_at_random_end,
    potential_outcome_end,
    trimming_end,
    worst_case_end,
)

N = 120
STRATA = np.arange(N) % 2


def sample() -> BoundedSample:
    rng = np.random.default_rng(0)
    treated, instrument = rng.random(N) < 0.5, rng.integers(0, 3, N)
    answered = rng.random(N) < np.where(treated, 0.75, 0.45)
    followed = ~answered & (rng.random(N) < 0.6)
    y = np.where(answered | (followed & (rng.random(N) < 0.7)), rng.normal(size=N), np.nan)
    return BoundedSample(
        y=y,
        answered=answered,
        low=-5.0,
        high=4.0,
        weight=rng.uniform(0.5, 2.0, N),
        weight_kind="probability",
        followed=followed,
        treated=treated,
        instrument=instrument,
        strata=STRATA,
    )


OVER_ROWS = (
    worst_case_end,
    potential_outcome_end,
    follow_up_end,
    missing_at_random_end,
)
CASES = [
    *((function.__name__, lambda s, f=function: f(s, s.treated)) for function in OVER_ROWS),
    ("monotone instrument", lambda s: instrument_end(s, s.treated, True)),
    ("instrument", lambda s: instrument_end(s, s.treated, False)),
    ("trimming", lambda s: trimming_end(s, np.zeros(N, dtype=int))),
    ("trimming by strata", lambda s: trimming_end(s, STRATA)),
]


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("name", "end"), CASES, ids=[name for name, _ in CASES])
def test_contributions_are_derivatives_in_the_weights(name, end, mirrored, monkeypatch):
    # the factor that makes variances unbiased is no part of the derivative
    monkeypatch.setattr(BoundedSample, "residual_factor", lambda self, rows: 1.0)
    given = sample().mirror() if mirrored else sample()
    estimate = end(given)
    found = estimate.linear + sum(part.linear for part in estimate.maxima)
    step = 1e-6
    for unit in range(0, N, 3):
        sides = []
        for sign in (1, -1):
            weight = given.weight.copy()
            weight[unit] *= 1 + sign * step
            sides.append(end(replace(given, weight=weight)).value)
        # a difference at this step errs by about 1e-10
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(found[unit], abs=2e-9)
