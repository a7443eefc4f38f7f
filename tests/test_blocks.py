"""Work spread over cores gives what one core would, and never waits for itself."""

import multiprocessing
import os

import numpy as np
import pytest

import heckesel as hk
from heckesel.classic import blocks

LARGE = (blocks.SIDE_BY_SIDE_FROM, 1)


@pytest.fixture
def one_core(monkeypatch):
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 1)
    blocks._threads.cache_clear()
    yield
    blocks._threads.cache_clear()


def test_results_come_in_the_order_of_the_items():
    assert blocks.side_by_side(lambda item: item**2, range(20), LARGE) == [i**2 for i in range(20)]


def test_work_inside_work_does_not_wait_for_a_thread_that_waits(one_core):
    def outer(item):
        return sum(blocks.side_by_side(lambda inner: inner + item, range(3), LARGE))

    assert blocks.side_by_side(outer, range(4), LARGE) == [3 + 3 * item for item in range(4)]


def test_a_fit_is_the_same_on_one_core_and_on_several(monkeypatch):
    draw = hk.datasets.make_controlled(400, rho=0.6, alpha=1.0, seed=0).frame
    found = []
    for least in (0, 10**12):
        monkeypatch.setattr(blocks, "SIDE_BY_SIDE_FROM", least)
        verdict = hk.identify(draw[["x", "z"]], draw["y"], instruments=["z"])
        fit = hk.heckman("y ~ x", "~ x + z", draw)
        found.append((verdict.evidence, verdict.profile.loglik, fit.params, len(fit.modes)))
    (evidence, curve, params, modes), (alone, alone_curve, alone_params, alone_modes) = found
    assert evidence == alone
    assert modes == alone_modes
    np.testing.assert_array_equal(curve, alone_curve)
    np.testing.assert_array_equal(params, alone_params)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_was_forked_has_threads_of_its_own():
    blocks.side_by_side(str, range(4), LARGE)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(
        target=lambda: answers.put(blocks.side_by_side(str, range(4), LARGE)), daemon=True
    )
    child.start()
    try:
        assert answers.get(timeout=30) == ["0", "1", "2", "3"]
    finally:
        child.kill()
