"""A report is about the rows of the fit: others are refused with a sentence."""

import re

import numpy as np
import pytest

import heckesel as hk
from heckesel.errors import DataError
from heckesel.report.report_data import read_report_data
from tests.report.test_page import linear_draw


@pytest.fixture(scope="module")
def models():
    X, y, _ = linear_draw()
    options = {"hidden": (4,), "epochs": 2, "n_members": 2, "folds": None, "progress": False}
    return {
        "linear": hk.HeckmanRegressor(["z"]).fit(X, y),
        "networks": hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | options).fit(X, y),
    }


@pytest.mark.parametrize("kind", ["linear", "networks"])
def test_other_rows_than_those_of_the_fit_are_refused(models, kind):
    X, y, _ = linear_draw()
    sentence = (
        "X has 100 rows but the model was fitted to 600; give the report the rows of the fit, or "
        "fit the model to these rows"
    )
    with pytest.raises(DataError, match=re.escape(sentence)):
        read_report_data(models[kind], X[:100], y[:100])
    assert read_report_data(models[kind], X, y).n == 600


def test_a_loaded_model_has_its_number_of_rows(models, tmp_path):
    X, y, _ = linear_draw()
    for kind, model in models.items():
        model.save(tmp_path / kind)
        with pytest.raises(DataError, match="100 rows but the model was fitted to 600"):
            read_report_data(hk.load(tmp_path / kind), X[:100], y[:100])


def test_weights_that_count_rows_do_not_change_how_many_rows_there_are(tmp_path):
    X, y, _ = linear_draw()
    weight = np.tile([1.0, 3.0, 0.0], 200)
    model = hk.HeckmanRegressor(["z"]).fit(X, y, sample_weight=weight)
    assert model.result_.n == 800
    model.save(tmp_path / "model")
    for one in (model, hk.load(tmp_path / "model")):
        assert read_report_data(one, X, y, sample_weight=weight).n == 600
