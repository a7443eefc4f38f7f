"""Columns may have the names that heckesel, formulaic and pandas give to things of theirs."""

import numpy as np
import pytest

import heckesel as hk

NAMES = [
    "select",
    "outcome",
    "mills",
    "lambda",
    "ancillary",
    "Intercept",
    "mean",
    "std",
    "low",
    "high",
    "reason",
    "class",
]
NETWORKS = hk.Networks(n_members=2, hidden=(4,), epochs=3, device="cpu")
MODELS = {
    "linear": (hk.HeckmanRegressor, {}),
    "two-step": (hk.HeckmanRegressor, {"method": "two-step"}),
    "classifier": (hk.HeckmanClassifier, {}),
    "joint": (hk.DeepHeckmanRegressor, {"method": "joint", "networks": NETWORKS}),
    "ensemble": (hk.DeepEnsembleRegressor, {"networks": NETWORKS}),
}
pytestmark = pytest.mark.filterwarnings("ignore")


def drawn(**new):
    draw = hk.datasets.make_controlled(300, rho=0.5, alpha=1.5, seed=3).frame
    return draw[["x", "z", "y"]].rename(columns=new)


def predictions(method, frame, x, z, path):
    """Of a fitted model and of the file it was saved to."""
    kind, options = MODELS[method]
    y, classes = frame["y"], kind is hk.HeckmanClassifier
    y = (y > 0).astype(float).where(y.notna()) if classes else y
    model = kind([z], **options).fit(frame[[x, z]], y)
    model.save(path)
    asked = "predict_proba" if classes else "predict"
    return [
        getattr(each, asked)(frame[[x, z]], target=target)
        for each in (model, hk.load(path))
        for target in ("population", "selected", "unselected")
    ]


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("name", ["select", "Intercept", "lambda"])
def test_a_model_does_not_depend_on_the_names_of_its_columns(name, method, tmp_path):
    expected = predictions(method, drawn(), "x", "z", tmp_path / "m")
    for columns in ({"x": name}, {"z": name}):
        names = {"x": "x", "z": "z"} | columns
        found = predictions(method, drawn(**columns), names["x"], names["z"], tmp_path / "m")
        np.testing.assert_array_equal(found, expected)


def fitted(frame, x, z, y, method):
    fit = hk.heckman(f"`{y}` ~ `{x}`", f"~ `{x}` + `{z}`", frame, method=method)
    by_columns = hk.heckman(y=frame[y], x=frame[[x]], w=frame[[x, z]], method=method)
    assert y in fit.summary()
    assert fit.data.y_name == by_columns.data.y_name == y
    assert list(fit.params.index) == list(by_columns.params.index)
    values = [fit.params, by_columns.params, fit.margins()["effect"]]
    values += [fit.predict(frame, target=target).mean for target in ("population", "selected")]
    values.append(by_columns.predict(x=frame[[x]], w=frame[[x, z]], target="selected").mean)
    return np.concatenate([np.asarray(part) for part in values])


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize("name", NAMES)
def test_a_formula_does_not_depend_on_the_names_of_its_columns(name, method):
    expected = fitted(drawn(), "x", "z", "y", method)
    for role in ("x", "z", "y"):
        names = {"x": "x", "z": "z", "y": "y"} | {role: name}
        found = fitted(drawn(**{role: name}), **names, method=method)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_constant_keeps_its_name_and_a_column_called_so_does_not():
    frame = drawn(x="Intercept")
    fit = hk.heckman("y ~ Intercept", "~ Intercept + z", frame)
    assert list(fit.params["outcome"].index) == ["Intercept", "I(Intercept)"]
    model = hk.HeckmanRegressor(["z"], method="ml").fit(frame[["Intercept", "z"]], frame["y"])
    assert model.coef_names_ == ("I(Intercept)",)
    assert model.intercept_ == pytest.approx(fit.params["outcome", "Intercept"], rel=1e-8)


def test_a_column_called_1_is_not_taken_for_the_constant():
    with pytest.raises(
        hk.DataError, match="a column named 0 or 1 cannot be distinguished from the constant"
    ):
        hk.heckman("y ~ `1`", "~ `1` + z", drawn(x="1"))
