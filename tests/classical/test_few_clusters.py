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
@pytest.mark.filterwarnings("ignore")
def test_clusters_are_compared_with_a_t(groups):
    found = fit(frame_of(groups), clusters="group")
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
    found = fit(full, clusters="group")
    same = found.to_frame().z / peer.tvalues.to_numpy()  # another small-sample factor of the se
    np.testing.assert_allclose(same, same.iloc[0], rtol=1e-8)
    scaled = 2 * stats.t(7).sf(np.abs(found.to_frame().z / same))
    np.testing.assert_allclose(scaled, peer.pvalues, rtol=1e-8)
    np.testing.assert_allclose(found.to_frame().p, 2 * stats.t(7).sf(np.abs(found.to_frame().z)))
    probit = hk.probit("s ~ x + z", frame, clusters="group")
    np.testing.assert_allclose(
        probit.to_frame().p, 2 * stats.t(7).sf(np.abs(probit.to_frame().z)), rtol=1e-9
    )
    assert "8 clusters, t(7)" in probit.summary()


def test_fits_without_clusters_stay_normal():
    found = fit(frame_of(5), covariance="robust")
    np.testing.assert_allclose(found.to_frame().p, 2 * stats.norm.sf(np.abs(found.to_frame().z)))
    assert "P>|z|" in found.summary()
    assert found.to_dict()["degrees_of_freedom"] is None


@pytest.mark.parametrize("groups", [2, 19])
def test_few_clusters_warn(groups):
    with pytest.warns(hk.IdentificationWarning, match=f"{groups} clusters are few"):
        fit(frame_of(groups), clusters="group")
    with pytest.warns(hk.IdentificationWarning, match=f"{groups} clusters are few"):
        hk.probit("s ~ x + z", frame_of(groups), clusters="group")


def test_few_effective_rows_warn():
    frame = frame_of(2)
    heavy = np.where(np.arange(len(frame)) % 40 == 0, 100.5, 0.5)  # ten rows have most of it
    # 1200 squared over 10 * 100.5**2 + 390 * .25
    with pytest.warns(hk.IdentificationWarning, match="400 rows are equivalent to 14 of"):
        fit(frame, weights=heavy, weight_kind="probability")


def test_ordinary_clusters_and_weights_do_not_warn():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(frame_of(20), clusters="group")
        fit(frame_of(20), weights=rng.uniform(0.5, 3, 400), weight_kind="probability")
        fit(frame_of(20), weights=np.where(np.arange(400) == 0, 5, 1))  # counts rows


FITS = {
    "function": lambda frame: hk.heckman("y ~ x", "~ x", frame),
    "regressor": lambda frame: hk.HeckmanRegressor().fit(frame[["x"]], frame["y"]),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_warning_names_the_line_of_the_user(fit):
    frame = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
    with pytest.warns(hk.IdentificationWarning) as caught:
        fit(frame)
    assert [warning.filename for warning in caught] == [__file__]
