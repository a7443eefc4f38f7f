"""Every Python block of the README runs, in order, and says what its comments say."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a report is written
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    scope: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
    assert f"{scope['fit'].params['outcome', 'educ']:.5f}" == "0.10835"
    assert scope["model"].identification_.verdict == "identified by an instrument"
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "Identification: identified by an instrument" in capsys.readouterr().out
