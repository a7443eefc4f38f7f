"""How the networks of `heckman_auto` are trained on short and on long tables."""

from dataclasses import replace

from heckesel.methods.heckman_auto import AutoConfig, schedule_for

NETWORK = AutoConfig().network


def test_a_long_table_is_trained_in_mini_batches_for_fewer_epochs():
    found = schedule_for(NETWORK, 20_000)
    assert (found.batch_size, found.epochs) == (1024, 40)
    assert schedule_for(replace(NETWORK, epochs=3), 20_000).epochs == 3


def test_a_short_table_and_a_batch_size_that_was_asked_for_stay():
    assert schedule_for(NETWORK, 10_000) == NETWORK
    own = replace(NETWORK, batch_size=4096)
    assert schedule_for(own, 20_000) == own
