"""Marginal effects and averages of linear fits: statsmodels, finite differences, identities."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import heckesel as hk

ERRORS = {"normal": {}, "t": {}, "shape": {"scale": "~ x"}}


def table(n=700, seed=5):
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    kind = pd.Categorical(rng.choice(["a", "b", "c"], n))
    codes = kind.codes
    selected = 0.4 + 0.6 * x + 1.5 * z + 0.4 * codes + u > 0
    y = 8 + 0.8 * x + 0.5 * codes + 0.6 * u + 0.8 * v
    columns = {"x": x, "z": z, "kind": kind, "s": selected * 1}
    return pd.DataFrame(columns | {"y": np.where(selected, y, np.nan)})


FRAME = table()


@pytest.fixture(scope="module")
def two_steps():
    return hk.heckman("y ~ x + kind", "~ x + z + kind", FRAME, method="two-step")


@pytest.fixture(scope="module", params=ERRORS)
def fit(request):
    name = request.param
    found = hk.heckman("y ~ x + kind", "~ x + z + kind", FRAME, errors=name, **ERRORS[name])
    assert found.over_rho is None
    return found


def probit_of_statsmodels():
    kinds = pd.get_dummies(FRAME["kind"], drop_first=True, dtype=float)
    w = sm.add_constant(pd.concat([FRAME[["x", "z"]], kinds], axis=1))
    return sm.Probit(FRAME["s"], w).fit(disp=0, tol=1e-12)


def test_effects_on_the_probability_of_selection_are_those_of_statsmodels(two_steps):
    theirs = probit_of_statsmodels().get_margeff(dummy=True).summary_frame()
    ours = two_steps.margins("selection").loc[["x", "z", "kind[b]", "kind[c]"]]
    # a category there is one indicator against zero of it, others as they are; ours sets the level
    for row, name in enumerate(["x", "z"]):
        np.testing.assert_allclose(
            ours.loc[name, ["effect", "se", "z", "p", "low", "high"]],
            theirs.iloc[row].to_numpy(),
            rtol=1e-5,
            atol=1e-12,
        )


def test_elasticities_of_the_probability_of_selection_are_those_of_statsmodels(two_steps):
    theirs = probit_of_statsmodels().get_margeff(method="eyex").summary_frame()
    ours = two_steps.margins("selection", kind="elasticity")
    assert list(ours.index) == ["x", "z"]  # numbers only
    np.testing.assert_allclose(
        ours[["effect", "se"]].loc[["x", "z"]], theirs.iloc[:2, :2], rtol=1e-5
    )


def with_params(fit, params):
    """The fit at other estimates."""
    rho = float(np.tanh(params["ancillary", "atanh_rho"]))
    sigma = float(np.exp(params["ancillary", "log_sigma"]))
    return replace(fit, params=params, rho=rho, sigma=sigma)


def numerical_se(fit, quantity):
    """The delta method with central differences over the estimates."""
    slopes = []
    for at in range(len(fit.params)):
        step = 1e-4 * max(fit.se.iloc[at], 1e-3)
        ends = []
        for move in (step, -step):
            params = fit.params.copy()
            params.iloc[at] += move
            ends.append(quantity(with_params(fit, params)))
        slopes.append((ends[0] - ends[1]) / (2 * step))
    slopes = np.array(slopes)
    return np.sqrt(np.einsum("ig,ij,jg->g", slopes, fit.cov.to_numpy(), slopes))


@pytest.mark.parametrize("target", ["population", "selected", "unselected", "selection"])
def test_standard_errors_are_those_of_numerical_derivatives(fit, target):
    """rtol: differences of differences."""
    found = fit.average(target, by="kind")
    expected = numerical_se(fit, lambda at: at.average(target, by="kind")["mean"].to_numpy())
    np.testing.assert_allclose(found["se"], expected, rtol=1e-5)
    if target == "unselected":  # an elasticity contains the effect
        found = fit.margins(target, kind="elasticity")
        expected = numerical_se(
            fit, lambda at: at.margins(target, kind="elasticity")["effect"].to_numpy()
        )
        np.testing.assert_allclose(found["se"], expected, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("target", ["population", "selected", "unselected"])
def test_effects_are_differences_of_predictions(fit, target):
    def mean(frame):
        return fit.predict(frame, target=target).mean

    found = fit.margins(target, at={"z": 0.3}, by="kind")
    held = FRAME.assign(z=0.3)
    up, down = (mean(held.assign(x=held["x"] + move)) for move in (1e-4, -1e-4))
    slope = pd.Series((up - down) / 2e-4).groupby(FRAME["kind"].to_numpy()).mean()
    for kind in "abc":
        assert found.loc[(0.3, kind, "x"), "effect"] == pytest.approx(slope[kind], rel=1e-5)
    levels = [pd.Categorical([level] * len(FRAME), ["a", "b", "c"]) for level in "ac"]
    low, high = (mean(held.assign(kind=level)) for level in levels)
    change = pd.Series(high - low).groupby(FRAME["kind"].to_numpy()).mean()
    assert found.loc[(0.3, "b", "kind[c]"), "effect"] == pytest.approx(change["b"])
    averages = fit.average(target, by="kind")
    groups = pd.Series(mean(FRAME)).groupby(FRAME["kind"].to_numpy())
    np.testing.assert_allclose(averages["mean"], groups.mean())
    np.testing.assert_array_equal(averages["n"], groups.size())


def test_options_that_cannot_be_used_are_refused(two_steps):
    with pytest.raises(hk.DataError, match="kind must be 'effect' or 'elasticity'"):
        two_steps.margins(kind="dydx")
    with pytest.raises(hk.DataError, match="target must be one of"):
        two_steps.margins("everyone")
    with pytest.warns(hk.IdentificationWarning):
        everyone = hk.heckman("y ~ x", "~ x + z", FRAME.dropna())
    with pytest.raises(hk.DataError, match="every unit was selected"):
        everyone.margins("selection")
