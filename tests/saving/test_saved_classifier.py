"""Saved classifiers: the same to the last bit, and what a file may not say."""

import subprocess
import sys
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.predictive.distribution import TARGETS
from heckesel.saving.model_file import read_model, write_model
from tests.saving.small_classifiers import CLASSIFIERS, NETWORK, fitted
from tests.small_models import N, X
from tests.small_models import fitted as fitted_regressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::heckesel.errors.IdentificationWarning"),
    pytest.mark.filterwarnings("ignore:.*still improving"),
]


def said(model, columns, y):
    """Everything a model says about X, as arrays."""
    found = {"class": model.predict(columns), "score": model.score(columns, y)}
    found["log-likelihood"] = model.log_likelihood(columns, y)
    nothing = model.identification_.verdict == "no selection"
    for target in TARGETS[:1] if nothing else TARGETS:
        found[target] = model.predict_proba(columns, target)
        found[f"{target} interval"] = model.predict_proba_interval(columns, 0.8, target)
    return found


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_loaded_classifier_predicts_bit_identically(name, tmp_path):
    model, columns, y = fitted(name)
    path = tmp_path / "m.heckesel"
    model.save(path)
    loaded = hk.load(path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert repr(loaded.identification_) == repr(model.identification_)
    before, after = said(model, columns, y), said(loaded, columns, y)
    for what in before:
        np.testing.assert_array_equal(before[what], after[what], err_msg=what)
    np.testing.assert_array_equal(loaded.rho_, model.rho_)
    if model.outcome == "linear":
        assert loaded.result_.summary() == model.result_.summary()
        assert loaded.result_.status == model.result_.status
        np.testing.assert_array_equal(loaded.result_.to_frame(), model.result_.to_frame())
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
    else:
        assert loaded.info_ == model.info_
    loaded.save(path)  # and once more


@pytest.mark.parametrize("name", ["linear", "networks"])
def test_no_row_of_the_data_is_in_the_file(name, tmp_path):
    from safetensors.numpy import load_file

    model, *_ = fitted(name)
    model.save(tmp_path / "m")
    assert all(N not in tensor.shape for tensor in load_file(tmp_path / "m").values())


def test_a_linear_classifier_needs_no_torch(tmp_path):
    path = tmp_path / "m"
    fitted("linear")[0].save(path)
    code = (
        "import sys, heckesel as hk; m = hk.load(sys.argv[1]); m.save(sys.argv[1]); "
        "print('torch' in sys.modules, m.rho_)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["False", str(fitted("linear")[0].rho_)]


def change(content, path, value):
    *outer, last = path
    for key in outer:
        content = content[key]
    content[last] = value


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("linear", ["state", "classes"], ["good", "bad"], "not two sorted labels"),
        ("linear", ["state", "classes"], ["bad", 1], "not two sorted labels"),
        ("linear", ["state", "classes"], ["a", "b", "c"], "not two sorted labels"),
        ("linear", ["state", "result", "rho"], 1.5, "has a correlation of 1.5"),
        ("linear", ["state", "result", "status"], "fine", "holds 'fine' for 'status'"),
        ("linear", ["state", "result", "params"], np.zeros(3), r"has shape \(3,\)"),
        ("linear", ["parameters", "outcome"], "network", "lacks 'fitted'"),
        ("networks", ["parameters", "outcome"], "linear", "lacks 'result'"),
        ("networks", ["state", "fitted", "kind"], "RhoMixture", "holds 'RhoMixture'"),
        ("networks", ["state", "fitted", "weight"], np.array([-1.0]), "not positive"),
        ("networks", ["state", "fitted", "weight"], np.ones(7) / 7, "has shape"),
        ("networks", ["state", "fitted", "members", "theta"], np.zeros((2, 9)), "weights"),
    ],
)
def test_an_altered_file_is_refused_with_a_sentence(name, path, value, message, tmp_path):
    file = tmp_path / "m.heckesel"
    fitted(name)[0].save(file)
    content = read_model(file)
    change(content, path, value)
    write_model(file, content)  # with a checksum that fits
    with pytest.raises(hk.DataError, match=message):
        hk.load(file)


def test_rho_beyond_one_is_refused(tmp_path):
    file = tmp_path / "m.heckesel"
    fitted("networks")[0].save(file)
    content = read_model(file)
    fields = content["state"]["fitted"]
    fields["rho"] = np.full_like(fields["rho"], 1.0)
    write_model(file, content)
    with pytest.raises(hk.DataError, match="a correlation outside"):
        hk.load(file)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    file = tmp_path / "m.heckesel"
    fitted("networks")[0].save(file)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(hk.DataError, match=r"truncated|not a model"):
        hk.load(file)


def test_a_prior_that_is_a_function_is_refused(tmp_path):
    model = hk.HeckmanClassifier(["z"], rho_prior=lambda rho: 1 + rho, **NETWORK)
    _, _, y = fitted("networks")
    with pytest.raises(hk.DataError, match="rho_prior is a function"):
        model.fit(X, y).save(tmp_path / "m")


@pytest.mark.parametrize("name", ["two-step", "ensemble on folds"])
def test_tails_of_regressors_chosen_on_held_out_rows_are_kept(name, tmp_path):
    model = copy(fitted_regressor(name)[0])
    inside = getattr(model.fitted_, "outcome", None)
    model.fitted_ = (
        replace(model.fitted_, tail_df=4.0)
        if inside is None
        else replace(model.fitted_, outcome=replace(inside, tail_df=4.0))
    )
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(
        hk.load(tmp_path / "m").predict_interval(X), model.predict_interval(X)
    )
    normal = fitted_regressor(name)[0].predict_interval(X)
    assert not np.array_equal(model.predict_interval(X), normal)
