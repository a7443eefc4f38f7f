"""X1 on the page: the whole likelihood over rho, on the paper's curve and on five columns."""

from __future__ import annotations

from itertools import product

import numpy as np

from reproduction import x1_profile
from reproduction.pages.ours.targets import (
    PERCENT,
    Judged,
    Part,
    below,
    bias_part,
    decimal,
    judge,
    mean_of,
    mean_size,
    seeds,
    table,
)
from reproduction.pages.rows import Results, Row
from reproduction.pages.verdicts import LABELS
from reproduction.x1_profile import ALPHAS, OTHERS, PRIORS, RHOS, WEIGHING

TITLE = "X1: the whole likelihood over ρ"
FIGURE = ("x1", "Coverage and bias in the selected-against region without an instrument.")
DRAWS = {"curve": "the paper's curve", "interactions": "five columns with interactions"}
MAIN_MODE = 0.85
INTRODUCTION = """\
Pools of A-E1 ("the paper's curve", 2000 units) and of a function of five columns with \
interactions (4000 units); z is a column of the selection equation throughout and has no effect \
where α = 0. Everything is measured in the selected-against region. *Prior* is what the method is \
told of ρ; *profile* is networks or, where they make rows left out likelier, splines. *Main mode* \
is the ρ of most evidence before the prior is applied, smallest and median over seeds. The paper's \
methods on its curve are those of `results/e1_controlled.json`."""


MORE = """\
### Sixteen more draws of the five columns, α = 0

A posterior that is right holds ρ in nine of ten intervals of 90 %, averaged over ρ; at any one \
ρ it may settle on the wrong sign more or less often, and eight draws do not show how often."""


def cells() -> list:
    return x1_profile.cells()


def rows(results: Results) -> list[Row]:
    return list(results.x1)


def targets(results: Results) -> list[Judged]:
    return [
        judged
        for draw in DRAWS
        for find in (_high_rho, _lower_rho, _no_selection, _with_instrument)
        for method in WEIGHING
        for judged in find(results, draw, method)
    ]


def text(results: Results) -> str:
    parts = [INTRODUCTION, _taken_over(results), _wrong_sign(results)]
    for draw, name in DRAWS.items():
        for alpha in ALPHAS:
            parts += [f"### {name[0].upper()}{name[1:]}, α = {decimal(alpha)}"]
            parts += [_table(results, draw, alpha)]
    return "\n\n".join([*parts, MORE, _more(results)])


def values(results: Results, draw: str, method: str, metric: str, **cell):
    """Over seeds, in the selected-against region, with a uniform prior unless `cell` has another;
    on the curve the paper's methods are those of A-E1."""
    cell = {"prior": "uniform"} | cell
    name = metric if metric.startswith("mode") else f"{metric}_against"
    if draw == "curve" and method in OTHERS:
        return seeds(results.e1, name, method=method, rho=cell["rho"], alpha=cell["alpha"])
    return seeds(results.x1, name, draw=draw, method=method, **cell)


def _high_rho(results: Results, draw: str, method: str) -> list[Judged]:
    where, cell = f"{DRAWS[draw]}, α = 0, ρ = .9", {"alpha": 0.0, "rho": 0.9}
    coverage = values(results, draw, method, "coverage90", **cell)
    bias = values(results, draw, method, "bias_f0", **cell)
    mode = values(results, draw, method, "mode0_rho", **cell)
    smallest = f", smallest {mode.min():.3f}" if len(mode) else ""
    return [
        judge(f"{where}: coverage 87–93 %", method, Part(coverage, 0.87, 0.93), form=PERCENT),
        judge(f"{where}: \\|bias\\| ≤ .05", method, bias_part(bias, 0.05), size=True),
        judge(
            f"{where}: main mode ≥ .85 at every seed",
            method,
            Part(mode, low=MAIN_MODE, beside=smallest),
            statistic=np.min,
        ),
    ]


def _lower_rho(results: Results, draw: str, method: str) -> list[Judged]:
    found = []
    for rho in (0.6, 0.3):
        where, cell = f"{DRAWS[draw]}, α = 0, ρ = {decimal(rho)}", {"alpha": 0.0, "rho": rho}
        coverage = values(results, draw, method, "coverage90", **cell)
        score = values(results, draw, method, "interval_score90", **cell)
        theirs = values(results, draw, "deep_ensemble", "interval_score90", **cell)
        bias = values(results, draw, method, "bias_f0", prior="positive", **cell)
        found += [
            judge(f"{where}: coverage ≥ 85 %", method, Part(coverage, low=0.85), form=PERCENT),
            judge(
                f"{where}: interval score below the deep ensemble's",
                method,
                below(score, theirs, name="deep ensemble"),
            ),
            judge(
                f"{where}, sign known: \\|bias\\| ≤ .15", method, bias_part(bias, 0.15), size=True
            ),
        ]
    return found


def _no_selection(results: Results, draw: str, method: str) -> list[Judged]:
    where, cell = f"{DRAWS[draw]}, α = 0, ρ = 0", {"alpha": 0.0, "rho": 0.0}
    coverage = values(results, draw, method, "coverage90", **cell)
    wrong = [
        Part(values(results, draw, method, "bias_f0", prior=prior, **cell), label=f"{prior} prior")
        for prior in PRIORS[1:]
    ]
    return [
        judge(f"{where}: coverage ≥ 87 %", method, Part(coverage, low=0.87), form=PERCENT),
        judge(f"{where}: bias that a wrong sign costs", method, *wrong),
    ]


def _with_instrument(results: Results, draw: str, method: str) -> list[Judged]:
    where, cell = f"{DRAWS[draw]}, α = 1, ρ = .9", {"alpha": 1.0, "rho": 0.9}
    ece = values(results, draw, method, "ece", **cell)
    central = f", central ECE {mean_of(values(results, draw, method, 'ece_central', **cell))}"
    coverage = values(results, draw, method, "coverage90", **cell)
    return [
        judge(f"{where}: region-ECE ≤ .028", method, Part(ece, high=0.028, beside=central)),
        judge(f"{where}: coverage 88–92 %", method, Part(coverage, 0.88, 0.92), form=PERCENT),
    ]


def _taken_over(results: Results) -> str:
    """Cells in which the profile is the spline fit: its errors are the same to the last digits."""
    shares = []
    for draw, name in DRAWS.items():
        same: list[bool] = []
        for prior, alpha, rho in product(PRIORS, ALPHAS, RHOS):
            cell = {"prior": prior, "alpha": alpha, "rho": rho}
            profile, spline = (values(results, draw, m, "rmse_f0", **cell) for m in WEIGHING)
            if len(profile) == len(spline):
                same += np.isclose(profile, spline, rtol=1e-6).tolist()
        shares.append(f"{PERCENT.value(float(np.mean(same)))} on {name}" if same else "")
    return f"Cells in which splines took the networks' place: {', '.join(filter(None, shares))}."


def _wrong_sign(results: Results) -> str:
    """What believing the wrong sign costs, without and with the instrument."""
    sentences = []
    for alpha, where in ((0.0, "Without the instrument"), (1.0, "With it")):
        costs = []
        for method in WEIGHING:
            cell = {"alpha": alpha, "rho": 0.9, "prior": "negative"}
            coverage = values(results, "curve", method, "coverage90", **cell)
            bias = values(results, "curve", method, "bias_f0", **cell)
            costs.append(
                f"{LABELS[method]} coverage {mean_of(coverage, PERCENT)}, bias {mean_of(bias)}"
            )
        sentences.append(
            f"{where}, a prior of the wrong sign at ρ = .9 on the paper's curve gives "
            + "; ".join(costs)
            + "."
        )
    return " ".join(sentences)


HEADER = (
    "ρ",
    "method",
    "prior",
    "coverage",
    "width",
    "bias",
    "mean of \\|bias\\|",
    "ECE",
    "central ECE",
    "interval score",
    "main mode, smallest",
    "median",
)


def _table(results: Results, draw: str, alpha: float) -> str:
    choices = [(method, prior) for method in WEIGHING for prior in PRIORS]
    choices += [(method, "uniform") for method in OTHERS]
    lines = [
        _line(results, draw, alpha, rho, method, prior) for rho in RHOS for method, prior in choices
    ]
    return table(HEADER, lines)


def _line(results, draw, alpha, rho, method, prior) -> list[str]:
    def found(metric: str):
        return values(results, draw, method, metric, prior=prior, alpha=alpha, rho=rho)

    weighs = method in WEIGHING
    mode = found("mode0_rho") if weighs else np.array([])
    bias = found("bias_f0")
    return [
        decimal(rho),
        LABELS[method],
        prior if weighs else "",
        mean_of(found("coverage90"), PERCENT),
        mean_of(found("width90")),
        mean_of(bias),
        mean_size(bias),
        *(mean_of(found(metric)) for metric in ("ece", "ece_central", "interval_score90")),
        f"{mode.min():.3f}" if len(mode) else "",
        f"{np.median(mode):.3f}" if len(mode) else "",
    ]


def _more(results: Results) -> str:
    header = ("ρ", "method", "coverage", "bias", "interval score", "intervals that hold ρ")
    lines = []
    for method in WEIGHING:
        shares = []
        for rho in RHOS:
            cell = {"draw": "more interactions", "method": method, "rho": rho}
            shares.append(_holds(results, rho, cell))
            against = (
                seeds(results.x1, f"{name}_against", **cell)
                for name in ("coverage90", "bias_f0", "interval_score90")
            )
            coverage, bias, score = against
            lines.append(
                [
                    decimal(rho),
                    LABELS[method],
                    mean_of(coverage, PERCENT),
                    mean_of(bias),
                    mean_of(score),
                    f"{100 * shares[-1]:.0f} %",
                ]
            )
        lines.append(["all", LABELS[method], "", "", "", f"{100 * np.mean(shares):.0f} %"])
    return table(header, lines)


def _holds(results: Results, rho: float, cell: dict) -> float:
    low, high = (seeds(results.x1, name, **cell) for name in ("rho_low", "rho_high"))
    return float(np.mean((low <= rho) & (rho <= high)))
