"""The lock file and the table of licences are those of constraints.txt."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKED = re.compile(r"^(\S+)==(\S+) \\\n    --hash=sha256:([0-9a-f]{64})\n", re.MULTILINE)
ROW = re.compile(r"^\| (\S+) \| (\S+) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def scripts():
    """The folder of scripts as a shell sees it: each imports the other by its name."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import licences
        import lock

        yield lock, licences
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def without_build(pin):
    return pin.partition("+")[0]


def test_every_pinned_package_is_locked_with_its_hash(scripts):
    text = (ROOT / "requirements.lock").read_text()
    found = [without_build(f"{name}=={number}") for name, number, _ in LOCKED.findall(text)]
    assert sorted(found, key=str.lower) == sorted(scripts[0].pinned(), key=str.lower)
    assert len({digest for *_, digest in LOCKED.findall(text)}) == len(found)


def test_the_torch_of_the_lock_file_is_the_cpu_build():
    text = (ROOT / "requirements.lock").read_text()
    assert re.findall(r"^torch==(\S+)", text, re.MULTILINE) == ["2.13.0+cpu"]


def test_the_table_of_licences_lists_what_is_pinned(scripts):
    table = ROW.findall(scripts[1].PAGE.read_text())[1:]
    assert [f"{name}=={number}" for name, number, _ in table] == sorted(
        scripts[0].pinned(), key=str.lower
    )


def installed(name):
    try:
        return version(name)
    except PackageNotFoundError:  # what another Python does not need
        return ""


def test_the_table_of_licences_says_what_the_packages_say(scripts):
    table = ROW.findall(scripts[1].PAGE.read_text())[1:]
    here = [row for row in table if without_build(installed(row[0])) == row[1]]
    assert len(here) > len(table) / 2
    assert {name: stated for name, _, stated in here} == {
        name: scripts[1].licence(name) for name, *_ in here
    }
