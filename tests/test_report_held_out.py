"""The check on cases left out: every method can be refitted for it, and what it says is true."""

import pytest

import heckesel as hk
from heckesel.datasets.controlled import make_controlled
from heckesel.report.comparison import compare, has_t_errors
from heckesel.report.held_out import Calibration, NotChecked, check_held_out, smaller
from heckesel.report.table import read_rows

SMALL = {"hidden": (8,), "epochs": 20, "progress": False}


def draw(n=300):
    frame = make_controlled(n, rho=0.9, alpha=1.0, seed=1).frame
    return frame[["x", "z"]], frame["y"]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"method": "profile", "folds": 5}, 5),
        ({"method": "profile", "folds": 3, "n_members": 4}, 3),
        ({"method": "averaged", "folds": 5}, 5),
        ({"method": "two-step", "folds": 5, "n_members": 2}, 2),
        ({"method": "two-step", "folds": None}, 2),
        ({"method": "two-step", "folds": None, "n_members": 1}, 1),
        ({"method": "two-step", "folds": 3, "selection": "network"}, 3),
    ],
)
def test_every_method_can_be_refitted_for_the_check_whatever_its_folds(options, size):
    X, y = draw()
    model = hk.DeepHeckmanRegressor(["z"], **options, **SMALL).fit(X, y)
    found = check_held_out(model, read_rows(model, X, y))
    assert isinstance(found, Calibration)
    assert f"as an ensemble of {size}," in found.how


def test_members_of_the_refit_see_the_share_of_rows_that_those_of_the_model_saw():
    model = hk.DeepHeckmanRegressor(["z"])  # on folds from 100 selected rows on
    assert (smaller(model, 500).folds, smaller(model, 50).folds) == (5, None)
    assert model.folds == "auto"


@pytest.mark.parametrize("errors", ["t", "auto"])
def test_t_errors_are_seen_where_they_were_chosen_too(errors, monkeypatch):
    X, y = draw()
    options = SMALL | {"method": "joint", "errors": "t", "n_members": 2, "tails": "normal"}
    model = hk.DeepHeckmanRegressor(["z"], **options).fit(X, y)
    model.errors = errors  # "auto" that chose t leaves the same fit
    assert has_t_errors(model)
    table = read_rows(model, X, y)
    found = check_held_out(model, table)
    assert isinstance(found, NotChecked)
    assert "t errors" in found.reason
    assert compare(model, table, baseline=model).unobserved.unselected is None


def test_a_prediction_that_fails_is_not_taken_for_one_that_is_not_there(monkeypatch):
    X, y = draw()
    model = hk.HeckmanRegressor(["z"]).fit(X, y)
    predict = hk.HeckmanRegressor.predict_distribution

    def broken(self, X, target="population"):
        if target == "unselected":
            raise hk.DataError("a column is gone")
        return predict(self, X, target=target)

    monkeypatch.setattr(hk.HeckmanRegressor, "predict_distribution", broken)
    with pytest.raises(hk.DataError, match="a column is gone"):
        compare(model, read_rows(model, X, y))
