"""`map` over threads gives the results of `map`."""

import multiprocessing
import os

import pytest

from heckesel.tables.cluster import in_threads


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
