"""Papers with Code: the results that papers reported on benchmarks, as one tidy frame.

Two files, neither of which ships:

* `evaluation-tables.json.gz`, the site's own dump: tasks, their subtasks, each with datasets and
  leaderboard rows. The recorded hash is that of 2020-08-28.
* `results-by-paper.csv.gz`, a flat table of the dump of 2022-11-04 with one line for each
  result: paper, task, dataset, metric, value. It does not say which of a paper's models a
  result belongs to.

Source: the repository paperswithcode/paperswithcode-data on GitHub, which links to the dumps and,
since the site closed, to their archive.
Licence: CC BY-SA.
"""

import io
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.datasets.outside import read_outside
from heckesel.errors import DataError

EVALUATION_TABLES = "pwc/evaluation-tables_2020-08-28.json.gz"
RESULTS_BY_PAPER = "pwc/results-by-paper_2022-11-04.csv.gz"
FILES = {
    EVALUATION_TABLES: "47210c636989a23ae84681535f6f38b3b45af4f6af7218e70337793ff65c1539",
    RESULTS_BY_PAPER: "7d7a9eb81512498bbda326d4793c9f666646860dfeb72cedc84dfe33c17594fc",
}
REPOSITORY = "github.com/paperswithcode/paperswithcode-data"
FLAT_COLUMNS = ["paper", "task", "dataset", "metric", "value"]

# A comma is a thousands separator only in front of exactly three digits and behind a number
# that does not start with 0: some authors write "82,5" and "0,358" for decimals, which are NaN.
NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
VALUE = re.compile(rf"([+-]?{NUMBER})\s*%?\s*(?:\(?\s*(?:±|\+/-|\+-)\s*{NUMBER}\s*%?\s*\)?)?")
ARXIV_MONTH = re.compile(r"(\d\d)(0[1-9]|1[0-2])\.\d{4,5}")


def load_evaluation_tables(path: str | Path | None = None) -> pd.DataFrame:
    """One row per result of the dump: task, dataset, model, metric, value, printed, date.

    value is NaN if `printed`, the string in the dump, is not a number; a warning counts these.
    date is that of the paper, NaT if the dump has none. The dump repeats a task under each of its
    parents; its tables are read once.
    """
    published = (
        f"the dump is published at {REPOSITORY} as evaluation-tables.json.gz and is a JSON list "
        "of tasks with 'task', 'subtasks' and 'datasets', whose 'sota' holds the 'rows'"
    )
    content = read_outside(EVALUATION_TABLES, FILES[EVALUATION_TABLES], path, published=published)
    try:
        # Each table once; tables with the same names but different rows are all kept.
        tables = {(*names, repr(rows)): rows for *names, rows in _tables(json.loads(content))}
        results = [
            (task, dataset, row["model_name"], metric, str(printed), row["paper_date"])
            for (task, dataset, _), rows in tables.items()
            for row in rows
            for metric, printed in row["metrics"].items()
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f"this is not a dump of evaluation tables ({what}); {published}") from None
    frame = pd.DataFrame(results, columns=["task", "dataset", "model", "metric", "printed", "date"])
    frame["date"] = pd.to_datetime(frame["date"])
    return _with_values(frame, "model")


def load_results_by_paper(path: str | Path | None = None) -> pd.DataFrame:
    """One row per result of the flat table: task, dataset, paper, metric, value, printed, date.

    value is NaN if `printed` is not a number; a warning counts these. The table has no dates:
    date is the first day of the month in the paper's arXiv number, NaT if it has none.
    """
    published = (
        f"it is a flat copy of the dump published at {REPOSITORY}, a CSV file with the columns "
        + ", ".join(FLAT_COLUMNS)
    )
    content = read_outside(RESULTS_BY_PAPER, FILES[RESULTS_BY_PAPER], path, published=published)
    frame = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    missing = [name for name in FLAT_COLUMNS if name not in frame.columns]
    if missing:
        raise DataError(f"the table has no column {missing[0]!r}; {published}")
    frame = frame[FLAT_COLUMNS].rename(columns={"value": "printed"})
    frame["date"] = pd.to_datetime(frame["paper"].map(_arxiv_month))
    return _with_values(frame, "paper")


def parse_value(text: str) -> float:
    """The number in a printed result, without its per cent sign or its ± part; else NaN.

    Nothing is converted: "84.5%" is 84.5 and "0.845" is 0.845.
    """
    found = VALUE.fullmatch(text.strip().replace("−", "-"))
    return float(found[1].replace(",", "")) if found else np.nan


def _with_values(frame: pd.DataFrame, unit: str) -> pd.DataFrame:
    frame["value"] = frame["printed"].map(parse_value).astype(float)
    unread = frame["printed"][frame["value"].isna()]
    if len(unread):
        warnings.warn(
            f"{len(unread)} of {len(frame)} results are not numbers (most often "
            f"{unread.mode()[0]!r}); their value is missing and 'printed' holds the string",
            stacklevel=3,
        )
    return frame[["task", "dataset", unit, "metric", "value", "printed", "date"]]


def _tables(tasks: list[dict]) -> Iterator[tuple[str, str, list[dict]]]:
    """(task, dataset, leaderboard rows), tasks before their subtasks."""
    for task in tasks:
        for dataset, rows in _leaderboards(task["datasets"]):
            yield task["task"], dataset, rows
        yield from _tables(task["subtasks"])


def _leaderboards(datasets: list[dict]) -> Iterator[tuple[str, list[dict]]]:
    for dataset in datasets:
        yield dataset["dataset"], dataset["sota"]["rows"]
        yield from _leaderboards(dataset["subdatasets"])


def _arxiv_month(paper: str) -> str | None:
    """2018-02-01 for 1802.05415v2.pdf."""
    found = ARXIV_MONTH.match(paper)
    return f"20{found[1]}-{found[2]}-01" if found else None
