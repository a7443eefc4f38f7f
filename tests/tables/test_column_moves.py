"""Moves of columns, values that are held and groups of rows."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.margins import groups_of, held_values, moves_of

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 61],
        "sex": pd.Categorical(["m", "f", "f", "m"], categories=["m", "f", "x"]),
        "old": [False, False, True, True],
        "yes": [0, 1, 1, 0],
        "hole": ["u", None, "v", "v"],
    }
)


def test_numbers_shift_and_categories_change_level():
    (age,) = moves_of(FRAME["age"])
    up, down = age.sides(FRAME)
    np.testing.assert_allclose(up["age"] - down["age"], age.width)
    assert age.width == pytest.approx(2e-4 * FRAME["age"].std(ddof=0))
    assert [move.label for move in moves_of(FRAME["sex"])] == ["sex[f]", "sex[x]"]
    up, down = moves_of(FRAME["sex"])[1].sides(FRAME)
    assert set(up["sex"]) == {"x"}
    assert set(down["sex"]) == {"m"}
    assert up["sex"].dtype == FRAME["sex"].dtype
    assert [move.label for move in moves_of(FRAME["old"])] == ["old[True]"]
    assert moves_of(FRAME["yes"])[0].is_number
    assert moves_of(FRAME["yes"], contrast_indicators=True)[0].label == "yes[1]"


def test_held_values_are_all_combinations():
    held = held_values(FRAME, {"age": [20, 30], "sex": "f"})
    assert held.names == ("age", "sex")
    assert [values for values, _ in held.frames] == [(20.0, "f"), (30.0, "f")]
    assert (held.frames[1][1]["age"] == 30).all()
    assert (held.frames[1][1]["sex"] == "f").all()
    assert (FRAME["age"] == [30, 40, 50, 61]).all()


def test_groups_are_weighted_means():
    groups = groups_of(FRAME, "sex", np.array([1.0, 2.0, 3.0, 4.0]))
    assert list(groups.labels) == ["m", "f"]
    np.testing.assert_array_equal(groups.n, [2, 2])
    np.testing.assert_allclose(groups.mean(FRAME["age"].to_numpy()), [(30 + 4 * 61) / 5, 46])
    np.testing.assert_allclose(groups.mean(np.ones((4, 2))), 1.0)


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ([1], "at must be a dict"),
        ({}, "at must be a dict"),
        ({"ag": 1}, "at names 'ag', but the columns are 'age', .*; did you mean 'age'"),
        ({"age": []}, "no value for the column 'age'"),
        ({"age": "old"}, "needs numbers for the column 'age', got 'old'"),
        ({"age": np.nan}, "needs numbers for the column 'age'"),
        ({"sex": "q"}, "the column 'sex' has no level 'q'; it has 'm', 'f', 'x'"),
    ],
)
def test_values_that_cannot_be_held_are_refused(at, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        held_values(FRAME, at)


def test_groups_that_cannot_be_formed_are_refused():
    with pytest.raises(hk.DataError, match=r"'hole', which is missing in 1 rows \(first: row 1\)"):
        groups_of(FRAME, "hole")
    with pytest.raises(hk.DataError, match="by must be the name of a column"):
        groups_of(FRAME, ["sex"])
    with pytest.raises(hk.DataError, match="every row with 'sex' = 'f' has weight zero"):
        groups_of(FRAME, "sex", np.array([1.0, 0.0, 0.0, 1.0]))
