"""`paper/scoreboard.md`: each published number beside ours, with the verdict of a fixed rule.

Numbers that depend on no training must meet the printed digit. Trained ones are compared seed by
seed with the paper's rows, because both are noisy: single-precision training sends equally correct
programs apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from reproduction.pages.macros import MACROS, NOT_AVAILABLE, Macro
from reproduction.pages.paired_tests import standard_error
from reproduction.pages.rows import (
    Results,
    read_paper,
    read_paper_numbers,
    read_paper_regions,
)

STANDARD_ERRORS = 3.0
GP_TOLERANCE = 0.002
SIGNIFICANCE = 0.05

RULES = {
    "printed": "E0, selected shares, oracle: the printed digits are the same",
    "gp": f"Gaussian process: within {GP_TOLERANCE} of the printed value",
    "seeds": (
        f"trained methods: within {STANDARD_ERRORS:.0f} standard errors of the mean difference "
        "over seeds (`se`: ours minus the paper's, seed by seed), plus half a printed unit"
    ),
    "p": f"p-values: on the same side of {SIGNIFICANCE}",
    "listed": "standard deviations over seeds, and benchmark panels (another dump): not compared",
}

_GP_OPTIMUM = (
    "One of eight cells decides it: wine, seed 3. There the likelihood of the hyper-parameters has "
    "several optima. The paper's row (coverage 77.0 %, ECE .155) is the one that scikit-learn's "
    "first start reaches, log marginal likelihood -480.15; ours is -445.59, 34.6 units higher, "
    "with coverage 84.4 % and ECE .073. Without that seed the difference is below .001."
)
EXPLANATIONS = {
    "EZeroDevTS": (
        "The shipped RAND HIE table has seven significant digits, which moves the estimates by up "
        "to 2e-7, and 2.8 becomes 3.0 units of 1e-6. With R's full-precision copy of the data our "
        "two-step agrees with R to 1e-11. Either figure is the rounding of the printed values: rho "
        "is printed with five decimals."
    ),
    "RealCovWineGP": _GP_OPTIMUM,
    "RealECEWineGP": _GP_OPTIMUM,
    "CovAgEnsMidNoInstr": (
        "The difference is 0.3 points on 55.7 %, on the same draws. Chance alone explains one such "
        "difference: with eight seeds, the ratio of the mean difference to its standard error "
        "follows a t distribution with 7 degrees of freedom, which exceeds 3 in 2 % of cases, and "
        "the count above is what that predicts. The same ensemble shows no common direction: its "
        "mean differences in the other seven cells of rho and alpha are between -0.04 and +0.23 "
        "points, and its bias and ECE in this cell agree."
    ),
}


@dataclass(frozen=True)
class Score:
    """One row; `pairs` is ours less the paper's over seeds, empty where there are no seeds."""

    macro: str
    rule: str
    paper: str
    ours: str
    pairs: np.ndarray
    verdict: str


def rule_of(name: str) -> str:
    if name.startswith("Vig") or name.endswith("SD"):
        return "listed"
    if name.startswith("P"):
        return "p"
    if name.startswith(("EZero", "EOne", "Mroz")) or "Oracle" in name:
        return "printed"
    return "gp" if "GP" in name else "seeds"


def scores(results: Results) -> list[Score]:
    paper = read_paper()
    published = read_paper_numbers()
    return [_score(MACROS[name], published[name], results, paper) for name in MACROS]


def printed_unit(printed: str) -> float:
    """One unit of the last printed place, as a fraction where it is a percentage."""
    digits, percent, _ = printed.partition(r"\%")
    unit = 10.0 ** -len(digits.partition(".")[2])
    return unit / 100 if percent else unit


def scoreboard_md(results: Results) -> str:
    found = scores(results)
    parts = [
        "# Scoreboard",
        "Every number that the paper derives from its results, and the same number computed from "
        "`results/*.json`. This page is generated; do not edit it.",
        *_summary(found),
        _regions(results),
        _table(("macro", "paper", "ours", "se", "agrees"), map(_line, found)),
        f"`{NOT_AVAILABLE}`: our panels have no such fit, or the fit has no standard error.",
        "## Why these differ",
        *_explanations([score.macro for score in found if score.verdict == "differs"]),
    ]
    return "\n\n".join(parts) + "\n"


def _score(macro: Macro, published: dict, results: Results, paper: Results) -> Score:
    rule, value, ours = rule_of(macro.name), macro.value(results), macro.printed(results)
    pairs = macro.seeds(results) - macro.seeds(paper) if macro.seeds else np.empty(0)
    if rule == "printed" or value is None:
        agrees = ours == published["printed"]
    elif rule == "p":
        agrees = (value < SIGNIFICANCE) == (published["value"] < SIGNIFICANCE)
    else:
        allowed = GP_TOLERANCE
        if rule == "seeds":
            half_unit = printed_unit(published["printed"]) / 2
            allowed = STANDARD_ERRORS * standard_error(pairs) + half_unit
        agrees = abs(value - published["value"]) <= allowed
    verdict = "listed" if rule == "listed" else "agrees" if agrees else "differs"
    return Score(macro.name, rule, published["printed"], ours, pairs, verdict)


def _summary(found: list[Score]) -> list[str]:
    agree, differ, listed = _counts(found)
    compared = agree + differ
    rules = [
        (meaning, *map(str, _counts([score for score in found if score.rule == rule])))
        for rule, meaning in RULES.items()
    ]
    trained = [score for score in found if score.rule == "seeds"]
    beyond = sum(abs(s.pairs.mean()) > STANDARD_ERRORS * standard_error(s.pairs) for s in trained)
    expected = sum(2 * student.sf(STANDARD_ERRORS, len(s.pairs) - 1) for s in trained)
    return [
        f"**{agree} agree, {differ} differ, {listed} are listed without a verdict: "
        f"{agree / compared:.1%} of the {compared} compared agree.**",
        _table(("rule", "agrees", "differs", "listed"), rules),
        f"Of the {len(trained)} trained numbers {_counts(trained)[0] / len(trained):.1%} agree. "
        f"Compared with the paper's rows before rounding, {beyond} mean differences exceed "
        f"{STANDARD_ERRORS:.0f} standard errors; {expected:.1f} are expected of two runs of one "
        "program with different initial weights.",
    ]


def _counts(found: list[Score]) -> list[int]:
    """How many agree, differ and are listed."""
    return [sum(s.verdict == verdict for s in found) for verdict in ("agrees", "differs", "listed")]


def _regions(results: Results) -> str:
    """Points per region depend on the draws alone, so they must be the same."""
    sentences = []
    for title, name, rows in (
        ("A-E1", "paper_e1", results.e1),
        ("A-E2", "paper_e2", results.e2),
    ):
        theirs = read_paper_regions(name)
        keys = [key for key in theirs[0] if not key.startswith("n_")]
        ours = {tuple(row[key] for key in keys): row for row in rows}
        same = sum(
            all(ours[tuple(row[key] for key in keys)][n] == row[n] for n in row if n[:2] == "n_")
            for row in theirs
        )
        sentences.append(f"{same} of {len(theirs)} draws of {title}")
    return f"The number of points per region equals the paper's in {' and '.join(sentences)}."


def _explanations(macros: list[str]) -> list[str]:
    """One paragraph for each reason, headed by the macros it is the reason for."""
    reasons: dict[str, list[str]] = {}
    for macro in macros:
        reasons.setdefault(EXPLANATIONS.get(macro, "Not explained yet."), []).append(macro)
    return [f"**{', '.join(names)}.** {reason}" for reason, names in reasons.items()]


def _line(score: Score) -> tuple[str, ...]:
    se = ""
    if score.rule in ("seeds", "gp"):
        percent = score.paper.endswith("%")
        se = f"{standard_error(score.pairs) * (100 if percent else 1):.2g}{'%' if percent else ''}"
    paper, ours = (text.replace("\\%", "%") for text in (score.paper, score.ours))
    return score.macro, paper, ours, se, score.verdict


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])
