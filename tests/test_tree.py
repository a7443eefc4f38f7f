"""The tree shows the architecture: imports go down only, folders and files stay small."""

import ast
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

import heckesel

PACKAGE = Path(heckesel.__file__).parent
ROOT = PACKAGE.parent.parent
REPRODUCTION = ROOT / "reproduction"
LAYERS = [
    {"errors", "on_disk"},
    {"atomic_files", "device", "display", "moved", "numeric_input", "progress", "numerics"},
    {"data", "fit_info", "likelihoods", "predictive"},
    {"tables", "metrics", "datasets"},
    {"linear", "networks"},
    {"methods", "diagnostics"},
    {"saving", "onnx"},
    {"estimators"},
    {"plots"},
    {"report"},
    {"cli"},
    {"__init__", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))
EXPERIMENTS = sorted(REPRODUCTION.rglob("*.py"))
NAMED_MODULE = r"heckesel(\.\w+)+"
# One file per thing: these folders may grow.
COLLECTIONS = {"methods", "datasets", "likelihoods"}
# One idea for two inputs: NumPy and torch, one unit and a fit, linear models and networks.
SAME_IDEA = {"normal", "student", "shape", "binary", "copula", "probit", "fixed_rho", "stream"}


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Packages of heckesel that a module imports, lazily or by a name in a string, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(NAMED_MODULE, str(node.value)):
            found.add(node.value)
    split = [name.split(".") for name in found]
    inside = {parts[1] for parts in split if parts[0] == "heckesel" and len(parts) > 1}
    return inside | {parts[0] for parts in split if parts[0] == "reproduction"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    here = package_of(path)
    assert here in LEVEL, f"{here} has no place in the layers"
    for target in imports_of(path) - {here}:
        assert target in LEVEL, f"{path.name} imports {target}, which is not part of the library"
        assert LEVEL[target] < LEVEL[here], f"{path.name} imports {target}, which is not below it"


@pytest.mark.parametrize("root", [PACKAGE, REPRODUCTION], ids=lambda p: p.name)
def test_no_folder_has_more_than_sixteen_files(root):
    counts = defaultdict(int)
    for path in root.rglob("*.py"):
        counts[path.parent] += path.name != "__init__.py"
    crowded = {p.name: n for p, n in counts.items() if n > 16 and p.name not in COLLECTIONS}
    assert not crowded


def test_no_file_name_stands_for_two_ideas():
    places = defaultdict(set)
    for path in [*MODULES, *EXPERIMENTS]:
        if path.stem not in ("__init__", "__main__"):
            places[path.stem].add(str(path.parent.relative_to(ROOT)))
    assert not {n: p for n, p in places.items() if len(p) > 1 and n not in SAME_IDEA}


def test_every_folder_says_what_it_holds():
    for folder in {path.parent for path in [*MODULES, *EXPERIMENTS]}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


@pytest.mark.parametrize(
    "path",
    [*MODULES, *EXPERIMENTS, *Path(__file__).parent.rglob("*.py")],
    ids=lambda p: f"{p.parent.name}/{p.name}",
)
def test_no_module_has_more_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_importing_heckesel_loads_nothing_heavy():
    code = (
        "import json, sys, time; t = time.perf_counter(); import heckesel; "
        "print(json.dumps([time.perf_counter() - t, sorted(sys.modules)]))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    seconds, loaded = json.loads(printed)
    for heavy in ("torch", "matplotlib", "scipy.stats", "pandas", "sklearn"):
        assert heavy not in loaded
    assert seconds < 0.3


def test_the_help_is_there_in_half_a_second():
    seconds = []
    for _ in range(3):  # the best of three, since others may use the machine
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "heckesel", "--help"], capture_output=True, check=True
        )
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.5


def test_a_verdict_needs_neither_torch_nor_scikit_learn():
    code = (
        "import sys; import heckesel as hk; d = hk.datasets.make_controlled(99, rho=0, alpha=1, "
        "seed=0).frame; hk.identify(d[['x', 'z']], d['y'], instruments=['z']); "
        "print(sorted({'torch', 'matplotlib', 'scipy.stats', 'sklearn'} & set(sys.modules)))"
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
    lambda: hk.identify(X, y, instruments=["z"]).profile.plot(),
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


def test_the_guide_for_contributors_lists_the_layers_as_they_are():
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    layers = re.search(r"enforces it: (errors, .* → cli)\.", text)[1]
    assert [set(layer.split(", ")) for layer in layers.split(" → ")] == LAYERS[:-1]
