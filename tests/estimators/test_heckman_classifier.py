"""The probit with sample selection: another program, special cases, invariances, simulation."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn.base import clone

import heckesel as hk
from heckesel.classical.probit_results import probit_index
from heckesel.datasets.simulated import DEFAULT, GRANT, LENIENCY

STATSPAI = json.loads(
    (Path(__file__).parents[1] / "reference" / "heckprobit_statspai.json").read_text()
)
COLUMNS = ["log_income", "debt", "tenure"]
DRAW = hk.datasets.make_loans(1500, rho=-0.6, seed=5)
LOANS = DRAW.frame
X, Y = LOANS[[*COLUMNS, "leniency"]], LOANS["default"]
MODEL = hk.HeckmanClassifier(["leniency"], method="ml").fit(X, Y)


def mroz():
    women = hk.datasets.load_mroz()
    excluded = ["nwifeinc", "age", "kidslt6", "kidsge6"]
    well_paid = pd.Series(np.where(women.lwage.isna(), np.nan, women.lwage > 1.2))
    return women[["educ", "exper", *excluded]], well_paid, excluded


def statspai_name(equation, term):
    constant = "const" if term == "Intercept" else term
    return {"outcome": constant, "select": f"select:{constant}", "ancillary": "athrho"}[equation]


@pytest.mark.parametrize("covariance", ["information", "robust"])
@pytest.mark.parametrize("name", ["mroz", "loans"])
def test_estimates_and_standard_errors_are_those_of_statspai(name, covariance):
    columns, y, instruments = mroz() if name == "mroz" else (X, Y, ["leniency"])
    fit = (
        hk.HeckmanClassifier(instruments, covariance=covariance, method="ml")
        .fit(columns, y)
        .result_
    )
    expected = STATSPAI[name][covariance]
    names = [statspai_name(*label) for label in fit.params.index]
    np.testing.assert_allclose(fit.params, [expected["params"][n] for n in names], rtol=1e-9)
    # theirs come from a Hessian by differences of the score, good to eight digits
    np.testing.assert_allclose(fit.se, [expected["se"][n] for n in names], rtol=1e-7)
    assert fit.loglik == pytest.approx(expected["loglik"], abs=1e-9)


def test_without_selection_it_equals_the_probit_of_statsmodels():
    with pytest.warns(hk.IdentificationWarning, match="every unit was selected"):
        model = hk.HeckmanClassifier(["leniency"], method="ml").fit(X, DRAW.truth.y)
    expected = sm.Probit(DRAW.truth.y, sm.add_constant(X[COLUMNS])).fit(disp=0)
    np.testing.assert_allclose(model.result_.params, expected.params, rtol=1e-6)
    np.testing.assert_allclose(model.result_.se, expected.bse, rtol=1e-6)
    assert model.identification_.verdict == "nothing to correct"
    np.testing.assert_array_equal(model.predict_proba(X, "selected"), model.predict_proba(X))
    with pytest.raises(hk.DataError, match="no unselected unit"):
        model.predict_proba(X, "unselected")
    assert model.log_likelihood(X, Y) == -np.inf
    assert "Probit, every unit selected" in model.result_.summary()


def test_estimates_lie_within_their_errors_of_the_truth():
    """Eight draws: the mean z of each of the nine parameters has sd 1/sqrt(8), and 3.5 of those
    hold all nine but once in 240 times."""
    truth = true_parameters()
    z = []
    for seed in range(8):
        loans = hk.datasets.make_loans(1200, rho=-0.6, seed=100 + seed).frame
        fit = hk.HeckmanClassifier(["leniency"], method="ml").fit(
            loans.drop(columns="default"), loans.default
        )
        z.append(((fit.result_.params - truth) / fit.result_.se).to_numpy())
    assert np.abs(np.mean(z, axis=0)).max() < 3.5 / np.sqrt(8)
    assert 0.5 < np.std(z) < 1.5  # the standard errors have the right size: 72 values


def true_parameters() -> np.ndarray:
    """In the units of the columns: i = log_income - log 30, d = 10 debt - 3, t = tenure/3 - 2."""
    centre = np.array([np.log(30.0), 3.0, 2.0])
    outcome, select = (
        [constant - centre @ slopes, slopes[0], 10 * slopes[1], slopes[2] / 3]
        for constant, slopes in (DEFAULT, GRANT)
    )
    return np.array([*outcome, *select, LENIENCY, np.arctanh(-0.6)])


def test_rescaling_a_column_rescales_its_coefficient_and_nothing_else():
    scaled = X.assign(log_income=1e6 * X.log_income - 3e6, leniency=1e-5 * X.leniency)
    model = clone(MODEL).fit(scaled, Y)
    factor = np.array([1e6, 1.0, 1.0])
    np.testing.assert_allclose(model.coef_ * factor, MODEL.coef_, rtol=1e-6)
    assert model.rho_ == pytest.approx(MODEL.rho_, rel=1e-6)
    assert model.result_.loglik == pytest.approx(MODEL.result_.loglik, abs=1e-8)
    np.testing.assert_allclose(
        model.result_.se["outcome"].iloc[1:] * factor,
        MODEL.result_.se["outcome"].iloc[1:],
        rtol=1e-5,
    )
    for target in ("population", "selected", "unselected"):
        np.testing.assert_allclose(
            model.predict_proba(scaled, target), MODEL.predict_proba(X, target), rtol=1e-5
        )


def test_swapping_the_labels_reverses_every_sign():
    other = clone(MODEL).fit(X, 1 - Y)
    np.testing.assert_allclose(other.coef_, -MODEL.coef_, rtol=1e-7)
    assert other.rho_ == pytest.approx(-MODEL.rho_, rel=1e-7)
    np.testing.assert_allclose(
        other.predict_proba(X, "unselected"),
        MODEL.predict_proba(X, "unselected")[:, ::-1],
        rtol=1e-7,
    )


@pytest.mark.parametrize(("target", "way"), [("selected", 1.0), ("unselected", -1.0)])
def test_probabilities_given_selection_are_ratios_of_bivariate_normal_probabilities(target, way):
    few = X.iloc[:5]
    params = MODEL.result_.params
    f = params["outcome"].iloc[0] + few[COLUMNS] @ params["outcome"].iloc[1:]
    index = params["select"].iloc[0] + few @ params["select"].iloc[1:]
    law = multivariate_normal(cov=[[1, way * MODEL.rho_], [way * MODEL.rho_, 1]])
    expected = law.cdf(np.column_stack([way * index, f])) / ndtr(way * index)
    np.testing.assert_allclose(MODEL.predict_proba(few, target)[:, 1], expected, rtol=1e-6)


def test_the_law_of_total_probability_holds():
    index = MODEL.result_.params["select"].iloc[0] + X @ MODEL.result_.params["select"].iloc[1:]
    share = ndtr(index.to_numpy())[:, None]
    mixed = share * MODEL.predict_proba(X, "selected")
    mixed += (1 - share) * MODEL.predict_proba(X, "unselected")
    np.testing.assert_allclose(mixed, MODEL.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("target", ["population", "selected", "unselected"])
def test_gradients_of_predictions_equal_differences(target):
    fit = MODEL.result_
    x = np.column_stack([np.ones(6), X[COLUMNS].to_numpy()[:6]])
    w = np.column_stack([np.ones(6), X.to_numpy()[:6]])
    _, gradient = probit_index(fit, x, w, target)
    for j, label in enumerate(fit.params.index):
        step = 1e-6 * max(1.0, abs(fit.params[label]))
        sides = []
        for way in (1, -1):
            moved = fit.params.copy()
            moved[label] += way * step
            sides.append(probit_index(replace(fit, params=moved), x, w, target)[0])
        np.testing.assert_allclose(
            (sides[0] - sides[1]) / (2 * step), gradient[:, j], rtol=2e-6, atol=1e-7
        )
