"""`docs/speed.md` and its figure, made from `benchmarks/*.json` only.

python -m benchmarks.page           write it
python -m benchmarks.page --check   fail if the committed page is not what the results give
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

FOLDER = Path("benchmarks")
PAGE = Path("docs/speed.md")
WORKERS, DISK = 32, 200  # of the cluster for a billion rows: cores, and MB that each reads a second
FIGURE = Path("docs/_static/growth.svg")
COLORS = ("#0b6e99", "#5b8c2a", "#b3261e", "#8a6d3b")
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
        "default": default,
        "workers": workers,
        "scoring": scoring,
        "classic": classic,
        "streamed": streamed,
        "peers": peers,
        "growth": growth,
    }
    parts += [make(results[name]) for name, make in makers.items() if name in results]
    parts.append(fifty_million(large))
    if {"streamed", "scoring"} <= results.keys():
        parts.append(billion(results, large))
    parts.append(on_a_gpu(gpu))
    if (folder / "device.json").exists():
        parts.append(device(json.loads((folder / "device.json").read_text())))
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
    rows = [
        (f"{each['rows']:,}", each["columns"], name, *_numbers(run), run["ratio"])
        for each in found
        for name, run in each["runs"].items()
    ]
    return _section(
        "Fits with the defaults",
        "`HeckmanRegressor` with an instrument, verdict included, on one thread. The reference is "
        "scikit-learn's gradient boosting of the observed outcomes, which ignores selection. "
        "MAPIE's `CrossConformalRegressor` with five folds adds intervals to it; its scoring is "
        "not timed. *networks* is `learner=hk.Networks()`. The ratio is that of CPU seconds.",
        ("rows", "columns", "model", "seconds", "CPU seconds", "peak GB", "ratio"),
        rows,
    )


def _numbers(run: dict) -> tuple:
    return run["seconds"], run["cpu_seconds"], run["peak_gb"]


def workers(found: dict) -> str:
    alone = next(iter(found["runs"].values()))["seconds"]
    rows = [
        (name, run["seconds"], round(alone / run["seconds"], 2))
        for name, run in found["runs"].items()
    ]
    return _section(
        "Two workers",
        f"`HeckmanRegressor(learner=RandomForestRegressor(min_samples_leaf=20))` for "
        f"{found['rows']:,} rows and {found['columns']} columns, on one machine; each process has "
        "one thread. The workers fit the folds. Predictions are bit-identical.",
        ("", "seconds", "speed-up"),
        rows,
    )


def scoring(found: dict) -> str:
    rows = [(target, *_numbers(run)) for target, run in found["runs"].items()]
    return _section(
        f"Scoring {found['rows']:,} rows, {found['columns']} columns",
        "`heckesel predict` from a Parquet file to a Parquet file, with the mean, the standard "
        "deviation and the interval of every row. Imports are timed, too.",
        ("target", "seconds", "CPU seconds", "peak GB"),
        rows,
    )


def device(found: dict) -> str:
    """Parts that failed on the device are omitted."""
    rows: list[tuple] = []
    networks, grid = found["networks"], found["e1"]
    if "failed" not in networks:
        fit = f"`learner=hk.Networks()`, {networks['rows']:,} rows"
        rows.append((fit, networks["first_s"], networks["second_s"]))
    if "failed" not in grid:
        fit = f"methods of A-E1 that train networks, {grid['cells_per_method']} cells each"
        rows.append((fit, grid["first"]["seconds"], grid["second"]["seconds"]))
    for name in ("default", "boosting"):
        if "failed" not in found[name]:
            rows.append((f"{name}, 1,000,000 rows, on the CPU", found[name]["seconds"], ""))
    return _section(
        f"Networks on one {grid.get('device', 'CPU')}, and {found['cores']} cores",
        "The first run of a process includes what starting CUDA takes.",
        ("", "first run, seconds", "second run, seconds"),
        rows,
    )


def fifty_million(found: dict) -> str:
    return streamed(found["runs"], "Fifty million rows from Parquet files", found["what"] + ".")


def billion(results: dict, large: dict) -> str:
    """What a billion rows take, at the measured time per row and number of passes."""
    (run,) = large["runs"]
    passes = next(
        each["contenders"]["files"]["passes"]
        for each in results["streamed"]
        if each["method"] == run["method"] and "passes" in each["contenders"]["files"]
    )
    read = 8 * run["columns"]  # GB of float64 per pass over a billion rows
    fit_hours = run["contenders"]["files"]["cpu_microseconds_a_row"] * 1e3 / 3600
    scored = results["scoring"]
    score = max(each["cpu_seconds"] for each in scored["runs"].values()) / scored["rows"]
    score_hours = score * 1e9 / 3600
    rows = [
        ("`hk.heckman`, ML", run["columns"], read, passes, *_hours(fit_hours, read * passes)),
        (
            "`heckesel predict`, mean and interval",
            scored["columns"],
            8 * scored["columns"],
            1,
            *_hours(score_hours, 8 * scored["columns"]),
        ),
    ]
    return _section(
        "A billion rows",
        f"An estimate, not a measurement: the CPU time per row above times a billion, over "
        f"{WORKERS} cores that each read {DISK} MB per second.",
        (
            "",
            "columns",
            "GB per pass",
            "passes",
            "core hours",
            "hours of reading, one core",
            f"hours on {WORKERS} cores",
        ),
        rows,
    )


def _hours(core_hours: float, gigabytes: float) -> tuple:
    reading = gigabytes * 1e3 / DISK / 3600
    return round(core_hours, 2), round(reading, 2), round((core_hours + reading) / WORKERS, 3)


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
        "![Seconds of a fit by number of rows, on logarithmic axes](_static/growth.svg)\n\n"
        "The exponent is the slope of log seconds on log size; for rows, from 100,000 on. Peak "
        "memory includes the data.",
        ("what grows", "size", "seconds", "peak GB", "exponent"),
        rows,
    )


def growth_svg(found: dict, width: int = 640, height: int = 400) -> str:
    """Seconds by rows on logarithmic axes, as an SVG that depends on nothing else."""
    lines = {name: part for name, part in found.items() if name.endswith(", rows")}
    sizes = [n for part in lines.values() for n in part["sizes"]]
    times = [run["seconds"] for part in lines.values() for run in part["runs"]]
    left, right = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(n, seconds):
        x = 60 + (width - 220) * (math.log10(n) - left) / max(right - left, 1)
        y = height - 50 - (height - 70) * (math.log10(seconds) - low) / max(high - low, 1)
        return round(x, 1), round(y, 1)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" role="img" aria-label="Seconds by rows">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for power in range(left, right + 1):
        x, y = place(10**power, 10**low)
        drawn.append(f'<path d="M{x} {y}V20" stroke="#ddd"/>')
        drawn.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low, high + 1):
        x, y = place(10**left, 10.0**power)
        drawn.append(f'<path d="M{x} {y}H{width - 160}" stroke="#ddd"/>')
        drawn.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{10.0**power:g} s</text>')
    drawn.append(f'<text x="{(width - 100) / 2}" y="{height - 8}" text-anchor="middle">rows</text>')
    labels: list = []
    for (name, part), color in zip(lines.items(), COLORS, strict=False):
        at = [place(n, run["seconds"]) for n, run in zip(part["sizes"], part["runs"], strict=True)]
        path = "L".join(f"{x} {y}" for x, y in at)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in at]
        x, y = at[-1]
        while any(abs(x - beside) < 100 and abs(y - above) < 14 for beside, above in labels):
            y += 1  # labels below one another
        labels.append((x, y))
        label = name.removesuffix(", rows")
        drawn.append(f'<text x="{x + 8}" y="{y + 4}" fill="{color}">{label}</text>')
    return "\n".join([*drawn, "</svg>\n"])


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


def made() -> dict[Path, str]:
    """What is generated, by path."""
    found = json.loads((FOLDER / "results.json").read_text())
    return {PAGE: speed_md(), FIGURE: growth_svg(found["growth"])}


def write() -> None:
    for path, text in made().items():
        path.write_text(text)


def main() -> int:
    if "--check" not in sys.argv[1:]:
        write()
        return 0
    for path, text in made().items():
        if not path.exists() or path.read_text() != text:
            print(f"{path} is not what benchmarks/*.json give; run python -m benchmarks.page")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
