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


def test_the_shell_suggests_its_option_for_missing_values(women, tmp_path, capsys):
    women.loc[[3, 700], "educ"] = np.nan  # one works, one does not
    shown = fit(capsys, tmp_path, women, "--on-problem", "error")
    assert shown.code == 2
    assert shown.err.startswith("heckesel: column 'educ' is missing (NaN) in 2 rows (first: row 3)")
    assert "--missing indicator" in shown.err
    strict = ["--on-problem", "error", "--missing", "indicator"]
    assert fit(capsys, tmp_path, women, *strict).code == 0


def test_a_missing_value_at_prediction_suggests_the_option_of_the_fit(women, tmp_path, capsys):
    assert fit(capsys, tmp_path, women, "--on-problem", "error").code == 0
    women.loc[3, "exper"] = np.nan
    women.to_csv(tmp_path / "t.csv", index=False)
    shown = run(capsys, "predict", tmp_path / "m", tmp_path / "t.csv", "--force")
    assert shown.code == 2
    assert "'exper'" in shown.err
    assert shown.err.endswith("or fit with --missing indicator\n")


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


def test_a_column_missing_for_all_unselected_rows_is_refused(women):
    women.loc[women["lwage"].isna(), "educ"] = np.nan
    women.loc[5, "educ"] = np.nan
    model = hk.HeckmanRegressor(["age", "kidslt6"], missing="indicator", method="ml")
    with pytest.raises(hk.DataError, match="in which 'educ' is not missing is selected"):
        model.fit(women.drop(columns="lwage"), women["lwage"])


DAYS = pd.date_range("2001-01-01", periods=753)


@pytest.mark.parametrize(
    "days", [DAYS, DAYS - DAYS[0], [day.date() for day in DAYS], [*DAYS[:9], *[None] * 744]]
)
def test_dates_are_refused_and_not_read_as_numbers_or_categories(women, days):
    X = women.drop(columns="lwage").assign(day=days)
    missing = "indicator" if X["day"].isna().any() else "error"
    with pytest.raises(hk.DataError, match=r"^column 'day' holds dates; convert it to numbers"):
        hk.HeckmanRegressor(["age"], missing=missing, method="ml").fit(X, women["lwage"])


def test_an_estimator_does_not_suggest_a_formula(women):
    X = women.drop(columns="lwage").astype({"educ": object})
    X.loc[7, "educ"] = "twelve"
    with pytest.raises(hk.DataError, match=r"row 7 holds 'twelve'; convert it to a number$"):
        hk.HeckmanRegressor(["age"], method="ml").fit(X, women["lwage"])


def test_kind_regression_is_not_suggested_for_string_classes(women, tmp_path, capsys):
    high = women["lwage"] > 1
    strings = high.map({True: "high", False: "low"}).where(women["lwage"].notna())
    shown = fit(capsys, tmp_path, women.assign(lwage=strings))
    assert shown.code == 0
    assert shown.out.startswith("lwage has two classes, high and low; predictions are ")
    assert "--kind" not in shown.out
    shown = fit(capsys, tmp_path, women.assign(lwage=strings), "--method", "two-step")
    assert shown.err.endswith("lwage has two classes; use auto or ml\n")
    booleans = high.astype(object).where(women["lwage"].notna())
    assert (
        "as a number, set --kind regression"
        in fit(capsys, tmp_path, women.assign(lwage=booleans)).out
    )
    assert fit(capsys, tmp_path, women.assign(lwage=booleans), "--kind", "regression").code == 0
