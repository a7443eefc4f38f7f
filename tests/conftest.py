"""One thread: the networks of the tests are small, and threads that wait for each other on shared
cores slow them several times over."""

import os
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
NO_TORCH = find_spec("torch") is None


@contextmanager
def skipped_for_want_of_torch():
    """Where torch is not installed, skip what fails for that reason."""
    try:
        yield
    except Exception as error:
        if not (NO_TORCH and names_torch(error)):
            raise
        pytest.skip("needs torch, which is not installed", allow_module_level=True)


def names_torch(error: BaseException | None) -> bool:
    """Whether a missing torch, or heckesel's advice to install it, is among the causes."""
    if error is None:
        return False
    missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
    return missing or "heckesel[deep]" in str(error) or names_torch(error.__context__)


class TestModule(pytest.Module):
    def collect(self):
        with skipped_for_want_of_torch():
            return super().collect()


def pytest_pycollect_makemodule(module_path, parent):
    return TestModule.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup():
    with skipped_for_want_of_torch():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    with skipped_for_want_of_torch():
        return (yield)


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes with one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
