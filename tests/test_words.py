"""One word for one thing: retired words appear in no identifier, docstring or message."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")])
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "paper").glob("*.md")])
# Retired words, and what to say instead.
RETIRED = {
    r"left[ _]out|leave[ _]out|did without|does without|do without": "held out",
    r"judge[ds]?|judging|judgement": "estimated, evaluated, chosen",
    r"deal[ _]?out|dealt|deals? out": "split",
    r"doors?": "interface, validation",
    r"spread[ _s]?\w*": "standard deviation, workers, factor",
    r"mend(s|ed|ing)?": "fix",
    r"carry|carries|carried": "support, hold",
    r"told from|tell them from|told apart|tells? apart": "distinguished from",
    r"of (its|their) own": "separate",
    r"truths": "booleans",
    r"texts": "strings",
    r"stands? twice": "appears twice",
    r"is no column of": "X has no column",
}
# A cell is a setting of an experiment; a user has a dataset.
OUTSIDE_EXPERIMENTS = {r"cells?": "dataset"}


def words_of(path: Path) -> list[tuple[int, str]]:
    """(line, text) of every identifier, docstring and other string of a module."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name):
            found.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append((node.lineno, node.value))
    return found


def retired_in(text: str, words: dict[str, str]) -> str | None:
    """The first retired word; underscores and capitals separate words, too."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ").lower()
    for pattern, instead in words.items():
        if found := re.search(rf"\b({pattern})\b", plain):
            return f"{found[0]!r}; say: {instead}"
    return None


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_uses_a_retired_word(path):
    inside = path.is_relative_to(ROOT / "reproduction")
    words = RETIRED if inside else RETIRED | OUTSIDE_EXPERIMENTS
    if path.name.endswith("_layouts.py"):  # whose files keep the names of their first version
        words = {pattern: word for pattern, word in words.items() if "spread" not in pattern}
    found = [(line, said) for line, text in words_of(path) if (said := retired_in(text, words))]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_uses_a_retired_word(path):
    prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    glossary = prose.find("## Glossary")
    prose = prose if glossary < 0 else prose[:glossary]  # which lists them
    found = [said for line in prose.splitlines() if (said := retired_in(line, RETIRED))]
    assert not found


def test_the_glossary_has_at_most_forty_words():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| .* \| .* \|", text[text.index("## Glossary") :], flags=re.M)
    assert 20 <= len(rows) - 1 <= 40  # less the heading


def test_a_retired_word_is_found_in_any_spelling():
    for text in ("left_out_rows", "JudgedLevel", "Rows left out are", "spread_of", "the doors"):
        assert retired_in(text, RETIRED)
    for text in ("held_out_rows", "widespread", "outdoors", "recommended", "excellent"):
        assert retired_in(text, RETIRED | OUTSIDE_EXPERIMENTS) is None
