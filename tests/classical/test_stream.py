"""Fits from files: the same numbers as in memory, on one machine and on a cluster."""

import pickle

import numpy as np
import pandas as pd
import pytest

import heckesel as hk

pytest.importorskip("pyarrow")

N = 20_000
OUTCOME, SELECT = "y ~ a + b", "~ a + b + z"
# The same sums added in another order: 1e-13, and both fits stop within 1e-9 of the optimum.
SAME = 1e-8


def draw(n=N, seed=0):
    """Columns on unlike scales, categories, counts, and rows whose outcome is missing."""
    rng = np.random.default_rng(seed)
    a, b, z, u, v = rng.standard_normal((5, n))
    site, grade = rng.choice(list("pqr"), n), rng.integers(0, 3, n)
    y = 1 + a - 0.5 * b + 0.3 * (site == "q") + 0.6 * u + 0.8 * v
    s = 0.3 + 0.5 * a - 0.2 * b + 0.8 * z + 0.2 * grade + u > 0
    return pd.DataFrame(
        {
            "y": np.where(s, y, np.nan),
            "a": a,
            "b": 1e3 * b + 5e4,
            "z": z,
            "site": site,
            "grade": grade,
            "count": rng.integers(0, 4, n),
            "s": s.astype(int),
        }
    )


FRAME = draw()


def write(frame, folder, number=3, group=2500):
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), number)):
        frame.iloc[rows].to_parquet(folder / f"part-{k}.parquet", row_group_size=group)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(FRAME, tmp_path_factory.mktemp("rows"))


def assert_same(streamed, held):
    assert list(streamed.params.index) == list(held.params.index)
    np.testing.assert_allclose(streamed.params, held.params, rtol=SAME, atol=SAME)
    np.testing.assert_allclose(streamed.se, held.se, rtol=SAME)
    np.testing.assert_allclose(streamed.loglik, held.loglik, rtol=1e-12)
    np.testing.assert_allclose(streamed.rho, held.rho, rtol=SAME)
    assert (streamed.n, streamed.n_selected) == (held.n, held.n_selected)
    assert streamed.identification.verdict == held.identification.verdict
    assert [m.status for m in streamed.modes] == [m.status for m in held.modes]


OPTIONS = {
    "ml": {},
    "robust": {"covariance": "robust"},
    "opg": {"covariance": "opg"},
    "frequency weights, some zero": {"weights": "count"},
    "probability weights": {"weights": "count", "weight_kind": "probability"},
    "t errors": {"errors": "t"},
    "shape errors": {"errors": "shape"},
    "robust shape errors": {"errors": "shape", "covariance": "robust"},
    "sigma(x)": {"scale": "~ a"},
    "shape errors, sigma(x) by a category": {"errors": "shape", "scale": "~ b + site"},
    "two-step": {"method": "two-step"},
    "robust two-step": {"method": "two-step", "covariance": "robust"},
    "weighted two-step": {"method": "two-step", "weights": "count", "weight_kind": "probability"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_files_give_what_memory_gives(folder, options):
    streamed = hk.heckman(OUTCOME, SELECT, folder, **options)
    assert_same(streamed, hk.heckman(OUTCOME, SELECT, FRAME, **options))


@pytest.mark.parametrize(
    ("outcome", "select"),
    [
        ("y ~ a + b + site", "~ a + b + z + C(grade) + site"),
        ("{2 * y - 1} ~ a + I(a**2)", "s ~ a*site + np.tanh(z)"),
        ("y ~ 0 + site + a", "~ a + z + {z > 1}"),
        ("y ~ b + a", "~ z + a + b"),  # columns in another order than in the other equation
    ],
)
def test_formulas_mean_what_they_mean_in_memory(folder, outcome, select):
    streamed = hk.heckman(outcome, select, folder)
    assert_same(streamed, hk.heckman(outcome, select, FRAME))
    new = draw(50, seed=9)
    for target in ("population", "selected", "unselected"):
        given = streamed.predict(new, target=target)
        held = hk.heckman(outcome, select, FRAME).predict(new, target=target)
        np.testing.assert_allclose(given.mean, held.mean, rtol=1e-7)
        np.testing.assert_allclose(given.std, held.std, rtol=1e-7)


def test_outcome_columns_may_be_missing_where_nothing_was_selected(tmp_path):
    frame = FRAME.copy()
    frame.loc[frame["y"].isna(), "a"] = np.nan
    write(frame, tmp_path)
    assert_same(hk.heckman("y ~ a", "~ b + z", tmp_path), hk.heckman("y ~ a", "~ b + z", frame))


REFUSED = {
    "learned transformation": ({"outcome": "y ~ center(a)"}, r"center\(a\) .* all rows at once"),
    "term over rows": ({"outcome": "y ~ {a - a.mean()}"}, "depends on other rows, but files"),
    "unknown column": ({"outcome": "y ~ aa"}, "no column 'aa'.*did you mean 'a'"),
    "outcome on the right": ({"select": "~ y + z"}, "is also on the right-hand side"),
    "sigma(x) with a hole": ({"scale": "~ hole"}, "in part-2.parquet: .*hole"),
    "sigma(x) as a list": ({"scale": ["a"]}, "must be a formula"),
    "cluster": ({"groups": "grade"}, "use covariance='robust'"),
    "array of weights": ({"weights": np.ones(N)}, "must be the name"),
    "no client": ({"client": "tcp://somewhere"}, "must be a dask.distributed.Client, got str"),
    "fractions": ({"weights": "z2"}, "frequency weights must be whole numbers"),
    "collinear": ({"outcome": "y ~ a + a2"}, "'a2' is a linear combination of 'a'"),
    "separating beyond": ({"select": "~ z + t"}, "'t' predicts selection perfectly"),
    "negative weight": ({"weights": "z"}, r"in part-0.parquet: weights must be"),
}


@pytest.fixture(scope="module")
def odd_folder(tmp_path_factory):
    s = FRAME["y"].notna()
    hole = FRAME["a"].copy()
    hole.iloc[np.flatnonzero(s)[-1]] = np.nan
    odd = FRAME.assign(
        a2=2 * FRAME["a"], one=3.0, d=(s & (FRAME["z"] > 1)).astype(int), hole=hole
    ).assign(t=np.where(s, 2 + FRAME["z"] ** 2, -(FRAME["z"] ** 2)), z2=FRAME["z"] ** 2)
    return write(odd, tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_impossible_calls_raise_one_sentence(odd_folder, change, message):
    options = {"outcome": OUTCOME, "select": SELECT, "data": odd_folder} | change
    with pytest.raises(hk.DataError, match=message):
        hk.heckman(**options)


def test_wrong_paths_and_files_without_both_kinds_of_units_are_refused(tmp_path, folder):
    with pytest.raises(hk.DataError, match="there is no file"):
        hk.heckman(OUTCOME, SELECT, tmp_path / "none.parquet")
    with pytest.raises(hk.DataError, match=r"holds no \*.parquet"):
        hk.heckman(OUTCOME, SELECT, tmp_path)
    (tmp_path / "rows.csv").write_text("y,a\n1,2\n")
    with pytest.raises(hk.DataError, match="is not a Parquet file"):
        hk.heckman(OUTCOME, SELECT, tmp_path / "rows.csv")
    with pytest.raises(hk.DataError, match="client= reads files"):
        hk.heckman(OUTCOME, SELECT, FRAME, client=object())
    for values, message in ((np.nan, "no row is selected"), (1.0, "every unit was selected")):
        FRAME.assign(y=values).to_parquet(tmp_path / "all.parquet")
        with pytest.raises(hk.DataError, match=message):
            hk.heckman(OUTCOME, SELECT, tmp_path / "all.parquet")


def test_a_level_missing_in_the_sample_is_estimated_from_the_whole_table(tmp_path):
    """A level so rare that the sample lacks it, or sees it on one side only, is still estimated."""
    frame = FRAME.assign(rare=0.0)
    rare = np.random.default_rng(3).choice(N, 12, replace=False)
    frame.loc[rare, "rare"] = 1.0
    write(frame, tmp_path)
    assert 0 < frame.loc[rare, "y"].notna().sum() < 12
    formulas = "y ~ a + rare", "~ a + z + rare"
    assert_same(hk.heckman(*formulas, tmp_path), hk.heckman(*formulas, frame))


@pytest.mark.parametrize("options", [{}, {"method": "two-step"}, {"errors": "shape"}])
def test_a_cluster_gives_the_same_numbers(folder, client, options):
    by_cluster = hk.heckman(OUTCOME, SELECT, folder, client=client, **options)
    assert_same(by_cluster, hk.heckman(OUTCOME, SELECT, FRAME, **options))
    here = hk.heckman(OUTCOME, SELECT, folder, **options)
    # parts are added in their order wherever they were read; only batches differ in this test
    np.testing.assert_allclose(by_cluster.params, here.params, rtol=1e-11)
    assert pickle.loads(pickle.dumps(by_cluster)).summary() == here.summary()


def test_a_cluster_that_reads_files_draws_the_bootstrap_of_one_machine(client, folder):
    fit = hk.heckman(OUTCOME, SELECT, folder, method="two-step")
    here, there = fit.bootstrap(20, seed=2), fit.bootstrap(20, seed=2, client=client)
    # parts are the same; workers read them in batches of their own size
    np.testing.assert_allclose(here, there, rtol=1e-10)


def test_a_profile_interval_of_files_is_read_by_the_cluster(client, folder):
    held, streamed = (hk.heckman(OUTCOME, SELECT, data) for data in (FRAME, folder))
    np.testing.assert_allclose(
        streamed.interval("rho", method="profile", client=client),
        held.interval("rho", method="profile"),
        rtol=1e-7,
    )


@pytest.mark.parametrize("options", [{}, {"covariance": "robust", "method": "two-step"}])
def test_the_score_test_reads_files_again(folder, options):
    streamed, held = (hk.heckman(OUTCOME, SELECT, rows, **options) for rows in (folder, FRAME))
    there, here = (fit.test_rho_zero("score") for fit in (streamed, held))
    assert there.statistic == pytest.approx(here.statistic, rel=1e-8)
    assert there.p_value == pytest.approx(here.p_value, rel=1e-6)
