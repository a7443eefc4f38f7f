"""Wine quality: laboratory measurements and taste scores of 1599 red and 4898 white wines.

Source: `verticapy==1.1.1`, `datasets/data/winequality.csv`, split by colour into two files. Its
columns `color` and `good` (quality above 6) are dropped; rows are in UCI's order.
Licence: CC BY 4.0; Cortez, Cerdeira, Almeida, Matos & Reis (2009), Wine Quality, UCI Machine
Learning Repository.
SHA-256 of wine_quality_red.csv.gz:
22d0436c42a58b64c63ef3398d5fde4a3cc4b4d0a88900ad6df97bd0ea7a32bd
SHA-256 of wine_quality_white.csv.gz:
37da01e29535817888a07c8202b1fd51e6ff921034a4098d712850348b175e81
"""

import pandas as pd

from heckesel.datasets.shipped import read_shipped
from heckesel.errors import DataError, is_one_of

FILES = {
    "wine_quality_red.csv.gz": "22d0436c42a58b64c63ef3398d5fde4a3cc4b4d0a88900ad6df97bd0ea7a32bd",
    "wine_quality_white.csv.gz": "37da01e29535817888a07c8202b1fd51e6ff921034a4098d712850348b175e81",
}

COLOURS = ("red", "white")


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
    return read_shipped(FILES, f"wine_quality_{colour}.csv.gz")
