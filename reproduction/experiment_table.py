"""What a run of an experiment found, as a short table: means over seeds, made from its rows."""

from __future__ import annotations

from collections.abc import Sequence

# Metric of a row -> its head and how it is printed, for points that selection was against.
AGAINST = {
    "bias_f0_against": ("bias", "+.3f"),
    "ece_against": ("ECE", ".3f"),
    "coverage90_against": ("covered", ".1%"),
    "crps_against": ("CRPS", ".3f"),
}
RHO = {"rho": ("rho", "+.3f"), "rho_low": ("from", "+.3f"), "rho_high": ("to", "+.3f")}
OTHERS = {
    "warm-up": {"rho_hat": ("rho", "+.3f"), "rho_hat_sd": ("sd of members", ".3f")},
    "e4": {"n_reported": ("reported", ".0f"), **RHO},
    "e4-timm": {
        "bias": ("bias", "+.3f"),
        "rmse": ("RMSE", ".3f"),
        "coverage90": ("covered", ".1%"),
        "rank_correlation": ("rank corr.", ".3f"),
    },
}
WHERE = "Where selection was against, P(s = 1 | x) < .3; covered by 90 % intervals."
PAGES = {
    "e1": "paper/scoreboard.md",
    "warm-up": "paper/claims.md",
    "e2": "paper/scoreboard.md",
    "e4": "paper/claims.md",
    **dict.fromkeys(("x1", "x2", "x3", "x4"), "paper/ours.md"),
}


def experiment_table(name: str, rows: Sequence[dict]) -> str | None:
    """One line for each method and setting, and the page that has the whole grid.

    rows : {"cell": ..., "metrics": ...}; those that failed have no metrics and are left out
    """
    wanted = OTHERS.get(name, AGAINST)
    rows = [row for row in rows if "metrics" in row and wanted.keys() & row["metrics"].keys()]
    if not rows:
        return None
    metrics = [key for key in wanted if any(key in row["metrics"] for row in rows)]
    settings = [key for key in rows[0]["cell"] if key != "seed"]
    settings.sort(key="method".__eq__)  # the method last, beside its numbers
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row["cell"][key] for key in settings), []).append(row["metrics"])
    lines = [[*settings, *(wanted[key][0] for key in metrics)]]
    for setting, found in groups.items():
        values = [_mean(found, key, wanted[key][1]) for key in metrics]
        lines.append([*map(_setting, setting), *values])
    most = max(map(len, groups.values()))
    head = [f"Means over {most} draws a line."] if most > 1 else []
    head += [WHERE] if wanted is AGAINST else []
    end = [f"All draws of the whole grid: {PAGES[name]}"] if name in PAGES else []
    return "\n".join([" ".join(head), *_aligned(lines, len(settings)), *end]).lstrip("\n")


def _setting(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean(found: list[dict], key: str, form: str) -> str:
    values = [metrics[key] for metrics in found if key in metrics]
    return f"{sum(values) / len(values):{form}}" if values else ""


def _aligned(lines: list[list[str]], texts: int) -> list[str]:
    """Columns of one width: the first `texts` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
