"""Build the wheel and the sdist, install each into an empty environment, and try it there.

python scripts/smoke_packages.py

Base dependencies only, so no torch: the default and the classic model work, and what needs networks
says so in one sentence.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
LARGEST = 4 * 2**20  # bytes; the shipped tables take 1.7 MB of it
NEEDED = {
    "py.typed",
    "datasets/files/mroz.csv.gz",
    "datasets/files/rand_hie.csv.gz",
    "datasets/files/california_housing.csv.gz",
    "datasets/files/wine_quality_red.csv.gz",
    "report/templates/report.html",
    "report/templates/style.css",
}
TRY = """
import pathlib, sys, warnings
import heckesel as hk

warnings.simplefilter("ignore", hk.IdentificationWarning)
home = pathlib.Path(hk.__file__).parent
assert home.is_relative_to(sys.prefix), home
women = hk.datasets.load_mroz()
fit = hk.heckman(
    "lwage ~ educ + exper + expersq",
    select="~ nwifeinc + educ + exper + expersq + age + kidslt6 + kidsge6",
    data=women,
)
assert f"{fit.params['outcome', 'educ']:.5f}" == "0.10835", fit.params
X = women[["educ", "exper", "age", "kidslt6"]]
model = hk.HeckmanRegressor(instruments=["age", "kidslt6"]).fit(X, women["lwage"])
assert len(model.predict(X)) == 753
model.save("wages.heckesel")
assert (hk.load("wages.heckesel").predict(X) == model.predict(X)).all()
women[["lwage", "educ", "exper", "age", "kidslt6"]].to_csv("wages.csv", index=False)
assert "torch" not in sys.modules
try:
    hk.DeepHeckmanRegressor(instruments=["age"]).fit(X, women["lwage"])
except hk.HeckeselError as error:
    print(error)
"""
NO_TORCH = "networks need torch, which is not installed: pip install 'heckesel[deep]'"


def check_contents(package: Path) -> None:
    """What has to be inside is, and no test, result or page."""
    if package.suffix == ".whl":
        names = zipfile.ZipFile(package).namelist()
        inside = {name.removeprefix("heckesel/") for name in names}
    else:
        with tarfile.open(package) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
        inside = {name.removeprefix("src/heckesel/") for name in names}
        for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
            assert name in names, f"{package.name} lacks {name}"
    assert inside >= NEEDED, f"{package.name} lacks {sorted(NEEDED - inside)}"
    beside = [
        n for n in names if n.split("/")[0] in ("tests", "results", "docs", "paper", "reproduction")
    ]
    assert not beside, f"{package.name} holds {beside[:3]}"
    size = package.stat().st_size
    assert size < LARGEST, f"{package.name} has {size} bytes"


def install(package: Path, folder: Path) -> Path:
    """The Python of an environment that holds the package and what it asks for."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-compile",
    ]
    constraints = ["--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, str(package)], check=True)
    return python


def try_out(python: Path, folder: Path) -> None:
    """Import, fit, predict, save, load, the shell, and what needs torch."""
    shell = [str(python), "-I", "-m", "heckesel"]

    def run(*command: str, code: int = 0) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr}"
        return done.stdout + done.stderr

    assert run(str(python), "-I", "-c", TRY).strip() == NO_TORCH
    assert "diagnose" in run(*shell, "--help")
    columns = ("--outcome", "lwage", "--instruments", "age,kidslt6")
    assert "supported by the instrument" in run(*shell, "diagnose", "wages.csv", *columns)
    fit = (*shell, "fit", "wages.csv", *columns, "--out", "wages.heckesel")
    run(*fit)
    refused = run(*fit, "--method", "deep-two-step", code=2)
    assert refused.count("\n") == 1, refused
    assert "pip install 'heckesel[deep]'" in refused, refused
    assert "clone the repository" in run(*shell, "reproduce", "e0", code=2)


def try_package(package: Path) -> str:
    began, folder = time.perf_counter(), package.parent.parent / package.suffix.strip(".")
    check_contents(package)
    python = install(package, folder)
    (folder / "work").mkdir()
    try_out(python, folder / "work")
    return f"{package.name}: {time.perf_counter() - began:.0f} s"


def main() -> int:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as threads:
        build = [sys.executable, "-m", "build", "--outdir", f"{name}/dist", str(ROOT)]
        built = subprocess.run(build, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout + built.stderr
        for line in threads.map(try_package, sorted(Path(name, "dist").iterdir())):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
