"""Results as tables: against statsmodels, against the equations of the fit, and as printed."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import integrate, stats

import heckesel as hk
from heckesel.errors import DataError
from reproduction.e0_gate import draw_linear

WOMEN = hk.datasets.load_mroz()
EQUATIONS = (
    "lwage ~ educ + exper + expersq",
    "~ nwifeinc + educ + exper + expersq + age + kidslt6 + kidsge6",
)
FRAME = draw_linear(600, rho=0.5, seed=1)


@pytest.fixture(scope="module")
def weak():
    """A fit whose p-values and intervals use the profile likelihood."""
    return hk.heckman(*EQUATIONS, WOMEN)


@pytest.fixture(scope="module")
def two_step():
    return hk.heckman(*EQUATIONS, WOMEN, method="two-step")


def test_a_probit_has_the_tables_of_statsmodels():
    ours = hk.probit("inlf ~ educ + age + kidslt6", WOMEN)
    x = sm.add_constant(WOMEN[["educ", "age", "kidslt6"]])
    theirs = sm.Probit(WOMEN["inlf"], x).fit(disp=False, tol=1e-12)
    close = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(ours.pvalues, theirs.pvalues, **close)
    np.testing.assert_allclose(ours.zvalues, theirs.tvalues, **close)
    np.testing.assert_allclose(ours.conf_int(0.9), theirs.conf_int(0.1), **close)
    assert (ours.nobs, ours.df_model, ours.df_resid) == (
        theirs.nobs,
        theirs.df_model,
        theirs.df_resid,
    )
    found = ours.glance().iloc[0]
    for name, expected in {
        "loglik": theirs.llf,
        "loglik_constant": theirs.llnull,
        "pseudo_r2": theirs.prsquared,
        "aic": theirs.aic,
        "bic": theirs.bic,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-9)
    rows = ours.augment(WOMEN)
    np.testing.assert_allclose(rows["fitted"], theirs.predict(), rtol=1e-6)
    np.testing.assert_allclose(rows["residual"], theirs.resid_response, atol=1e-6)


def test_one_row_describes_a_fit_as_published(weak):
    found = weak.glance()
    assert found.shape[0] == 1
    found = found.iloc[0]
    # R's sampleSelection prints for these data: 753 observations, 428 observed, df = 739,
    # log-likelihood -832.8851
    assert (found.nobs, found.n_selected, found.df_resid, found.df_model) == (753, 428, 739, 3)
    np.testing.assert_allclose(found.loglik, -832.8851, atol=5e-5)
    assert (found.method, found.inference, found.verdict) == (
        "ml",
        "profile",
        weak.identification.verdict,
    )


def test_two_step_residuals_are_those_of_least_squares(two_step):
    rows = two_step.augment()
    chosen = rows[rows.selected]
    assert len(chosen) == 428
    # normal equations of the second step: residuals are orthogonal to x and to the Mills ratio
    for column in (np.ones(428), chosen.educ, chosen.exper, chosen.inverse_mills):
        scale = np.sqrt((column**2).sum() * (chosen.residual**2).sum())
        assert abs(column @ chosen.residual) < 1e-9 * scale
    lam = two_step.params["mills", "lambda"]
    np.testing.assert_allclose(rows.fitted_selected, rows.fitted + lam * rows.inverse_mills)
    index = stats.norm.ppf(rows.p_selected)
    np.testing.assert_allclose(rows.inverse_mills, stats.norm.pdf(index) / rows.p_selected)
    # the first step is a probit, whose weighted residuals sum to zero
    p = rows.p_selected
    weight = stats.norm.pdf(index) / (p * (1 - p))
    assert abs((weight * (rows.selected - p)).sum()) < 1e-6
    assert rows.residual[~rows.selected].isna().all()
    assert list(rows.lwage.dropna()) == list(WOMEN.lwage.dropna())


def test_t_errors_select_by_a_t_distribution():
    fit = hk.heckman("y ~ x", "~ x + z", FRAME, errors="t")
    row = fit.augment().iloc[7]
    index = fit.params["select"] @ [1.0, FRAME.x[7], FRAME.z[7]]
    t = stats.t(fit.df)
    np.testing.assert_allclose(row.p_selected, t.cdf(index), rtol=1e-10)
    above = integrate.quad(lambda u: u * t.pdf(u), -index, np.inf)[0]
    np.testing.assert_allclose(row.inverse_mills, above / t.cdf(index), rtol=1e-6)


def test_augment_refuses_duplicate_columns_and_fits_without_rows(two_step, tmp_path):
    with pytest.raises(DataError, match="adds a column 'fitted', which the data has; rename it"):
        two_step.augment(WOMEN.assign(fitted=0))
    FRAME.to_parquet(tmp_path / "rows.parquet")
    streamed = hk.heckman("y ~ x", "~ x + z", str(tmp_path / "rows.parquet"))
    with pytest.raises(DataError, match=r"has none; pass a frame"):
        streamed.augment()
    held = hk.heckman("y ~ x", "~ x + z", FRAME)
    np.testing.assert_allclose(streamed.augment(FRAME).fitted, held.augment().fitted, rtol=1e-6)
    arrays = hk.heckman(y=FRAME.y, x=FRAME[["x"]], w=FRAME[["x", "z"]])
    np.testing.assert_array_equal(arrays.augment().residual, held.augment().residual)
    with pytest.raises(DataError, match="fit from formulas"):
        arrays.augment(FRAME)
