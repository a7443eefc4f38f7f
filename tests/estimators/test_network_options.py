"""How the "auto" options of network estimators are resolved."""

import numpy as np
import pytest

import heckesel as hk
from heckesel.estimators.network_options import network_config

DEEP, PLAIN = hk.DeepHeckmanRegressor, hk.DeepEnsembleRegressor
RESOLVED = ("folds", "n_members", "noise", "tails", "selection", "errors", "weight_decay", "scale")
ALL = (5, 10, "auto", "auto", "linear")
ONE_NORMAL = (5, 10, "constant", "normal", "linear")


def resolved(*given, errors="normal", weight_decay=1e-5, scale=()):
    """Every option that may be "auto", in the order of RESOLVED; the last three have defaults."""
    return (*given, *(errors, weight_decay, scale)[len(given) - 5 :])


def options_of(model, selected):
    config = network_config(model, selected)
    return tuple(getattr(config, name) for name in RESOLVED)


@pytest.mark.parametrize(
    ("model", "selected", "expected"),
    [
        (DEEP(method="two-step"), 100, ALL),
        (DEEP(method="two-step"), 99, (None, 5, "constant", "normal", "linear")),
        (
            DEEP(method="two-step", folds=None),
            5000,
            (None, 5, "constant", "normal", "linear"),
        ),
        (DEEP(method="two-step", folds=4), 30, (4, 10, "auto", "auto", "linear")),
        (DEEP(method="two-step", n_members=3), 500, (3, 3, "auto", "auto", "linear")),
        (
            DEEP(method="two-step", n_members=1),
            500,
            (None, 1, "constant", "normal", "linear"),
        ),
        (
            DEEP(method="two-step", noise="varying", tails="normal"),
            500,
            (5, 10, "varying", "normal", "linear"),
        ),
        (
            DEEP(method="two-step", target_transform="log"),
            500,
            (5, 10, "auto", "normal", "linear"),
        ),
        (DEEP(method="joint", errors="t"), 500, (*ONE_NORMAL, "t")),
        (DEEP(method="joint", errors="auto"), 500, (*ONE_NORMAL, "auto")),
        (
            DEEP(method="joint", errors="auto", target_transform="log"),
            500,
            (5, 10, "auto", "normal", "linear"),
        ),
        (
            DEEP(method="two-step", selection="auto"),
            500,
            (5, 10, "auto", "auto", "auto"),
        ),
        (
            DEEP(method="two-step", selection="auto"),
            50,
            (None, 5, "constant", "normal", "linear"),
        ),
        (DEEP(selection="auto", method="joint"), 500, ALL),
        (PLAIN(), 100, (5, 10, "constant", "auto", "linear")),
        (PLAIN(folds=None), 100, (None, 5, "constant", "normal", "linear")),
    ],
)
def test_auto_options_are_resolved_by_method_and_number_of_rows(model, selected, expected):
    assert options_of(model, selected) == resolved(*expected)


def test_t_errors_on_the_log_scale_are_refused():
    with pytest.raises(hk.DataError, match="no finite mean"):
        network_config(DEEP(method="joint", errors="t", target_transform="log"), 500)


@pytest.mark.parametrize(("members", "folds"), [(None, 5), (10, 5), (4, 4), (1, 2)])
def test_profile_always_uses_folds(members, folds):
    found = options_of(DEEP(method="profile", n_members=members), 20)
    assert found == resolved(
        folds, members or 20, "constant", "normal", "linear", weight_decay=1e-3
    )


def test_the_defaults_are_those_of_the_experiment():
    from reproduction.x4_calibrated import NETWORK

    names = ("folds", "n_members", "noise", "tails", "selection")
    assert tuple(getattr(NETWORK, name) for name in names) == ALL
    assert NETWORK.weight_decay == 1e-5


def test_a_small_and_a_larger_table_are_fitted_as_the_options_say():
    frame = hk.datasets.make_controlled(400, rho=0.5, alpha=1.0, seed=1).frame
    small = {"epochs": 20, "hidden": (8,), "progress": False}
    for rows, on_folds in ((400, True), (120, False)):
        model = DEEP(["z"], method="two-step", **small).fit(
            frame[["x", "z"]][:rows], frame["y"][:rows]
        )
        assert ("held_out_loss" in model.info_) == on_folds
        assert len(model.rho_) == (10 if on_folds else 5)
        assert np.isfinite(model.predict_interval(frame[["x", "z"]])).all()
