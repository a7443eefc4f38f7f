"""The sample of a long table that `auto` is fitted to."""

import numpy as np
import pytest

from heckesel.classical.probit import selection_probit
from heckesel.data import selection_data
from heckesel.fit_info import AutoInfo
from heckesel.methods import heckman_auto
from heckesel.methods.parts import auto_sample
from heckesel.methods.parts.auto_sample import sampled_units
from heckesel.networks.ensembles.auto_mixture import AutoMixture

N, MOST = 60_000, 3_000


@pytest.fixture
def data(monkeypatch):
    """3 % unselected, and a level of 60 rows."""
    monkeypatch.setattr(auto_sample, "MOST_UNITS", MOST)
    monkeypatch.setattr(auto_sample, "FEWEST_OF_KIND", 500)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, N))
    rare = (rng.permutation(N) < 60).astype(float)
    s = 2.4 + x + z - 2 * rare + rng.normal(size=N) > 0
    y = np.where(s, x + rng.normal(size=N), np.nan)
    return selection_data(np.column_stack([x, rare]), np.column_stack([x, rare, z]), y)


def test_rare_units_are_kept_and_the_weights_correct_for_it(data):
    some = sampled_units(data, 0)
    assert MOST <= some.n <= 1.3 * MOST
    assert (~some.s).sum() > 400
    rare = some.w[:, 1] == 1
    assert min((rare & some.s).sum(), (rare & ~some.s).sum()) >= 15
    assert some.weight.mean() == pytest.approx(1)
    for own, inside in ((~data.s, ~some.s), (data.w[:, 1] == 1, rare)):
        share = some.weight[inside].sum() / some.weight.sum()
        error = own.mean() * np.sqrt(1 / inside.sum() + 1 / MOST)
        assert abs(share - own.mean()) < 4 * error


def test_a_fit_to_the_sample_estimates_what_a_fit_to_all_rows_does(data):
    everyone = selection_probit(data).gamma
    draws = [selection_probit(sampled_units(data, seed)).gamma for seed in range(12)]
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - everyone) < 4.5 * error + 0.02).all()


def test_a_table_that_is_not_long_is_used_as_it_is(data):
    short = data.take(np.arange(MOST))
    assert sampled_units(short, 0) is short


def test_the_explanation_says_that_a_sample_was_used(data, monkeypatch):
    info = AutoInfo([0.0], [1.0], [1.0], [], [0.0, 0.0], [0.0], 1.0, [], "Splines were used.")
    seen = []

    def weigh(some, *_):
        seen.append(some.n)
        return AutoMixture(None, None, 1.0, info)

    monkeypatch.setattr(heckman_auto.heckman_two_step, "fit_many", lambda datas, **_: datas)
    monkeypatch.setattr(heckman_auto, "check_finite", lambda _: None)
    monkeypatch.setattr(heckman_auto, "weigh_candidates", weigh)
    (found,) = heckman_auto.fit_many([data], seeds=[0])
    said = f"A random sample of {seen[0]:,} of the 60,000 rows was used. Splines were used."
    assert found.info.explanation == said
