"""X2 on the page: methods that assume normal errors, where the errors are not normal."""

from __future__ import annotations

from functools import partial
from itertools import product

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, target_row
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results
from reproduction.x2_misspecified import METHODS

EXPERIMENT = "x2"
TITLE = "X2: errors that are not normal"
FIGURE = ("x2", "Coverage and bias in the selected-against region by the shape of the errors.")
ERRORS = {"normal": "normal", "t": "t(3)", "chi2": "centred χ²(3)"}
INSTRUMENT = {0.0: "without instrument", 1.0: "with instrument"}
METRICS = {
    "coverage90": ("Coverage", md.mean_percent),
    "bias_f0": ("Bias", md.mean_of),
    "interval_score90": ("Interval score", md.mean_of),
}
INTRODUCTION = """\
The pools of A-E1 with errors of another shape and the same variances and correlation. No targets \
were set. Numbers are means over seeds in the selected-against region; profile and spline have a \
uniform prior."""


def values(results: Results, method: str, metric: str, **cell):
    return md.seed_values(results.x2, f"{metric}_against", method=method, **cell)


def targets(results: Results) -> list[TargetRow]:
    """The profile method at rho = .9, where the paper's own methods are furthest off."""
    found = []
    for method, errors in product(("heckman_profile", "spline_joint"), ("t", "chi2")):
        find = partial(values, results, method, "coverage90", errors=errors, rho=0.9)
        parts = [Requirement(find(alpha=alpha), label=name) for alpha, name in INSTRUMENT.items()]
        says = f"{ERRORS[errors]} errors, ρ = .9: coverage (no threshold)"
        found.append(target_row(says, method, *parts, form=md.PERCENT))
    return found


def text(results: Results) -> str:
    parts = [INTRODUCTION, _furthest(results)]
    for metric, (name, _) in METRICS.items():
        parts += [f"### {name}", _table(results, metric)]
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
    find = partial(values, results, method, "bias_f0", errors=errors, alpha=alpha)
    means = {rho: float(bias.mean()) for rho in RHOS if len(bias := find(rho=rho))}
    if not means:
        return f"{LABELS[method]} {md.NO_ROWS}"
    rho = max(means, key=lambda r: abs(means[r]))
    return f"{LABELS[method]} {md.NUMBER.value(means[rho])} (ρ = {md.decimal(rho)})"


def _table(results: Results, metric: str) -> str:
    """Methods are the columns here."""
    columns = [md.Column(LABELS[method], method, METRICS[metric][1]) for method in METHODS]
    lines = [
        (
            [ERRORS[errors], "yes" if alpha else "no", md.decimal(rho)],
            partial(values, results, metric=metric, errors=errors, alpha=alpha, rho=rho),
        )
        for errors, alpha, rho in product(ERRORS, ALPHAS, RHOS)
    ]
    return md.metric_table(("errors", "instrument", "ρ"), columns, lines)
