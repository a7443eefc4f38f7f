"""A fuzzer: odd tables, arguments and model files, and what became of each.

python -m tests.fuzz [--inputs 2000] [--seed 0]

An input ends in a result that holds, in one clean error, in a raw traceback, in a silent wrong
result or in a hang. Only the first two are right; the others are printed and make the exit code 1.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import heckesel
from heckesel.errors import HeckeselError

HOME = str(Path(heckesel.__file__).parent)
LIMIT = 30  # seconds; the slowest input takes two on a busy core
RESULT, CLEAN, RAW, WRONG, HANG = "results", "clean errors", "raw tracebacks", "wrong", "hangs"
BAD = (RAW, WRONG, HANG)


class Wrong(Exception):
    """A result that cannot be right."""


class Hang(BaseException):  # not an Exception, so that nothing on its way out swallows it
    pass


@contextmanager
def limit(seconds: float):
    """Raise Hang in this, the main, thread after so many seconds."""

    def stop(number, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_clean(error: Exception) -> bool:
    """One sentence that heckesel wrote: not one that came out of a library underneath."""
    if not str(error).strip() or "\n" in str(error):
        return False
    if isinstance(error, HeckeselError):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = last.filename.startswith(HOME) and (last.line or "").startswith("raise")
    return ours and isinstance(error, TypeError | ValueError)


def outcome(act: Callable[[], None]) -> tuple[str, str]:
    """What became of one input, and the evidence where it is bad."""
    try:
        with limit(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            act()
        return RESULT, ""
    except Hang:
        return HANG, f"not done after {LIMIT} s"
    except Wrong as error:
        return WRONG, str(error)
    except Exception as error:
        if is_clean(error):
            return CLEAN, ""
        return RAW, "".join(traceback.format_exception(error)[-4:])


def fuzz(area: str, cases: st.SearchStrategy, n: int, report, *, start: int | None = None) -> None:
    """Draw n cases, (description, act) each, and tell `report` about every one of them."""

    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        derandomize=start is None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def run(case):
        described, act = case
        report(area, described, *outcome(act))

    (run if start is None else seed(start)(run))()


class Counts:
    """Outcomes by area, and the first example of each kind of bad one."""

    def __init__(self):
        self.outcomes: Counter = Counter()
        self.bad: dict[str, str] = {}

    def __call__(self, area, described, kind, evidence):
        self.outcomes[area, kind] += 1
        if kind in BAD:
            first, last = described.splitlines()[0], evidence.strip().splitlines()[-1]
            self.bad.setdefault(
                f"{kind}, {area}: {first[:80]}: {last[:160]}", f"{described}\n{evidence}"
            )

    def table(self) -> str:
        kinds = (RESULT, CLEAN, *BAD)
        lines = [f"{'':12}{'inputs':>8}" + "".join(f"{kind:>16}" for kind in kinds)]
        for area in [*dict.fromkeys(area for area, _ in self.outcomes), "all"]:
            found = [
                sum(v for (a, k), v in self.outcomes.items() if k == kind and area in (a, "all"))
                for kind in kinds
            ]
            lines.append(f"{area:12}{sum(found):8}" + "".join(f"{each:16}" for each in found))
        return "\n".join(lines)


def main(arguments: list[str]) -> int:
    from tests.fuzz_cases import AREAS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", default=",".join(AREAS))
    chosen = parser.parse_args(arguments)
    counts, areas = Counts(), chosen.areas.split(",")
    for area in areas:
        began = time.perf_counter()
        fuzz(area, AREAS[area], chosen.inputs // len(areas), counts, start=chosen.seed)
        print(f"{area}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    for key, example in counts.bad.items():
        print(f"{key}\n{example}\n")
    print(counts.table())
    return 1 if counts.bad else 0


if __name__ == "__main__":
    from tests.fuzz import main as run  # so that there is one class Wrong, not that of __main__ too

    sys.exit(run(sys.argv[1:]))
