"""Run the tests marked `arithmetic` as other processors and other Pythons would compute them.

    python scripts/emulated_processors.py

Each kind of processor is a set of variables that make a library avoid instructions which this
processor has. Every other Python installed here gets an environment without torch in .venv-X.Y;
it is skipped, with the reason, where the packages cannot be installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
MARK = "pytest.mark.arithmetic"
PROCESSORS = {
    "torch without vector instructions, one thread": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "MKL's instructions for any processor, two threads": {
        "MKL_CBWR": "COMPATIBLE",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin on shared cores take four times as long
    },
    "OpenBLAS for a processor of 2004, one thread": {"OPENBLAS_CORETYPE": "Prescott"},
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = (
    "-e",
    ".[report,scale]",
    *("pytest", "hypothesis", "mpmath", "statsmodels", "polars", "scoringrules"),
)


def run_tests(name: str, python: Path | str, settings: dict[str, str]) -> bool:
    """Print how the tests ended, with all they said if they failed."""
    start = time.perf_counter()
    # named one by one, because importing all other test modules takes longer than some kinds
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if MARK in path.read_text()]
    done = subprocess.run(
        [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-m", "arithmetic", *sorted(files)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | settings,
        capture_output=True,
        text=True,
    )
    said = (done.stdout + done.stderr).strip()
    counts = said.splitlines()[-1].partition(" in ")[0]
    if done.returncode:
        print(said)
    print(f"{name}: {counts}, {time.perf_counter() - start:.0f} s", flush=True)
    return done.returncode == 0


def find_python(version: str) -> str | None:
    """A Python of this version that starts; a shim of pyenv may be there and fail."""
    shims = [f"python{version}"]
    shims += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for python in shims:
        try:
            if subprocess.run([python, "-c", check], capture_output=True).returncode == 0:
                return python
        except OSError:
            continue
    return None


def environment(version: str) -> Path | None:
    """The Python of .venv-X.Y, made if need be; None, with the reason printed, if it cannot be."""
    found, place = find_python(version), ROOT / f".venv-{version}"
    python, ready = place / "bin" / "python", place / ".ready"
    if ready.exists() and ready.read_text() == " ".join(PACKAGES):
        return python
    if found is None:
        print(f"Python {version}: skipped, it is not installed", flush=True)
        return None
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([found, "-m", "venv", str(place)], [*pip, "-c", "constraints.txt", *PACKAGES]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1]
            print(f"Python {version}: skipped, {reason}", flush=True)
            return None
    ready.write_text(" ".join(PACKAGES))
    return python


def on_processor(name: str) -> bool:
    return run_tests(name, sys.executable, PROCESSORS[name])


def on_python(version: str) -> bool:
    python = environment(version)
    return python is None or run_tests(f"Python {version}, without torch", python, {})


def main() -> int:
    here = ".".join(map(str, sys.version_info[:2]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ended = [pool.submit(on_processor, name) for name in PROCESSORS]
        ended += [pool.submit(on_python, version) for version in PYTHONS if version != here]
    return 0 if all(each.result() for each in ended) else 1


if __name__ == "__main__":
    sys.exit(main())
