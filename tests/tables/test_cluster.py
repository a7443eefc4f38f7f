"""`map` over threads gives the results of `map`."""

import multiprocessing
import os
import threading
import time

import pytest

from heckesel.io import in_threads


def test_results_come_in_the_order_of_the_items():
    assert list(in_threads(lambda item: item**2, range(20))) == [i**2 for i in range(20)]


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


def test_a_map_within_a_map_does_not_wait_for_threads_that_wait_for_it():
    def inner_sum(i):
        return sum(in_threads(lambda j: i * j, range(5)))

    done = []
    worker = threading.Thread(
        target=lambda: done.append(list(in_threads(inner_sum, range(20)))), daemon=True
    )
    worker.start()
    worker.join(timeout=30)
    assert done == [[10 * i for i in range(20)]]
