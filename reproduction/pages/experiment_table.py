"""The result of a run as a short table: means over seeds of each setting."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

# Metric of a row -> its heading and how it is printed, for the selected-against region.
AGAINST = {
    "bias_f0_against": ("bias", "+.3f"),
    "ece_against": ("ECE", ".3f"),
    "coverage90_against": ("covered", ".1%"),
    "crps_against": ("CRPS", ".3f"),
}
RHO = {"rho": ("rho", "+.3f"), "rho_low": ("from", "+.3f"), "rho_high": ("to", "+.3f")}
METRICS = {
    "warm-up": {"rho_hat": ("rho", "+.3f"), "rho_hat_sd": ("sd of members", ".3f")},
    "e4": {"n_reported": ("reported", ".0f"), **RHO},
    "e4-timm": {
        "bias": ("bias", "+.3f"),
        "rmse": ("RMSE", ".3f"),
        "coverage90": ("covered", ".1%"),
        "rank_correlation": ("rank corr.", ".3f"),
    },
    "x6": {
        "estimate": ("mean", ".3f"),
        "low": ("from", ".3f"),
        "high": ("to", ".3f"),
        "error": ("error, sd", "+.3f"),
    },
    "instruments": {
        "rejected": ("rejected", ".1%"),
        "effect_negative": ("stated", "+.2f"),
        "caught_negative": ("caught", ".1%"),
        "effect_positive": ("stated", "+.2f"),
        "caught_positive": ("caught", ".1%"),
    },
}
WHERE = "Selected-against region, P(s = 1 | x) < .3; covered: by 90 % intervals."
PAGES = {
    **dict.fromkeys(("e1", "e2"), "paper/scoreboard.md"),
    **dict.fromkeys(("warm-up", "e4"), "paper/claims.md"),
    **dict.fromkeys(("x1", "x4", "x5", "x6", "instruments"), "paper/ours.md"),
}


def experiment_table(name: str, rows: Sequence[dict]) -> str | None:
    """One line for each method and setting, and the name of the page with the whole grid.

    rows : {"cell": ..., "metrics": ...}; failed ones have no metrics and are not shown
    """
    wanted = METRICS.get(name, AGAINST)
    rows = [row for row in rows if wanted.keys() & row.get("metrics", {}).keys()]
    if not rows:
        return None
    settings = [key for key in rows[0]["cell"] if key != "seed"]
    settings.sort(key="method".__eq__)  # the method last, beside its numbers
    metrics = [key for key in wanted if any(key in row["metrics"] for row in rows)]
    # prefixed, because a metric may have the name of a setting
    table = pd.DataFrame(
        [row["cell"] | {f"metric {k}": row["metrics"].get(k) for k in metrics} for row in rows]
    )
    groups = table.groupby(settings, sort=False)
    means = groups[[f"metric {key}" for key in metrics]].mean().reset_index()
    shown = [means[key].map(_setting) for key in settings]
    shown += [means[f"metric {key}"].map(partial(_number, wanted[key][1])) for key in metrics]
    headings = [*settings, *(wanted[key][0] for key in metrics)]
    most = groups.size().max()
    head = [f"Means over {most} draws per line."] if most > 1 else []
    head += [WHERE] if wanted is AGAINST else []
    end = [f"The whole grid: {PAGES[name]}"] if name in PAGES else []
    lines = pd.concat(shown, axis=1).to_string(index=False, header=headings).splitlines()
    return "\n".join([" ".join(head), *map(str.rstrip, lines), *end]).lstrip("\n")


def _setting(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(form: str, value: float) -> str:
    return "" if pd.isna(value) else f"{value:{form}}"
