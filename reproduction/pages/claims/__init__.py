"""`paper/claims.md`: the verbal claims of the paper, the test of each, and its verdict."""

from collections.abc import Callable

from heckesel.errors import DataError
from reproduction.pages.claims import controlled, linear_fits, real_tables
from reproduction.pages.claims.claim import FAILS, HOLDS, PARTLY, UNTESTED, Claim
from reproduction.pages.page_text import filled, read_toml
from reproduction.pages.rows import Results, read_paper

MODULES = (linear_fits, controlled, real_tables)


RULES = {name: value for module in MODULES for name, value in vars(module).items()}
# Title of a chapter of `text/claims.toml` -> its claims, each with its function.
CHAPTERS = {
    chapter.pop("title"): [
        Claim(rule=None if "untested" in claim else RULES[name], **claim)
        for name, claim in chapter.items()
    ]
    for chapter in read_toml("claims").values()
}


def decide_on_paper_rows(decide: Callable) -> tuple[str, str] | None:
    """The same rule on the published rows; None if they lack a metric or a whole experiment."""
    try:
        verdict, numbers = decide(read_paper())
    except (KeyError, DataError):
        return None
    return None if verdict == UNTESTED else (verdict, numbers)


def claims_md(results: Results) -> str:
    chapters, verdicts, overview = [], [], []
    for title, claims in CHAPTERS.items():
        chapters.append(f"## {title}")
        for claim in claims:
            verdict, numbers = claim.decide(results)
            verdicts.append(verdict)
            theirs = decide_on_paper_rows(claim.decide) or ("", "")
            says = claim.says.replace("|", "\\|")  # a bar would end the table cell
            overview.append(f"| {len(verdicts)} | {says} | {verdict} | {theirs[0]} |")
            heading = f"**{len(verdicts)}. {claim.says}** ({claim.where})\n"
            chapters.append("\n".join([heading, *_lines(claim, verdict, numbers, theirs)]))
    kinds = {kind: verdicts.count(kind) for kind in (HOLDS, PARTLY, FAILS, UNTESTED)}
    tables = {"overview": "\n".join(overview), "chapters": "\n\n".join(chapters)}
    return filled("claims", count=len(verdicts), verdicts=kinds, **tables)


def _lines(claim: Claim, verdict: str, numbers: str, theirs: tuple[str, str]) -> list[str]:
    lines = [f"- Verdict: **{verdict}**"]
    if verdict == UNTESTED:
        return [*lines, f"- Reason: {numbers}."]
    lines += [f"- Test: {claim.test}", f"- Numbers: {numbers.rstrip('.')}."]
    if theirs[0]:
        why = "" if theirs[0] == verdict else f" {theirs[1].rstrip('.')}."
        lines.append(f"- Paper's rows: {theirs[0]}.{why}")
    return lines
