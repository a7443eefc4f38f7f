"""Files that are written: their mode, links, the disk, and runs that were killed."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from heckesel.io import write_atomically

HANGING = """
import sys, time
from heckesel.io import replacing
with replacing(sys.argv[1]) as scratch:
    scratch.write_text("half")
    print(scratch, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.csv"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(path, umask, expected):
    before = os.umask(umask)
    try:
        write_atomically(path, "new")
    finally:
        os.umask(before)
    assert mode(path) == expected


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o444, 0o755])
def test_a_replaced_file_keeps_its_mode(path, kept):
    path.write_text("old")
    path.chmod(kept)
    write_atomically(path, "new")
    assert (mode(path), path.read_text()) == (kept, "new")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, there):
    target, link = tmp_path / "folder" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not target.is_symlink()
    assert names(target.parent) == ["target.csv"]


def test_a_disk_that_fails_leaves_the_old_file(path, monkeypatch):
    path.write_text("old")

    def fails(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert (path.read_text(), names(path.parent)) == ("old", ["file.csv"])


def hanging(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(path)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_the_next_run_removes_only_the_files_of_a_killed_run(path):
    killed, stale = hanging(path)
    living, wanted = hanging(path)
    other = path.parent / ".another.csv.12345678.part"
    other.write_text("of another output")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    try:
        assert os.path.exists(stale)
        write_atomically(path, "new")
        assert not os.path.exists(stale)
        assert os.path.exists(wanted)  # a live process writes it
        assert other.exists()
    finally:
        living.kill()
        living.wait()
    write_atomically(path, "newer")
    assert names(path.parent) == [other.name, "file.csv"]
