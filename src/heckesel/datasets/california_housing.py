"""California housing: house values in the 20640 block groups of the 1990 census.

Source: `shapiq==1.4.1`, `datasets/data/california_housing.csv`; the data are those of Pace &
Barry (1997), published on StatLib, with counts turned into averages per household. Every row
and column is kept, in StatLib's order.
Licence: MIT.
SHA-256 of california_housing.csv.gz:
d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {
    "california_housing.csv.gz": "d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b"
}


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
    return read_shipped(FILES)
