"""Tables in Markdown."""

import re
from collections.abc import Iterable, Sequence

from heckesel.errors import printable

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")


def escaped(text: str) -> str:
    """`text` with the characters that Markdown interprets escaped."""
    return SPECIAL.sub(r"\\\1", printable(text).replace("\n", " "))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is left-aligned, the others right-aligned."""
    rule = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])
