"""Fits to Parquet files equal fits in memory, and need no more memory for more rows."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables import column_reader as buffers
from heckesel.tables.column_reader import (
    TableReader,
    learn_table,
    split_row_groups,
    survey,
    together,
)
from heckesel.tables.stream import Part, parquet_parts

pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

N = 1600
COLUMNS = ["a", "b", "site", "z"]
QUICK = {
    "instruments": ["z"],
    "epochs": 4,
    "warm_up": 1,
    "hidden": (8, 8),
    "n_members": 4,
    "batch_size": 256,
    "folds": None,  # which files do not have
    "progress": False,
    "device": "cpu",
    "dtype": "float64",
}


def draw(n=N, seed=0):
    rng = np.random.default_rng(seed)
    a, b, z, u, v = rng.standard_normal((5, n))
    site = rng.choice(list("pqr"), n)
    y = np.sin(a) + 0.5 * b + 0.3 * (site == "q") + 0.6 * u + 0.5 * v
    s = 0.3 + 0.5 * a + 0.8 * z + u > 0
    return pd.DataFrame(
        {
            "y": np.where(s, y, np.nan),
            "a": a,
            "b": 100 * b + 5,
            "site": site,
            "z": z,
            "weight": rng.integers(1, 4, n),
            "s": s.astype(int),
            "filled": np.where(s, np.exp(y), 0.0),
        }
    )


FRAME = draw()
NEW = draw(200, seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    FRAME.to_parquet(folder / "one.parquet")
    FRAME.to_parquet(folder / "many.parquet", row_group_size=300)
    return folder


@pytest.fixture
def small_buffers(monkeypatch):
    monkeypatch.setattr(buffers, "BUFFER_ROWS", 700)


OPTIONS = {
    "two-step": ({}, {}, "one"),
    "several row groups": ({}, {}, "many"),
    "t errors": ({"method": "joint", "errors": "t"}, {}, "one"),
    "joint, weights": ({"method": "joint"}, {"sample_weight": "weight"}, "many"),
    "log scale, indicator": ({"target_transform": "log"}, {"selected": "s"}, "one"),
}


@pytest.mark.parametrize(("options", "sides", "file"), OPTIONS.values(), ids=OPTIONS)
def test_a_file_of_one_buffer_gives_the_same_networks_as_a_frame(folder, options, sides, file):
    y = "filled" if "selected" in sides else "y"
    held = hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK | options)
    held.fit(FRAME[COLUMNS], FRAME[y], **{name: FRAME[column] for name, column in sides.items()})
    streamed = hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK | options)
    streamed.fit(folder / f"{file}.parquet", y, columns=COLUMNS, **sides)
    # moments and the probit are added up in another order: 1e-15, and training makes it 1e-12
    for target in ("population",) if "errors" in options else ("population", "unselected"):
        for part in ("mean", "std"):
            found, expected = (
                getattr(model.predict_distribution(NEW[COLUMNS], target=target), part)
                for model in (streamed, held)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(streamed.rho_, held.rho_, atol=1e-10)
    np.testing.assert_allclose(streamed.sigma_, held.sigma_, rtol=1e-10)
    np.testing.assert_allclose(
        streamed.info_["training_loss"], held.info_["training_loss"], rtol=1e-9
    )
    assert streamed.identification_.verdict == held.identification_.verdict
    np.testing.assert_allclose(
        [
            streamed.identification_.evidence[name]
            for name in ("wald", "rho", "mills_share", "share_beyond_smooth")
        ],
        [
            held.identification_.evidence[name]
            for name in ("wald", "rho", "mills_share", "share_beyond_smooth")
        ],
        rtol=1e-6,
    )
    assert list(streamed.feature_names_in_) == COLUMNS


def test_several_buffers_fit_as_well_as_a_frame(folder, small_buffers):
    """With other batches the networks are others; what they agree on is the function."""
    options = QUICK | {"epochs": 40, "warm_up": 4, "method": "joint"}
    held = hk.DeepHeckmanRegressor(**{"method": "two-step"} | options).fit(
        FRAME[COLUMNS], FRAME["y"]
    )
    one, many, again = (
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | options).fit(
            folder / f"{file}.parquet", "y", columns=COLUMNS
        )
        for file in ("one", "many", "many")
    )
    truth = np.sin(NEW["a"]) + 0.5 * (NEW["b"] - 5) / 100 + 0.3 * (NEW["site"] == "q")

    def error(model):
        return np.sqrt(np.mean((model.predict(NEW[COLUMNS]) - truth) ** 2))

    for model in (one, many):
        assert error(model) < 1.3 * error(held)
        np.testing.assert_allclose(model.rho_.mean(), held.rho_.mean(), atol=0.05)
    np.testing.assert_array_equal(again.predict(NEW), many.predict(NEW))


def _table(path, seed=0):
    parts = parquet_parts(path, rows=1)
    reader = learn_table(
        parts,
        {"y": "y", "selected": None, "sample_weight": "weight"},
        COLUMNS,
        ["z"],
        size=700,
        log=False,
        run=map,
    )
    items = split_row_groups(parts, size=700, seed=seed)
    return reader, items, survey(reader, items, map)


@pytest.mark.parametrize("file", ["one", "many"])
def test_an_epoch_visits_every_row_once_with_all_its_weight(folder, file):
    from heckesel.networks.training.batches import data_scale_from_moments, joint_rows
    from heckesel.networks.training.config import NetworkConfig
    from heckesel.networks.training.streamed import RowsOnDisk, streamed_batches

    reader, items, seen = _table(folder / f"{file}.parquet")
    whole = together(seen)
    scaling = data_scale_from_moments(whole.x, whole.w, whole.y)
    total = FRAME["weight"].sum()
    source = streamed_batches(
        RowsOnDisk(items, reader.read, tuple(part.counts for part in seen)),
        partial(joint_rows, scaling=scaling, total=total),
        seed=4,
        members=range(2, 4),
        config=NetworkConfig(batch_size=256, dtype="float64", device="cpu"),
    )
    s = FRAME["y"].notna()
    epochs = [list(source.batches(epoch)) for epoch in (0, 1)]
    for rows in epochs:
        assert len(rows) == source.steps
        assert len({tuple(part.x.shape) for part in rows}) == 1
        for member in (0, 1):
            weight = torch.cat([part.weight[member] for part in rows])
            y = torch.cat([part.y[member] for part in rows])[weight > 0]
            found = np.sort(y.numpy() * scaling.y_scale + scaling.y_centre)
            np.testing.assert_allclose(found, np.sort(FRAME.loc[s, "y"]), atol=1e-12)
            np.testing.assert_allclose(
                weight.sum(), source.steps * FRAME.loc[s, "weight"].sum() / total
            )
            outside = torch.cat([part.weight_unselected[member] for part in rows])
            np.testing.assert_allclose(
                outside.sum(), source.steps * FRAME.loc[~s, "weight"].sum() / total
            )
    first, second = (rows[0].y for rows in epochs)
    assert not torch.equal(first, second)  # another order in another epoch
    assert not torch.equal(first[0], first[1])  # and for another member


def test_moments_over_buffers_equal_those_of_all_rows(folder):
    from heckesel.networks.training.batches import data_scale_from_moments, data_scale_of

    reader, _, seen = _table(folder / "many.parquet")
    whole = together(seen)
    (data,) = TableReader(reader.columns, "y", None, "weight", 10_000).read(
        parquet_parts(folder / "one.parquet")
    )
    expected, found = data_scale_of(data, True), data_scale_from_moments(whole.x, whole.w, whole.y)
    for name in ("x_centre", "x_scale", "w_centre", "w_scale", "y_centre", "y_scale"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-13
        )


def test_all_row_groups_are_read_in_random_order():
    parts = [Part(f"{k // 10}.parquet", (k % 10,), 0, 100) for k in range(40)]
    items = split_row_groups(parts, size=450, seed=3)
    assert sorted((p.path, p.row_groups) for item in items for p in item) == sorted(
        (p.path, p.row_groups) for p in parts
    )
    assert max(sum(part.rows for part in item) for item in items) <= 450
    neighbours = [parts.index(b) - parts.index(a) == 1 for a, b, *_ in items]
    assert np.mean(neighbours) < 0.5
    assert items == split_row_groups(parts, size=450, seed=3)
    assert items != split_row_groups(parts, size=450, seed=4)


def test_a_level_that_only_the_last_file_has_is_learned(tmp_path):
    frame = FRAME.copy()
    frame.loc[frame.index[-300:], "site"] = "a late one"
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK).fit(
        str(tmp_path / "*.parquet"), "y", columns=COLUMNS
    )
    held = hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK).fit(frame[COLUMNS], frame["y"])
    assert model.columns_.levels == held.columns_.levels
    np.testing.assert_allclose(model.predict(NEW), held.predict(NEW), rtol=1e-9)


def test_a_fit_to_files_is_saved_and_loaded_like_any_other(folder, tmp_path):
    model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK).fit(
        folder / "many.parquet", "y", columns=COLUMNS
    )
    model.save(tmp_path / "m.heckesel")
    loaded = hk.load(tmp_path / "m.heckesel")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert model.log_likelihood(NEW[COLUMNS], NEW["y"]) < 0
    assert str(loaded.identification_) == str(model.identification_)


def test_workers_that_read_the_files_train_the_same_members(folder, small_buffers):
    distributed = pytest.importorskip("distributed")
    torch.set_num_threads(1)  # as a worker has
    here, there = (hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK) for _ in range(2))
    here.fit(folder / "many.parquet", "y", columns=COLUMNS)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there.fit(folder / "many.parquet", "y", columns=COLUMNS, client=client)
    assert there.info_ == here.info_
    np.testing.assert_array_equal(there.predict(NEW), here.predict(NEW))


REFUSED = {
    "no batch size": ({"batch_size": None}, {}, "set batch_size, such as"),
    "profile": ({"method": "profile"}, {}, "method='profile' needs all rows in memory"),
    "folds": ({"folds": 5}, {}, "folds=5 needs all rows in memory"),
    "shape": (
        {"method": "joint", "errors": "shape"},
        {},
        "errors='shape' needs all rows in memory",
    ),
    "scale": ({"method": "joint", "scale": ["a"]}, {}, "scale= needs all rows in memory"),
    "indicator of missing x": ({"missing": "indicator"}, {}, "read the files into a frame"),
    "functions": ({"target_transform": (np.sqrt, np.square)}, {}, "other than 'log' needs all"),
    "a scale to choose": ({"target_transform": "auto"}, {}, "other than 'log' needs all rows"),
    "values for missing": ({"unobserved": 0}, {}, "unobserved needs all rows in memory"),
    "long warm-up": ({"method": "joint", "warm_up": 9}, {}, "holds rho at 0 in all 4 epochs"),
    "t errors in two steps": ({"errors": "t"}, {}, 'supports errors="normal" only'),
    "outcome is an array": ({}, {"y": FRAME["y"]}, "y= must be the name"),
    "weights are an array": ({}, {"sample_weight": np.ones(N)}, "sample_weight= must be the name"),
    "no such outcome": ({}, {"y": "yy"}, "there is no column 'yy'"),
    "no such column": ({}, {"columns": ["a", "bb"]}, "no column 'bb' in the data; did you mean"),
    "outcome in X": ({}, {"columns": [*COLUMNS, "y"]}, "'y' cannot be a column of X as well"),
    "no such instrument": ({"instruments": ["zz"]}, {}, "X has no column 'zz', the instrument"),
    "log of nothing": (
        {"target_transform": "log"},
        {},
        r"in one.parquet: the outcome 'y' is -\d.* needs positive values",
    ),
    "negative weight": (
        {},
        {"sample_weight": "b", "columns": ["a", "z"]},
        "in one.parquet: weights must be finite and not negative",
    ),
    "all have outcomes": ({}, {"y": "filled"}, "every unit was selected"),
    "separating": ({}, {"columns": [*COLUMNS, "filled"]}, "'filled' predicts selection perfectly"),
}


@pytest.mark.parametrize(("options", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_files_do_not_support_are_refused_in_one_sentence(
    folder, options, changes, message
):
    given = {"y": "y", "columns": COLUMNS} | changes
    with pytest.raises(hk.DataError, match=message):
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK | options).fit(
            folder / "one.parquet", **given
        )


def test_columns_are_refused_for_frames_and_a_missing_instrument_warns(folder):
    with pytest.raises(hk.DataError, match="columns= is for files"):
        hk.DeepHeckmanRegressor(**{"method": "two-step"} | QUICK).fit(
            FRAME[COLUMNS], FRAME["y"], columns=["a"]
        )
    with pytest.warns(hk.IdentificationWarning, match="mostly prior"):
        hk.DeepHeckmanRegressor(
            **{"method": "two-step"} | QUICK | {"instruments": None, "epochs": 2}
        ).fit(folder / "one.parquet", "y", columns=["a", "b"])


PROGRAM = """
import sys
import torch
from benchmarks.memory import peak_bytes
from heckesel import DeepHeckmanRegressor
from heckesel.tables import column_reader
column_reader.BUFFER_ROWS = 8192
column_reader.KEPT_ROWS = 500  # a verdict from few rows is quick
model = DeepHeckmanRegressor(
    ["z"], method="two-step", n_members=2, hidden=(8,), epochs=1, batch_size=1024, device="cpu"
)
model.fit(sys.argv[1], "y")
print(peak_bytes())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="VmHWM exists on Linux alone")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    peaks = []
    for rows in (60_000, 260_000):  # above 50,000 rows the probit keeps a sample
        path = tmp_path / f"{rows}.parquet"
        frame = draw(rows)[["y", "a", "b", "z"]]
        frame.to_parquet(path, row_group_size=8192)
        ran = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, check=True)
        peaks.append(int(ran.stdout))
    # 200,000 rows more take 7 MB on disk and, held for training, some 70 MB
    assert peaks[1] - peaks[0] < 25e6
