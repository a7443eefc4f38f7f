"""No command writes over what it reads, or over what it has just written."""

import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "lwage", "--instruments", "age,kidslt6", "--method", "ml"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "wages.csv"
    columns = ["lwage", "educ", "exper", "age", "kidslt6"]
    hk.datasets.load_mroz()[columns].to_csv(path, index=False)
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "twin.csv").hardlink_to(path)
    (tmp_path / "folder").mkdir()
    return path


def files(folder):
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(capsys, folder, fragment, *arguments):
    before = files(folder)
    shown = run(capsys, *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert fragment in shown.err
    assert shown.err.count("\n") == 1
    assert files(folder) == before


@pytest.mark.parametrize("name", ["wages.csv", "link.csv", "twin.csv", "folder/../wages.csv"])
def test_fit_refuses_to_overwrite_its_table(name, table, tmp_path, capsys):
    place, model = tmp_path / name, tmp_path / "m.heckesel"
    said = f"--out {place} would replace the table {table}, which is read; name another file"
    refused(capsys, tmp_path, said, "fit", table, *ROLES, "--out", place)
    said = f"--report {place} would replace the table {table}, which is read"
    refused(capsys, tmp_path, said, "fit", table, *ROLES, "--out", model, "--report", place)


def test_two_outputs_need_two_files(table, tmp_path, capsys):
    both = tmp_path / "same.html"
    said = f"--report {both} would replace the file of --out; name another file"
    refused(capsys, tmp_path, said, "fit", table, *ROLES, "--out", both, "--report", both)


def test_predict_refuses_to_overwrite_its_table_and_its_model(table, tmp_path, capsys):
    model = tmp_path / "model.csv"  # the name is no matter
    assert run(capsys, "fit", table, *ROLES, "--out", model).code == 0
    for place in ("wages.csv", "link.csv"):
        said = f"would replace the table {table}, which is read"
        refused(capsys, tmp_path, said, "predict", model, table, "--out", tmp_path / place)
    said = f"would replace the model {model}, which is read"
    refused(capsys, tmp_path, said, "predict", model, table, "--out", model)


def test_an_earlier_output_is_overwritten(table, tmp_path, capsys):
    model = tmp_path / "m.heckesel"
    for _ in range(2):
        assert run(capsys, "fit", table, *ROLES, "--out", model).code == 0
