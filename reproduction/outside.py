"""Data files that do not ship, read from the folder in the variable HECKESEL_DATA.

Papers with Code: the results that papers reported on benchmarks, as one tidy frame.

Two files, neither of which ships:

* `evaluation-tables.json.gz`, the site's own dump: tasks, their subtasks, each with datasets and
  leaderboard rows. The recorded hash is that of 2020-08-28.
* `results-by-paper.csv.gz`, a flat table of the dump of 2022-11-04 with one line for each
  result: paper, task, dataset, metric, value. It does not say which of a paper's models a
  result belongs to.

Source: the repository paperswithcode/paperswithcode-data on GitHub, which links to the dumps and,
since the site closed, to their archive.
Licence: CC BY-SA.

timm: top-1 accuracy of some 1500 pretrained image models on six ImageNet test sets.

Source: the folder `results` of huggingface/pytorch-image-models on GitHub, the validation results
of its models, one CSV file for each test set. The files do not ship.
Licence: Apache 2.0.

Nearly every model was evaluated on every test set, so the results that selective reporting would
omit are known.
"""

import gzip
import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.errors import DataError

VARIABLE = "HECKESEL_DATA"
GZIP_MAGIC = b"\x1f\x8b"
EVALUATION_TABLES = "pwc/evaluation-tables_2020-08-28.json.gz"
RESULTS_BY_PAPER = "pwc/results-by-paper_2022-11-04.csv.gz"
PAPERS_FILES = {
    EVALUATION_TABLES: "47210c636989a23ae84681535f6f38b3b45af4f6af7218e70337793ff65c1539",
    RESULTS_BY_PAPER: "7d7a9eb81512498bbda326d4793c9f666646860dfeb72cedc84dfe33c17594fc",
}
REPOSITORY = "github.com/paperswithcode/paperswithcode-data"
FLAT_COLUMNS = ["paper", "task", "dataset", "metric", "value"]

# A comma is a thousands separator only in front of exactly three digits and behind a number
# that does not start with 0: some authors write "82,5" and "0,358" for decimals, which are NaN.
NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
VALUE = re.compile(rf"([+-]?{NUMBER})\s*%?\s*(?:\(?\s*(?:±|\+/-|\+-)\s*{NUMBER}\s*%?\s*\)?)?")
ARXIV_MONTH = re.compile(r"^(\d\d)(0[1-9]|1[0-2])\.\d{4,5}")
TEST_SETS = {
    "imagenet": "results-imagenet.csv",
    "imagenet-real": "results-imagenet-real.csv",
    "imagenetv2": "results-imagenetv2-matched-frequency.csv",
    "sketch": "results-sketch.csv",
    "imagenet-a": "results-imagenet-a.csv",
    "imagenet-r": "results-imagenet-r.csv",
}
TIMM_HASHES = (
    "30972bf7c7ab451bbd4480ec6116b13d0a84441c57bbc946896fd312264acfcd",
    "e94696aed665475e4d0235195733775c5e1b3f36d6f5f7de99f4386e7ed11630",
    "1d066d8897c40224b14f3cf1d02029c49ebdc56b761ba9a3841bd3bdd3bd0a8e",
    "f3176de38d4a26aa808b3d0cc1fee4261268d70b2be7c9d43e65cb03b3864f46",
    "89471dcea0cd98b56211e2b808cb6bbf7b3c8bb4fe691ba58fec1f198e3fcf91",
    "2dcc1f3dea098ffc1080ad04309b11477646f6f25837b041ce6075610f863209",
)
TIMM_FILES = {
    f"timm/{name}": sha for name, sha in zip(TEST_SETS.values(), TIMM_HASHES, strict=True)
}
TIMM_UNIT = ["model", "img_size"]
TIMM_PUBLISHED = (
    "the files are published in the folder results of "
    "github.com/huggingface/pytorch-image-models and are CSV tables with the columns model, "
    "img_size and top1"
)


def read_outside(name: str, sha256: str, path: str | Path | None, *, published: str) -> bytes:
    """The content of `path`, or by default of `name` in the folder HECKESEL_DATA, unzipped.

    A file found by name must have the recorded SHA-256, because committed results depend on it. A
    file given by its path is read as it is.

    published : where the file is published and what it contains, for error messages
    """
    folder = os.environ.get(VARIABLE)
    if path is None and not folder:
        raise DataError(
            f"{name} does not ship with heckesel: {published}; save it in a folder and set "
            f"{VARIABLE} to that folder, or give its path"
        )
    found = Path(folder or "") / name if path is None else Path(path)
    try:
        packed = found.read_bytes()
    except OSError as error:
        raise DataError(f"{found} cannot be read ({error.strerror}); {published}") from None
    if path is None and (computed := hashlib.sha256(packed).hexdigest()) != sha256:
        raise DataError(
            f"{found} has SHA-256 {computed} instead of {sha256}; give its path to read it anyway"
        )
    return gzip.decompress(packed) if packed.startswith(GZIP_MAGIC) else packed


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
    sha256 = PAPERS_FILES[EVALUATION_TABLES]
    content = read_outside(EVALUATION_TABLES, sha256, path, published=published)
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
    sha256 = PAPERS_FILES[RESULTS_BY_PAPER]
    content = read_outside(RESULTS_BY_PAPER, sha256, path, published=published)
    frame = _table(content, FLAT_COLUMNS, published, dtype=str, keep_default_na=False)
    frame = frame.rename(columns={"value": "printed"})
    months = frame["paper"].str.extract(ARXIV_MONTH)  # 18 and 02 for 1802.05415v2.pdf
    frame["date"] = pd.to_datetime("20" + months[0] + "-" + months[1] + "-01")
    return _with_values(frame, "paper")


def parse_value(text: str) -> float:
    """The number in a printed result, without its per cent sign or its ± part; else NaN.

    Nothing is converted: "84.5%" is 84.5 and "0.845" is 0.845.
    """
    found = VALUE.fullmatch(text.strip().replace("−", "-"))
    return float(found[1].replace(",", "")) if found else np.nan


def _table(content: bytes, columns: list[str], published: str, **options) -> pd.DataFrame:
    frame = pd.read_csv(io.BytesIO(content), **options)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(f"the table has no column {missing[0]!r}; {published}")
    return frame[columns]


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


def load_timm_results(folder: str | Path | None = None) -> pd.DataFrame:
    """Top-1 accuracy in per cent: one row per model and image size, one column per test set.

    A model evaluated at two image sizes has two rows, and one architecture has many variants, so
    rows are far from independent. A score that is not in the file of a test set is NaN; in the
    recorded files 1555 of 1557 rows have all six.
    """
    scores = {}
    for test_set, name in TEST_SETS.items():
        recorded = f"timm/{name}"
        path = None if folder is None else Path(folder) / name
        content = read_outside(recorded, TIMM_FILES[recorded], path, published=TIMM_PUBLISHED)
        table = _table(content, [*TIMM_UNIT, "top1"], TIMM_PUBLISHED)
        repeated = table[table.duplicated(TIMM_UNIT)]
        if len(repeated):
            model, size = repeated.iloc[0][TIMM_UNIT]
            twice = f"{name} lists {model} at image size {size} twice"
            raise DataError(f"{twice}; keep one of its rows")
        scores[test_set] = table.set_index(TIMM_UNIT)["top1"]
    return pd.DataFrame(scores).sort_index()
