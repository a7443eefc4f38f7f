"""Inference that rests on few clusters, or on few rows of large weight."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import heckesel as hk


def frame_of(groups: int, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "z"])
    u = rng.normal(size=n)
    y = 1 + frame.x + 0.5 * u + rng.normal(size=n)
    frame["y"] = y.where(0.3 + frame.x + frame.z + u > 0)
    frame["s"] = frame.y.notna().astype(int)
    return frame.assign(group=np.arange(n) % groups)


def fit(frame, **options):
    return hk.heckman("y ~ x", "~ x + z", frame, **options)


@pytest.mark.parametrize("groups", [2, 5, 40])
def test_clusters_are_compared_with_a_t_and_few_of_them_warn(groups):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit(frame_of(groups), groups="group")
    said = [str(each.message) for each in caught]
    assert any(f"{groups} clusters are few" in each for each in said) == (groups < 20)
    t = stats.t(groups - 1)
    table = found.to_frame(0.9)
    np.testing.assert_allclose(table.p, 2 * t.sf(np.abs(found.params / found.se)), rtol=1e-9)
    np.testing.assert_allclose(table.high, found.params + t.ppf(0.95) * found.se, rtol=1e-9)
    low, high = found.interval("rho", 0.9)
    width = 2 * t.ppf(0.95) * found.se["ancillary", "atanh_rho"]
    assert np.arctanh(high) - np.arctanh(low) == pytest.approx(width)
    term = ("outcome", "x")
    assert found.wald_test([term]).p_value == pytest.approx(table.p[term])  # F(1, G-1) is t squared
    assert f"{groups} clusters, t({groups - 1})" in found.summary()
    assert "P>|t|" in found.summary()
    assert found.to_dict()["degrees_of_freedom"] == groups - 1


@pytest.mark.filterwarnings("ignore")
def test_least_squares_and_probit_by_few_clusters_are_statsmodels_with_a_t():
    frame = frame_of(8)
    full = frame[frame.s == 1]
    options = {"cov_type": "cluster", "use_t": True}
    peer = sm.OLS(full.y, sm.add_constant(full[["x"]])).fit(
        cov_kwds={"groups": full.group, "df_correction": True}, **options
    )
    found = fit(full, groups="group")
    same = found.to_frame().z / peer.tvalues.to_numpy()  # another small-sample factor of the se
    np.testing.assert_allclose(same, same.iloc[0], rtol=1e-8)
    scaled = 2 * stats.t(7).sf(np.abs(found.to_frame().z / same))
    np.testing.assert_allclose(scaled, peer.pvalues, rtol=1e-8)
    np.testing.assert_allclose(found.to_frame().p, 2 * stats.t(7).sf(np.abs(found.to_frame().z)))
    probit = hk.probit("s ~ x + z", frame, groups="group")
    np.testing.assert_allclose(
        probit.to_frame().p, 2 * stats.t(7).sf(np.abs(probit.to_frame().z)), rtol=1e-9
    )
    assert "8 clusters, t(7)" in probit.summary()
