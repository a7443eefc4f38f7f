"""`paper/scoreboard.md`: each published number beside ours, with the verdict of a fixed rule.

Numbers that do not depend on training must agree to the printed digit. Others are compared seed by
seed with the paper's rows, because both are noisy: with training in single precision, equally
correct programs have different results.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from reproduction.pages.macros import MACROS, NOT_AVAILABLE, Macro
from reproduction.pages.page_text import filled, read_toml
from reproduction.pages.paired_tests import standard_error
from reproduction.pages.rows import Results, read_paper, read_paper_numbers, read_paper_table

STANDARD_ERRORS = 3.0
GP_TOLERANCE = 0.002
SIGNIFICANCE = 0.05
RULES = ("printed", "gp", "seeds", "p", "listed")

REASONS = read_toml("explanations")["reason"]
EXPLANATIONS = {macro: reason["text"] for reason in REASONS for macro in reason["macros"]}


@dataclass(frozen=True)
class Score:
    """One row; `pairs` are our values minus the paper's by seed, empty if there are no seeds."""

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
    """One unit of the last printed place; of a percentage, as a fraction."""
    digits, percent, _ = printed.partition(r"\%")
    unit = 10.0 ** -len(digits.partition(".")[2])
    return unit / 100 if percent else unit


def scoreboard_md(results: Results) -> str:
    found = scores(results)
    counts = _counts(found)
    rules = {rule: _counts([s for s in found if s.rule == rule]) for rule in RULES}
    trained = [s for s in found if s.rule == "seeds"]
    beyond = sum(abs(s.pairs.mean()) > STANDARD_ERRORS * standard_error(s.pairs) for s in trained)
    return filled(
        "scoreboard",
        counts=counts,
        compared=counts[0] + counts[1],
        share=counts[0] / (counts[0] + counts[1]),
        rules={rule: " | ".join(map(str, each)) for rule, each in rules.items()},
        gp_tolerance=GP_TOLERANCE,
        errors=STANDARD_ERRORS,
        significance=SIGNIFICANCE,
        trained=len(trained),
        trained_share=rules["seeds"][0] / len(trained),
        beyond=beyond,
        expected=sum(2 * student.sf(STANDARD_ERRORS, len(s.pairs) - 1) for s in trained),
        regions=_regions(results),
        lines="\n".join(map(_line, found)),
        not_available=NOT_AVAILABLE,
        explanations=_explanations([s.macro for s in found if s.verdict == "differs"]),
    )


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


def _counts(found: list[Score]) -> list[int]:
    """The numbers of rows that agree, differ and are only listed."""
    return [sum(s.verdict == verdict for s in found) for verdict in ("agrees", "differs", "listed")]


def _regions(results: Results) -> str:
    """Points per region depend on the draws alone, so they must be the same."""
    sentences = []
    for title, name, rows in (("A-E1", "paper_e1", results.e1), ("A-E2", "paper_e2", results.e2)):
        theirs = read_paper_table(name, "regions")
        keys = [key for key in theirs[0] if not key.startswith("n_")]
        ours = {tuple(row[key] for key in keys): row for row in rows}
        same = sum(
            all(ours[tuple(row[key] for key in keys)][n] == row[n] for n in row if n[:2] == "n_")
            for row in theirs
        )
        sentences.append(f"{same} of {len(theirs)} draws of {title}")
    return " and ".join(sentences)


def _explanations(macros: list[str]) -> str:
    """One paragraph for each reason, after the names of the macros that it explains."""
    reasons: dict[str, list[str]] = {}
    for macro in macros:
        reasons.setdefault(EXPLANATIONS.get(macro, "Not explained yet."), []).append(macro)
    return "\n\n".join(f"**{', '.join(names)}.** {reason}" for reason, names in reasons.items())


def _line(score: Score) -> str:
    se = ""
    if score.rule in ("seeds", "gp"):
        percent = score.paper.endswith("%")
        se = f"{standard_error(score.pairs) * (100 if percent else 1):.2g}{'%' if percent else ''}"
    paper, ours = (text.replace("\\%", "%") for text in (score.paper, score.ours))
    return f"| {score.macro} | {paper} | {ours} | {se} | {score.verdict} |"
