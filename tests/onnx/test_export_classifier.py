"""ONNX files of classifiers, run by onnxruntime, say what `predict_proba` says."""

import json

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.saving.small_classifiers import CLASSIFIERS, fitted

onnxruntime = pytest.importorskip("onnxruntime")
SINGLE = 1e-6  # a few roundings of float32 around one


def run(path, table):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    feed = {
        name: table[[name]].astype(object).fillna("").to_numpy()
        for name in json.loads(about["text_columns"])
    }
    numbers = json.loads(about["columns"])
    feed["X"] = table[numbers].to_numpy(dtype=np.float32, na_value=np.nan)
    return session.run(["probabilities"], feed)[0], about


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_predicts_the_same_in_onnxruntime(name, tmp_path):
    model, table, _ = fitted(name)
    model.export_onnx(tmp_path / "model.onnx")
    found, about = run(tmp_path / "model.onnx", table)
    expected = model.predict_proba(table)
    assert found.shape == (len(table), 2)
    # steep separated coefficients multiply the rounding of x
    np.testing.assert_allclose(found, expected, atol=1e-4 if name == "separated" else SINGLE)
    assert json.loads(about["classes"]) == model.classes_.tolist()
    assert about["verdict"] == model.identification_.verdict


def test_columns_far_from_zero_keep_their_digits(tmp_path):
    frame = hk.datasets.make_loans(800, seed=1).frame
    frame["year"] = 2000.0 + np.arange(800) % 8
    X = frame.drop(columns="default")
    model = hk.HeckmanClassifier(["leniency"]).fit(X, frame["default"])
    model.export_onnx(tmp_path / "model.onnx")
    found, _ = run(tmp_path / "model.onnx", X)
    np.testing.assert_allclose(found, model.predict_proba(X), atol=SINGLE)


def test_a_model_with_a_plan_is_refused(tmp_path):
    frame = hk.datasets.make_loans(500, seed=1).frame.assign(one=1.0)
    X = frame.drop(columns="default")
    model = hk.HeckmanClassifier(["leniency"], on_problem="fix")
    with pytest.warns(UserWarning, match="on_problem='fix'"):
        model.fit(pd.DataFrame(X), frame["default"])
    with pytest.raises(hk.DataError, match="fitted with on_problem='fix'"):
        model.export_onnx(tmp_path / "model.onnx")
