"""Parquet files are scored in blocks, with the numbers of a table that is read as a whole."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command_line import run

N, BLOCK = 450, 100


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("heckesel.cli.scoring.ROWS_AT_ONCE", BLOCK)


def drawn(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z, u, e = rng.normal(size=(4, N))
    kind = rng.choice(["a", "b", "c"], N)
    y = 1 + x + (kind == "b") + 0.6 * u + 0.8 * e
    return pd.DataFrame({"x": x, "kind": kind, "z": z, "y": np.where(x + z + u > 0, y, np.nan)})


def fitted(folder, capsys, *options):
    path, model = folder / "train.parquet", folder / "model.heckesel"
    drawn().to_parquet(path)
    roles = ["--outcome", "y", "--instruments", "z", "--method", "two-step", "--out", model]
    assert run(capsys, "fit", path, *roles, *options).code == 0
    return model


def scored(capsys, folder, model, rows: pa.Table, *options):
    """The rows as scored from Parquet to Parquet and from Parquet to CSV, and what was said."""
    pq.write_table(rows, folder / "rows.parquet", row_group_size=70)
    shown = [
        run(capsys, "predict", model, folder / "rows.parquet", "--out", folder / out, *options)
        for out in ("out.parquet", "out.csv")
    ]
    return *shown, pq.read_table(folder / "out.parquet"), pd.read_csv(folder / "out.csv")


@pytest.mark.parametrize("target", ["population", "unselected"])
def test_blocks_give_the_predictions_and_notes_of_the_whole_table(target, tmp_path, capsys):
    model, rows = fitted(tmp_path, capsys), drawn(1).drop(columns="y")
    number = pd.array(np.arange(N), dtype="Int64")
    number[[5, 444]] = pd.NA
    rows = rows.assign(number=number, x=rows["x"].astype(str))
    rows.loc[rows.index[[120, 310]], "kind"] = ["new", "newer"]
    rows.loc[rows.index[[30, 320]], "z"] = np.nan
    rows.loc[rows.index[250], "x"] = "lots"
    given = pa.Table.from_pandas(rows, preserve_index=False)
    blocks, whole, found, expected = scored(capsys, tmp_path, model, given, "--target", target)
    assert (blocks.code, whole.code) == (1, 1)
    assert [line for line in blocks.err.splitlines() if line.startswith("note")] == [
        line for line in whole.err.splitlines() if line.startswith("note")
    ]
    assert "kind: 2 rows have a level that did not occur in the fit (new, newer)" in blocks.err
    assert "1 of 450 rows could not be predicted" in blocks.err
    assert found.select(given.column_names).equals(given)  # its types, too
    for name in ("mean", "std", "low", "high"):
        np.testing.assert_allclose(found[name].to_numpy(), expected[name], rtol=1e-12)
        assert found[name].null_count == 1
    reasons = found["reason"].to_pylist()
    assert [at for at, reason in enumerate(reasons) if reason is not None] == [250]
    assert reasons[250] == "x is 'lots', not a finite number"


def test_an_error_in_a_late_block_names_the_row_and_leaves_no_file(tmp_path, capsys):
    model, rows = fitted(tmp_path, capsys, "--on-problem", "error"), drawn(1)
    rows.loc[rows.index[420], "x"] = np.nan
    rows.to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out.parquet"
    shown = run(capsys, "predict", model, tmp_path / "rows.parquet", "--out", out)
    assert shown.code == 2
    assert (
        "counting rows from its row 400: column 'x' is missing (NaN) in 1 row (first: row 20)"
        in shown.err
    )
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == []
