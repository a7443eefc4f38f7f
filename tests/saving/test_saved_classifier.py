"""Saved classifiers: the same to the last bit, and what a file may not say."""

import numpy as np
import pytest

import heckesel as hk
from heckesel.predictive import TARGETS
from tests.saving.small_classifiers import CLASSIFIERS, fitted
from tests.saving.test_hostile_files import refused_if, set_at

pytestmark = [
    pytest.mark.filterwarnings("ignore::heckesel.errors.IdentificationWarning"),
    pytest.mark.filterwarnings("ignore:.*still improving"),
]


def said(model, columns, y):
    """Everything a model says about X, as arrays."""
    found = {"class": model.predict(columns), "score": model.score(columns, y)}
    found["log-likelihood"] = model.log_likelihood(columns, y)
    nothing = model.identification_.verdict == "nothing to correct"
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
    assert loaded.result_.summary() == model.result_.summary()
    assert loaded.result_.status == model.result_.status
    np.testing.assert_array_equal(loaded.result_.to_frame(), model.result_.to_frame())
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    loaded.save(path)  # and once more


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("linear", set_at("fitted", "classes_", "$array", value=["good", "bad"]), "sorted labels"),
        ("linear", set_at("fitted", "classes_", "$array", value=["bad", 1]), "array of strings"),
        ("linear", set_at("fitted", "classes_", "shape", value=[3]), "do not form"),
        ("linear", set_at("fitted", "result_", "rho", value="high"), "'high' for 'rho'"),
        ("linear", set_at("fitted", "result_", "params", "$series", value=5), "in place of fields"),
    ],
)
def test_an_altered_file_is_refused_with_a_sentence(name, change, message, tmp_path):
    fitted(name)[0].save(tmp_path / "m")
    assert message in refused_if(tmp_path / "m", change)
