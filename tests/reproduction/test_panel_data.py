"""Benchmark panels are read as they are written; what is missing or unreadable is said."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckesel.errors import DataError
from reproduction.outside import (
    PAPERS_FILES,
    RESULTS_BY_PAPER,
    TEST_SETS,
    TIMM_FILES,
    load_evaluation_tables,
    load_results_by_paper,
    load_timm_results,
    parse_value,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("HECKESEL_DATA"),
    reason="HECKESEL_DATA does not name a folder with the benchmark files, which do not ship",
)


def leaderboard(name, *rows):
    """rows : (model, date, metrics)"""
    rows = [
        {"model_name": model, "paper_date": date, "metrics": metrics, "paper_title": "A paper"}
        for model, date, metrics in rows
    ]
    return {"dataset": name, "sota": {"metrics": [], "rows": rows}, "subdatasets": []}


def task(name, datasets=(), subtasks=()):
    return {"task": name, "datasets": list(datasets), "subtasks": list(subtasks)}


DIGITS = leaderboard(
    "Digits", ("Net", "2019-05-01", {"Accuracy": "84.5%", "PARAMS": "24M"}), ("Old", None, {})
)
LETTERS = leaderboard("Letters", ("Net", None, {"Accuracy": "0.7 ± 0.1"}))
READING = task("Reading", [DIGITS], [task("Fine Reading", [LETTERS])])
DUMP = [READING, task("Seeing", [], [READING])]  # a task may be listed under several parents


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_the_dump_is_read_through_subtasks_and_each_table_once(tmp_path, packed):
    content = json.dumps(DUMP).encode()
    path = tmp_path / "evaluation-tables.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.warns(UserWarning, match=r"1 of 3 results are not numbers \(most often '24M'\)"):
        frame = load_evaluation_tables(path)
    assert list(frame.columns) == [
        *("task", "dataset", "model", "metric", "value", "printed", "date")
    ]
    found = frame[["task", "dataset", "model", "metric", "printed"]].to_numpy().tolist()
    assert found == [
        ["Reading", "Digits", "Net", "Accuracy", "84.5%"],
        ["Reading", "Digits", "Net", "PARAMS", "24M"],
        ["Fine Reading", "Letters", "Net", "Accuracy", "0.7 ± 0.1"],
    ]
    np.testing.assert_array_equal(frame["value"], [84.5, np.nan, 0.7])
    assert frame["date"].dt.strftime("%Y-%m-%d").fillna("none").tolist() == [
        *("2019-05-01", "2019-05-01", "none")
    ]


def test_tables_of_one_name_with_other_rows_are_all_kept(tmp_path):
    other = leaderboard("Digits", ("Late", "2020-01-01", {"Accuracy": "90"}))
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([READING, task("Reading", [other])]))
    with pytest.warns(UserWarning, match="not numbers"):
        frame = load_evaluation_tables(path)
    assert frame["model"][frame["dataset"] == "Digits"].tolist() == ["Net", "Net", "Late"]


def test_the_flat_table_takes_its_dates_from_arxiv_numbers(tmp_path):
    path = tmp_path / "flat.csv"
    path.write_text(
        "paper,task,dataset,metric,value\n"
        "1802.05415v2.pdf,Reading,Digits,Accuracy,88.86%\n"
        "thesis.pdf,Reading,Digits,Accuracy,NA\n"
    )
    with pytest.warns(UserWarning, match="1 of 2"):
        frame = load_results_by_paper(path)
    assert list(frame.columns) == [
        *("task", "dataset", "paper", "metric", "value", "printed", "date")
    ]
    assert frame["printed"].tolist() == ["88.86%", "NA"]
    assert frame["date"][0] == pd.Timestamp(2018, 2, 1)
    assert pd.isna(frame["date"][1])


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        *(("84.5%", 84.5), (" .5 ", 0.5), ("-1e-3", -0.001), ("−2", -2.0), ("7.39±0.61", 7.39)),
        *(("2.42 (±0.72)", 2.42), ("1,400,000", 1.4e6), ("2,570.2", 2570.2)),
        *(("82,5", np.nan), ("0,358", np.nan), ("24M", np.nan), ("-", np.nan), ("", np.nan)),
        *(("44.4 / 50.8", np.nan), ("47.6 (Titan X)", np.nan), ("nan", np.nan)),
    ],
)
def test_printed_values_are_numbers_or_missing_and_never_guessed(printed, value):
    np.testing.assert_equal(parse_value(printed), value)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (load_evaluation_tables, ["paperswithcode-data", "JSON list of tasks"]),
        (load_results_by_paper, ["paperswithcode-data", "paper, task, dataset, metric, value"]),
        (load_timm_results, ["pytorch-image-models", "model, img_size and top1"]),
    ],
)
def test_without_the_data_the_error_says_where_it_is_and_what_it_holds(monkeypatch, load, words):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    with pytest.raises(DataError, match="set HECKESEL_DATA to that folder") as refused:
        load()
    for word in words:
        assert word in str(refused.value)


def test_another_file_under_the_recorded_name_is_refused(monkeypatch, tmp_path):
    (tmp_path / "pwc").mkdir()
    (tmp_path / RESULTS_BY_PAPER).write_text("paper,task,dataset,metric,value\n")
    monkeypatch.setenv("HECKESEL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"instead of {PAPERS_FILES[RESULTS_BY_PAPER]}"):
        load_results_by_paper()
    assert len(load_results_by_paper(tmp_path / RESULTS_BY_PAPER)) == 0


def test_files_that_are_something_else_are_refused(tmp_path):
    path = tmp_path / "other"
    path.write_text('[{"task": "Reading"}]')
    with pytest.raises(DataError, match=r"not a dump of evaluation tables \(KeyError: 'datasets'"):
        load_evaluation_tables(path)
    path.write_text("paper,task\n")
    with pytest.raises(DataError, match="no column 'dataset'"):
        load_results_by_paper(path)
    with pytest.raises(DataError, match="cannot be read"):
        load_results_by_paper(tmp_path / "nowhere")


def test_timm_files_become_one_row_for_each_model_and_size(tmp_path):
    for place, name in enumerate(TEST_SETS.values()):
        extra = "b,224,9.0\n" if place else ""
        (tmp_path / name).write_text(f"model,img_size,top1\na,288,{place}.5\na,224,1.0\n{extra}")
    frame = load_timm_results(tmp_path)
    assert frame.index.tolist() == [("a", 224), ("a", 288), ("b", 224)]
    assert frame.loc[("a", 288)].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert frame.isna().sum().tolist() == [1, 0, 0, 0, 0, 0]
    (tmp_path / "results-sketch.csv").write_text("model,img_size,top1\na,224,1\na,224,2\n")
    with pytest.raises(DataError, match=r"results-sketch.csv lists a at image size 224 twice"):
        load_timm_results(tmp_path)


@needs_data
def test_the_files_in_the_data_folder_are_the_recorded_ones():
    folder = Path(os.environ["HECKESEL_DATA"])
    for name, sha256 in (PAPERS_FILES | TIMM_FILES).items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256, name
