"""Error messages suggest a remedy that exists where the user is: shell, estimator or formula."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "lwage", "--instruments", "age,kidslt6", "--method", "ml"]


@pytest.fixture
def women():
    return hk.datasets.load_mroz()[["lwage", "educ", "exper", "age", "kidslt6"]]


def fit(capsys, tmp_path, frame, *options):
    frame.to_csv(tmp_path / "t.csv", index=False)
    return run(capsys, "fit", tmp_path / "t.csv", *ROLES, *options, "--out", tmp_path / "m")


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (True, "every row in which 'educ' is missing is selected"),
        (False, "column 'educ' is never missing among the 428 selected rows"),
    ],
)
def test_missing_values_that_determine_selection_are_named(women, chosen, said):
    rows = women.index[women["lwage"].notna() == chosen][:2]
    women.loc[rows, "educ"] = np.nan
    model = hk.HeckmanRegressor(["age", "kidslt6"], missing="indicator", method="ml")
    with pytest.raises(hk.DataError, match=f"^{said}") as caught:
        model.fit(women.drop(columns="lwage"), women["lwage"])
    assert str(caught.value).endswith("; impute 'educ' or drop it")


DAYS = pd.date_range("2001-01-01", periods=753)


@pytest.mark.parametrize(
    "days", [DAYS, DAYS - DAYS[0], [day.date() for day in DAYS], [*DAYS[:9], *[None] * 744]]
)
def test_dates_are_refused_and_not_read_as_numbers_or_categories(women, days):
    X = women.drop(columns="lwage").assign(day=days)
    missing = "indicator" if X["day"].isna().any() else "error"
    with pytest.raises(hk.DataError, match=r"^column 'day' holds dates; convert it to numbers"):
        hk.HeckmanRegressor(["age"], missing=missing, method="ml").fit(X, women["lwage"])
