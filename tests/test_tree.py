"""Imports go down only, folders import each other in one direction, and starting stays quick."""

import ast
import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import heckesel

PACKAGE = Path(heckesel.__file__).parent
ROOT = PACKAGE.parent.parent
# Folders and files of the library, by layer. A layer imports itself and the layers before it.
LAYERS = [
    "errors io saving display math",
    "data predictive scales metrics tables datasets",
    "deep learners correction classical column_checks verdict margins",
    "selection_model estimators regressor classifier deep_regressor diagnose "
    "imputer plots report cli",
    "__init__ __main__",
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_FILES = 25  # that a fit with the defaults may enter
MOST_NAMES = 29  # imported from other files, per 1,000 lines of code


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Folders of heckesel that a module imports, lazily or by a name in a string, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "heckesel":
                found |= {f"heckesel.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"heckesel(\.\w+)+", str(node.value)):
            found.add(node.value)
    split = [name.split(".") for name in found]
    inside = {parts[1] for parts in split if parts[0] == "heckesel" and len(parts) > 1}
    return (inside & LEVEL.keys()) | {parts[0] for parts in split if parts[0] == "reproduction"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    here = package_of(path)
    assert here in LEVEL, f"{here} has no place in the layers"
    for target in imports_of(path) - {here}:
        assert target in LEVEL, f"{path.name} imports {target}, which is not part of the library"
        assert LEVEL[target] <= LEVEL[here], f"{path.name} imports {target}, which is above it"


def test_no_two_folders_import_each_other():
    graph = {}
    for path in MODULES:
        here = package_of(path)
        if here not in ("__init__", "__main__"):
            graph.setdefault(here, set()).update(imports_of(path) - {here, "__init__"})
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, which names them


def test_few_names_cross_the_borders_of_files():
    """Imports of a module count as one name, however much of it is used."""
    crossing, lines = set(), 0
    for path in MODULES:
        text = path.read_text()
        tree = ast.parse(text)
        hidden = set()  # lines of docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("heckesel"):
                crossing |= {(node.module, each.name) for each in node.names}
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                hidden |= set(range(node.lineno, node.end_lineno + 1))
        shown = (line.strip() for j, line in enumerate(text.splitlines(), 1) if j not in hidden)
        lines += sum(bool(line) and not line.startswith("#") for line in shown)
    assert 1000 * len(crossing) / lines <= MOST_NAMES


@pytest.mark.filterwarnings("ignore")
def test_a_fit_with_the_defaults_enters_few_files():
    table = heckesel.datasets.make_controlled(300, rho=0.5, alpha=1.0, seed=0).frame
    entered = set()

    def called(frame, event, _):
        path = frame.f_globals.get("__file__") or ""
        function = frame.f_code.co_flags & 0x1  # CO_OPTIMIZED, which module bodies lack
        if event == "call" and function and path.startswith(f"{PACKAGE}/"):
            entered.add(path[len(str(PACKAGE)) + 1 :])

    model = heckesel.HeckmanRegressor(instruments=["z"])
    sys.setprofile(called)
    try:
        model.fit(table[["x", "z"]], table["y"])
    finally:
        sys.setprofile(None)
    assert len(entered) <= MOST_FILES, sorted(entered)


def test_importing_heckesel_loads_nothing_heavy():
    code = "import json, sys; import heckesel; print(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    loaded = json.loads(printed)
    for heavy in ("torch", "matplotlib", "scipy.stats", "pandas", "sklearn"):
        assert heavy not in loaded


def test_the_help_loads_nothing_heavy():
    code = (
        "import json, sys\n"
        "from heckesel.__main__ import main\n"
        "sys.argv = ['heckesel', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    loaded = json.loads(printed.decode().splitlines()[-1])
    for heavy in ("torch", "matplotlib", "scipy", "pandas", "sklearn"):
        assert heavy not in loaded


def test_a_verdict_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys; import heckesel as hk; d = hk.datasets.make_controlled(99, rho=0, alpha=1, "
        "seed=0).frame; hk.identify(d[['x', 'z']], d['y'], instruments=['z']); "
        "print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert printed.decode().strip() == "[]"


def test_the_classic_path_never_needs_torch_or_scipy_stats():
    code = (
        "import sys; import heckesel as hk; df = hk.datasets.load_mroz(); "
        "hk.heckman('lwage ~ educ', '~ educ + kidslt6', df).summary(); "
        "print(sorted({'torch', 'matplotlib', 'scipy.stats'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert printed.decode().strip() == "[]"


def test_every_public_name_can_be_reached():
    for name in heckesel.__all__:
        assert getattr(heckesel, name) is not None
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = heckesel.nothing


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import heckesel as hk

draw = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
X, y = draw[["x", "z"]], draw["y"]
for call in (
    lambda: hk.DeepHeckmanRegressor(["z"]).fit(X, y),
    lambda: hk.DeepEnsembleRegressor(["z"]).fit(X, y),
    lambda: hk.plots.rho_likelihood(hk.heckman("y ~ x", "~ x + z", draw)),
):
    try:
        call()
    except hk.HeckeselError as error:
        print(error)
"""


def test_without_torch_or_matplotlib_one_sentence_names_the_extra():
    printed = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, check=True).stdout
    networks = "networks need torch, which is not installed: pip install 'heckesel[deep]'"
    plots = "plots need matplotlib, which is not installed: pip install 'heckesel[report]'"
    assert printed.decode().splitlines() == [networks, networks, plots]
