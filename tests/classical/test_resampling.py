"""Bootstraps: the same wherever the rows are."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, poisson

import heckesel as hk
from heckesel.classical.two_step import poisson_counts

pytest.importorskip("pyarrow")

N = 6000
FORMULAS = "y ~ a + b", "~ a + b + z"


def draw(n=N, seed=0):
    rng = np.random.default_rng(seed)
    a, b, z, u, v = rng.standard_normal((5, n))
    y = 1 + a - 0.5 * b + 0.6 * u + 0.8 * v
    s = 0.3 + 0.5 * a - 0.2 * b + 0.8 * z + u > 0
    return pd.DataFrame(
        {
            "y": np.where(s, y, np.nan),
            "a": a,
            "b": 1e3 * b + 5e4,
            "z": z,
            "count": rng.integers(0, 4, n),
            "group": rng.integers(0, 50, n),
        }
    )


FRAME = draw()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for k, rows in enumerate(np.array_split(np.arange(N), 2)):
        FRAME.iloc[rows].to_parquet(folder / f"part-{k}.parquet", row_group_size=700)
    return folder


@pytest.mark.parametrize("mean", [1.0, 3.0, 45.5, 80.0])
def test_counts_are_poisson(mean):
    counts = poisson_counts(1, range(20), 0, 3, np.full(5000, mean)).ravel()
    edges = np.unique(poisson.ppf(np.linspace(0.02, 0.98, 15), mean))
    cells = np.searchsorted(edges, counts)  # up to each edge, and beyond the last
    expected = np.diff([0.0, *poisson.cdf(edges, mean), 1.0]) * counts.size
    assert chisquare(np.bincount(cells, minlength=len(expected)), expected).pvalue > 1e-3
    # neighbouring rows, and the same row of neighbouring replicates, know nothing of each other
    table = counts.reshape(20, 5000)
    for one, other in ((table[:, 1:], table[:, :-1]), (table[1:], table[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(one.size)


OPTIONS = {
    "no weights": {},
    "frequency weights, some zero": {"weights": "count"},
    "probability weights": {"weights": "count", "weight_kind": "probability"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_bootstrap_of_files_draws_what_a_frame_draws(folder, options):
    draws = [
        hk.heckman(*FORMULAS, data, method="two-step", **options).bootstrap(70, seed=3)
        for data in (folder, FRAME)
    ]
    assert list(draws[0].columns) == list(draws[1].columns)
    # the same counts; sums over rows are added in another order
    np.testing.assert_allclose(draws[0], draws[1], rtol=1e-8, atol=1e-8)
    assert draws[0].std().min() > 0


def test_a_replicate_is_the_fit_to_rows_repeated_as_often_as_they_count():
    fit = hk.heckman(*FORMULAS, FRAME, method="two-step")
    found = fit.bootstrap(2, seed=5)
    s = FRAME["y"].notna().to_numpy()
    counts = np.empty(N, int)
    for stream, rows in enumerate((s, ~s)):
        counts[rows] = poisson_counts(5, range(1, 2), stream, 0, np.ones(rows.sum()))[0]
    again = hk.heckman(*FORMULAS, FRAME.loc[FRAME.index.repeat(counts)], method="two-step")
    expected = [*again.params, again.rho, again.sigma]
    np.testing.assert_allclose(found.iloc[1], expected, rtol=1e-7)
