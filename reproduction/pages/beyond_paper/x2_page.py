"""The chapter X2: errors that are not normal."""

from collections.abc import Callable
from functools import partial
from itertools import product

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, target_row
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results
from reproduction.x2_misspecified import METHODS

ERRORS = {"normal": "normal", "t": "t(3)", "chi2": "centred χ²(3)"}
INSTRUMENT = {0.0: "without instrument", 1.0: "with instrument"}
METRICS = {"coverage90": md.mean_percent, "bias_f0": md.mean_of, "interval_score90": md.mean_of}


def values(results: Results, method: str, metric: str, **cell):
    return md.seed_values(results.x2, f"{metric}_against", method=method, **cell)


def targets(results: Results) -> list[TargetRow]:
    """`auto` where the profile method has the largest errors; the profile method at rho = .9, where
    the paper's own methods have theirs."""
    flat = values(results, "heckman_auto", "coverage90", errors="chi2", alpha=0.0, rho=0.0)
    says = f"{ERRORS['chi2']} errors, no instrument, ρ = 0: coverage at least 85 %"
    found = [target_row(says, "heckman_auto", Requirement(flat, low=0.85), form=md.PERCENT)]
    for method, errors in product(("heckman_profile", "spline_joint"), ("t", "chi2")):
        find = partial(values, results, method, "coverage90", errors=errors, rho=0.9)
        parts = [Requirement(find(alpha=alpha), label=name) for alpha, name in INSTRUMENT.items()]
        says = f"{ERRORS[errors]} errors, ρ = .9: coverage (no threshold)"
        found.append(target_row(says, method, *parts, form=md.PERCENT))
    return found


def parts(results: Results) -> dict[str, str]:
    lines = []
    for (errors, name), (alpha, where) in product(ERRORS.items(), INSTRUMENT.items()):
        largest = ", ".join(_largest_bias(results, method, errors, alpha) for method in METHODS)
        lines.append(f"- {name}, {where}: {largest}.")
    tables = {metric: _table(results, metric, show) for metric, show in METRICS.items()}
    return tables | {"furthest": "\n".join(lines)}


def _largest_bias(results: Results, method: str, errors: str, alpha: float) -> str:
    find = partial(values, results, method, "bias_f0", errors=errors, alpha=alpha)
    means = {rho: float(bias.mean()) for rho in RHOS if len(bias := find(rho=rho))}
    if not means:
        return f"{LABELS[method]} {md.NO_ROWS}"
    rho = max(means, key=lambda r: abs(means[r]))
    return f"{LABELS[method]} {md.NUMBER.value(means[rho])} (ρ = {md.decimal(rho)})"


def _table(results: Results, metric: str, show: Callable) -> str:
    """A table with methods as columns."""
    columns = [md.Column(LABELS[method], method, show) for method in METHODS]
    lines = []
    for errors, alpha, rho in product(ERRORS, ALPHAS, RHOS):
        find = partial(values, results, metric=metric, errors=errors, alpha=alpha, rho=rho)
        lines.append(([ERRORS[errors], "yes" if alpha else "no", md.decimal(rho)], find))
    return md.metric_table(("errors", "instrument", "ρ"), columns, lines)
