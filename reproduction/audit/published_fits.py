"""The published fits: where each is printed, its data and equations, and its log-likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from heckesel.datasets.rand_hie import REGRESSORS
from reproduction.audit import tables

RAND = " + ".join(REGRESSORS)
GREENE = (
    "wage ~ exper + I(exper**2) + educ + city",
    "~ age + I(age**2) + faminc + any_kids + educ",
)
WOOLDRIDGE = (
    "lwage ~ educ + exper + expersq",
    "~ nwifeinc + educ + exper + expersq + age + kidslt6 + kidsge6",
)
GUIDE = "Nguyen, A Guide on Data Analysis (repository mikenguyen13/data_analysis)"
VIGNETTE = (
    "Toomet and Henningsen, vignette selection of the R package sampleSelection, section on "
    "Tobit-2 models; output as in transcripts of sessions"
)
STATSPAI = "Stata 18, in tests/reference_parity of the source of statspai 1.40.2"
NOTES = "lecture notes 'Tobit, Heckit' in R Markdown (13-tobit_heckit), share of alcohol"
ALCOHOL = "age + nadults + nkids + lnx + walloon"


@dataclass(frozen=True)
class PublishedFit:
    """A printed maximum likelihood fit.

    source : where it is printed; program : which made it
    loglik : as printed; slack : how far data with rounded digits may move it
    term : the coefficient that matters; weights : a column of probability weights
    """

    name: str
    source: str
    program: str
    table: Callable[[], pd.DataFrame]
    outcome: str
    select: str
    loglik: str
    term: str
    weights: str | None = None
    slack: float = 0.0

    @property
    def printed(self) -> float:
        return float(self.loglik)

    @property
    def tolerance(self) -> float:
        """Half a unit of the last printed digit, and 1e-11 of the value for other arithmetic."""
        digits = len(self.loglik.partition(".")[2])
        return 0.5 * 10.0**-digits + self.slack + 1e-11 * abs(self.printed)


# The shipped tables have fewer digits than R's, with which both log-likelihoods agree to 1e-11.
RAND_SLACK, MROZ_SLACK = 4.3e-5, 3e-7
PUBLISHED_FITS = (
    PublishedFit(
        "Mroz, wage (Greene)",
        "Greene, Econometric Analysis (5th edition), example 22.8, with Mroz's data",
        "book",
        tables.mroz,
        *GREENE,
        "-1581.2577",
        "educ",
    ),
    PublishedFit(
        "Mroz, wage (vignette)",
        "Toomet and Henningsen, vignette selection of sampleSelection, greeneML",
        "R, BHHH",
        tables.mroz,
        *GREENE,
        "-1581.259",
        "educ",
    ),
    PublishedFit(
        "Mroz, log wage (Wooldridge 17.5)",
        "Wooldridge, Introductory Econometrics, example 17.5; Stata, in "
        "tests/test_wooldridge_examples.py of the source of statspai 1.40.2",
        "Stata",
        tables.mroz,
        *WOOLDRIDGE,
        "-832.88508646",
        "educ",
    ),
    PublishedFit(
        "Mroz, log wage (sampleSelection)",
        "Wooldridge, example 17.5; R's sampleSelection 1.2-12, reproduction/reference/mroz.json",
        "R",
        tables.mroz,
        *WOOLDRIDGE,
        "-832.88508076353",
        "educ",
        slack=MROZ_SLACK,
    ),
    PublishedFit(
        "Mroz, log wage (Nguyen)",
        f"{GUIDE}, Tobit-2, Panel Study of Income Dynamics",
        "R",
        tables.mroz,
        "lwage ~ educ + exper + I(exper**2) + city",
        "~ age + I(age**2) + kids + huswage + educ",
        "-914.0777",
        "educ",
    ),
    PublishedFit(
        "RAND, log spending (Cameron and Trivedi)",
        "Cameron and Trivedi, Microeconometrics (2005), section 16.6, log mma16p3selection.txt",
        "Stata 8",
        tables.rand_hie,
        f"lnmeddol ~ {RAND}",
        f"~ {RAND}",
        "-10170.11",
        "logc",
    ),
    PublishedFit(
        "RAND, log spending (sampleSelection)",
        "the same; R's sampleSelection, reproduction/reference/rand_hie.json",
        "R",
        tables.rand_hie,
        f"lnmeddol ~ {RAND}",
        f"~ {RAND}",
        "-10170.1104405246",
        "logc",
        slack=RAND_SLACK,
    ),
    PublishedFit(
        "vignette, with an exclusion restriction",
        VIGNETTE,
        "R",
        partial(tables.vignette, 0),
        "y ~ xo",
        "~ xs",
        "-712.3163",
        "xo",
    ),
    PublishedFit(
        "vignette, without one",
        VIGNETTE,
        "R",
        partial(tables.vignette, 1),
        "y ~ xs",
        "~ xs",
        "-712.8298",
        "xs",
    ),
    PublishedFit(
        "vignette, without one, wide range",
        VIGNETTE,
        "R",
        partial(tables.vignette, 2),
        "y ~ xs",
        "~ xs",
        "-440.883",
        "xs",
    ),
    PublishedFit(
        "simulated, with an exclusion restriction (Nguyen)",
        f"{GUIDE}, Full Information Maximum Likelihood",
        "R",
        tables.guide_normal,
        "y ~ x",
        "~ w",
        "-1174.233",
        "x",
    ),
    PublishedFit(
        "simulated event study (Nguyen)",
        f"{GUIDE}, event studies, Corrections for Sample Selection Bias",
        "R",
        tables.guide_events,
        "y ~ size",
        "~ size",
        "165.4579",
        "size",
    ),
    PublishedFit(
        "Belgian alcohol, R",
        NOTES,
        "R",
        tables.alcohol,
        f"share ~ {ALCOHOL}",
        f"~ {ALCOHOL}",
        "4311.465",
        "lnx",
    ),
    PublishedFit(
        "Belgian alcohol, Stata",
        NOTES,
        "Stata",
        tables.alcohol,
        f"share ~ {ALCOHOL}",
        f"~ {ALCOHOL}",
        "4311.4649",
        "lnx",
    ),
    PublishedFit(
        "simulated design (StatsPAI)",
        f"{STATSPAI}, _fixtures/ldv_design_stata.json, heckman_oim",
        "Stata 18",
        tables.stata_design,
        "y ~ x1 + x2",
        "~ x1 + x2 + z3",
        "-1561.8007649088486",
        "x1",
    ),
    PublishedFit(
        "simulated design, weighted (StatsPAI)",
        f"{STATSPAI}, _fixtures/ldv_design_stata.json, heckman_pw",
        "Stata 18",
        tables.stata_design,
        "y ~ x1 + x2",
        "~ x1 + x2 + z3",
        "-2157.641359361455",
        "x1",
        weights="w",
    ),
    PublishedFit(
        "simulated cross-section (StatsPAI)",
        f"{STATSPAI}, _fixtures/textbook_syllabus_Stata.csv, heckml",
        "Stata 18",
        tables.stata_textbook,
        "y ~ x1 + x2",
        "~ x1 + x2 + z1",
        "-745.30246476453590",
        "x1",
    ),
)
