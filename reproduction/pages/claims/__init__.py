"""`paper/claims.md`: what the paper says in words, the test that decides it, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from heckesel.errors import DataError
from reproduction.pages.claims import (
    classic_fits,
    joint_training,
    oracle_weighting,
    real_tables,
    reporting_panels,
    with_instrument,
    without_instrument,
)
from reproduction.pages.claims.claim import FAILS, HOLDS, PARTLY, UNTESTED, Claim
from reproduction.pages.rows import Results, read_paper

__all__ = ["CHAPTERS", "claims_md", "decide_on_paper_rows"]

MODULES = {
    "Classic fits and protocol": classic_fits,
    "The controlled experiment, with the instrument": with_instrument,
    "Weighting by oracle propensities": oracle_weighting,
    "Without an instrument": without_instrument,
    "Training": joint_training,
    "Real tables with induced selection": real_tables,
    "Reporting panels": reporting_panels,
}
# The claims of a module in the order in which it defines them.
CHAPTERS = {
    title: [value for value in vars(module).values() if isinstance(value, Claim)]
    for title, module in MODULES.items()
}
INTRODUCTION = """\
This page lists every claim the paper makes in words, the rule that tests it, and the verdict of \
that rule on `results/*.json`. It is generated; do not edit it.

Metrics refer to the selected-against region, unless another region is named, and are means over \
seeds. p-values come from exact Wilcoxon signed-rank tests over seeds, paired by draw. With eight \
seeds they cannot fall below .008 (two-sided) or .004 (one-sided). *Significant* means p ≤ .05, \
without correction for multiple tests. *Paper's rows* is the verdict of the same rule on the rows \
that the paper published, where they contain what the rule needs."""


def decide_on_paper_rows(claim: Claim) -> tuple[str, str] | None:
    """The same rule on the published rows, None where they lack a metric or a whole experiment."""
    try:
        verdict, numbers = claim.decide(read_paper())
    except (KeyError, DataError):
        return None
    return None if verdict == UNTESTED else (verdict, numbers)


@dataclass(frozen=True)
class _Entry:
    position: int
    claim: Claim
    verdict: str
    numbers: str
    theirs: tuple[str, str] | None


def claims_md(results: Results) -> str:
    every = [(chapter, claim) for chapter, claims in CHAPTERS.items() for claim in claims]
    entries = [
        _Entry(position, claim, *claim.decide(results), decide_on_paper_rows(claim))
        for position, (_, claim) in enumerate(every, start=1)
    ]
    parts = ["# Claims", INTRODUCTION, _counts(entries), _overview(entries)]
    for (chapter, _), entry in zip(every, entries, strict=True):
        if f"## {chapter}" not in parts:
            parts.append(f"## {chapter}")
        parts.append(_paragraph(entry))
    return "\n\n".join(parts) + "\n"


def _counts(entries: list[_Entry]) -> str:
    verdicts = [entry.verdict for entry in entries]
    plural = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "do not hold", UNTESTED: UNTESTED}
    each = ", ".join(f"{verdicts.count(verdict)} {words}" for verdict, words in plural.items())
    return f"**{len(entries)} claims: {each}.**"


def _overview(entries: list[_Entry]) -> str:
    lines = ["| # | claim | verdict | paper's rows |", "|---|---|---|---|"]
    for entry in entries:
        says = entry.claim.says.replace("|", "\\|")  # a bar would end the cell
        theirs = entry.theirs[0] if entry.theirs else ""
        lines.append(f"| {entry.position} | {says} | {entry.verdict} | {theirs} |")
    return "\n".join(lines)


def _paragraph(entry: _Entry) -> str:
    lines = [
        f"**{entry.position}. {entry.claim.says}** ({entry.claim.where})\n",
        f"- Verdict: **{entry.verdict}**",
    ]
    if entry.verdict == UNTESTED:
        return "\n".join([*lines, f"- Reason: {entry.numbers}."])
    lines += [f"- Test: {entry.claim.test}", f"- Numbers: {entry.numbers.rstrip('.')}."]
    if entry.theirs:
        verdict, numbers = entry.theirs
        same = verdict == entry.verdict
        lines.append(f"- Paper's rows: {verdict}" + ("." if same else f". {numbers.rstrip('.')}."))
    return "\n".join(lines)
