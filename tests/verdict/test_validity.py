"""`hk.test_instruments`: its parts against other derivations, and what it finds in simulations."""

import json

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.data import selection_data
from heckesel.verdict.validity import (
    inequality_test,
    overidentification_test,
    pairs_of,
    validity_of,
    validity_sample,
)


def draw(n=800, seed=0, *, rho=0.5, strength=0.5, effect=0.0, count=1, binary=False):
    """A frame with x, instruments z0, z1 ..., and y, to which z0 adds `effect`."""
    rng = np.random.default_rng(seed)
    x, u, v = rng.normal(size=(3, n))
    z = 0.4 * x[:, None] + rng.normal(size=(n, count))
    z = np.sign(z) if binary else z
    y = np.sin(2 * x) + rho * u + np.sqrt(1 - rho**2) * v + effect * z[:, 0]
    seen = 0.2 + 0.5 * x + strength * z.sum(axis=1) + u > 0
    names = [f"z{j}" for j in range(count)]
    frame = pd.DataFrame({"x": x, **dict(zip(names, z.T, strict=True))})
    return frame.assign(y=np.where(seen, y, np.nan))


def validity(frame, **options):
    names = [name for name in frame if name.startswith("z")]
    return hk.test_instruments(frame.drop(columns="y"), frame["y"], instruments=names, **options)


def data_of(frame):
    names = [name for name in frame if name not in ("y",)]
    return selection_data(frame[["x"]], frame[names], frame["y"], x_names=["x"], w_names=names)


def sample_of(frame):
    return validity_sample(data_of(frame), 0)


def test_overidentification_does_not_depend_on_the_order_or_the_units_of_instruments():
    frame = draw(count=3)
    turned = frame[["x", "z2", "z0", "z1", "y"]].assign(z1=7 - 100 * frame["z1"])
    samples = [sample_of(each) for each in (frame, turned)]
    one, other = (overidentification_test(sample, 0.05) for sample in samples)
    assert one.degrees_of_freedom == 2
    assert other.statistic == pytest.approx(one.statistic, rel=1e-6)
    low, high = one.detectable["z1"]
    expected = one.detectable | {"z1": (-high, -low)}
    for name, ends in other.detectable.items():
        np.testing.assert_allclose(ends, expected[name], rtol=1e-6)


def test_one_invalid_instrument_of_two_is_found_and_stated_power_is_right():
    samples = [sample_of(draw(600, seed, count=2)) for seed in range(10)]
    detectable = [overidentification_test(sample, 0.05).detectable["z0"][1] for sample in samples]
    frame = draw(600, 0, count=2)
    effect = np.mean(detectable) * frame["y"].std() / frame["z0"].std()
    caught = [
        overidentification_test(sample_of(draw(600, seed, count=2, effect=effect))).p_value
        for seed in range(100, 220)
    ]
    # 80 %, with three Monte Carlo errors of 120 draws
    assert abs(np.mean(np.array(caught) < 0.05) - 0.8) < 0.11


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_stated_effect_of_one_instrument_is_caught(binary, sign):
    frame = draw(500, 0, strength=0.2, binary=binary)
    sample = sample_of(frame)
    ends = inequality_test(sample, pairs_of(sample), 0, 0.05).detectable["z0"]
    effect = ends[int(sign > 0)] * frame["y"].std() / frame["z0"].std()
    assert np.sign(effect) == sign
    p = []
    for seed in range(100, 140):
        sample = sample_of(draw(500, seed, strength=0.2, binary=binary, effect=effect))
        p.append(inequality_test(sample, pairs_of(sample), 0).p_value)
    # the violations behind the stated power have their own error, which 40 draws hardly notice
    assert np.mean(np.array(p) < 0.05) > 0.5


def test_valid_instruments_are_rarely_rejected():
    rejected = [
        validity_of(data_of(draw(400, seed, count=1 + seed % 2, rho=-0.8))).p_value < 0.05
        for seed in range(60)
    ]
    assert sum(rejected) <= 8  # P(more) = .5 % at a level of 5 %


def test_a_row_with_weight_three_is_three_units():
    frame = draw(300)
    weight = np.arange(300) % 4
    repeated = frame.loc[np.repeat(frame.index, weight)].reset_index(drop=True)
    weighted, plain = validity(frame, sample_weight=weight), validity(repeated)
    assert weighted.to_dict() == plain.to_dict()
    assert weighted.rows == weight.sum()


def test_the_result_can_be_printed_and_written():
    found = validity(draw(count=2, effect=0.6))
    assert found.verdict == "rejected"
    assert found.p_value == pytest.approx(min(1, 2 * min(test.p_value for test in found.tests)))
    text = str(found)
    for piece in ("overidentification: chi2(1)", "inequalities:", "z1", "standard error"):
        assert piece in text
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [test["name"] for test in written["tests"]] == ["overidentification", "inequalities"]
    assert [fit["instrument"] for fit in written["fits"]][:2] == ["z0", "z1"]
    frame = found.to_frame()
    assert list(frame["instrument"]) == ["z0", "z1", "all instruments together"]
    assert frame["p_value"].iloc[0] == found.tests[0].p_value


def test_a_verdict_with_little_power_says_so():
    found = validity(draw(150, strength=5.0))
    assert found.verdict == "not rejected, with little power"
    assert "none up to 1" in str(found)


def test_a_long_table_is_truncated_with_a_note():
    found = validity_of(data_of(draw(12_000)))
    assert (found.rows, found.rows_used) == (12_000, 10_000)
    assert "10,000 of 12,000" in str(found)


def test_too_few_units_and_exact_outcomes_are_not_tested():
    few = validity(draw(30))
    assert few.verdict == "not tested"
    assert "too few selected units" in few.sentence
    assert np.isnan(few.p_value)
    exact = draw(300)
    exact["y"] = np.where(exact["y"].isna(), np.nan, 1 + exact["x"])
    assert validity(exact).verdict == "not tested"
    complete = draw(300).assign(y=lambda frame: frame["x"])
    assert "no instrument is needed" in validity(complete).sentence


def test_an_outcome_with_two_values_has_the_inequalities_alone():
    frame = draw(count=2)
    frame["y"] = np.where(frame["y"].isna(), np.nan, frame["y"] > 0)
    found = validity(frame)
    assert [test.name for test in found.tests] == ["inequalities"]
    assert found.tests[0].detectable == {}


@pytest.mark.parametrize("level", [0, 1, 0.95, "5%", None, pd.NA, np.nan, pd.DataFrame()])
def test_a_wrong_level_is_refused(level):
    with pytest.raises(hk.DataError, match="probability of rejecting valid instruments"):
        validity(draw(100), level=level)


def test_other_wrong_arguments_are_refused():
    frame = draw(100)
    with pytest.raises(hk.DataError, match="seed must be a whole number"):
        validity(frame, seed=-1)
    with pytest.raises(hk.DataError, match="name at least one column"):
        hk.test_instruments(frame[["x", "z0"]], frame["y"], instruments=None)
