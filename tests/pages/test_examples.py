"""The examples run, on a small scale, and show what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mini_batches_from_a_long_table(capsys):
    bias = example("million_rows").main(n=30_000, epochs=120, members=1)
    assert abs(bias) < 0.15  # the naive bias is .44
    assert "supported by the instrument" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_every_example_says_how_to_run_it(path):
    assert f"Run it: python examples/{path.name}" in path.read_text()


def test_tutorials_are_those_of_the_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES.parent / "scripts"))
    import docs_pictures

    for name in docs_pictures.TUTORIALS:
        page = EXAMPLES.parent / "docs" / f"{name}.md"
        assert (EXAMPLES / f"{name}.py").read_text() == docs_pictures.script(page)
