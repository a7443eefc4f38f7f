"""`fit.functional_form()`: the fits of other error models, invariances, refusals, the docs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import heckesel as hk
from heckesel.classical.forms import evaluate_form
from heckesel.classical.likelihood import ERROR_MODELS
from heckesel.classical.rows import standardised_sample
from heckesel.data import selection_data
from reproduction.e0_gate import fit_rand_hie


@pytest.fixture(scope="module")
def rand_hie():
    return fit_rand_hie("ml")


@pytest.fixture(scope="module")
def compared(rand_hie):
    return rand_hie.functional_form()


@pytest.mark.parametrize("scale", [None, ["educ"]])
def test_every_form_is_the_fit_of_hk_heckman(scale):
    women = hk.datasets.load_mroz()
    names = {"y": women.lwage, "x": women[["educ", "exper"]]}
    names["w"] = women[["educ", "exper", "age", "kidslt6"]]
    found = hk.heckman(**names, scale=scale).functional_form()
    forms = {form.name: form for form in found.forms}
    assert len(forms) == 6
    for errors, name in (("normal", "Gaussian"), ("t", "Student t"), ("shape", "Shape")):
        for varies, label in ((None, name), (scale or ["educ", "exper"], f"{name}, sigma(x)")):
            fit, form = hk.heckman(**names, errors=errors, scale=varies), forms[label]
            assert form.loglik == pytest.approx(fit.loglik, abs=1e-5)
            assert form.aic == pytest.approx(fit.aic, abs=1e-4)
            assert set(form.params.index) == set(fit.params.index)
            np.testing.assert_allclose(
                form.params[fit.params.index], fit.params, rtol=1e-3, atol=1e-5
            )
    assert "Shape, sigma(x)" in found.summary()


def test_rand_hie_meets_the_maximum_known_from_other_programs(rand_hie, compared):
    frame = compared.to_frame()
    assert frame.loglik["Gaussian"] == pytest.approx(-10170.11, abs=0.05)
    assert frame.logc["Gaussian"] == pytest.approx(-0.076, abs=1e-3)
    assert (frame.loglik >= rand_hie.loglik_independent - 1e-7).all()
    assert frame.weight.sum() == pytest.approx(1.0)
    assert frame.aic.is_monotonic_increasing
    relative = np.exp(-0.5 * (frame.aic - frame.aic.min()))
    np.testing.assert_allclose(frame.weight, relative / relative.sum(), rtol=1e-9)
    assert "all 5,574 rows" in compared.summary()


def draw_skewed(n, seed, theta=2.0):
    """Errors that depend in one tail only."""
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal((2, n))
    u, w = rng.random((2, n))
    v = ((w ** (-theta / (1 + theta)) - 1) * u**-theta + 1) ** (-1 / theta)
    y = 1 + x + 1.5 * ndtri(v)
    observed = 0.3 + 0.7 * x + 0.8 * z - ndtri(u) > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(observed, y, np.nan)})


@pytest.mark.parametrize("name", ERROR_MODELS)
@pytest.mark.parametrize("varies", [False, True])
def test_score_and_hessian_of_the_sample_equal_differences(name, varies):
    frame, form = draw_skewed(200, 1), ERROR_MODELS[name]
    ones = np.ones(len(frame))
    x, w = np.column_stack([ones, frame.x]), np.column_stack([ones, frame.x, frame.z])
    columns = {"scale": x[:, 1:], "scale_names": ("x",)} if varies else {}
    sample, _ = standardised_sample(replace(selection_data(x, w, frame.y.to_numpy()), **columns))
    start = np.linspace(-0.3, 0.4, sample.q + sample.p)
    point = np.concatenate([start, [1.1], [0.3] * sample.k, [0.4], form.extra])
    _, score, hessian = evaluate_form(form, sample, point)
    step = 1e-5
    for axis, move in enumerate(step * np.eye(len(point))):
        up, down = (evaluate_form(form, sample, point + sign * move) for sign in (1, -1))
        slope, bend = (up[0] - down[0]) / (2 * step), (up[1] - down[1]) / (2 * step)
        np.testing.assert_allclose(slope, score[axis], rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(bend, hessian[axis], rtol=1e-6, atol=1e-5)


def test_a_long_table_uses_a_sample_of_its_rows():
    fit = hk.heckman("y ~ x", "~ x + z", draw_skewed(3000, 8), method="two-step")
    part = fit.functional_form("x", rows=700, seed=3)
    assert "700 of 3,000 rows, drawn at random" in part.summary()
    again = fit.functional_form("x", rows=700, seed=3)
    pd.testing.assert_frame_equal(part.to_frame(), again.to_frame())
    assert part.forms[0].loglik != fit.functional_form("x", rows=700, seed=4).forms[0].loglik
    assert list(part.to_frame().columns) == ["loglik", "aic", "weight", "rho", "status", "x"]


def test_wrong_requests_are_refused_in_a_sentence():
    frame = draw_skewed(300, 9).assign(rare=lambda d: (np.arange(len(d)) == 7) * 1.0)
    frame.loc[7, "y"] = 1.0
    fit = hk.heckman("y ~ x", "~ x + z", frame)
    with pytest.raises(hk.DataError, match="no outcome term 'z'; the terms are 'Intercept', 'x'"):
        fit.functional_form(["z"])
    thin = hk.heckman("y ~ x + rare", "~ x + z", frame)
    with pytest.raises(hk.DataError, match="among the 40 rows drawn, column 'rare' is constant"):
        thin.functional_form(rows=40)
