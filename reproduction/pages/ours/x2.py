"""X2 on the page: what is left of methods that rest on the normal shape when it is wrong."""

from __future__ import annotations

from reproduction import x2_misspecified
from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.ours.targets import (
    NO_ROWS,
    NUMBER,
    PERCENT,
    Form,
    Judged,
    Part,
    decimal,
    judge,
    mean_of,
    seeds,
    table,
)
from reproduction.pages.rows import Results, Row
from reproduction.pages.verdicts import LABELS
from reproduction.x2_misspecified import METHODS

TITLE = "X2: errors that are not normal"
FIGURE = ("x2", "Coverage and bias in the selected-against region by the shape of the errors.")
ERRORS = {"normal": "normal", "t": "t(3)", "chi2": "centred χ²(3)"}
INSTRUMENT = {0.0: "without instrument", 1.0: "with instrument"}
METRICS: dict[str, tuple[str, Form]] = {
    "coverage90": ("Coverage", PERCENT),
    "bias_f0": ("Bias", NUMBER),
    "interval_score90": ("Interval score", NUMBER),
}
INTRODUCTION = """\
The pools of A-E1 with errors of another shape, of the same variances and correlation. No target \
was set: the numbers are shown as they came out. Selected-against region, means over seeds; \
profile and spline with a uniform prior."""


def cells() -> list:
    return x2_misspecified.cells()


def rows(results: Results) -> list[Row]:
    return list(results.x2)


def values(results: Results, method: str, metric: str, **cell):
    return seeds(results.x2, f"{metric}_against", method=method, **cell)


def targets(results: Results) -> list[Judged]:
    """The profile method at rho = .9, where the paper's own methods are furthest off."""
    found = []
    for method in ("heckman_profile", "spline_joint"):
        for errors in ("t", "chi2"):
            parts = [
                Part(
                    values(results, method, "coverage90", errors=errors, alpha=alpha, rho=0.9),
                    label=name,
                )
                for alpha, name in INSTRUMENT.items()
            ]
            says = f"{ERRORS[errors]} errors, ρ = .9: coverage (no threshold)"
            found.append(judge(says, method, *parts, form=PERCENT))
    return found


def text(results: Results) -> str:
    parts = [INTRODUCTION, _furthest(results)]
    for metric in METRICS:
        parts += [f"### {METRICS[metric][0]}", _table(results, metric)]
    return "\n\n".join(parts)


def _furthest(results: Results) -> str:
    lines = [
        f"- {name}, {where}: "
        + ", ".join(_largest_bias(results, method, errors, alpha) for method in METHODS)
        + "."
        for errors, name in ERRORS.items()
        for alpha, where in INSTRUMENT.items()
    ]
    return "Largest mean bias over ρ, with its sign:\n\n" + "\n".join(lines)


def _largest_bias(results: Results, method: str, errors: str, alpha: float) -> str:
    found = {
        rho: values(results, method, "bias_f0", errors=errors, alpha=alpha, rho=rho) for rho in RHOS
    }
    means = {rho: float(bias.mean()) for rho, bias in found.items() if len(bias)}
    if not means:
        return f"{LABELS[method]} {NO_ROWS}"
    rho = max(means, key=lambda r: abs(means[r]))
    return f"{LABELS[method]} {NUMBER.value(means[rho])} (ρ = {decimal(rho)})"


def _table(results: Results, metric: str) -> str:
    header = ["errors", "instrument", "ρ", *(LABELS[method] for method in METHODS)]
    lines = [
        [
            name,
            "no" if alpha == 0 else "yes",
            decimal(rho),
            *(
                mean_of(
                    values(results, m, metric, errors=errors, alpha=alpha, rho=rho),
                    METRICS[metric][1],
                )
                for m in METHODS
            ),
        ]
        for errors, name in ERRORS.items()
        for alpha in ALPHAS
        for rho in RHOS
    ]
    return table(header, lines)
