"""RAND Health Insurance Experiment: yearly medical spending of families given insurance by lot.

Source: `statsmodels==0.15.0`, `datasets/randhie/src/randhie.csv`, which has the data of Cameron &
Trivedi (2005), Microeconometrics; every row and column is kept.
Licence: public domain.
SHA-256 of rand_hie.csv.gz: 32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1
"""

from __future__ import annotations

import pandas as pd

from heckesel.datasets.shipped import read_shipped
from heckesel.errors import DataError

FILES = {"rand_hie.csv.gz": "32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1"}

SAMPLES = ("all", "cameron_trivedi")
# Both equations of Cameron and Trivedi, section 16.6, in the order of their table.
REGRESSORS = (
    "logc",
    "idp",
    "lpi",
    "fmde",
    "physlm",
    "disea",
    "hlthg",
    "hlthf",
    "hlthp",
    "linc",
    "lfam",
    "educdec",
    "xage",
    "female",
    "child",
    "fchild",
    "black",
)


def load_rand_hie(sample: str = "all") -> pd.DataFrame:
    """One row per person and year: 20190 rows, 45 columns.

    `sample="cameron_trivedi"` keeps the 5574 rows of their section 16.6: year 2, with the
    education of the decision maker known. Of these 4281 have spending.

    Outcome and selection
        lnmeddol : log of medical spending, NaN where there was none
        binexp : 1 where there was some, so lnmeddol is there exactly where binexp is 1
        meddol : medical spending in dollars, 0 where there was none
    The 17 regressors of section 16.6
        logc : log(coinsurance rate + 1); idp : 1 on a plan with an individual deductible
        lpi : log participation incentive; fmde : function of the maximum expenditure offer
        physlm : physical limitations; disea : count of chronic diseases
        hlthg, hlthf, hlthp : 1 if own health is good, fair, poor (left out: excellent)
        linc : log family income; lfam : log family size; educdec : education of the decision maker
        xage : age; female, child, fchild (a girl), black : indicators
    Units
        zper : person; year : study year, 1 to 5; site, plan : place and insurance plan

    A person appears once per year: standard errors over all years need clustering by zper.
    The other columns are described with the source.
    """
    if sample not in SAMPLES:
        raise DataError(f"sample is {sample!r} but must be one of {', '.join(SAMPLES)}")
    frame = read_shipped(*next(iter(FILES.items())))
    if sample == "cameron_trivedi":
        keep = (frame["year"] == 2) & frame["educdec"].notna()
        frame = frame[keep].reset_index(drop=True)
    return frame
