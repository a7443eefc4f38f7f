"""`heckesel predict` for a million rows, from a Parquet file to a Parquet file.

python -m benchmarks.scoring             the table
python -m benchmarks.scoring --one ...   one run in this process, as JSON

A model of `method="auto"` scores the same rows as one of gradient boosting, which gives a mean
alone and is read, applied and written with pandas. Imports are part of a command, so they are
timed.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.auto_fits import draw
from benchmarks.memory import peak_bytes

ROWS, TRAINING_ROWS = 1_000_000, 2_000
# Contender -> share of the rows: bivariate probabilities take some thirty times as long.
CONTENDERS = {"population": 1.0, "boosting": 1.0, "unselected": 0.1}


def prepare(folder: Path, rows: int) -> None:
    """The table to score, and both models."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    import heckesel as hk

    X, _ = draw(rows, seed=1)
    for share in set(CONTENDERS.values()):
        few = X.iloc[: int(share * rows)]
        few.to_parquet(folder / f"rows-{share}.parquet", row_group_size=100_000)
    X, y = draw(TRAINING_ROWS)
    model = hk.DeepHeckmanRegressor(instruments=["z"], device="cpu", progress=False)
    model.fit(X, y).save(folder / "model.heckesel")
    kept = y == y
    X = X.assign(group=X["group"].astype("category")).drop(columns="z")
    boosting = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    (folder / "boosting").write_bytes(pickle.dumps(boosting.fit(X[kept], y[kept])))


def run_one(contender: str, folder: Path) -> dict:
    rows = folder / f"rows-{CONTENDERS[contender]}.parquet"
    started, cpu = time.perf_counter(), time.process_time()
    if contender == "boosting":
        import pandas as pd

        X = pd.read_parquet(rows)
        model = pickle.loads((folder / "boosting").read_bytes())
        columns = X.assign(group=X["group"].astype("category")).drop(columns="z")
        X.assign(mean=model.predict(columns)).to_parquet(folder / "out.parquet")
    else:
        from heckesel.cli import main

        paths = [str(path) for path in (folder / "model.heckesel", rows, folder / "out.parquet")]
        with suppress(SystemExit):  # an exit code other than 0 leaves no file
            main(["predict", *paths[:2], "--target", contender, "--out", paths[2]])
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    (folder / "out.parquet").unlink()
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_gb": round(peak_bytes() / 1e9, 2),
    }


def measure(rows: int = ROWS) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), rows)
        found = {}
        for contender, share in CONTENDERS.items():
            command = [sys.executable, "-m", "benchmarks.scoring", "--one", contender, folder]
            printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            found[contender] = {"rows": int(share * rows)} | json.loads(printed.splitlines()[-1])
    base = found["boosting"]["seconds"] / rows
    for run in found.values():
        run["ratio"] = round(run["seconds"] / run["rows"] / base, 1)
    return {"rows": rows, "contenders": found}


if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(run_one(sys.argv[2], Path(sys.argv[3]))))
    else:
        print(json.dumps(measure(), indent=1))
