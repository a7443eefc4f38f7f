"""Kill a quick run at random times, resume it, and compare the bytes.

python scripts/kill_and_resume.py EXPERIMENT [TRIALS]

Each trial starts in an empty folder, is killed (SIGKILL) after a random share of the time an
undisturbed run takes, and is then run to its end.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def start(experiment: str, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "reproduction", experiment, "--quick"]
    command += ["--device", "cpu", "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def digest(out: Path) -> dict[str, str]:
    """SHA-256 of every results file; times differ from run to run."""
    files = sorted(path for path in out.rglob("*.json") if ".times." not in path.name)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main(experiment: str, trials: str = "10") -> int:
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Path(folder) / "undisturbed"
        began = time.perf_counter()
        start(experiment, undisturbed).wait()
        seconds, expected = time.perf_counter() - began, digest(undisturbed)
        killed_at, same = [], []
        for trial in range(int(trials)):
            out = Path(folder) / str(trial)
            run = start(experiment, out)
            moment = moments.random() * seconds
            time.sleep(moment)
            run.kill()
            run.wait()
            finished = start(experiment, out).wait() == 0
            killed_at.append(round(moment, 1))
            same.append(finished and digest(out) == expected)
            left = [path.name for path in out.rglob("*.part")]
            print(
                f"killed after {moment:.1f} s: same bytes {same[-1]}, left behind {left}",
                flush=True,
            )
    summary = {"experiment": experiment, "seconds": round(seconds, 1), "killed_at": killed_at}
    print(json.dumps(summary | {"same": sum(same), "trials": len(same)}))
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
