"""What docs/reproducibility.md promises about the digits of networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heckesel.deep import losses
from heckesel.deep.cells import train_cells
from heckesel.deep.config import NetworkConfig
from heckesel.deep.rows import Rows

pytestmark = pytest.mark.arithmetic


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def rows(n, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return Rows(
        x=np.column_stack([rng.normal(size=(n, p)), np.ones(n)]),
        y=rng.normal(size=n),
        weight=np.full(n, 1 / (n + 40)),
        mills=np.abs(rng.normal(size=n)),
        delta=rng.uniform(size=n),
        w=np.column_stack([rng.normal(size=(n, 2)), np.ones(n)]),
        w_unselected=np.column_stack([rng.normal(size=(40, 2)), np.ones(40)]),
        weight_unselected=np.full(40, 1 / (n + 40)),
    )


class Workers:
    """Blocks one after the other, as that many workers would train them."""

    def __init__(self, workers):
        self.workers = workers

    def __call__(self, function, items):
        return map(function, items)


def trained(n, hidden, loss, *, workers=None, **options):
    config = NetworkConfig(n_members=7, hidden=hidden, epochs=12, device="cpu", **options)
    if workers:
        config = replace(config, spread=Workers(workers))
    (members,) = train_cells([rows(n)], loss=loss, seeds=[1], config=config, units=n + 40)
    return members


def test_same_seed_same_bits():
    one, again = (trained(137, (7, 5), losses.JOINT) for _ in range(2))
    np.testing.assert_array_equal(one.theta, again.theta)


# A block's members start at addresses and end in vectors that depend on rows times widths.
@pytest.mark.parametrize("hidden", [(1,), (7, 5), (10,), (16,), (33, 9)], ids=str)
@pytest.mark.parametrize("loss", ["TWO_STEP", "JOINT", "GAUSSIAN"])
@pytest.mark.parametrize(("n", "batch_size"), [(37, None), (48, None), (401, None), (250, 50)])
def test_members_do_not_depend_on_their_block(n, batch_size, loss, hidden):
    loss = getattr(losses, loss)
    one = trained(n, hidden, loss, batch_size=batch_size)
    for workers in (2, 3):
        other = trained(n, hidden, loss, batch_size=batch_size, workers=workers)
        np.testing.assert_array_equal(other.theta, one.theta)
        np.testing.assert_array_equal(other.loss, one.loss)


def test_rows_added_to_fill_vectors_do_not_count():
    """In float64, where only the order of sums is left: rows of a cell beside a longer one."""
    config = NetworkConfig(n_members=2, hidden=(7,), epochs=12, device="cpu", dtype="float64")
    options = {"loss": losses.JOINT, "config": config, "units": 77}
    (alone,) = train_cells([rows(37)], seeds=[1], **options)
    beside, _ = train_cells([rows(37), rows(90)], seeds=[1, 2], **options)
    np.testing.assert_allclose(beside.theta, alone.theta, rtol=0, atol=1e-12)
