"""`paper/scoreboard.md`: each published number beside ours, with the verdict of a fixed rule.

Numbers that depend on no training must meet the printed digit. Trained ones are compared seed by
seed with the paper's rows, because both are noisy: single-precision training sends equally correct
programs apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from reproduction.pages.numbers import MACROS, NOT_AVAILABLE, Macro
from reproduction.pages.paired import standard_error
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
        "over seeds (`se`: ours less the paper's, seed by seed), plus half a printed unit"
    ),
    "p": f"p-values: on the same side of {SIGNIFICANCE}",
    "listed": "standard deviations over seeds, and the benchmark panels (another dump): not judged",
}

_GP_OPTIMUM = (
    "One cell of eight decides it: wine, seed 3. There the likelihood of the hyper-parameters has "
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
        "0.3 points on 55.7 %, all draws the same. It is the one exceedance that chance allows: "
        "with eight seeds the ratio of the mean difference to its standard error follows a t "
        "distribution with 7 degrees of freedom, which passes 3 in 2 % of cases, and the count "
        "above is what that predicts. The same ensemble shows no common direction: its mean "
        "differences in the other seven cells of rho and alpha are between -0.04 and +0.23 points, "
        "and its bias and ECE in this cell agree."
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
        "Every number that the paper derives from its results, and the same number from "
        "`results/*.json`. Generated; do not edit.",
        *_summary(found),
        _regions(results),
        "| macro | paper | ours | se | agrees |\n|---|---|---|---|---|\n"
        + "\n".join(_line(score) for score in found),
        f"`{NOT_AVAILABLE}`: our panels have no such fit, or the fit has no standard error.",
        "## Why these differ",
        *_explanations([score.macro for score in found if score.verdict == "differs"]),
    ]
    return "\n\n".join(parts) + "\n"


def _score(macro: Macro, published: dict, results: Results, paper: Results) -> Score:
    rule = rule_of(macro.name)
    pairs = np.empty(0)
    if macro.seeds is not None:
        pairs = macro.seeds(results) - macro.seeds(paper)
    if rule == "listed":
        verdict = "listed"
    else:
        verdict = "agrees" if _agrees(macro, published, results, pairs) else "differs"
    ours = macro.printed(results)
    return Score(macro.name, rule, published["printed"], ours, pairs, verdict)


def _agrees(macro: Macro, published: dict, results: Results, pairs: np.ndarray) -> bool:
    rule, value = rule_of(macro.name), macro.value(results)
    if rule == "printed" or value is None:
        return macro.printed(results) == published["printed"]
    if rule == "p":
        return (value < SIGNIFICANCE) == (published["value"] < SIGNIFICANCE)
    if rule == "gp":
        allowed = GP_TOLERANCE
    else:
        allowed = STANDARD_ERRORS * standard_error(pairs) + printed_unit(published["printed"]) / 2
    return abs(value - published["value"]) <= allowed


def _summary(found: list[Score]) -> list[str]:
    count = {v: sum(s.verdict == v for s in found) for v in ("agrees", "differs", "listed")}
    judged = count["agrees"] + count["differs"]
    lines = [
        f"**{count['agrees']} agree, {count['differs']} differ, {count['listed']} are listed "
        f"without a verdict: {count['agrees'] / judged:.1%} of the {judged} judged agree.**",
        "| rule | agrees | differs | listed |\n|---|---|---|---|",
    ]
    for rule, meaning in RULES.items():
        of = [score for score in found if score.rule == rule]
        cells = [str(sum(s.verdict == v for s in of)) for v in ("agrees", "differs", "listed")]
        lines[-1] += f"\n| {meaning} | {' | '.join(cells)} |"
    trained = [score for score in found if score.rule == "seeds"]
    beyond = sum(abs(s.pairs.mean()) > STANDARD_ERRORS * standard_error(s.pairs) for s in trained)
    expected = sum(2 * student.sf(STANDARD_ERRORS, len(s.pairs) - 1) for s in trained)
    share = np.mean([score.verdict == "agrees" for score in trained])
    lines.append(
        f"Of the {len(trained)} trained numbers {share:.1%} agree. Compared with the paper's rows "
        f"before rounding, {beyond} mean differences are beyond {STANDARD_ERRORS:.0f} standard "
        f"errors; two runs of one program with fresh initial weights would put {expected:.1f} "
        "there."
    )
    return lines


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
    return f"Points per region equal the paper's in {' and '.join(sentences)}."


def _explanations(macros: list[str]) -> list[str]:
    """One paragraph for each reason, headed by the macros it is the reason for."""
    reasons: dict[str, list[str]] = {}
    for macro in macros:
        reasons.setdefault(EXPLANATIONS.get(macro, "Not explained yet."), []).append(macro)
    return [f"**{', '.join(names)}.** {reason}" for reason, names in reasons.items()]


def _line(score: Score) -> str:
    se = ""
    if score.rule in ("seeds", "gp"):
        se = f"{standard_error(score.pairs):.2g}"
        if score.paper.endswith("%"):
            se = f"{100 * standard_error(score.pairs):.2g}%"
    paper, ours = (text.replace("\\%", "%") for text in (score.paper, score.ours))
    return f"| {score.macro} | {paper} | {ours} | {se} | {score.verdict} |"
