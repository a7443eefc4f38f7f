"""Classic fits under other error models: published maxima, recovery, invariances."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import heckesel as hk
from heckesel.data import selection_data
from heckesel.linear.forms.error_models import FORMS, FRANK
from heckesel.linear.forms.form_fits import fit_forms
from heckesel.linear.forms.form_search import bounded_step, climb, evaluate_form
from heckesel.linear.forms.form_weights import aic_weights, changes_sign, forms_to_weigh, ranges
from heckesel.linear.joint import at_zero
from heckesel.linear.sample.sample import standardised_sample
from reproduction.e0_gate import fit_rand_hie

CLAYTON_90 = next(form for form in FORMS if form.name == "Clayton 90")


@pytest.fixture(scope="module")
def rand_hie():
    return fit_rand_hie("ml")


@pytest.fixture(scope="module")
def compared(rand_hie):
    return rand_hie.functional_form()


def test_rand_hie_meets_the_maxima_known_from_other_programs(compared):
    loglik = compared.to_frame().loglik
    assert len(loglik) == 15
    assert loglik["Gaussian"] == pytest.approx(-10170.11, abs=0.05)
    assert loglik["Frank"] == pytest.approx(-10163.92, abs=0.05)
    assert loglik["Clayton 90"] == pytest.approx(-10158.22, abs=0.05)


@pytest.mark.parametrize("scale", [None, ["educ"]])
def test_forms_with_a_varying_sigma_are_those_of_hk_heckman(scale):
    women = hk.datasets.load_mroz()
    names = {"y": women.lwage, "x": women[["educ", "exper"]]}
    names["w"] = women[["educ", "exper", "age", "kidslt6"]]
    forms = hk.heckman(**names, scale=scale).functional_form()
    for errors, name in (("normal", "Gaussian"), ("t", "Student t"), ("shape", "Shape")):
        fit = hk.heckman(**names, errors=errors, scale=scale or ["educ", "exper"])
        (form,) = (form for form in forms.forms if form.name == f"{name}, sigma(x)")
        assert form.loglik == pytest.approx(fit.loglik, abs=1e-5)
        assert form.n_params == len(fit.params)
        assert set(form.params.index) == set(fit.params.index)
        np.testing.assert_allclose(form.params[fit.params.index], fit.params, rtol=1e-3, atol=1e-5)
    assert "Shape, sigma(x)" in forms.summary()


def test_on_rand_hie_the_price_effect_changes_sign_with_the_dependence(compared):
    frame = compared.to_frame()
    assert frame.logc["Gaussian"] == pytest.approx(-0.076, abs=1e-3)
    assert frame.logc["Clayton 90"] == pytest.approx(0.026, abs=1e-3)
    assert frame.tau["Gaussian"] > 0 > frame.tau["Clayton 90"]
    assert "logc" in compared.flips
    assert "physlm" not in compared.flips
    summary = compared.summary()
    assert "all 5,574 rows" in summary
    assert re.search(r"logc .*changes sign\n", summary)
    assert "logc" in compared.sentence


def test_the_gaussian_row_is_the_fit_itself(rand_hie, compared):
    gaussian = next(form for form in compared.forms if form.name == "Gaussian")
    assert gaussian.loglik == pytest.approx(rand_hie.loglik, abs=1e-8)
    assert gaussian.aic == pytest.approx(rand_hie.aic, abs=1e-8)
    np.testing.assert_allclose(gaussian.params, rand_hie.params, rtol=1e-8)
    assert list(gaussian.params.index) == list(rand_hie.params.index)


def test_no_form_is_worse_than_independence(rand_hie, compared):
    frame = compared.to_frame()
    assert (frame.loglik >= rand_hie.loglik_independent - 1e-7).all()
    at_independence = frame[frame.tau == 0]
    assert set(at_independence.status) == {"boundary"}
    assert set(at_independence.index) == {"Clayton 270", "Gumbel 90"}
    np.testing.assert_allclose(at_independence.loglik, rand_hie.loglik_independent, atol=1e-7)


def test_weights_sum_to_one_and_follow_aic(compared):
    frame = compared.to_frame()
    assert frame.weight.sum() == pytest.approx(1.0)
    assert frame.aic.is_monotonic_increasing
    counts = [form.n_params for form in compared.forms if form.name == "Student t"]
    assert counts == [39]  # 18 + 18, sigma, rho, df


def draw_clayton_90(n, seed, theta=2.0):
    """Conditional inversion of a Clayton copula; the selection error is turned round."""
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal((2, n))
    u, w = rng.random((2, n))
    v = ((w ** (-theta / (1 + theta)) - 1) * u**-theta + 1) ** (-1 / theta)
    y = 1 + x + 1.5 * ndtri(v)
    observed = 0.3 + 0.7 * x + 0.8 * z - ndtri(u) > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(observed, y, np.nan)})


def as_data(frame, weight=None):
    ones = np.ones(len(frame))
    return selection_data(
        np.column_stack([ones, frame.x]),
        np.column_stack([ones, frame.x, frame.z]),
        frame.y.to_numpy(),
        weight=weight,
    )


def test_a_clayton_dependence_is_recovered():
    fits = [fit_forms(as_data(draw_clayton_90(2000, seed)), [CLAYTON_90])[0] for seed in range(12)]
    estimates = np.array(
        [[fit.tau, *fit.params["outcome"], fit.params["ancillary", "log_sigma"]] for fit in fits]
    )
    truth = [-0.5, 1.0, 1.0, np.log(1.5)]
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(fits))
    assert (np.abs(estimates.mean(axis=0) - truth) < 4 * error).all()
    assert all(fit.status == "converged" for fit in fits)


def test_the_true_form_beats_the_normal_one():
    for seed in range(3):
        data = as_data(draw_clayton_90(2000, seed))
        normal, clayton = fit_forms(data, [FORMS[0], CLAYTON_90])
        assert clayton.loglik > normal.loglik + 2  # 5 to 37 at this size


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_score_and_hessian_of_the_sample_equal_differences(form):
    sample, _ = standardised_sample(as_data(draw_clayton_90(200, 1)))
    size = sample.q + sample.p + 1
    shared = [0.4, *form.extra]
    point = np.concatenate([np.linspace(-0.3, 0.4, size - 1), [1.1], shared])
    _, score, hessian = evaluate_form(form, sample, point)
    step = 1e-5
    for axis, move in enumerate(step * np.eye(len(point))):
        up, down = (evaluate_form(form, sample, point + sign * move) for sign in (1, -1))
        slope, bend = (up[0] - down[0]) / (2 * step), (up[1] - down[1]) / (2 * step)
        np.testing.assert_allclose(slope, score[axis], rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(bend, hessian[axis], rtol=1e-6, atol=1e-5)


def test_columns_in_other_units_change_no_form():
    frame = draw_clayton_90(800, 5)
    plain = fit_forms(as_data(frame))
    scaled = fit_forms(as_data(frame.assign(x=1e6 * frame.x - 2e6, y=1e-3 * frame.y)))
    shift = np.log(1e-3) * frame.y.notna().sum()
    for one, other in zip(plain, scaled, strict=True):
        assert other.loglik + shift == pytest.approx(one.loglik, abs=1e-5), one.name
        assert other.tau == pytest.approx(one.tau, abs=1e-4), one.name
        assert 1e9 * other.params["outcome"].iloc[1] == pytest.approx(
            one.params["outcome"].iloc[1], rel=1e-4
        ), one.name
        assert other.status == one.status


def test_a_weight_stands_for_repeated_rows():
    frame = draw_clayton_90(500, 6)
    count = 1 + np.arange(500) % 2
    weighted = fit_forms(as_data(frame, weight=count))
    repeated = fit_forms(as_data(frame.loc[frame.index.repeat(count)]))
    for one, other in zip(weighted, repeated, strict=True):
        assert one.loglik == pytest.approx(other.loglik, abs=1e-5), one.name
        np.testing.assert_allclose(one.params["outcome"], other.params["outcome"], atol=1e-4)


def test_probability_weights_have_no_scale():
    frame = draw_clayton_90(600, 7)
    chance = np.random.default_rng(0).uniform(0.5, 2.0, len(frame))
    fits = [
        hk.heckman("y ~ x", "~ x + z", frame, weights=scale * chance, weight_kind="probability")
        for scale in (1.0, 50.0)
    ]
    small, large = (fit.functional_form().to_frame() for fit in fits)
    np.testing.assert_allclose(small.aic, large.aic, rtol=1e-7)
    np.testing.assert_allclose(small.x, large.x, atol=1e-5)


def test_a_long_table_uses_a_sample_of_its_rows():
    frame = draw_clayton_90(3000, 8)
    fit = hk.heckman("y ~ x", "~ x + z", frame, method="two-step")
    part = fit.functional_form("x", rows=700, seed=3)
    assert "700 of 3,000 rows, drawn at random" in part.summary()
    again = fit.functional_form("x", rows=700, seed=3)
    pd.testing.assert_frame_equal(part.to_frame(), again.to_frame())
    other = fit.functional_form("x", rows=700, seed=4)
    assert part.forms[0].loglik != other.forms[0].loglik
    assert list(part.to_frame().columns) == ["loglik", "aic", "weight", "tau", "status", "x"]


def test_wrong_requests_are_refused_in_a_sentence():
    frame = draw_clayton_90(300, 9).assign(rare=lambda d: (np.arange(len(d)) == 7) * 1.0)
    frame.loc[7, "y"] = 1.0
    fit = hk.heckman("y ~ x", "~ x + z", frame)
    with pytest.raises(hk.DataError, match="no outcome term 'z'; the terms are 'Intercept', 'x'"):
        fit.functional_form(["z"])
    with pytest.raises(hk.DataError, match="rows must be positive"):
        fit.functional_form(rows=0)
    with pytest.raises(hk.DataError, match="give more rows="):
        fit.functional_form(rows=3)
    thin = hk.heckman("y ~ x + rare", "~ x + z", frame)
    with pytest.raises(hk.DataError, match="among the 40 rows drawn, column 'rare' is constant"):
        thin.functional_form(rows=40)
    complete = hk.heckman("y ~ x", "~ x + z", frame.dropna())
    with pytest.raises(hk.DataError, match="every unit was selected"):
        complete.functional_form()


def test_a_climb_never_leaves_the_range_of_a_parameter():
    step = bounded_step(np.array([1.0, 5.0]), -np.eye(2), np.array([-9, -1.0]), np.array([9, 0.0]))
    np.testing.assert_allclose(step, [1.0, 0.0])  # the second stands at its end
    step = bounded_step(np.array([1.0, 5.0]), -np.eye(2), np.array([-9, -1.0]), np.array([9, 1.0]))
    np.testing.assert_allclose(step, [0.2, 1.0])


def test_a_fixed_dependence_stays_where_it_is():
    sample, _ = standardised_sample(as_data(draw_clayton_90(300, 2)))
    point = climb(FRANK, sample, np.append(at_zero(sample), 0.0), fixed=-2.5)
    assert point.a == -2.5
    np.testing.assert_allclose(point.score[:-1], 0.0, atol=1e-4)


def test_forms_are_weighed_by_aic_and_signs_are_compared():
    np.testing.assert_allclose(aic_weights([10.0, 10.0]), 0.5)
    np.testing.assert_allclose(aic_weights([1e5, 1e5 + 2 * np.log(3)]), [0.75, 0.25])
    aic = [100.0, 108.0, 130.0, 141.0]
    assert forms_to_weigh(aic, 130.0).tolist() == [True, True, True, False]
    assert forms_to_weigh(aic, 100.0).tolist() == [True, True, False, False]
    coefficients = np.array([[1.0, -2.0, 0.0], [-0.5, -1.0, 2.0]])
    assert changes_sign(coefficients).tolist() == [True, False, False]
    np.testing.assert_allclose(ranges(coefficients), [[-0.5, 1], [-2, -1], [0, 2]])


def test_the_section_of_the_docs_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "classic.md").read_text()
    section = page.split("## Sensitivity to the error distribution")[1].split("\n## ")[0]
    scope: dict = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, "classic.md", "exec"), scope)
    assert "logc" in scope["forms"].flips
    assert "changes sign" in capsys.readouterr().out
