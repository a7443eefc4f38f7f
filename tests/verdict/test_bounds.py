"""`hk.bounds`: the table, its intervals, a published follow-up, and what it refuses."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.exceptions import NotFittedError

import heckesel as hk

NUMBERS = ["low", "high", "interval_low", "interval_high"]


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {"t": rng.integers(0, 2, n), "z": rng.integers(0, 3, n), "g": rng.integers(0, 2, n)}
    )
    answered = rng.random(n) < 0.5 + 0.2 * frame["t"]
    frame["drawn"] = (~answered & (rng.random(n) < 0.5)).astype(int)
    seen = answered | ((frame["drawn"] == 1) & (rng.random(n) < 0.7))
    frame["y"] = np.where(seen, rng.random(n).round(2), np.nan)
    frame["weight"], frame["house"] = rng.integers(1, 4, n), np.arange(n) // 4
    return frame


def table(frame, weight=None, groups=None, **options):
    """Every row that does not need a model."""
    found = hk.bounds(
        frame["y"],
        0.0,
        1.0,
        treatment=frame["t"],
        instrument=frame["z"],
        covariates=frame[["g"]],
        follow_up=frame["drawn"],
        sample_weight=weight,
        groups=groups,
        **options,
    )
    return found.to_frame()[NUMBERS]


def test_every_argument_adds_rows_from_the_weakest_assumption_on(units):
    found = table(units)
    assert list(found.index) == [
        "no assumption",
        "random treatment",
        "monotone instrument",
        "instrument",
        "random follow-up",
        "trimming",
        "trimming with covariates",
        "missing at random",
    ]
    width = found["high"] - found["low"]
    assert width.iloc[0] >= width.iloc[1] >= width.iloc[2] >= width.iloc[3]
    assert (found["interval_low"] < found["low"]).all()
    assert (found["interval_high"] > found["high"]).all()


# The square root of a covariance that is singular up to rounding errs by about 1e-8.


def test_whole_weights_count_units(units):
    repeated = units.loc[units.index.repeat(units["weight"])].reset_index(drop=True)
    np.testing.assert_allclose(table(units, units["weight"]), table(repeated), rtol=1e-6)


def test_the_scale_of_probability_weights_changes_nothing(units):
    weight = units["weight"] + 0.5
    np.testing.assert_allclose(table(units, weight), table(units, weight / 7), rtol=1e-6)


def test_four_copies_in_a_cluster_are_worth_one_unit(units):
    """And G clusters are worth slightly less than G units."""
    copies = units.loc[units.index.repeat(4)].reset_index(drop=True)
    names = ["no assumption", "random treatment", "random follow-up", "trimming"]
    one = table(units).loc[names]
    many = table(copies, groups=np.arange(len(copies)) // 4).loc[names]
    np.testing.assert_allclose(many[["low", "high"]], one[["low", "high"]], rtol=1e-12)
    for end, limit in (("low", "interval_low"), ("high", "interval_high")):
        ratio = (many[end] - many[limit]) / (one[end] - one[limit])
        # sqrt(G / (G - 1)), t(399) for the normal, and no n - 1 in small groups: below .5 %
        np.testing.assert_allclose(ratio, 1, atol=5e-3)


def test_clusters_give_the_cluster_covariance_of_a_mean(units):
    found = hk.bounds(units["y"], 0.0, 1.0, groups=units["house"], level=0.9).rows[0]
    filled = units["y"].fillna(0.0)
    sums = (filled - filled.mean()).groupby(units["house"]).sum()
    se = np.sqrt(100 / 99 * (sums**2).sum()) / 400
    # wide bounds: the one-sided critical value
    assert (found.low - found.interval_low) / se == pytest.approx(t.ppf(0.9, 99), rel=1e-10)


def test_the_model_is_the_last_row(tmp_path):
    frame = hk.datasets.make_controlled(600, rho=0.5, alpha=1.0, seed=0).frame
    frame["t"] = np.arange(600) % 2
    fit = hk.heckman("y ~ x + t", "~ x + t + z", frame)
    row = hk.bounds(frame["y"], -9, 9, model=fit, level=0.9).rows[-1]
    mean = fit.average(level=0.9)
    assert (row.low, row.high, row.interval_low, row.interval_high) == tuple(
        mean[["mean", "mean", "low", "high"]]
    )
    assert row.assumes == "Heckman selection model, maximum likelihood, normal errors"
    found = hk.bounds(frame["y"], -9, 9, model=fit, treatment=frame["t"]).rows[-1]
    assert found.low == pytest.approx(fit.params["outcome", "t"], rel=1e-9)
    model = hk.HeckmanRegressor(["z"], method="ml").fit(frame[["x", "t", "z"]], frame["y"])
    again = hk.bounds(frame["y"], -9, 9, model=model, treatment=frame["t"]).rows[-1]
    assert again.low == pytest.approx(found.low, rel=1e-9)
    with pytest.raises(hk.DataError, match="has no column 'other'"):
        hk.bounds(frame["y"], -9, 9, model=fit, treatment=frame["t"].rename("other"))
    with pytest.raises(hk.DataError, match="fitted to 600 rows but y has 500"):
        hk.bounds(frame["y"][:500], -9, 9, model=fit)
    with pytest.raises(hk.DataError, match="not for a int"):
        hk.bounds(frame["y"], -9, 9, model=3)
    model.save(tmp_path / "m")
    with pytest.raises(hk.DataError, match="a saved model does not hold"):
        hk.bounds(frame["y"], -9, 9, model=hk.load(tmp_path / "m"))
    with pytest.raises(NotFittedError):
        hk.bounds(frame["y"], -9, 9, model=hk.HeckmanRegressor(method="ml"))


def test_it_prints_and_unpacks(units):
    found = hk.bounds(units["y"], 0, 1, treatment=units["t"])
    low, high = found
    assert (low, high) == (found[0], found[1]) == (found.rows[0].low, found.rows[0].high)
    text = str(found)
    assert text == repr(found)
    assert "t is random; it changes selection in one direction" in text.replace("\n  ", " ")
    assert max(map(len, text.splitlines())) <= 78


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"treatment": np.full(4, 2)}, "treatment must be 0 or 1 but row 0 holds 2"),
        ({"treatment": np.ones(4)}, "treatment is 1 in every row"),
        ({"follow_up": [0, 0, 0, 0]}, "follow_up is 1 for no unit without an outcome"),
        ({"covariates": [1, 2, 3, 4]}, "2 of 4 combinations.*no observed outcome; merge"),
        ({"quantile": 1.5}, "quantile must be a number between 0 and 1"),
        ({"quantile": 0.5, "instrument": [1, 2, 1, 2]}, "bounds for means; omit them"),
        ({"interval": "wald"}, "imbens-manski, stoye, got 'wald'"),
        ({"level": 95}, "level"),
        ({"low": 0, "high": 1e308}, "infinite or smaller than 1e"),
        (
            {"groups": [1, 1, 1, 2], "sample_weight": [1, 1, 1, 0]},
            "rows of positive weight are in one group",
        ),
    ],
)
def test_bounds_refuse_wrong_arguments(options, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        hk.bounds(**{"y": [1.0, 2.0, np.nan, np.nan], "low": 0.0, "high": 4.0} | options)


@pytest.fixture(scope="module")
def levendusky():
    path = Path(os.environ.get("HECKESEL_DATA", ""), "levendusky", "levendusky.csv")
    if "HECKESEL_DATA" not in os.environ or not path.exists():
        pytest.skip("HECKESEL_DATA does not name a folder with Levendusky's data")
    frame = pd.read_csv(path)
    frame = frame[frame["Z1"].notna()]
    answered = (frame["R1"] == 1) | ((frame["Attempt"] == 1) & (frame["R2"] == 1))
    return frame.assign(y=frame["L_dif_w2"].where(answered))


def test_the_follow_up_of_levendusky_and_malhotra_has_every_printed_digit(levendusky):
    frame = levendusky
    found = hk.bounds(frame["y"], 0, 6, treatment=frame["Z1"], follow_up=frame["Attempt"])
    found = found.to_frame()[NUMBERS]
    printed = {
        "random treatment": ("-1.539145", "1.709668", "-1.669079", "1.835881"),
        "random follow-up": ("-0.34175", "0.57182", "-0.52831", "0.74517"),
    }
    for name, numbers in printed.items():
        digits = len(numbers[0].partition(".")[2])
        assert tuple(f"{value:.{digits}f}" for value in found.loc[name]) == numbers
    first = frame["R1"] == 1
    means = [frame["y"][rows].mean() for rows in (first, ~first)]
    assert [f"{mean:.3f}" for mean in means] == ["3.604", "3.694"]


def drawn_dataset(rng, n=300):
    """Outcomes are uniform on [0, 1], so that every bound is known: 70 % answer, whatever the
    instrument, half of the others are followed up, and 60 % of these reached."""
    u = rng.random((3, n))
    answered = u[0] < 0.7
    drawn = ~answered & (u[1] < 0.5)
    y = np.where(answered | (drawn & (u[2] < 0.6)), rng.random(n), np.nan)
    return {"y": y, "follow_up": drawn.astype(int), "instrument": rng.integers(0, 4, n)}


@pytest.mark.parametrize(("interval", "replicates"), [("imbens-manski", 160), ("stoye", 40)])
def test_intervals_cover_both_ends_of_the_bounds(interval, replicates):
    ends = {
        "no assumption": (0.35, 0.65),
        "monotone instrument": (0.35, 0.65),  # the hardest case: all means are equal
        "instrument": (0.35, 0.65),
        "random follow-up": (0.44, 0.56),
    }
    rng = np.random.default_rng(0)
    hits = dict.fromkeys(ends, np.zeros(2))
    for _ in range(replicates):
        found = hk.bounds(low=0.0, high=1.0, interval=interval, **drawn_dataset(rng)).to_frame()
        for name, truth in ends.items():
            low, high = found.loc[name, ["interval_low", "interval_high"]]
            hits[name] = hits[name] + [low <= end <= high for end in truth]
    error = np.sqrt(0.95 * 0.05 / replicates)
    for name, count in hits.items():
        assert (count / replicates > 0.95 - 3 * error).all(), (name, count)
        if "instrument" not in name:  # whose intervals may be longer than necessary
            assert (count / replicates < 0.95 + 3 * error).all(), (name, count)
