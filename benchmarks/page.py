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
        "auto": auto,
        "scoring": scoring,
        "peers": peers,
        "network_methods": networks,
        "growth": growth,
    }
    parts += [make(results[name]) for name, make in makers.items() if name in results]
    parts += [fifty_million(large)]
    if "streamed_networks" in results:
        parts += [billion(results["streamed"], results["streamed_networks"], machine["cores"])]
    parts += [on_a_gpu(gpu)]
    on_card = folder / "gpu_auto.json"
    parts += [auto_on_a_gpu(json.loads(on_card.read_text()))] if on_card.exists() else []
    parts += [workers(json.loads((folder / "workers.json").read_text()))]
    grown = folder / "gpu_growth.json"
    parts += [gpu_growth(json.loads(grown.read_text()))] if grown.exists() else []
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


def auto(found: list[dict]) -> str:
    rows = []
    for each in found:
        for name in ("auto", "boosting"):
            own = each[name]
            ratio = each["ratio"] if name == "auto" else 1.0
            numbers = own["seconds"], own["cpu_seconds"], ratio, own["peak_gb"]
            rows.append((f"{each['rows']:,}", name, *numbers))
    return _section(
        'Fits with method="auto"',
        "`DeepHeckmanRegressor` with three numeric columns, a category and an instrument, verdict "
        "included. The reference is scikit-learn's gradient boosting of the observed outcomes, "
        "which ignores selection. A table of more than 20,000 rows is sampled.",
        ("rows", "model", "seconds", "CPU seconds", "ratio", "peak GB"),
        rows,
    )


def scoring(found: dict) -> str:
    names = {"boosting": "gradient boosting, mean only"}
    numbers = "seconds", "cpu_seconds", "ratio", "peak_gb"
    rows = [
        (names.get(name, f"auto, {name}"), f"{run['rows']:,}", *(run[each] for each in numbers))
        for name, run in found["contenders"].items()
    ]
    return _section(
        "Scoring",
        'From a Parquet file to a Parquet file with `heckesel predict` and a model of `"auto"`: '
        "mean, standard deviation and interval. Imports are timed. The ratio compares the time per "
        "row.",
        ("model and target", "rows", "seconds", "CPU seconds", "ratio", "peak GB"),
        rows,
    )


# Of the estimate for a billion rows: machines like the one that was measured, and passes.
MACHINES, EPOCHS = 16, 20
BILLION = 1_000_000_000


def billion(linear: list[dict], networks: dict, cores: int) -> str:
    """What a fit of 1e9 rows would read and take, if seconds grow with rows as measured."""
    (run,) = (each for each in linear if each["method"] == "ml")
    files = run["contenders"]["files"]
    per_pass = BILLION * run["columns"] * 8
    cpu = {
        "ml": BILLION * files["cpu_microseconds_a_row"] / 1e6,
        "two-step networks": EPOCHS * BILLION * networks["files"]["cpu_microseconds_a_row"] / 1e6,
    }
    others = networks["files"]["passes"] - networks["epochs"]
    passes = {"ml": files["passes"], "two-step networks": round(EPOCHS + others, 1)}
    rows = [
        (
            name,
            passes[name],
            f"{passes[name] * per_pass / 1e12:.2g}",
            f"{seconds / 3600:.2g}",
            f"{seconds / 60 / MACHINES / cores:.2g}",
        )
        for name, seconds in cpu.items()
    ]
    return _section(
        "A billion rows, an estimate",
        f"Not measured: processor time per row and passes of the runs above, for {BILLION:,} rows "
        f"of {run['columns']} columns of float64 ({per_pass / 1e9:.0f} GB) on {MACHINES} machines "
        f"with {cores} cores each, if reading keeps pace. The networks are "
        f"{networks['members']} members, {EPOCHS} epochs in mini-batches of {networks['batch']:,}.",
        ("method", "passes over the files", "TB read", "core hours", "minutes"),
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
    names = {
        "statspai": "joint ML, StatsPAI",
        "gaussian_process": "Gaussian process, scikit-learn",
    }
    rows = [(names[row[0]], *row[1:]) for row in rows]
    return _section(
        "Other programs in the same run",
        "",
        ("", "rows", "other, seconds", "heckesel, seconds", "ratio"),
        rows,
    )


def networks(found: dict) -> str:
    early = found["ending_early"]
    whole = _against_loop(
        found,
        "Networks, five members",
        f"A PyTorch loop over members compared with heckesel, {found['epochs']} epochs of one "
        "simulated dataset on two cores.",
    )
    ending = _against_loop(
        early,
        "Networks with early stopping",
        f"The loop trains for {early['epochs']} epochs. heckesel uses five folds with early "
        "stopping, except for MC dropout. The bias is that in the selected-against region.",
    )
    return "\n".join([whole, ending])


def _against_loop(found: dict, title: str, sentence: str) -> str:
    names = "looped_s", "ours_s", "ratio", "looped_bias_against", "ours_bias_against"
    rows = [(name, *(row[each] for each in names)) for name, row in found["methods"].items()]
    rows.append(("all", found["looped_s"], found["ours_s"], found["ratio"], "", ""))
    columns = ("", "loop, seconds", "heckesel, seconds", "ratio", "loop, bias", "heckesel, bias")
    return _section(title, sentence, columns, rows)


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


def auto_on_a_gpu(found: dict) -> str:
    """The same fits on the cores of that machine are the reference of the ratios."""
    devices = {"cuda": found["device"], "cpu": f"{found['cores']} cores"}
    by_cores = {
        run["rows"]: run["seconds"][-1] for run in found["processes"] if run["device"] == "cpu"
    }
    rows = [
        (
            f"{run['rows']:,}",
            devices[run["device"]],
            *run["seconds"],
            round(run["seconds"][-1] / by_cores[run["rows"]], 2),
        )
        for run in found["processes"]
    ]
    return _section(
        f'Fits with method="auto" on one {found["device"]}',
        "Each row is a separate process, in the order in which they ran after the machine had "
        "started; the first one compiles kernels that the others find in a cache. The ratio is "
        "that of the second fit to the same fit on the cores of that machine.",
        ("rows", "device", "first fit, seconds", "second fit, seconds", "ratio"),
        rows,
    )


def workers(found: list[dict]) -> str:
    kinds = {
        "dask": "workers of a local Dask cluster",
        "cpu": "processes",
        "cuda:0": "processes that share one GPU",
    }
    rows = []
    for run in found:
        alone = run["seconds"]["1"]
        for count, taken in run["seconds"].items():
            what = run["machine"], kinds[run["kind"]], count
            rows.append((*what, f"{run['rows']:,}", taken, round(alone / taken, 2)))
    notes = " ".join(
        f"The {kinds[run['kind']]} ran {run['note']}." for run in found if "note" in run
    )
    return _section(
        'Workers for method="auto"',
        "Members of the networks and chunks of the splines are tasks. Workers on processors have "
        "one thread each. The speed-up is over one worker of that kind: what is not split, such "
        "as the choice of surfaces and the probit, limits it, and processes that share a GPU get "
        f"in each other's way. {notes}".strip(),
        ("machine", "kind of worker", "workers", "rows", "seconds", "speed-up"),
        rows,
    )


def gpu_growth(found: dict) -> str:
    rows = []
    for name, part in found.items():
        if not isinstance(part, dict):
            continue
        for size, run in zip(part["sizes"], part["runs"], strict=True):
            milliseconds = f"{1e3 * run['seconds']:.3g}"
            rows.append((name, f"{size:,}", milliseconds, run.get("peak_gb", ""), ""))
        if part["exponent"] is not None:
            rows.append((name, f"from {part['full_from']:,} on", "", "", part["exponent"]))
    return _section(
        f"Growth on one {found['device']}",
        "One epoch of the two-step on simulated datasets, with all networks in one batch. The GPU "
        "is saturated once an epoch takes twice as long as at the smallest size; the exponent is "
        "computed from there on.",
        ("what grows", "size", "ms per epoch", "peak GB", "exponent"),
        rows,
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
