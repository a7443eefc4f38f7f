"""How the networks of `heckman_auto` are trained on short and on long tables."""

from dataclasses import replace

import pytest

from heckesel.methods.heckman_auto import AutoConfig, schedule_for

NETWORK = AutoConfig().network


@pytest.mark.parametrize(("rows", "passes"), [(20_000, 40), (100_000, 16), (1_000_000, 16)])
def test_long_tables_are_passed_less_often_in_mini_batches(rows, passes):
    found = schedule_for(NETWORK, rows)
    assert (found.batch_size, found.epochs) == (1024, passes)


def test_a_short_table_and_what_the_user_asked_for_stay():
    assert schedule_for(NETWORK, 10_000) == NETWORK
    own = replace(NETWORK, batch_size=4096)
    assert schedule_for(own, 20_000) == own
    assert schedule_for(replace(NETWORK, epochs=3), 20_000).epochs == 3
