"""Write requirements.lock, or install it into an empty environment.

python scripts/lock.py          the versions of constraints.txt and the build tool, with hashes
python scripts/lock.py --try    install them with --require-hashes, build and install heckesel, fit

The wheels are those pip chooses for the Python and the machine it runs on, so the lock file says
which ones they are for.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
HEADER = """\
# Written by scripts/lock.py from constraints.txt and the build requirement of pyproject.toml.
# Wheels for Python {python} on {system}, without CUDA. To install:
#   python -m pip install --require-hashes -r requirements.lock
#   python -m pip install --no-deps --no-build-isolation .
"""
CPU_BUILD = """\
# The CPU build of {name} {public}, a separate wheel: its hash is not that of the wheel
# which the package index offers as {public}. Tell pip where it is with --find-links or
# --extra-index-url.
"""
TRY = """
import torch
import heckesel as hk
women = hk.datasets.load_mroz()
fit = hk.heckman("lwage ~ educ", select="~ educ + age + kidslt6", data=women)
assert fit.status == "converged", fit.status
X = women[["educ", "age", "kidslt6"]]
networks = hk.Networks(n_members=2, epochs=5)
hk.DeepHeckmanRegressor(["age", "kidslt6"], networks=networks).fit(X, women["lwage"]).predict(X)
"""


def pinned() -> list[str]:
    """The lines of constraints.txt and the build requirements, name==version each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return [*constraints, *project["build-system"]["requires"]]


def pip(*arguments: str, python: str = sys.executable) -> str:
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    done = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def locked(install: dict) -> str:
    """One package of pip's report, as a requirement with its hash."""
    name, version = install["metadata"]["name"], install["metadata"]["version"]
    public, _, build = version.partition("+")
    comment = CPU_BUILD.format(name=name, public=public) if build == "cpu" else ""
    digest = install["download_info"]["archive_info"]["hashes"]["sha256"]
    return f"{comment}{name}=={version} \\\n    --hash=sha256:{digest}\n"


def header() -> str:
    python = ".".join(platform.python_version_tuple()[:2])
    return HEADER.format(python=python, system=f"{platform.system()} {platform.machine()}")


def write() -> None:
    """Dependencies are resolved too, so that one which is not pinned is noticed here."""
    wanted = pinned()
    flags = ("--dry-run", "--ignore-installed", "--only-binary=:all:", "--quiet")
    report = json.loads(pip("install", *flags, "--report", "-", *wanted))
    found = sorted(report["install"], key=lambda each: each["metadata"]["name"].lower())
    if len(found) != len(wanted):
        sys.exit(f"{len(wanted)} packages are pinned, but pip would install {len(found)}")
    LOCK.write_text(header() + "".join(map(locked, found)), encoding="utf-8")


def try_out() -> None:
    if not LOCK.read_text(encoding="utf-8").startswith(header()):
        print(f"{LOCK.name} is for another Python or another kind of machine: not tried here")
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        python = str(Path(folder, "bin", "python"))
        quiet = ("install", "--quiet", "--no-compile")
        pip(*quiet, "--require-hashes", "-r", str(LOCK), python=python)
        build = [python, "-m", "build", "--no-isolation", "--outdir", f"{folder}/dist", str(ROOT)]
        subprocess.run(build, stdout=subprocess.DEVNULL, check=True)
        (wheel,) = Path(folder, "dist").glob("*.whl")
        pip(*quiet, "--no-deps", str(wheel), python=python)
        pip("check", python=python)
        subprocess.run([python, "-I", "-W", "ignore", "-c", TRY], cwd=folder, check=True)
    print(f"{LOCK.name}: installed with hashes, and two models fitted")


if __name__ == "__main__":
    tasks = {(): write, ("--try",): try_out}
    tasks.get(tuple(sys.argv[1:]), lambda: sys.exit(__doc__))()
