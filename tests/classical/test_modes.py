"""The scan over rho finds the global maximum: against twenty random starts on hard data."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import heckesel as hk
from heckesel.classical.ml import (
    CLEARLY_BETTER,
    evaluate,
    scan,
)
from heckesel.classical.rows import standardised_sample
from heckesel.data import selection_data
from reproduction.e0_gate import draw_linear, fit_mroz_greene

SETTINGS = ("no instrument", "badly scaled", "outlier", "t(3) errors")


def draw(setting, seed, n=500):
    rng = np.random.default_rng([SETTINGS.index(setting), seed])
    x, z, u, v = rng.standard_normal((4, n))
    if setting == "t(3) errors":
        shrink = np.sqrt(rng.chisquare(3, n) / 3)
        u, v = u / shrink, v / shrink
    y = 1 + x + 0.6 * u + 0.8 * v
    index = 0.3 + 0.7 * x + (0 if setting == "no instrument" else 0.8 * z)
    if setting == "outlier":
        index[0], x[0] = 8.0, 8.0
    observed = index + u > 0
    w = [np.ones(n), x] if setting == "no instrument" else [np.ones(n), x, z]
    if setting == "badly scaled":
        x, y = 1e6 * x, 1e-3 * y
        w[1] = x
    return selection_data(
        np.column_stack([np.ones(n), x]), np.column_stack(w), np.where(observed, y, np.nan)
    )


def plain_loglik(parameters, sample):
    """The textbook formula in (gamma, beta, log sigma, atanh rho), with its gradient by chain."""
    q, p = sample.q, sample.p
    theta = np.exp(-parameters[-2])
    point = np.concatenate(
        [parameters[:q], theta * parameters[q : q + p], [theta], [parameters[-1]]]
    )
    value, score, _ = evaluate(sample, point)
    gradient = np.concatenate(
        [
            score[:q],
            theta * score[q : q + p],
            [-theta * (score[q : q + p] @ parameters[q : q + p] + score[-2])],
            [score[-1]],
        ]
    )
    return -value, -gradient


def best_of_random_starts(sample, rng, starts=20):
    size = sample.q + sample.p + 2
    best = -np.inf
    for _ in range(starts):
        start = np.append(rng.normal(0, 1, size - 2), [rng.normal(0, 0.5), rng.normal(0, 1)])
        with np.errstate(all="ignore"):
            found = minimize(
                plain_loglik, start, (sample,), "L-BFGS-B", jac=True, options={"maxiter": 500}
            )
        if np.isfinite(found.fun):
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 40), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_random_start_beats_the_scan(setting, seeds):
    behind = []
    for seed in seeds:
        sample, _ = standardised_sample(draw(setting, seed))
        found = scan(sample).modes[0].value
        behind.append(best_of_random_starts(sample, np.random.default_rng(seed)) - found)
    assert max(behind) < 1e-6, f"worst seed {seeds[int(np.argmax(behind))]}: {max(behind):.3g}"


def test_greene_lists_the_global_mode_before_the_printed_one():
    fit = fit_mroz_greene()
    assert fit.loglik == pytest.approx(-1479.654, abs=5e-4)
    assert fit.rho == pytest.approx(0.993, abs=5e-4)
    assert fit.status == "converged"
    assert fit.near_boundary
    printed = [mode for mode in fit.modes if abs(mode.loglik + 1581.2577) < 6e-5]
    assert len(printed) == 1
    assert printed[0].rho == pytest.approx(-0.132, abs=6e-4)


def test_threads_change_no_digit_of_a_fit_or_of_its_verdict(monkeypatch):
    rng = np.random.default_rng(2)
    x, z, u, v = rng.standard_normal((4, 3000))
    y = np.where(0.2 + x + z + u > 0, 1 + x + 0.6 * u + 0.8 * v, np.nan)
    fits = []
    for several_from in (0, np.inf):
        monkeypatch.setattr("heckesel.classical.rows.SEVERAL_CORES_FROM", several_from)
        monkeypatch.setattr("heckesel.classical.rows.FEWEST_ROWS", 500)
        monkeypatch.setattr("heckesel.classical.rows.BLOCK_NUMBERS", 1)
        fits.append(hk.heckman(y=y, x=x, w=np.column_stack([x, z])))
    threaded, plain = fits
    assert (threaded.params == plain.params).all()
    assert (threaded.se == plain.se).all()
    assert threaded.identification.evidence == plain.identification.evidence
    assert str(threaded.identification) == str(plain.identification)


def test_an_interior_maximum_is_used_unless_the_boundary_is_far_ahead():
    """The boundary is 1.82 above the interior maximum: both are listed, the inner one is used."""
    frame = draw_linear(200, rho=0.9, seed=27)
    fit = hk.heckman("y ~ x", "~ x + z", frame)
    first, second = fit.modes[:2]
    assert (first.status, second.status) == ("boundary", "converged")
    assert 0 < first.loglik - second.loglik < CLEARLY_BETTER
    assert fit.selected_mode is second
    assert (fit.status, fit.rho, fit.loglik) == ("converged", second.rho, second.loglik)
    pd.testing.assert_series_equal(fit.params, second.params)
    assert np.isfinite(fit.se).all()
    assert "1.82 higher" in fit.selected_mode_reason
    assert "rho +1 (at the boundary)" in fit.summary()
    assert fit.to_dict()["selected_mode"] == 1
    model = hk.HeckmanRegressor(instruments=["z"], method="ml").fit(frame[["x", "z"]], frame.y)
    assert (model.rho_, model.sigma_) == pytest.approx((fit.rho, fit.sigma), rel=1e-9)
    seen = fit.identification.evidence
    assert seen["rho"] == pytest.approx(fit.rho)
    assert seen["at_boundary"]  # which the report says, since it can mean that the model is wrong


def test_slopes_are_covered_where_the_boundary_often_wins():
    """rho = .9, n = 200, a strong instrument: a tenth of the likelihoods peak at rho = 1."""
    hits, draws = 0, 100
    for seed in range(draws):
        fit = hk.heckman("y ~ x", "~ x + z", draw_linear(200, rho=0.9, seed=300 + seed))
        hits += abs(fit.params["outcome", "x"] - 2) < 1.96 * fit.se["outcome", "x"]
    assert hits / draws > 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)  # .885; NaN never covers
