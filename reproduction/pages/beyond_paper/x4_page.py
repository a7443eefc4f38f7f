"""The chapter X4: calibration on real tables, members on folds and sigma(x)."""

from functools import partial
from itertools import product

import numpy as np

from reproduction.e1_controlled import RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper import x4_controls
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    coverage_target,
    not_above,
    target_row,
)
from reproduction.pages.beyond_paper.x4_controls import SCORES, not_above_before, values
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results, read_paper
from reproduction.x4_calibrated import (
    METHODS,
    MORE,
    MORE_METHODS,
    MORE_SEEDS,
    OPEN_METHODS,
    PAPER,
    SEEDS,
)

TABLES = {
    "california": "California housing",
    "wine": "wine quality",
    "college_gpa": "college grades",
    "school_tests": "school tests",
}
PAPERS = ("california", "wine")
CORRECTED = ("heckman_averaged", "heckman_two_step", "heckman_joint")
CORRECTED_MORE = MORE_METHODS[:2]
BASELINES = ("blind_two_head", "deep_ensemble", "weighted_ensemble")
ECE_LIMIT = {"california": 0.030, "wine": 0.049}
WITHIN = 0.01  # of the deep ensemble, without selection on unobservables
REGIONS = {"against": "selected against", "mid": "middle", "well": "well sampled"}
PLACES = {"_against": "selected against", "": "all points"}
DRAWS = f"{len(MORE_SEEDS)} more draws"


INTERVALS = {
    f"{what}, {name}": f"{what}90_{region}"
    for region, name in REGIONS.items()
    for what in ("coverage", "width")
}
ALL_POINTS = {"NLL, all points": "nll", "CRPS, all points": "crps"}
COLUMNS = md.columns({"ECE": "ece_against"} | INTERVALS | SCORES | ALL_POINTS)
MORE_INTERVALS = {name: metric for name, metric in INTERVALS.items() if "middle" not in name}
MORE_ECE = md.Column("ECE", "ece_against", md.mean_and_error)
MORE_COLUMNS = [MORE_ECE, *md.columns(MORE_INTERVALS | SCORES)]


def targets(results: Results) -> list[TargetRow]:
    found = []
    for dataset, method in product(PAPERS, CORRECTED):
        found += _calibration(results, dataset, method, note=_published(dataset))
        found += [_below_baselines(results, dataset, method, m) for m in ("nll", "crps")]
        found += [_nothing_to_correct(results, dataset, method, m) for m in ("nll", "ece")]
    for dataset, method in product(TABLES, CORRECTED):
        if dataset not in PAPERS:
            ece = Requirement(values(results, dataset, method, "ece_against"))
            says = f"{TABLES[dataset]}, ρ = .8: region-ECE (no threshold)"
            found.append(target_row(says, method, ece))
    for dataset, method in product(PAPERS, CORRECTED_MORE):
        found += _calibration(results, MORE + dataset, method)
        found.append(skyline_reached(results, dataset, method))
    found += [not_worse(results, method) for method in CORRECTED_MORE]
    return found + x4_controls.targets(results)


def parts(results: Results) -> dict[str, object]:
    found = {dataset: _table(results, dataset) for dataset in TABLES} | x4_controls.parts(results)
    found |= {"against_skyline": _against_skyline(results), "more": _more_table(results)}
    return found | {"draws": DRAWS}


def _calibration(results: Results, dataset: str, method: str, note: str = "") -> list[TargetRow]:
    name = dataset.removeprefix(MORE)
    where = f"{TABLES[name]}, ρ = .8" + (f", {DRAWS}" if dataset != name else "")
    find, limit = partial(values, results, dataset, method), ECE_LIMIT[name]
    ece = Requirement(find("ece_against"), high=limit, note=note)
    found = [target_row(f"{where}: region-ECE ≤ {md.decimal(limit)}", method, ece)]
    for region, low, high in (("against", 0.86, 0.94), ("well", 0.86, 0.96)):
        coverage, width = find(f"coverage90_{region}"), md.mean_of(find(f"width90_{region}"))
        shown = {"region": REGIONS[region], "note": f", width {width}"}
        found.append(coverage_target(where, method, coverage, low, high, **shown))
    return found


def _published(dataset: str) -> str:
    """The numbers of the paper, from its published rows."""
    find = partial(md.seed_values, read_paper().e2, "ece_against", dataset=dataset, rho=0.8)
    methods = ("heckman_two_step", "skyline")
    return "".join(f", paper's {LABELS[m]} {md.mean_of(find(method=m))}" for m in methods)


def _below_baselines(results: Results, dataset: str, method: str, metric: str) -> TargetRow:
    """Against the best of the baselines, in the selected-against region and over all points."""
    parts = []
    for suffix, label in PLACES.items():
        found = {m: values(results, dataset, m, metric + suffix) for m in (*BASELINES, method)}
        best = min(BASELINES, key=lambda m: found[m].mean() if len(found[m]) else -np.inf)
        parts.append(not_above(found[method], found[best], name=LABELS[best], label=label))
    says = f"{TABLES[dataset]}, ρ = .8: {metric.upper()} below that of every baseline on folds"
    return target_row(says, method, *parts)


def _nothing_to_correct(results: Results, dataset: str, method: str, metric: str) -> TargetRow:
    """Our metric minus that of the deep ensemble, by seed."""
    parts = []
    for suffix, label in PLACES.items():
        find = partial(values, results, dataset, metric=metric + suffix, rho=0.0)
        difference = find(method) - find("deep_ensemble")
        parts.append(Requirement(difference, high=WITHIN, label=label))
    says = f"at most {md.decimal(WITHIN)} above the deep ensemble's (difference)"
    return target_row(f"{TABLES[dataset]}, ρ = 0: {metric.upper()} {says}", method, *parts)


def skyline_reached(results: Results, dataset: str, method: str) -> TargetRow:
    """The paper's skyline on the same draws, which knows every outcome."""
    find = partial(values, results, MORE + dataset, metric="ece_against")
    skyline = not_above(find(method), find("skyline" + PAPER), name="skyline")
    where, says = f"{TABLES[dataset]}, ρ = .8, {DRAWS}", "not above that of the paper's skyline"
    return target_row(f"{where}: mean region-ECE {says}", method, skyline)


def not_worse(results: Results, method: str) -> TargetRow:
    find = partial(values, results, MORE + "controlled", metric="ece_against")
    before = "heckman_two_step" + PAPER
    pairs = {rho: (find(before, rho=rho), find(method, rho=rho)) for rho in RHOS}
    return not_above_before(f"A-E1, α = 1, {DRAWS}", method, pairs)


def _against_skyline(results: Results) -> str:
    """The distance of two methods from the same networks trained on all outcomes."""
    shown, sentences = ("heckman_averaged", "heckman_two_step", "skyline"), []
    for dataset, name in TABLES.items():
        found = [values(results, dataset, m, "ece_against") for m in shown]
        if all(map(len, found)):
            first, second, sky = map(md.mean_and_sd, found)
            sentences.append(f"{name} {first} and {second} against {sky}")
    return "; ".join(sentences)


def _table(results: Results, dataset: str) -> str:
    lines = []
    for rho in SEEDS:
        for method in (*METHODS, *(OPEN_METHODS if rho == 0.8 else ())):
            find = partial(values, results, dataset, method, rho=rho)
            lines.append(([md.decimal(rho), LABELS[method]], find))
        for method in ("heckman_two_step", "skyline") if dataset in PAPERS else ():
            cell = {"dataset": dataset, "method": method, "rho": rho}
            find = partial(md.seed_values, results.e2, **cell)
            lines.append(([md.decimal(rho), f"{LABELS[method]}, paper"], find))
    return md.metric_table(("ρ", "method"), COLUMNS, lines)


def _more_table(results: Results) -> str:
    places = [(dataset, TABLES[dataset], 0.8) for dataset in PAPERS]
    places += [("controlled", "A-E1", rho) for rho in RHOS]
    methods = (*MORE_METHODS, *(method + PAPER for method in MORE_METHODS[1:]))
    lines = []
    for (dataset, name, rho), method in product(places, methods):
        find = partial(values, results, MORE + dataset, method, rho=rho)
        if len(find("ece_against")):
            lines.append(([name, md.decimal(rho), LABELS[method]], find))
    return md.metric_table(("data", "ρ", "method"), MORE_COLUMNS, lines)
