"""California housing: house values in the 20640 block groups of the 1990 census.

Source: `shapiq==1.4.1`, `datasets/data/california_housing.csv`; the data are those of Pace &
Barry (1997), published on StatLib, with counts turned into averages per household. Every row
and column is kept, in StatLib's order.
Licence: MIT.
SHA-256 of california_housing.csv.gz:
d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b
"""

from __future__ import annotations

import pandas as pd

from heckesel.datasets.shipped import read_shipped

FILES = {
    "california_housing.csv.gz": "d1e42509cf74e1d6c812fe94d02ae772fd94e7da619e371d8d4428795a1e377b"
}


def load_california_housing() -> pd.DataFrame:
    """One row per block group: 20640 rows, 9 columns, the last of which is the usual outcome.

    MedInc : median income in 10000 dollars; HouseAge : median age of the houses
    AveRooms, AveBedrms, AveOccup : rooms, bedrooms and people per household
    Population : people; Latitude, Longitude : place in degrees
    MedHouseVal : median house value in 100000 dollars

    Values above 5 were recorded as 5.00001 (965 rows), so the outcome is censored at the top.
    """
    return read_shipped(*next(iter(FILES.items())))
