"""Error models in the shell: the numbers of the estimators."""

import numpy as np
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "lwage", "--instruments", "age,kidslt6"]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ml", {"errors": "shape", "scale": ["educ", "exper"]}),
        ("ml", {"errors": "t"}),
        ("auto", {}),
    ],
)
def test_a_linear_fit_has_the_numbers_of_the_estimator(method, options, tmp_path, capsys):
    women = hk.datasets.load_mroz()[["lwage", "educ", "exper", "age", "kidslt6"]]
    data, out = tmp_path / "wages.csv", tmp_path / "m"
    women.to_csv(data, index=False)
    arguments = ["--method", f"linear-{method}", "--out", out]
    for name, value in options.items():
        arguments += [f"--{name}", value if isinstance(value, str) else ",".join(value)]
    assert run(capsys, "fit", data, *ROLES, *arguments).code == 0
    model = hk.HeckmanRegressor(["age", "kidslt6"], method=method, **options)
    model.fit(women.drop(columns="lwage"), women["lwage"])
    np.testing.assert_allclose(hk.load(out).result_.params, model.result_.params, rtol=1e-7)


def test_networks_have_the_error_models_of_the_estimator(tmp_path, capsys):
    women = hk.datasets.load_mroz()[["lwage", "educ", "exper", "age", "kidslt6"]][::2]
    data, out = tmp_path / "wages.csv", tmp_path / "m"
    women.to_csv(data, index=False)
    small = ["--members", 2, "--folds", 2, "--epochs", 3, "--device", "cpu"]
    chosen = ["--errors", "shape", "--scale", "educ,exper"]
    arguments = ["--method", "joint", *chosen, *small, "--out", out]
    assert run(capsys, "fit", data, *ROLES, *arguments).code == 0
    model = hk.load(out)
    assert (model.errors, model.scale) == ("shape", ["educ", "exper"])
    assert len(model.info_["error_model"]["scale"]) == 2
    X = women.drop(columns="lwage")
    again = hk.DeepHeckmanRegressor(**model.get_params()).fit(X, women["lwage"])
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-6)


@pytest.mark.parametrize("option", [["--errors", "shape"], ["--scale", "educ"]])
def test_a_method_without_error_models_is_refused_in_one_sentence(option, tmp_path, capsys):
    women = hk.datasets.load_mroz()[["lwage", "educ", "age", "kidslt6"]]
    data, out = tmp_path / "wages.csv", tmp_path / "m"
    women.to_csv(data, index=False)
    said = run(capsys, "fit", data, *ROLES, *option, "--method", "two-step", "--out", out)
    assert said.code == 2
    assert f"{option[0]} needs --method joint, profile or linear-ml" in said.err
    assert not out.exists()
