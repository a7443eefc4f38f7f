"""--categories: numbers that are codes."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml"]
N = 600


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("problem", ["fix", "error"])
def test_codes_are_used_as_categories_in_fit_and_predict(name, problem, tmp_path, capsys):
    draw = hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]
    occupation = np.resize([10, 230, 4700], N)
    table = draw.assign(occupation=occupation, y=draw["y"] + (occupation == 230))
    path, out = tmp_path / name, tmp_path / "m"
    table.to_csv(path, index=False) if name == "t.csv" else table.to_parquet(path)
    typed = ["--categories", "occupation", "--on-problem", problem, "--out", out]
    shown = run(capsys, "fit", path, *ROLES, *typed)
    assert shown.code == 0, shown.err
    labels = table["occupation"].map("o{:04d}".format)
    X = table[["x", "z"]].assign(occupation=labels)
    expected = hk.HeckmanRegressor(["z"], method="ml").fit(X, table["y"])
    found = hk.load(out)
    assert sorted(found.coef_) == pytest.approx(sorted(expected.coef_), rel=1e-9)
    asked = ["--force", "--out", tmp_path / "p.csv"]
    assert run(capsys, "predict", out, path, *asked).code == 0
    mean = pd.read_csv(tmp_path / "p.csv")["mean"]
    np.testing.assert_allclose(mean, expected.predict(X), rtol=1e-9)
