"""ONNX files, run by onnxruntime, say what `predict` says."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import heckesel as hk
from heckesel import atomic_files as atomic
from heckesel.data import selection_data
from tests.small_models import (
    MODELS,
    NUMBERS,
    SMALL,
    N,
    X,
    Y,
    averaged_with_splines,
    fitted,
    heavy_tailed,
    with_splines,
)

onnxruntime = pytest.importorskip("onnxruntime")

PLAIN = {"epochs": 12, "n_members": 2, "hidden": (6,), "progress": False}
# Nine sums of up to a hundred float32 products, each rounded at 6e-8: a few 1e-6 of y's spread.
SINGLE = 5e-6


WITHOUT_GRAPH = ("joint shape", "joint scale", "profile shape and scale")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def run(path, table):
    """mean and std that onnxruntime finds for a frame, and what the file says about itself."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    feed = {
        name: table[[name]].astype(object).fillna("").to_numpy()
        for name in json.loads(about["text_columns"])
    }
    numbers = json.loads(about["columns"])
    if numbers:
        feed["X"] = table[numbers].to_numpy(dtype=np.float32, na_value=np.nan)
    return (*session.run(["mean", "std"], feed), about)


def check_same(model, table, path):
    model.export_onnx(path)
    mean, std, about = run(path, table)
    expected, expected_std = model.predict(table, return_std=True)
    assert mean.shape == std.shape == (len(table),)
    np.testing.assert_allclose(mean, expected, rtol=SINGLE, atol=SINGLE * np.std(expected))
    np.testing.assert_allclose(std, expected_std, rtol=SINGLE)
    return about


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITHOUT_GRAPH])
def test_every_model_predicts_the_same_in_onnxruntime(name, path):
    model, _ = fitted(name)
    about = check_same(model, X, path)
    assert about["model"] == type(model).__name__
    assert about["verdict"] == model.identification_.verdict
    assert json.loads(about["columns"]) == ["x", "flag", "gaps"]
    assert json.loads(about["text_columns"]) == ["größe"]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "profile", "target_transform": "log", "folds": 2, "n_members": 5},
        {"method": "averaged", "target_transform": "log", "folds": 2, "tails": "normal"},
        {"method": "joint", "folds": 2, "noise": "auto"},
        {"dtype": "float64", "hidden": (5, 4, 3)},
    ],
    ids=str,
)
def test_every_option_of_the_noise_and_the_target_is_exported(options, path):
    y = np.exp(Y / 4) if options.get("target_transform") else Y
    model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | SMALL | options).fit(X, y)
    check_same(model, X, path)


@pytest.mark.parametrize("selected", [True, False])
def test_tails_are_named_with_their_degrees_of_freedom(selected, path):
    table, y = X[["x", "z"]], heavy_tailed(Y if selected else X["x"])
    options = SMALL | {"folds": 2, "tails": "auto", "noise": "auto", "epochs": 60}
    model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | options).fit(table, y)
    about = check_same(model, table, path)
    assert (about["distribution"], float(about["df"])) == ("t", model.info_["tail_df"])


@pytest.mark.parametrize("kind", [hk.DeepEnsembleRegressor, hk.WeightedEnsembleRegressor])
def test_the_baselines_on_a_log_scale_are_exported(kind, path):
    about = check_same(kind(**SMALL, target_transform="log").fit(X, np.exp(Y / 4)), X, path)
    assert about["distribution"] == "log-normal"


def test_a_network_of_the_usual_size_loses_no_more(path):
    draw = hk.datasets.make_controlled(600, rho=0.9, alpha=1.0, seed=1)
    table, y = draw.frame[["x", "z"]], draw.frame["y"]
    options = {"instruments": ["z"], "epochs": 60, "n_members": 5, "progress": False}
    for method in ("two-step", "profile"):
        check_same(hk.DeepHeckmanRegressor(method=method, **options).fit(table, y), table, path)


@pytest.mark.parametrize("interactions", [(), "all"], ids=str)
def test_exported_splines_agree_between_on_and_beyond_their_knots(interactions, path):
    model = with_splines(interactions)
    basis, scaling = model.fitted_.basis, model.fitted_.scaling
    knots = [np.unique(curve.knots) for curve in basis.curves if curve]
    on = np.column_stack([np.resize(each, 2 * len(knots[0])) for each in knots])
    on = on * scaling.x_scale[:2] + scaling.x_centre[:2]
    beyond = pd.DataFrame(on, columns=["x", "wave"]).assign(flag=0.0, z=0.0)
    check_same(model, pd.concat([NUMBERS, beyond, 3 * beyond]).astype("float32"), path)


def test_an_average_with_splines_is_exported(path):
    model, table = averaged_with_splines(), NUMBERS[["x", "wave", "z"]].astype("float32")
    assert check_same(model, table, path)["distribution"] == "mixture of normals"


def test_an_average_with_the_tails_of_a_t_names_both(path):
    table, options = X[["x", "z"]], SMALL | {"method": "averaged", "folds": 2, "epochs": 60}
    model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | options).fit(table, heavy_tailed(Y))
    about = check_same(model, table, path)
    assert about["distribution"] == "mixture of normals and a t"
    assert float(about["df"]) == model.info_["tail_df"]


@pytest.mark.parametrize("errors", ["normal", "t", "shape"])
def test_other_error_models_of_a_linear_fit_are_exported(errors, path):
    table, y = X[["x", "z"]], heavy_tailed(Y)
    model = hk.HeckmanRegressor(["z"], method="ml", errors=errors).fit(table, y)
    check_same(model, table, path)
    assert run(path, table)[-1]["distribution"] == errors
    table = X[["x", "z"]].assign(wave=np.sin(np.arange(N)))
    model.set_params(scale=["wave"]).fit(table, y)
    check_same(model, table, path)
    if errors != "normal":
        with pytest.raises(hk.DataError, match="only for normal errors"):
            model.set_params(target_transform="log").fit(table, np.exp(y)).export_onnx(path)


def test_a_fit_at_the_boundary_and_one_without_selection_are_exported(path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    u = rng.normal(size=60)
    s = table.a + table.b + u > 0
    perfect = hk.HeckmanRegressor(["b"], method="ml").fit(
        table, np.where(s, 1 + table.a + 2 * u, np.nan)
    )
    assert perfect.result_.status == "boundary"
    whole = hk.HeckmanRegressor().fit(table, 1 + table.a + u)
    deep = hk.DeepHeckmanRegressor(**{"method": "two-step"} | PLAIN).fit(table, table.a + u)
    for model in (perfect, whole, deep):
        check_same(model, table, path)


def test_columns_far_from_zero_keep_their_digits(path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"year": rng.integers(1990, 2030, N), "income": 1e6 + rng.normal(size=N)})
    table["z"] = rng.normal(size=N)
    s = table.z + rng.normal(size=N) > 0
    y = 3e4 + 5 * table.year + 100 * (table.income - 1e6) + rng.normal(size=N)
    table["income"] = table["income"].astype(np.float32).astype(float)  # what the file is given
    check_same(hk.HeckmanRegressor(["z"], method="ml").fit(table, y.where(s)), table, path)


def test_a_loaded_model_is_exported_like_the_one_it_was_saved_from(path, tmp_path):
    for name in ("linear", "profile"):
        model, _ = fitted(name)
        model.export_onnx(path)
        before = path.read_bytes()
        model.save(tmp_path / "saved")
        hk.load(tmp_path / "saved").export_onnx(path)
        assert path.read_bytes() == before


def test_an_array_is_exported_without_its_instruments(path):
    values = X[["x", "gaps", "z"]].fillna(0).to_numpy()
    model = hk.HeckmanRegressor([2]).fit(values, Y)
    model.export_onnx(path)
    table = pd.DataFrame(values[:, :2], columns=["x0", "x1"])
    mean, _, about = run(path, table)
    assert json.loads(about["columns"]) == ["x0", "x1"]
    np.testing.assert_allclose(mean, model.predict(values), rtol=0, atol=SINGLE)


def test_text_alone_needs_no_numbers(path):
    table = X[["größe", "z"]]
    check_same(hk.HeckmanRegressor(["z"]).fit(table, Y), table, path)


def test_missing_strings_and_booleans_are_imputed_as_in_the_fit(path):
    row = np.arange(N)
    table = X[["x", "z", "größe"]].copy()
    table["größe"] = table["größe"].where(row % 13 > 0)
    table["flag"] = X["flag"].astype("boolean").where(row % 17 > 0).astype("category")
    model = hk.DeepHeckmanRegressor(
        ["z"], missing="indicator", **{"method": "two-step"} | PLAIN
    ).fit(table, Y)
    check_same(model, table, path)


def test_intervals_follow_from_the_distribution_in_the_metadata(path):
    for name, level in (("two-step", 0.9), ("joint t", 0.8), ("joint log", 0.9)):
        model, _ = fitted(name)
        about = check_same(model, X, path)
        mean, std, _ = run(path, X)
        upper = model.predict_interval(X, level)[:, 1]
        p = (1 + level) / 2
        if about["distribution"] == "t":
            df = float(about["df"])
            found = mean + std * np.sqrt((df - 2) / df) * stats.t.ppf(p, df)
        elif about["distribution"] == "log-normal":
            variance = np.log1p((std / mean) ** 2)
            found = np.exp(np.log(mean) - variance / 2 + np.sqrt(variance) * stats.norm.ppf(p))
        else:
            found = mean + std * stats.norm.ppf(p)
        np.testing.assert_allclose(found, upper, rtol=1e-4, atol=1e-5)


# A row that predict refuses has no number


@pytest.mark.parametrize(
    ("column", "value"),
    [("größe", "c"), ("flag", 2.0), ("flag", np.nan), ("x", np.nan), ("x", np.inf)],
)
@pytest.mark.parametrize("name", ["linear", "two-step", "profile", "linear log"])
def test_a_row_that_predict_refuses_is_nan_and_no_other(name, column, value, path):
    model, _ = fitted(name)
    table = X.head(4).astype({"flag": float})
    table.loc[2, column] = value
    with pytest.raises(hk.DataError):
        model.predict(table.astype({"flag": bool} if column == "x" else {}))
    model.export_onnx(path)
    mean, std, _ = run(path, table)
    assert np.isnan(mean).tolist() == np.isnan(std).tolist() == [False, False, True, False]


def test_a_gap_is_nan_in_splines_too(path):
    with_splines().export_onnx(path)
    table = NUMBERS.head(3).copy()
    table.loc[table.index[1], "wave"] = np.nan
    mean, std, _ = run(path, table)
    assert np.isnan(mean).tolist() == np.isnan(std).tolist() == [False, True, False]


# What cannot be exported


def test_what_a_graph_cannot_hold_is_refused_and_leaves_no_file(path):
    model = hk.HeckmanRegressor(["z"], target_transform=(np.sinh, np.arcsinh))
    model.fit(X[["x", "z"]], np.exp(Y / 4))
    with pytest.raises(hk.DataError, match="made of functions"):
        model.export_onnx(path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("name", "values", "fragment"),
    [
        (
            "day",
            pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"] * (N // 2))),
            "Timestamp",
        ),
        ("code", pd.Categorical([2**24, 2**24 + 1] * (N // 2)), "single precision"),
        ("X", ["a", "b"] * (N // 2), "rename the column"),
        ("note", ["", None, "b"] * (N // 3), "missing values and empty strings"),
    ],
)
def test_a_category_that_onnx_does_not_support_raises_one_sentence(name, values, fragment, path):
    model = hk.HeckmanRegressor(["z"], missing="indicator")
    model.fit(X[["x", "z"]].assign(**{name: values}), Y)
    with pytest.raises(hk.DataError, match=fragment):
        model.export_onnx(path)
    assert not path.exists()


def test_custom_networks_are_refused(path):
    import torch

    from heckesel.methods import own_network
    from heckesel.networks.training.config import NetworkConfig

    inputs = X[["x"]].to_numpy()
    data = selection_data(inputs, X[["x", "z"]].to_numpy(), Y)
    config = NetworkConfig(epochs=2, n_members=1)
    own = own_network.fit(
        lambda seed: torch.nn.Linear(1, 1), inputs.astype(np.float32), data, seed=0, config=config
    )
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | PLAIN).fit(X[["x", "z"]], Y)
    model.fitted_ = own
    with pytest.raises(hk.DataError, match="networks of your own"):
        model.export_onnx(path)


def test_a_model_that_was_not_fitted_is_not_exported(path):
    with pytest.raises(NotFittedError):
        hk.HeckmanRegressor().export_onnx(path)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        fitted("linear")[0].export_onnx(path)
    assert path.read_text() == "old"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_place_where_no_file_can_be_is_one_sentence(tmp_path):
    with pytest.raises(hk.DataError, match="does not exist"):
        fitted("linear")[0].export_onnx(tmp_path / "nowhere" / "model.onnx")


def test_without_onnx_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(hk.HeckeselError, match=r"pip install 'heckesel\[onnx\]'"):
        fitted("linear")[0].export_onnx(path)
    assert not path.exists()


def test_a_linear_model_is_exported_without_torch(path):
    fitted("linear")[0].save(path.with_suffix(".heckesel"))
    code = (
        "import sys, heckesel as hk; hk.load(sys.argv[1]).export_onnx(sys.argv[2]); "
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(path.with_suffix(".heckesel")), str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
    assert path.exists()


@pytest.mark.parametrize(
    "model",
    [
        hk.HeckmanRegressor([2]),
        hk.DeepHeckmanRegressor(
            [2], epochs=100, n_members=3, hidden=(16,), progress=False, method="two-step"
        ),
        hk.DeepHeckmanRegressor(
            [2], method="profile", epochs=100, n_members=5, hidden=(16,), progress=False
        ),
        hk.DeepEnsembleRegressor([2], epochs=100, n_members=3, hidden=(16,), progress=False),
    ],
    ids=["linear", "two-step", "profile", "ensemble"],
)
@pytest.mark.parametrize("missing", ["error", "indicator"])
def test_an_offset_of_1e5_standard_deviations_keeps_the_digits(model, missing, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    u = rng.normal(size=400)
    y = np.where(x @ [0.5, 0, 1] + u > 0, np.sin(2 * x[:, 0]) - x[:, 1] + u, np.nan)
    x[:, 0] += 1e5  # standard deviations
    x[:, 1] = 100 + 1e-3 * x[:, 1]
    x = x.astype(np.float32).astype(float)  # what the file is given
    if missing == "indicator":
        x[rng.random(400) < 0.2, 0] = np.nan
    model = clone(model).set_params(missing=missing).fit(x, y)
    model.export_onnx(tmp_path / "far.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "far.onnx")
    mean, std = session.run(None, {"X": x[:, :2].astype(np.float32)})
    expected, expected_std = model.predict(x, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-5 * np.std(expected))
    np.testing.assert_allclose(std, expected_std, rtol=1e-5)
