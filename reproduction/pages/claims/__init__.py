"""`paper/claims.md`: what the paper says in words, the test that decides it, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from heckesel.errors import DataError
from reproduction.pages.claims import (
    classic,
    controlled,
    panels,
    semireal,
    training,
    weighting,
    without_instrument,
)
from reproduction.pages.rows import Results, read_paper
from reproduction.pages.verdicts import FAILS, HOLDS, PARTLY, UNTESTED, Claim

__all__ = ["CHAPTERS", "claims_md", "judge_paper_rows"]

CHAPTERS: dict[str, tuple[Claim, ...]] = {
    "Classic fits and protocol": classic.CLAIMS,
    "The controlled experiment, with the instrument": controlled.CLAIMS,
    "Weighting by oracle propensities": weighting.CLAIMS,
    "Without an instrument": without_instrument.CLAIMS,
    "Training": training.CLAIMS,
    "Real tables with induced selection": semireal.CLAIMS,
    "Reporting panels": panels.CLAIMS,
}
INTRODUCTION = """\
Every claim the paper makes in words, judged on `results/*.json` by a rule that is written beside \
it. Generated; do not edit.

Unless another region is named, metrics are those of the selected-against region and means over \
seeds. p-values are exact Wilcoxon signed-rank tests over seeds, paired by draw; with eight seeds \
they cannot fall below .008 two-sided and .004 one-sided; "beyond chance" is p ≤ .05 without \
correction for their number. *Paper's rows* is the verdict of the same rule on the rows that the \
paper published, where these have what the rule needs."""


def judge_paper_rows(claim: Claim) -> tuple[str, str] | None:
    """The same rule on the published rows, None where they lack a metric or a whole experiment."""
    try:
        verdict, numbers = claim.judge(read_paper())
    except (KeyError, DataError):
        return None
    return None if verdict == UNTESTED else (verdict, numbers)


@dataclass(frozen=True)
class _Entry:
    claim: Claim
    verdict: str
    numbers: str
    theirs: tuple[str, str] | None


def claims_md(results: Results) -> str:
    judged = {
        chapter: [_Entry(claim, *claim.judge(results), judge_paper_rows(claim)) for claim in claims]
        for chapter, claims in CHAPTERS.items()
    }
    entries = [entry for chapter in judged.values() for entry in chapter]
    parts = ["# Claims", INTRODUCTION, _counts(entries), _overview(entries)]
    position = 0
    for chapter, chapter_entries in judged.items():
        parts.append(f"## {chapter}")
        for entry in chapter_entries:
            position += 1
            parts.append(_paragraph(position, entry))
    return "\n\n".join(parts) + "\n"


def _counts(entries: list[_Entry]) -> str:
    verdicts = [entry.verdict for entry in entries]
    plural = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "do not hold"}
    each = ", ".join(
        f"{verdicts.count(verdict)} {plural.get(verdict, verdict)}"
        for verdict in (HOLDS, PARTLY, FAILS, UNTESTED)
    )
    return f"**{len(entries)} claims: {each}.**"


def _overview(entries: list[_Entry]) -> str:
    lines = ["| # | claim | verdict | paper's rows |", "|---|---|---|---|"]
    for position, entry in enumerate(entries, start=1):
        says = entry.claim.says.replace("|", "\\|")  # a bar would end the cell
        theirs = entry.theirs[0] if entry.theirs else ""
        lines.append(f"| {position} | {says} | {entry.verdict} | {theirs} |")
    return "\n".join(lines)


def _paragraph(position: int, entry: _Entry) -> str:
    lines = [
        f"**{position}. {entry.claim.says}** ({entry.claim.where})\n",
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
