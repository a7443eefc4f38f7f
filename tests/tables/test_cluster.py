"""`map` over threads gives the results of `map`."""

import multiprocessing
import os
import time

import pytest

from heckesel.io import in_threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_was_forked_starts_new_threads():
    list(in_threads(str, range(4)))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(
        target=lambda: answers.put(list(in_threads(str, range(4)))), daemon=True
    )
    child.start()
    try:
        assert answers.get(timeout=30) == ["0", "1", "2", "3"]
    finally:
        child.kill()


def test_the_first_item_that_fails_is_the_one_reported():
    started = []

    def fail(i):
        started.append(i)
        time.sleep(0.01 if i == 3 else 0.0)  # a later failure happens before
        if i >= 3:
            raise ValueError(i)

    with pytest.raises(ValueError, match=r"^3$"):
        in_threads(fail, range(1000))
    assert len(started) < 100  # nothing new is started after a failure


def test_an_interrupt_ends_the_work_of_all_threads():
    def interrupted(i):
        if i == 2:
            raise KeyboardInterrupt
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        in_threads(interrupted, range(10_000))
