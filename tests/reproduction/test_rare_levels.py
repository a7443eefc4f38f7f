"""The rows below which levels are pooled, and the experiment that chose them."""

import json

import numpy as np
import pytest

from heckesel.tables.preparation.learn_plan import FEWEST_ROWS
from reproduction.simulations import rare_levels


def test_the_default_loses_least_over_the_tables():
    rows = json.loads(rare_levels.RESULTS.read_text())["tables"]
    assert [row["table"] for row in rows] == list(rare_levels.TABLES)
    loss = {key: np.mean([row["loss"][key] for row in rows]) for key in rows[0]["loss"]}
    assert min(loss, key=loss.__getitem__) == str(FEWEST_ROWS)


def test_pooling_helps_if_levels_do_not_differ_and_hurts_if_they_do():
    out = np.arange(rare_levels.N + rare_levels.HELD_OUT) >= rare_levels.N
    few, many = rare_levels.FEWEST[0], rare_levels.FEWEST[-1]
    gain = [
        np.mean(
            [
                rare_levels.held_out(*rare_levels.draw(deviation, number), ["z"], out, many)
                - rare_levels.held_out(*rare_levels.draw(deviation, number), ["z"], out, few)
                for number in range(2)
            ]
        )
        for deviation in (0.0, 1.0)
    ]
    assert gain[0] > 0 > gain[1]


def test_levels_are_as_frequent_as_stated():
    X, _ = rare_levels.draw(0.3, 0)
    share = X["place"].value_counts(normalize=True)
    expected = 1 / sum(1 / j for j in range(1, rare_levels.LEVELS + 1))
    error = np.sqrt(expected * (1 - expected) / len(X))
    assert share["p00"] == pytest.approx(expected, abs=4 * error)
