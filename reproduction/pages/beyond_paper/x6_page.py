"""The chapter X6: known means of hidden outcomes, and the estimates of every method."""

from collections.abc import Callable, Sequence

import numpy as np

from heckesel.diagnostics.verdict import IDENTIFIED, VERDICTS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, target_row
from reproduction.pages.macros import fixed
from reproduction.pages.rows import Results, Row, matching, only
from reproduction.truth.sources import SOURCES
from reproduction.truth.x6_truth import METHODS, VALIDITY

CORRECTED = ("linear auto", "auto")
CODE = float(VERDICTS.index(IDENTIFIED))
GROUPS: dict[str, Callable] = {
    "randomised instrument": lambda of: of.randomised,
    "instrument not randomised": lambda of: of.instruments and not of.randomised,
    "no instrument": lambda of: not of.instruments,
}


def outcomes(results: Results, group: str | None = None) -> list[tuple[str, str]]:
    """(source, outcome) of all results, in the order of the protocol."""
    run = {(row["source"], row["outcome"]) for row in results.x6}
    return [
        (source, outcome)
        for source, of in SOURCES.items()
        if group is None or GROUPS[group](of)
        for outcome in of.outcomes
        if (source, outcome) in run
    ]


def values(results: Results, method: str, metric: str, keys: Sequence[tuple]) -> np.ndarray:
    """The metric of a method for these outcomes, where it has one."""
    found = [
        matching(results.x6, source=source, outcome=outcome, method=method)
        for source, outcome in keys
    ]
    return np.array([rows[0][metric] for rows in found if rows and metric in rows[0]])


def identified(results: Results) -> list[tuple[str, str]]:
    """Outcomes with the verdict "identified by an instrument"."""
    keys = outcomes(results)
    return [key for key in keys if _evidence(results, key).get("verdict") == CODE]


def closer(results: Results, method: str, keys: Sequence[tuple]) -> np.ndarray:
    """1 for each outcome where the error of the method is smaller than that of the naive mean."""
    found = []
    for key in keys:
        own, naive = (values(results, name, "error", [key]) for name in (method, "naive"))
        found += [float(abs(own[0]) < abs(naive[0]))] if len(own) and len(naive) else []
    return np.array(found)


def nearest(results: Results, key: tuple[str, str]) -> str:
    """The method with the smallest error."""
    errors = {method: values(results, method, "error", [key]) for method in METHODS}
    return min((m for m in METHODS if len(errors[m])), key=lambda m: abs(errors[m][0]))


def targets(results: Results) -> list[TargetRow]:
    randomised, sure = outcomes(results, "randomised instrument"), identified(results)
    found = []
    says = "randomised instrument: 90 % intervals cover at least 80 % of the known means"
    for method in METHODS:
        bound = {"low": 0.8} if method in CORRECTED else {}
        covered = Requirement(values(results, method, "covered", randomised), **bound)
        found.append(target_row(says, method, covered, form=md.PERCENT))
    says = "identified by an instrument: error below the naive error in more than half of outcomes"
    for method in METHODS:
        if method != "naive":
            bound = {"low": np.nextafter(0.5, 1)} if method in CORRECTED else {}
            share = Requirement(closer(results, method, sure), **bound)
            found.append(target_row(says, method, share, form=md.PERCENT))
    held = Requirement(values(results, "bounds", "covered", outcomes(results)), low=1.0)
    says = "worst-case bounds hold every known mean of all units"
    return [*found, target_row(says, "`hk.bounds`", held, form=md.PERCENT)]


def parts(results: Results) -> dict[str, str]:
    return {
        "n_outcomes": str(len(outcomes(results))),
        "n_sources": str(len({source for source, _ in outcomes(results)})),
        "naive_nearest": str(sum(nearest(results, key) == "naive" for key in outcomes(results))),
        "summary": _summary(results),
        "estimates": _estimates(results),
        "evidence": _evidence_table(results),
    }


def _summary(results: Results) -> str:
    header = ["outcomes", "", "method", "covered", "median \\|error\\|", "largest", "nearer"]
    groups = {name: outcomes(results, name) for name in GROUPS}
    lines = []
    for name, keys in ({"identified by an instrument": identified(results)} | groups).items():
        for method in METHODS:
            error = np.abs(values(results, method, "standardised_error", keys))
            if not len(error):
                continue
            covered = values(results, method, "covered", keys)
            nearer = "" if method == "naive" else md.mean_percent(closer(results, method, keys))
            sizes = [fixed(np.median(error), 2), fixed(error.max(), 2)]
            lines.append([name, str(len(error)), method, md.mean_percent(covered), *sizes, nearer])
    return md.table(header, lines)


def _estimates(results: Results) -> str:
    header = ["source", "outcome", "hidden", "observed mean", "truth", *METHODS]
    lines = []
    for key in outcomes(results):
        known = _evidence(results, key)
        truth = f"{_number(known['truth'])} ± {_number(known['truth_se'])}"
        line = [*key, f"{known['n_hidden']:.0f}", _number(known["selected_mean"]), truth]
        lines.append(line + [_estimate(results, key, method) for method in METHODS])
    return md.table(header, lines)


def _estimate(results: Results, key: tuple[str, str], method: str) -> str:
    rows = matching(results.x6, source=key[0], outcome=key[1], method=method)
    if "estimate" not in rows[0]:
        return "refused"
    row = rows[0]
    text = f"{_number(row['estimate'])} ({_number(row['low'])} to {_number(row['high'])})"
    return text if row["covered"] else f"**{text}**"


def _evidence_table(results: Results) -> str:
    header = ["source", "outcome", "verdict", "p, instruments", "validity", "p, validity"]
    header += ["bounds, all units", "truth, all units", "ρ, likelihood", "ρ, linear auto"]
    lines = []
    for key in outcomes(results):
        known, bounds = _evidence(results, key), _row(results, key, "bounds")
        line = [*key, VERDICTS[int(known["verdict"])] if "verdict" in known else "refused"]
        if "validity" in known:
            p = [_p_value(known[name]) for name in ("wald_p", "validity_p")]
            line += [p[0], VALIDITY[int(known["validity"])], p[1]]
        else:
            line += ["", "", ""]
        line += [f"{_number(bounds['low'])} to {_number(bounds['high'])}"]
        line += [_number(bounds["truth_all"])]
        line += [md.mean_of(values(results, m, "rho", [key])) for m in ("likelihood", CORRECTED[0])]
        lines.append(line)
    return md.table(header, lines)


def _evidence(results: Results, key: tuple[str, str]) -> Row:
    return _row(results, key, "evidence")


def _row(results: Results, key: tuple[str, str], method: str) -> Row:
    return only(results.x6, source=key[0], outcome=key[1], method=method)


def _number(value: float) -> str:
    """Two decimals, three below one."""
    return fixed(value, 2 if abs(value) >= 1 else 3)


def _p_value(p: float) -> str:
    return "< .001" if p < 0.001 else fixed(p, 3)
