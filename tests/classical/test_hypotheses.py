"""Wald tests of hypotheses written in words: against statsmodels, by hand, and by invariance."""

import numpy as np
import pytest
import statsmodels.api as sm

import heckesel as hk
from heckesel.errors import DataError
from reproduction.e0_gate import draw_linear

WOMEN = hk.datasets.load_mroz()
PROBIT = hk.probit("inlf ~ educ + age + kidslt6", WOMEN)


@pytest.fixture(scope="module")
def fit():
    frame = draw_linear(600, rho=0.5, seed=2)
    frame["x,b = c"] = np.sin(np.arange(600.0))
    frame["x2"] = np.cos(np.arange(600.0))
    frame["2020"] = np.cos(0.7 * np.arange(600.0))
    return hk.heckman("y ~ x + x2 + x:x2 + `x,b = c` + I(x2**2) + `2020`", "~ x + z + x2", frame)


@pytest.mark.parametrize(
    "text",
    [
        "educ = 0, age = kidslt6",
        "2*educ - age = 1",
        "(educ + 3*age)/2 = -.5, kidslt6 = 1e-1",
        "educ = age = kidslt6",
    ],
)
def test_the_statistic_is_that_of_statsmodels(text):
    x = sm.add_constant(WOMEN[["educ", "age", "kidslt6"]])
    theirs = sm.Probit(WOMEN["inlf"], x).fit(disp=False, tol=1e-12)
    expected = theirs.wald_test(text, scalar=True, use_f=False)
    found = PROBIT.wald_test(text)
    np.testing.assert_allclose(found.statistic, expected.statistic, rtol=1e-5)
    np.testing.assert_allclose(found.p_value, expected.pvalue, rtol=1e-4)
    assert found.degrees_of_freedom == expected.df_denom


def by_hand(fit, rows, r):
    """(R b - r)' (R V R')^-1 (R b - r), R by labels."""
    restrictions = np.array([[row.get(label, 0.0) for label in fit.params.index] for row in rows])
    gap = restrictions @ fit.params.to_numpy() - r
    return gap @ np.linalg.inv(restrictions @ fit.cov.to_numpy() @ restrictions.T) @ gap


@pytest.mark.parametrize(
    ("text", "rows", "r"),
    [
        ("x = 0", [{("outcome", "x"): 1.0}], [0]),
        ("selection:x = y:x", [{("select", "x"): 1.0, ("outcome", "x"): -1.0}], [0]),
        ("outcome:x = 1, z = 2", [{("outcome", "x"): 1.0}, {("select", "z"): 1.0}], [1, 2]),
        ("x:x2 = x2", [{("outcome", "x:x2"): 1.0, ("outcome", "x2"): -1.0}], [0]),
        ("I(x2 ** 2)", [{("outcome", "I(x2 ** 2)"): 1.0}], [0]),
        ("outcome:2020 = 2020", [{("outcome", "2020"): 1.0}], [2020]),
        ("log_sigma + 2*atanh_rho = 0.5", None, [0.5]),
    ],
)
def test_terms_are_named_as_printed(fit, text, rows, r):
    rows = rows or [{("ancillary", "log_sigma"): 1.0, ("ancillary", "atanh_rho"): 2.0}]
    found = fit.wald_test(text)
    np.testing.assert_allclose(found.statistic, by_hand(fit, rows, np.array(r)), rtol=1e-8)
    assert found.degrees_of_freedom == len(rows)


def test_strings_and_labels_mean_the_same(fit):
    labels = [("outcome", "x"), ("select", "z")]
    assert fit.wald_test("x, z") == fit.wald_test(labels) == fit.wald_test(["x = 0", labels[1]])


def test_clusters_give_an_f_test():
    fit = hk.heckman("lwage ~ educ + exper", "~ educ + exper + age", WOMEN, groups="kidsge6")
    found = fit.wald_test("educ = 0, exper = 0")
    assert np.isfinite(found.denominator)
    assert found == fit.wald_test([("outcome", "educ"), ("outcome", "exper")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("edcu = 0", r"no coefficient 'edcu' in this fit; did you mean 'educ'\?"),
        ("zzz = 1", r"no coefficient 'zzz' in this fit; it has educ, age, kidslt6"),
        ("select:agee = 0", r"did you mean 'select:age'"),
        ("educ*age = 0", "not a list of linear equations"),
        ("", "not a list of linear equations"),
        ("2 = 1", "names no coefficient"),
        ("educ = 0, 2*educ = 1", "are redundant or contradict each other"),
        ([], "name at least one"),
        ([("outcome", "educ")], r"no coefficient \('outcome', 'educ'\)"),
    ],
)
def test_wrong_hypotheses_are_refused(text, said):
    with pytest.raises(DataError, match=said):
        PROBIT.wald_test(text)
