"""The fuzzer with a budget of about a minute; HECKESEL_FUZZ=5000 draws so many inputs per area.

`python -m tests.fuzz` does the same by hand and goes on after what it finds.
"""

import os

import pytest

import heckesel as hk
from tests import fuzz
from tests.fuzz_cases import AREAS

# The areas differ in what one input costs: a fit of a table takes a hundred odd arguments' time.
INPUTS = {"tables": 150, "csv": 80, "arguments": 1000, "files": 150}


@pytest.mark.parametrize("area", AREAS)
def test_every_input_ends_in_a_result_or_in_one_clean_error(area, capsys):
    counts, wanted = fuzz.Counts(), os.environ.get("HECKESEL_FUZZ")
    fuzz.fuzz(area, AREAS[area], int(wanted or INPUTS[area]), counts)
    with capsys.disabled():
        print(f"\n{counts.table()}")
    assert not counts.bad, "\n\n".join(f"{key}\n{text}" for key, text in counts.bad.items())
    assert counts.outcomes[area, fuzz.RESULT] > 0
    assert counts.outcomes[area, fuzz.CLEAN] > 0


def raw():
    return [][1]


def underneath():
    return int("x")


def from_below():
    return hk.bounds([1.0, float("nan")], 0.0, 2.0)[2]


def endless():
    while True:
        pass


def wrong():
    raise fuzz.Wrong("two and two is five")


def two_lines():
    raise ValueError("one\ntwo")


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (raw, fuzz.RAW),
        (underneath, fuzz.RAW),
        (from_below, fuzz.RAW),
        (two_lines, fuzz.RAW),
        (wrong, fuzz.WRONG),
        (endless, fuzz.HANG),
        (lambda: None, fuzz.RESULT),
        (lambda: hk.bounds([], 0.0, 1.0), fuzz.CLEAN),
    ],
)
def test_the_fuzzer_knows_what_became_of_an_input(act, kind, monkeypatch):
    monkeypatch.setattr(fuzz, "LIMIT", 0.5)
    assert fuzz.outcome(act)[0] == kind
