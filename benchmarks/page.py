"""`docs/speed.md`, made from `benchmarks/*.json` only.

python -m benchmarks.page           write it
python -m benchmarks.page --check   fail if the committed page is not what the results give
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path("benchmarks")
PAGE = Path("docs/speed.md")
HEAD = """# Speed

<!-- made by `python -m benchmarks.page` from benchmarks/*.json; do not edit -->

Compare ratios within one run rather than seconds, because other processes affect run times. Each
program runs in a separate process, alternating with the others. Imports and data generation are
not timed. `make bench` repeats the measurements, except where stated otherwise.
"""


def speed_md(folder: Path = FOLDER) -> str:
    """The page as text; parts that were not measured are omitted."""
    results = json.loads((folder / "results.json").read_text())
    frozen = json.loads((folder / "frozen.json").read_text())
    gpu = json.loads((folder / "gpu_grid.json").read_text())
    large = json.loads((folder / "fifty_million.json").read_text())
    machine = results["machine"]
    parts = [HEAD, f"Measured on {machine['cores']} cores with Python {machine['python']}.\n"]
    makers = {
        "classic": classic,
        "streamed": streamed,
        "default": default,
        "peers": peers,
        "growth": growth,
    }
    parts += [make(results[name]) for name, make in makers.items() if name in results]
    parts += [fifty_million(large), on_a_gpu(gpu)]
    return "\n".join([*parts, not_in_this_run(frozen)])


def classic(found: dict) -> str:
    rows = [
        (name, row["seconds"], row["ratio"], row["peak_gb"])
        for name, row in found["contenders"].items()
    ]
    return _section(
        f"Linear fits of {found['n']:,} rows, {found['columns']} columns",
        "The reference is the probit of statsmodels, which is only a part of the first step.",
        ("", "seconds", "ratio", "peak GB"),
        rows,
    )


def default(found: list[dict]) -> str:
    rows = []
    for each in found:
        for name in ("default", "boosting"):
            own = each[name]
            ratio = each["ratio"] if name == "default" else 1.0
            numbers = own["seconds"], own["cpu_seconds"], ratio, own["peak_gb"]
            rows.append((f"{each['rows']:,}", name, *numbers))
    return _section(
        "Fits with the defaults",
        "`HeckmanRegressor` with three numeric columns, a category and an instrument, verdict "
        "included. The reference is scikit-learn's gradient boosting of the observed outcomes, "
        "which ignores selection.",
        ("rows", "model", "seconds", "CPU seconds", "ratio", "peak GB"),
        rows,
    )


def fifty_million(found: dict) -> str:
    return streamed(found["runs"], "Fifty million rows from Parquet files", found["what"] + ".")


def streamed(
    found: list[dict],
    title: str = "From Parquet files",
    sentence: str = "12 columns of float64. The same fit in memory is shown for comparison.",
) -> str:
    rows = []
    for run in found:
        for name, row in run["contenders"].items():
            times = row["seconds"], row["microseconds_a_row"], row["cpu_microseconds_a_row"]
            rows.append((run["method"], name, f"{row['rows']:,}", *times, row["peak_gb"]))
        clock, cpu = run["ratio_of_microseconds_a_row"], run["ratio_of_cpu_microseconds_a_row"]
        rows.append((run["method"], "ratio", "", "", clock, cpu, ""))
    return _section(
        title,
        sentence,
        ("method", "data in", "rows", "seconds", "µs per row", "CPU µs per row", "peak GB"),
        rows,
    )


def peers(found: dict) -> str:
    rows = []
    for name, row in found.items():
        if "not_run" in row:
            rows.append((name, row["n"], "not run", "", ""))
        else:
            rows.append((name, row["n"], row["peer_s"], row["ours_s"], row["ratio"]))
    names = {"statspai": "joint ML, StatsPAI"}
    rows = [(names[row[0]], *row[1:]) for row in rows]
    return _section(
        "Other programs in the same run",
        "",
        ("", "rows", "other, seconds", "heckesel, seconds", "ratio"),
        rows,
    )


def growth(found: dict) -> str:
    rows = []
    for name, part in found.items():
        for size, run in zip(part["sizes"], part["runs"], strict=True):
            rows.append((name, f"{size:,}", run["seconds"], run.get("peak_gb", ""), ""))
        rows.append((name, "exponent", "", "", part["exponent"]))
    return _section(
        "Growth",
        "The exponent is the slope of log seconds on log size; for rows, from 100,000 on. Peak "
        "memory includes the data.",
        ("what grows", "size", "seconds", "peak GB", "exponent"),
        rows,
    )


def on_a_gpu(found: dict) -> str:
    rows = [
        (grid, run["rows"], run["seconds"], run["network_seconds"], run["peak_gb"])
        for grid, run in found["warm"].items()
        if isinstance(run, dict)
    ]
    table = _section(
        f"The controlled grid on one {found['warm']['device']}",
        "Times include data generation, training and metrics, with CUDA libraries and compiled "
        "kernels in caches. The methods that train networks are also timed separately.",
        ("grid", "method rows", "seconds", "networks, seconds", "peak GB"),
        rows,
    )
    return "\n".join([table, whole_paper(found["paper"])])


def whole_paper(found: dict) -> str:
    rows = [
        (grid, run["rows"], run["failed"], run["seconds"])
        for grid, run in found.items()
        if isinstance(run, dict)
    ]
    total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return _section(
        f"The whole paper in one run on one {found['device']}",
        f"All experiments run at once in {found['processes']} processes. The seconds of an "
        "experiment are the time until its last row. The total includes imports.",
        ("experiment", "rows", "failed", "seconds"),
        [*rows, ("total", *total, found["seconds"])],
    )


def not_in_this_run(found: dict) -> str:
    rows = [
        (row["who"], row["task"], row["seconds"], row.get("peak_gb", "")) for row in found["rows"]
    ]
    return _section(
        "Earlier measurements",
        "These were measured once, not in this run, so compare them with care.",
        ("", "task", "seconds", "peak GB"),
        rows,
    )


def _section(title: str, sentence: str, head: tuple, rows: list[tuple]) -> str:
    lines = [f"## {title}", ""]
    lines += [sentence, ""] if sentence else []
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = speed_md()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print(f"{PAGE} is not what benchmarks/*.json give; run python -m benchmarks.page")
    return 1


if __name__ == "__main__":
    sys.exit(main())
