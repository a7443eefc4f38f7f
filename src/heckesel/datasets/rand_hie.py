"""RAND Health Insurance Experiment: medical spending of families randomly assigned to plans.

Source: `statsmodels==0.15.0`, `datasets/randhie/src/randhie.csv`, which has the data of Cameron &
Trivedi (2005), Microeconometrics; every row and column is kept.
Licence: public domain.
SHA-256 of rand_hie.csv.gz: 32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped
from heckesel.errors import DataError, is_one_of

FILES = {"rand_hie.csv.gz": "32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1"}

SAMPLES = ("all", "cameron_trivedi")
# Of both equations in Cameron and Trivedi, section 16.6, in the order of their table.
# fmt: off
REGRESSORS = (
    "logc", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp", "linc", "lfam",
    "educdec", "xage", "female", "child", "fchild", "black",
)
# fmt: on


def load_rand_hie(sample: str = "all") -> pd.DataFrame:
    """Load yearly medical spending from the RAND Health Insurance Experiment.

    Parameters
    ----------
    sample : {"all", "cameron_trivedi"}, default "all"
        ``"cameron_trivedi"`` keeps the 5574 rows of their section 16.6: those of year 2 for which
        the education of the decision maker is known. Of these, 4281 have spending.

    Returns
    -------
    pandas.DataFrame
        20190 rows, one per person and year, and 45 columns. The usual outcome is ``lnmeddol``.

    Raises
    ------
    DataError
        If the sample is unknown.

    Notes
    -----
    Outcome and selection:

    - ``lnmeddol``: log of medical spending, NaN if there was none
    - ``binexp``: 1 if there was some, so ``lnmeddol`` is observed exactly if ``binexp`` is 1
    - ``meddol``: medical spending in dollars, 0 if there was none

    The 17 regressors of section 16.6:

    - ``logc``: log(coinsurance rate + 1)
    - ``idp``: 1 on a plan with an individual deductible
    - ``lpi``: log participation incentive
    - ``fmde``: function of the maximum expenditure offer
    - ``physlm``, ``disea``: physical limitations, and number of chronic diseases
    - ``hlthg``, ``hlthf``, ``hlthp``: 1 if self-rated health is good, fair, poor (the reference
      level is excellent)
    - ``linc``, ``lfam``: log family income and log family size
    - ``educdec``: education of the decision maker
    - ``xage``: age
    - ``female``, ``child``, ``fchild`` (a girl), ``black``: indicators

    Units:

    - ``zper``: person
    - ``year``: study year, 1 to 5
    - ``site``, ``plan``: place and insurance plan

    A person has one row per year, so standard errors over all years need clustering by ``zper``.
    The source describes the other columns.

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.load_rand_hie("cameron_trivedi").shape
    (5574, 45)
    """
    if not is_one_of(sample, SAMPLES):
        raise DataError(f"sample is {sample!r} but must be one of {', '.join(SAMPLES)}")
    frame = read_shipped(FILES)
    if sample == "cameron_trivedi":
        keep = (frame["year"] == 2) & frame["educdec"].notna()
        frame = frame[keep].reset_index(drop=True)
    return frame
