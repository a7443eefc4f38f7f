"""The verdict: its evidence against other programs and simulations, and what follows from it."""

import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm, t

import heckesel as hk
from heckesel.data import selection_data
from heckesel.math.special import inverse_mills
from heckesel.verdict.identify import (
    CONTRADICTED,
    MOSTLY_PRIOR,
    NOTHING_TO_CORRECT,
    SUPPORTED,
    Identification,
)
from heckesel.verdict.linear import linearity_test
from heckesel.verdict.validity import smooth_columns

VALID = "normal errors, a valid instrument"
ROWS = 1000


def _draw(rng, *, instrument=None, strength=1.0, error=None, rho=0.5) -> pd.DataFrame:
    """One table; instrument : of (x1, x2, noise); error : of (normal error, x1, uniform)"""
    x1, x2, noise, u, v = rng.normal(size=(5, ROWS))
    z = noise if instrument is None else instrument(x1, x2, noise)
    e = rho * u + np.sqrt(1 - rho**2) * v
    e = e if error is None else error(e, x1, rng.uniform(size=ROWS))
    selected = 0.3 + 0.5 * x1 + strength * z + u > 0
    y = 1 + x1 + x2 + e
    return pd.DataFrame({"x1": x1, "x2": x2, "z": z, "y": np.where(selected, y, np.nan)})


def _draw_two(rng) -> pd.DataFrame:
    """Two instruments, of which the second affects the outcome."""
    table = _draw(rng)
    second = rng.normal(size=ROWS)
    rejected = second + rng.normal(size=ROWS) < -1
    y = (table["y"] + 0.5 * second).mask(rejected)
    return table.assign(z2=second, y=y)


def _draw_curved(rng) -> pd.DataFrame:
    """The outcome has a product and a square that are missing in its equation."""
    table = _draw(rng)
    return table.assign(y=table["y"] + 0.5 * table["x1"] * table["x2"] + 0.3 * table["x1"] ** 2)


def _draw_copies(rng) -> pd.DataFrame:
    """Every fifth row, repeated five times."""
    return _draw(rng).iloc[np.repeat(np.arange(ROWS // 5), 5)]


CASES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "normal errors, a valid instrument": _draw,
    "exponential errors": lambda rng: _draw(rng, error=lambda e, x, t: -norm.logsf(e) - 1),
    "log-normal errors": lambda rng: _draw(rng, error=lambda e, x, t: np.exp(e) - np.exp(0.5)),
    "1 % outliers": lambda rng: _draw(rng, error=lambda e, x, t: np.where(t < 0.01, 10 * e, e)),
    "sigma depends on x": lambda rng: _draw(rng, error=lambda e, x, t: e * np.exp(0.6 * x)),
    "instrument = x1 * x2": lambda rng: _draw(rng, instrument=lambda a, b, t: a * b),
    "instrument = x1 squared": lambda rng: _draw(rng, instrument=lambda a, b, t: a**2),
    "instrument = 1 if x1 > 0": lambda rng: _draw(rng, instrument=lambda a, b, t: 1.0 * (a > 0)),
    "two instruments, one invalid": _draw_two,
    "the outcome lacks a curve and a product": _draw_curved,
    "each row five times": _draw_copies,
    "a weak instrument, rho = 0": lambda rng: _draw(rng, strength=0.15, rho=0.0),
    "a noise column as instrument": lambda rng: _draw(rng, strength=0.0),
}


def fit_of(table):
    x = " + ".join(name for name in table.columns if name.startswith("x"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hk.IdentificationWarning)
        return hk.heckman(f"y ~ {x}", f"~ {' + '.join(table.columns.drop('y'))}", table)


def verdicts(name: str, draws: int) -> Counter:
    fits = [fit_of(CASES[name](np.random.default_rng(seed))) for seed in range(draws)]
    return Counter(fit.identification.verdict for fit in fits)


@pytest.fixture(scope="module")
def linear():
    """A straight line, an instrument, rho .6."""
    rng = np.random.default_rng(3)
    n = 1500
    x, z, u, v = rng.normal(size=(4, n))
    y = 1 + x + 0.7 * (0.6 * u + 0.8 * v)
    seen = 0.2 + 0.5 * x + 0.8 * z + u > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(seen, y, np.nan)})


@pytest.fixture(scope="module")
def found(linear):
    return hk.heckman("y ~ x", "~ x + z", linear, method="two-step").identification


def test_the_wald_statistic_and_the_error_of_rho_are_those_of_statsmodels(linear, found):
    s = linear["y"].notna()
    probit = sm.Probit(s.astype(float), sm.add_constant(linear[["x", "z"]])).fit(disp=0, tol=1e-12)
    assert found.evidence["wald"] == pytest.approx(probit.tvalues["z"] ** 2, rel=1e-6)
    index = (sm.add_constant(linear[["x", "z"]]) @ probit.params)[s]
    mills = inverse_mills(index.to_numpy())
    fit = sm.OLS(mills, sm.add_constant(smooth_columns(linear.loc[s, ["x"]].to_numpy()))).fit()
    assert found.evidence["mills_share"] == pytest.approx(1 - fit.rsquared, abs=1e-6)
    bias = 1 / (found.evidence["share_beyond_smooth"] * found.evidence["wald"])
    units = fit.ssr**2 / (fit.resid**4).sum()
    few = t.ppf(0.975, units) / norm.ppf(0.975)
    expected = np.hypot(few * fit.ssr**-0.5, bias)  # errors of variance one
    assert found.evidence["rho_error"] == pytest.approx(expected, rel=1e-6)


def test_the_error_of_rho_is_the_spread_of_its_two_step_estimates():
    """1000 rows, rho = 0 and a known line: 60 draws have a standard deviation within 4 errors."""
    estimates, stated = [], []
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        x, z, u, v = rng.normal(size=(4, 1000))
        y = np.where(0.5 * x + 0.7 * z + u > 0, 1 + x + v, np.nan)
        table = pd.DataFrame({"x": x, "z": z, "y": y})
        fit = hk.heckman("y ~ x", "~ x + z", table, method="two-step")
        estimates.append(fit.params["mills", "lambda"])
        stated.append(fit.identification.evidence["rho_error"])
    assert np.std(estimates) == pytest.approx(np.mean(stated), rel=4 / np.sqrt(2 * 60))


def both_verdicts(X, y, instrument):
    """Of the default method, and of a linear fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hk.IdentificationWarning)
        linear = hk.HeckmanRegressor([instrument], method="two-step").fit(X, y)
    found = hk.identify(X, y, instruments=[instrument], learner="splines", cv=3)
    return found, linear.identification_


def test_an_instrument_that_moves_only_units_without_outcomes_is_weak():
    """Only three of a thousand selected units are in the other arm."""
    rng = np.random.default_rng(2)
    z, x, u, v = rng.random(4000) < 0.5, *rng.normal(size=(3, 4000))
    y = np.where(3.2 * z - 3.2 + 0.1 * x + u > 0, 1 + x + 0.5 * u + v, np.nan)
    found, linear = both_verdicts(np.column_stack([x, z]), y, 1)
    assert linear.evidence["wald"] > 100
    assert found.verdict == linear.verdict == MOSTLY_PRIOR


@pytest.mark.parametrize("curved", [True, False])
def test_an_instrument_that_is_a_function_of_x_is_weak(curved):
    rng = np.random.default_rng(5)
    x, u, v, other = rng.normal(size=(4, 3000))
    z = x**2 if curved else other
    y = np.where(0.5 * x + 0.3 * z + u > 0, 1 + x + 0.6 * u + 0.8 * v, np.nan)
    found, linear = both_verdicts(pd.DataFrame({"x": x, "z": z}), y, "z")
    assert linear.evidence["wald"] > 100  # strong by the test alone
    assert found.verdict == linear.verdict == (MOSTLY_PRIOR if curved else SUPPORTED)
    if curved:
        assert "explain all of its effect" in linear.sentence
    else:
        assert linear.evidence["share_beyond_smooth"] == pytest.approx(1, abs=0.01)


def test_without_an_instrument_the_verdict_is_mostly_prior_and_says_where_to_look(linear):
    learned = hk.identify(linear[["x"]], linear["y"], learner="linear")
    classical = hk.heckman("y ~ x", "~ x", linear).identification
    assert "the prior determines it" in learned.sentence
    assert "so rho comes from the assumed form of the errors" in classical.sentence
    for found in (learned, classical):
        assert found.verdict == MOSTLY_PRIOR
        assert "sensor, site, annotator" in found.action


def test_every_row_selected_is_nothing_to_correct(linear):
    seen = linear.dropna()
    found = hk.identify(seen[["x", "z"]], seen["y"], instruments=["z"], learner="linear")
    assert found.verdict == NOTHING_TO_CORRECT


def test_a_column_that_contains_the_outcome_contradicts_the_model(linear):
    leaky = linear.assign(copy=linear["y"].fillna(0) + 1e-5 * linear["z"])
    X, options = leaky[["x", "z", "copy"]], {"instruments": ["z"], "learner": "linear"}
    found = hk.identify(X, leaky["y"], **options)
    assert found.verdict == CONTRADICTED
    assert found.sentence.startswith("column 'copy' determines the outcome almost exactly")


@pytest.mark.parametrize("case", [name for name in CASES if name != VALID])
def test_data_that_could_mislead_are_never_called_supported(case):
    assert SUPPORTED not in verdicts(case, 4)


@pytest.mark.parametrize("case", ["exponential errors", "log-normal errors", "sigma depends on x"])
def test_wrong_errors_that_change_estimates_contradict_the_model(case):
    assert verdicts(case, 4)[CONTRADICTED] >= 3


def test_a_valid_instrument_with_normal_errors_supports_the_correction():
    """Tests at 1 in 1000 leave room for one draw of ten."""
    assert verdicts(VALID, 10)[SUPPORTED] >= 9


@pytest.mark.filterwarnings("ignore::heckesel.IdentificationWarning")
def test_the_error_of_rho_counts_how_little_a_rare_class_says():
    """It is close to the standard error of atanh rho by the likelihood. 3 events of 1,759
    selected say nothing, and no number is missing."""
    rng = np.random.default_rng(0)
    x, z, u, v = rng.normal(size=(4, 3000))
    X, s = pd.DataFrame({"x": x, "z": z}), 0.3 + 0.5 * x + z + u > 0
    index = 0.5 * x + 0.5 * u + 0.8 * v
    errors = {}
    for cut in (0.3, 2.3, 3.2):
        y = pd.Series((index > cut) * 1.0).where(s)
        model = hk.HeckmanClassifier(["z"], method="ml").fit(X, y)
        errors[cut] = model.identification_.evidence["rho_error"], model.result_.se["ancillary"]
        table = model.average(X[~s], "unselected")
        assert np.isfinite(table[["mean", "low", "high"]].to_numpy()).all()
    for cut in (0.3, 2.3):
        by_instrument, by_likelihood = errors[cut]
        assert 0.7 < by_instrument / by_likelihood["atanh_rho"] < 1.4
    assert model.identification_.verdict == MOSTLY_PRIOR
    assert errors[3.2][0] > 0.5


def test_wages_in_levels_contradict_normal_errors_with_a_reason():
    women = hk.datasets.load_mroz()
    with pytest.warns(hk.IdentificationWarning, match="contradicted"):
        fit = hk.heckman(
            "wage ~ educ + exper + expersq", "~ educ + exper + expersq + age + kidslt6", women
        )
    assert "errors='shape'" in fit.identification.sentence
    assert "scale='~ educ + exper + expersq'" in fit.identification.action
    assert abs(fit.identification.evidence["contrast"]) > 3


@pytest.mark.parametrize("options", [{"errors": "shape"}, {"method": "two-step"}])
def test_other_estimators_are_tested_for_linearity_too(options):
    table = CASES["the outcome lacks a curve and a product"](np.random.default_rng(3))
    with pytest.warns(hk.IdentificationWarning, match="not linear in its columns"):
        fit = hk.heckman("y ~ x1 + x2", "~ x1 + x2 + z", table, **options)
    assert fit.identification.verdict == MOSTLY_PRIOR
    assert fit.identification.evidence["linearity_p"] < 1e-10
    fit = hk.heckman("y ~ x1 * x2 + I(x1**2)", "~ x1 + x2 + z", table)
    assert fit.identification.verdict == SUPPORTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "strength"), [("normal", None), ("exponential", 1.0), ("sigma depends on x", 1.0)]
)
def test_the_test_of_linearity_keeps_its_level(strength, kind):
    """Whatever the errors: at 5 %, 80 draws, three Monte Carlo standard errors above it."""
    draws, n, rejected = 80, 600, 0
    for seed in range(draws):
        rng = np.random.default_rng([11, seed])
        x, (z, u, v) = rng.normal(size=(n, 2)), rng.normal(size=(3, n))
        e = 0.6 * u + 0.8 * v
        e = {"normal": e, "exponential": -norm.logsf(e)}.get(kind, e * np.exp(0.4 * x[:, 0]))
        s = 0.5 * x[:, 0] - 0.3 * x[:, 1] + (strength or 0.0) * z + u > 0
        w, names = (x, ("a", "b")) if strength is None else (np.column_stack([x, z]), tuple("abz"))
        y = np.where(s, x.sum(axis=1) + e, np.nan)
        data = selection_data(x, w, y, x_names=("a", "b"), w_names=names)
        rejected += linearity_test(data)["linearity_p"] < 0.05
    assert rejected / draws < 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


def test_copies_are_counted_unless_the_outcome_has_few_values():
    rng = np.random.default_rng(4)
    x, s = rng.integers(0, 3, size=500) * 1.0, rng.random(500) < 0.7
    exact = np.where(s, rng.normal(size=500), np.nan)
    table = pd.DataFrame({"x": x, "z": rng.normal(size=500), "y": exact})
    twice = pd.concat([table, table])
    for rows, expected in ((twice, s.sum()), (twice.assign(y=np.round(twice["y"])), None)):
        options = {"instruments": ["z"], "learner": "linear"}
        for found in (hk.identify(rows[["x", "z"]], rows["y"], **options), fit_of(rows)):
            found = getattr(found, "identification", found)
            assert found.evidence.get("repeated_rows") == expected
            if expected is not None and found.verdict == MOSTLY_PRIOR:
                assert f"{expected} selected rows are exact copies of other rows" in found.sentence


def test_no_line_of_evidence_shows_a_placeholder_or_a_negative_zero(linear):
    unknown = Identification(MOSTLY_PRIOR, "", evidence={"rho_error": 1e6})
    assert unknown.evidence_lines() == ["error of rho from the instruments alone: more than 1000"]
    found = hk.identify(linear[["x"]], linear["y"], learner="linear")
    assert "rho with the prior (calibrated on real data): 0.00, " in found.evidence_lines()[0]
    assert "-0.00" not in repr(found)
