"""Loan applications of which some were granted, and what all of them would have come to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckesel.datasets.controlled import check_draw
from heckesel.datasets.error_draws import draw_errors, probability_given_x
from heckesel.datasets.truth import Truth

# Effects of one standard deviation of (log income, debt, years at the job) on the probit of a
# default and of a grant; lenders look at what predicts default, and so grant against it.
DEFAULT = (-0.9, np.array([-0.35, 0.45, -0.25]))
GRANT = (0.1, np.array([0.45, -0.5, 0.2]))
LENIENCY = 0.7


@dataclass(frozen=True)
class Loans:
    """n applications: `frame` with columns log_income, debt, tenure, leniency and default (NaN
    where the loan was not granted), and their `truth`."""

    frame: pd.DataFrame
    truth: Truth


def make_loans(n: int = 4000, *, rho: float = -0.6, seed: int = 0) -> Loans:
    r"""Draw applications that a lender granted on more than the file shows.

    .. math::
        \text{default} = 1[-0.9 - 0.35 i + 0.45 d - 0.25 t + \varepsilon > 0], \quad
        \text{granted} = 1[0.1 + 0.45 i - 0.5 d + 0.2 t + 0.7 l + u > 0]

    with i = log_income - log 30, d = (debt - .3)/.1 and t = (tenure - 6)/3 truncated at none, all
    standard normal but for the truncation. leniency, l, is that of the officer the application was
    handed to by chance: an instrument. (ε, u) have variance one and correlation ρ: negative where
    the officer, by an impression that is in no column, turns down those who would default.

    `truth.y` is the default of every application, granted or not, `truth.f0` its probability given
    the three columns.
    """
    check_draw(n, rho, LENIENCY, seed, 1.0)
    rng = np.random.default_rng(seed)
    i, d, t, leniency = rng.standard_normal((4, n))
    t = np.maximum(t, -2.0)  # nobody has been at the job for less than no time
    epsilon, u = draw_errors(rng, n, rho=rho, sigma=1.0, errors="normal", df=np.inf)
    scores = np.column_stack([i, d, t])
    risk = DEFAULT[0] + scores @ DEFAULT[1]
    merit = GRANT[0] + scores @ GRANT[1]
    default = (risk + epsilon > 0).astype(float)
    granted = merit + LENIENCY * leniency + u > 0
    frame = pd.DataFrame(
        {
            "log_income": np.log(30.0) + i,
            "debt": 0.3 + 0.1 * d,
            "tenure": 6 + 3 * t,
            "leniency": leniency,
            "default": np.where(granted, default, np.nan),
        }
    )
    truth = Truth(
        y=default,
        f0=ndtr(risk),
        propensity=ndtr(merit + LENIENCY * leniency),
        propensity_x=probability_given_x(merit, LENIENCY, "normal", np.inf),
    )
    return Loans(frame, truth)
