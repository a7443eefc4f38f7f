"""Linear combinations, nested fits, contrasts, clusters in two ways, analytic weights and files,
against statsmodels, StatsPAI, and special cases that must collapse."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import heckesel as hk

REFERENCE = Path(__file__).parents[1] / "reference" / "heckprobit_statspai.json"
FORMULAS = "lwage ~ educ + exper + C(city)", "~ educ + exper + C(city) + age + kidslt6"


@pytest.fixture(scope="module")
def women():
    rng = np.random.default_rng(3)
    found = hk.datasets.load_mroz()
    return found.assign(firm=rng.integers(0, 60, len(found)), year=rng.integers(0, 25, len(found)))


@pytest.fixture(scope="module")
def fits(women):
    return {method: hk.heckman(*FORMULAS, women, method=method) for method in ("ml", "two-step")}


def test_a_combination_in_a_probit_is_that_of_statsmodels(women):
    text = "educ + 2*kidslt6 = 0.5"
    theirs = smf.probit("inlf ~ educ + kidslt6", women).fit(disp=0).t_test(text)
    ours = hk.probit("inlf ~ educ + kidslt6", women).lincom(text)
    assert list(ours.index) == [text]
    expected = [theirs.effect[0] - 0.5, theirs.sd[0, 0], theirs.tvalue[0, 0], theirs.pvalue]
    expected += list(theirs.conf_int()[0] - 0.5)
    np.testing.assert_allclose(ours.iloc[0], expected, rtol=1e-6)


@pytest.mark.parametrize("groups", [None, "firm"])
@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_the_combination_of_one_coefficient_is_its_row_of_the_table(women, method, groups):
    fit = hk.heckman(*FORMULAS, women, method=method, groups=groups)
    found = fit.lincom(["educ", ("outcome", "exper"), "select:age"])
    labels = [("outcome", "educ"), ("outcome", "exper"), ("select", "age")]
    rows = fit.to_frame().loc[labels]
    np.testing.assert_allclose(found, rows, rtol=1e-10)
    assert list(found.index) == ["educ = 0", "exper = 0", "age = 0"]


def test_nested_probits_have_the_likelihood_ratio_of_statsmodels(women):
    formulas = "inlf ~ educ + kidslt6 + age", "inlf ~ educ"
    ours, theirs = zip(
        *((hk.probit(each, women), smf.probit(each, women).fit(disp=0)) for each in formulas),
        strict=True,
    )
    test = ours[0].lrtest(ours[1])
    assert test.statistic == pytest.approx(2 * (theirs[0].llf - theirs[1].llf), rel=1e-9)
    assert test.degrees_of_freedom == 2
    assert test == ours[1].lrtest(ours[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "two-step"}, "has no likelihood"),
        ({"groups": "firm"}, "clustered rows"),
        ({"weights": "age", "weight_kind": "probability"}, "same rows"),
        ({"outcome": "lwage ~ age"}, "not nested: only one of them has outcome:age"),
        ({}, "they are equal"),
    ],
)
def test_fits_without_a_likelihood_ratio_are_refused(women, fits, change, message):
    given = {"outcome": FORMULAS[0], "select": FORMULAS[1]} | change
    with pytest.raises(hk.DataError, match=message):
        fits["ml"].lrtest(hk.heckman(data=women, **given))


def test_contrasts_are_differences_of_averages(fits):
    fit, values = fits["ml"], {"educ": [12, 16, 8], "city": [1, 0]}
    found = fit.margins(contrast=values)
    assert list(found.index) == ["educ[16 vs 12]", "educ[8 vs 12]", "city[0 vs 1]"]
    slopes = fit.params["outcome"][["educ", "educ", "C(city)[T.1]"]]
    np.testing.assert_allclose(found["effect"], slopes.to_numpy() * [4, -4, -1], rtol=1e-9)
    chosen = fit.margins("selection", contrast=values)["effect"]
    means = fit.average("selection", at={"educ": [12, 16, 8]})["mean"]
    np.testing.assert_allclose(chosen.iloc[:2], (means - means.iloc[0]).iloc[1:], rtol=1e-9)
    with pytest.raises(hk.DataError, match="has no level 2"):
        fit.margins(contrast={"city": [0, 2]})
    with pytest.raises(hk.DataError, match="two or more values"):
        fit.margins(contrast={"educ": 12})


def test_clusters_in_two_ways_in_least_squares_are_those_of_statsmodels(women):
    working = women[women.lwage.notna()]
    groups = working[["firm", "year"]]
    x = sm.add_constant(working[["educ", "exper"]])
    theirs = sm.OLS(working.lwage, x).fit(cov_type="cluster", cov_kwds={"groups": groups})
    ours = hk.heckman("lwage ~ educ + exper", "~ educ", working, groups=["firm", "year"])
    np.testing.assert_allclose(ours.se, theirs.bse, rtol=1e-7)
    assert ours.freedom == 24


@pytest.mark.parametrize("fitted", ["ml", "two-step", "t", "heckprobit", "probit"])
def test_a_second_way_that_adds_nothing_leaves_one_way_of_clusters(women, fitted):
    women = women.assign(
        row=np.arange(len(women)),
        paid=np.where(women.lwage.isna(), np.nan, women.lwage > 1.2),
    )

    def fit(groups):
        if fitted == "probit":
            return hk.probit("inlf ~ educ + kidslt6", women, groups=groups)
        if fitted == "heckprobit":
            return hk.heckprobit("paid ~ educ", "~ educ + kidslt6 + age", women, groups=groups)
        kind = {"errors": "t"} if fitted == "t" else {"method": fitted}
        return hk.heckman(*FORMULAS, women, groups=groups, **kind)

    one = fit("firm")
    for second in ("firm", "row"):
        two = fit(np.asarray(women[["firm", second]]))
        np.testing.assert_allclose(two.cov, one.cov, rtol=1e-7, atol=1e-12)
        assert two.freedom == one.freedom


def test_analytic_weights_in_least_squares_are_those_of_statsmodels(women):
    working = women[women.lwage.notna()]
    x = sm.add_constant(working[["educ", "exper"]])
    for kind, name in (("nonrobust", None), ("HC1", "robust")):
        theirs = sm.WLS(working.lwage, x, working.age).fit(cov_type=kind)
        ours = hk.heckman(
            "lwage ~ educ + exper",
            "~ educ",
            working,
            weights="age",
            weight_kind="analytic",
            covariance=name,
        )
        np.testing.assert_allclose(ours.params, theirs.params, rtol=1e-8)
        np.testing.assert_allclose(ours.se, theirs.bse, rtol=1e-7)


@pytest.mark.parametrize("options", [{}, {"method": "two-step"}, {"errors": "t"}])
def test_analytic_weights_count_rows_and_not_their_sum(women, options):
    """The estimates are those of frequencies, whose covariance is that of more rows."""
    given = {"weights": "age"} | options
    frequency = hk.heckman(*FORMULAS, women, **given)
    ours = hk.heckman(*FORMULAS, women, weight_kind="analytic", **given)
    scaled = women.assign(age=7 * women.age)
    other = hk.heckman(
        FORMULAS[0],
        "~ educ + exper + C(city) + I(age / 7) + kidslt6",
        scaled,
        **given,
        weight_kind="analytic",
    )
    np.testing.assert_allclose(ours.params, frequency.params, rtol=1e-5)
    np.testing.assert_allclose(ours.cov / women.age.mean(), frequency.cov, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(other.cov, ours.cov, rtol=1e-6, atol=1e-12)
    assert ours.nobs == len(women)
    assert frequency.nobs == women.age.sum()
    unit = women.age.mean()
    np.testing.assert_allclose([ours.loglik * unit, other.loglik * unit], frequency.loglik)


def test_a_probit_with_selection_by_formula_is_that_of_statspai(women):
    women = women.assign(well_paid=np.where(women.lwage.isna(), np.nan, women.lwage > 1.2))
    select = "~ educ + exper + nwifeinc + age + kidslt6 + kidsge6"
    for kind in ("information", "robust"):
        known = json.loads(REFERENCE.read_text())["mroz"][kind]
        fit = hk.heckprobit("well_paid ~ educ + exper", select, women, covariance=kind)
        names = ["const", "educ", "exper"]
        for ours, theirs in ((fit.params, known["params"]), (fit.se, known["se"])):
            expected = [theirs[name] for name in names]
            np.testing.assert_allclose(ours["outcome"], expected, rtol=1e-7)
        assert fit.loglik == pytest.approx(known["loglik"], abs=1e-9)
    rows = women.head(5)
    np.testing.assert_array_equal(fit.predict(rows), fit.predict()[:5])
    chosen = fit.predict(rows, target="selected")
    assert (chosen != fit.predict(rows)).all()


@pytest.mark.parametrize("kind", ["ml", "two-step", "shape", "clusters", "probit", "heckprobit"])
def test_every_fit_can_be_saved(women, tmp_path, kind):
    women = women.assign(paid=np.where(women.lwage.isna(), np.nan, women.lwage > 1.2))
    outcome, select = "lwage ~ educ*C(city) + np.log(age)", "~ bs(age, df=4) + educ*C(city)"
    if kind == "probit":
        fit = hk.probit("inlf ~ educ + C(city, contr.sum) + center(age)", women)
    elif kind == "heckprobit":
        fit = hk.heckprobit("paid ~ educ*C(city)", select, women)
    else:
        options = {"shape": {"errors": "shape"}, "clusters": {"groups": "firm"}}
        fit = hk.heckman(outcome, select, women, **options.get(kind, {}))
    fit.save(tmp_path / "fit")
    loaded = hk.load(tmp_path / "fit")
    assert type(loaded) is type(fit)
    assert len(repr(loaded)) < 160
    assert loaded.summary() == fit.summary()
    assert loaded._repr_html_()
    pd.testing.assert_frame_equal(loaded.to_frame(), fit.to_frame())
    for ours, theirs in zip(
        *(_numbers(each.predict(women)) for each in (fit, loaded)), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    if kind != "probit":
        assert all(len(repr(mode)) < 80 for mode in fit.modes)


def _numbers(predicted):
    return [predicted] if isinstance(predicted, np.ndarray) else [predicted.mean, predicted.std]


@pytest.mark.parametrize(
    "term",
    [
        "np.asarray(educ)",
        "educ.to_pickle('x')",
        "educ ** 9 ** 99",
        "hashed(educ)",
        "f(educ)",
        "educ[0]",
    ],
)
def test_a_file_holds_no_formula_that_runs_code(women, tmp_path, term):
    fit = hk.probit("inlf ~ educ", women)
    object.__setattr__(fit.equation, "right", f"{{{term}}}")
    with pytest.raises(hk.DataError, match="which a file cannot hold"):
        fit.save(tmp_path / "fit")
