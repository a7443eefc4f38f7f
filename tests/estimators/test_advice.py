"""Error messages suggest a remedy that exists where the user is: shell, estimator or formula."""

import numpy as np
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
