"""The walks through the code in CONTRIBUTING.md are those that the calls take."""

import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import heckesel as hk
from heckesel.cli import main
from tests.test_tree import LEVEL, PACKAGE, ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FUNCTION = 0x1  # CO_OPTIMIZED, which the code of modules and class bodies lacks
TRAINING, MOST_CALLS = ("networks/training/loop.py", "train"), 8  # calls from fit to the loop
# The only calls from a lower layer to a higher one: functions that were passed to it as arguments,
# methods of objects, and classes from the table in estimators/load.py.
PASSED = {
    ("tables/fit_input.py", "diagnostics/column_problems.py"),
    ("linear/sample/blocks.py", "diagnostics/fit_verdict.py"),
    ("linear/sample/blocks.py", "diagnostics/model_evidence.py"),
    ("linear/sample/blocks.py", "diagnostics/row_evidence.py"),
    ("tables/cluster.py", "networks/training/local_workers.py"),
    ("networks/ensembles/noise_calibration.py", "methods/heckman_two_step.py"),
    ("networks/ensembles/selection_ensemble.py", "estimators/network_options.py"),
    ("networks/rho/form_mixture.py", "methods/spline_joint.py"),
    ("saving/saved_model.py", "estimators/selection_regressor.py"),
    ("saving/saved_model.py", "estimators/deep_heckman_regressor.py"),
}


def blocks(heading: str) -> list[list[str]]:
    """The lines of each block of code below a heading."""
    section = re.search(rf"^## {heading}$(.*?)^## ", TEXT, re.DOTALL | re.MULTILINE)[1]
    return [b.strip("\n").split("\n") for b in re.findall(r"^```\n(.*?)^```", section, re.S | re.M)]


WALKS = dict(
    zip(
        ("heckman", "two-step", "auto", "command", "load"),
        blocks("Five calls, file by file"),
        strict=True,
    )
)


def steps_of(walk: list[str]):
    """(caller, file) of each line; the caller is the line above it that is indented less."""
    above: dict[int, str] = {}
    for line in walk:
        indent, path = len(line) - len(line.lstrip()), line.split()[0]
        yield above.get(indent - 2), path
        above[indent] = path


class Calls:
    """Which file of the library called which, while inside `with`.

    to_training : how many calls deep the training loop was
    """

    def __init__(self):
        self.edges, self.to_training = set(), 0

    def __enter__(self):
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _called(self, frame, event, _):
        if event != "call" or not frame.f_code.co_flags & FUNCTION or not file_of(frame):
            return
        if (file_of(frame), frame.f_code.co_name) == TRAINING:
            self.to_training = sum(1 for each in stack_of(frame) if file_of(each))
        caller = next(filter(file_of, stack_of(frame.f_back)), None)
        if caller is None:
            self.edges.add((None, file_of(frame)))
        elif caller.f_code.co_flags & FUNCTION:  # else the call is part of an import
            self.edges.add((file_of(caller), file_of(frame)))

    def reached(self, start: str) -> set[str]:
        """The files that calls from `start`, a file or a folder, lead to."""
        to = defaultdict(set)
        for caller, called in self.edges:
            to[caller].add(called)
        found, open_ = set(), [f for f in list(to) if f is not None and f.startswith(start)]
        while open_:
            new = to[open_.pop()] - found
            found |= new
            open_ += new
        return found


def stack_of(frame):
    """The frame, its caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def file_of(frame) -> str:
    """Path below the package, "" outside; the methods of a dataclass have the file of its class."""
    path = frame.f_globals.get("__file__") or ""
    return path[len(str(PACKAGE)) + 1 :] if path.startswith(f"{PACKAGE}/") else ""


def level(file: str) -> int:
    return LEVEL[file.split("/")[0].removesuffix(".py")]


def test_every_path_of_the_tree_and_of_the_walks_exists():
    (tree,) = blocks("The tree")
    folders: dict[int, Path] = {-2: ROOT}
    for line in tree:
        indent = len(line) - len(line.lstrip())
        for name in re.split(r"\s{2,}", line.strip())[0].split():
            path = folders[indent - 2] / name
            assert path.is_dir() if name.endswith("/") else path.is_file(), path
            folders[indent] = path
    for walk in WALKS.values():
        for _, name in steps_of(walk):
            assert (PACKAGE / name).exists(), name


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_never_goes_up_a_layer(name):
    for caller, called in steps_of(WALKS[name]):
        if caller is not None:
            assert level(called) <= level(caller), f"{caller} is below {called}"


@pytest.fixture(scope="module")
def table():
    frame = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
    return frame[["x", "z", "y"]]


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks")
    table.to_csv(folder / "data.csv", index=False)
    return folder


def fit_deep(table, method):
    model = hk.DeepHeckmanRegressor(["z"], method=method, n_members=2, folds=2, epochs=5)
    model.fit(table[["x", "z"]], table["y"])


def fit_in_shell(files):
    roles = f"fit {files}/data.csv --outcome y --instruments z --out {files}/model.heckesel"
    small = "--method two-step --members 2 --folds 2 --epochs 5"
    with pytest.raises(SystemExit, match="0"):
        main(f"{roles} {small}".split())


CALLS = {
    "heckman": lambda table, _: hk.heckman("y ~ x", "~ x + z", table),
    "two-step": lambda table, _: fit_deep(table, "two-step"),
    "auto": lambda table, _: fit_deep(table, "auto"),
    "command": lambda _, files: fit_in_shell(files),
    "load": lambda _, files: hk.load(files / "model.heckesel"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_a_call_enters_the_files_of_its_walk(name, table, files):
    if name == "load":
        fit_in_shell(files)
    with Calls() as calls:
        CALLS[name](table, files)
    for caller, called in steps_of(WALKS[name]):
        entered = {file for _, file in calls.edges} if caller is None else calls.reached(caller)
        assert any(file.startswith(called) for file in entered), f"{caller} -> {called}"
    up = {(a, b) for a, b in calls.edges if a is not None and level(b) > level(a)}
    assert up <= PASSED
    if name == "two-step":
        assert 0 < calls.to_training <= MOST_CALLS
