"""Joint maximum likelihood against StatsPAI.

StatsPAI brings packages of its own, so it lives in another environment: name that environment's
Python in HECKESEL_PEERS_PYTHON. Without it the row says that it was not run.

python -m benchmarks.peers        as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import pandas as pd

from benchmarks.classic import COLUMNS, draw

VARIABLE = "HECKESEL_PEERS_PYTHON"
ROWS = 10_000
NAMES = [f"x{j}" for j in range(COLUMNS)]
PEER = """
import json, sys, time
import pandas as pd, statspai
frame = pd.read_csv(sys.argv[1])
x = [name for name in frame if name.startswith("x")]
started, cpu = time.perf_counter(), time.process_time()
fit = statspai.heckman(frame, y="y", x=x, z=[*x, "z"], method="ml")
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
print(json.dumps({"seconds": seconds, "cpu": cpu, "version": statspai.__version__,
                  "slope": float(fit.detail.set_index("variable").loc["x0", "coefficient"])}))
"""


def statspai(n: int = ROWS) -> dict:
    """Seconds of one fit after the other; StatsPAI in a process of its own, whose start is not
    timed. Time on the processor is listed too: a busy neighbour stretches the clock."""
    python = os.environ.get(VARIABLE)
    if not python:
        return {"n": n, "not_run": f"{VARIABLE} is not set"}
    from heckesel.selection_model import heckman

    x, w, y = draw(n)
    heckman(y=y[:500], x=x[:500], w=w[:500])  # what is imported when first used
    frame = pd.DataFrame(w, columns=[*NAMES, "z"]).assign(y=y)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        frame.to_csv(path, index=False)
        command = [python, "-c", PEER, path]
        # nothing of this environment may be found by the other one
        bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=bare).stdout
        peer = json.loads(printed)
    ours, ours_cpu = [], []
    for _ in range(3):
        started, cpu = time.perf_counter(), time.process_time()
        fit = heckman(y=y, x=x, w=w)
        ours.append(time.perf_counter() - started)
        ours_cpu.append(time.process_time() - cpu)
    return {
        "n": n,
        "version": peer["version"],
        "peer_s": round(peer["seconds"], 2),
        "ours_s": round(min(ours), 3),
        "ratio": round(peer["seconds"] / min(ours), 1),
        "cpu_ratio": round(peer["cpu"] / min(ours_cpu), 1),
        "slopes_apart": float(f"{abs(fit.params['outcome', 'x0'] - peer['slope']):.1e}"),
    }


def measure() -> dict:
    return {"statspai": statspai()}


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=1)
