"""The report without a browser: what it says, how it is built, and that nothing in it can run."""

import re
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.datasets.controlled import make_controlled
from heckesel.errors import DataError
from heckesel.metrics.calibration import LEVELS
from heckesel.plots.predictions_of import selection_probability
from heckesel.report import report_data, write_report
from heckesel.report.comparison import compare
from heckesel.report.contents import report_contents
from heckesel.report.formatting import Digits, digits_for, significant
from heckesel.report.held_out_check import calibration, check_held_out
from heckesel.report.naive_model import naive_fit
from heckesel.report.refits import NotChecked, assign_folds, refit_on_folds
from heckesel.report.report_data import read_report_data
from heckesel.report.rho_section import evidence_on_rho

NASTY = "<script>alert('x')</script>"


def linear_draw(n=600, rho=0.7, seed=3):
    """y = 1 + 2 x + e, sd of e 1, selection 0.2 - x + z + u."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    y = 1 + 2 * x + rho * u + np.sqrt(1 - rho**2) * v
    seen = 0.2 - x + z + u > 0
    return pd.DataFrame({"x": x, "z": z}), pd.Series(np.where(seen, y, np.nan), name="pay"), y


@pytest.fixture(scope="module")
def linear():
    X, y, truth = linear_draw()
    return hk.HeckmanRegressor(["z"]).fit(X, y), X, y, truth


@pytest.fixture(scope="module")
def networks():
    frame = make_controlled(400, rho=0.9, alpha=1.0, seed=1).frame
    X, y = frame[["x", "z"]], frame["y"]
    options = {"hidden": (16,), "epochs": 60, "n_members": 2, "progress": False}
    return {
        method: (hk.DeepHeckmanRegressor(["z"], method=method, **options).fit(X, y), X, y)
        for method in ("two-step", "joint", "profile")
    }


class Outline(HTMLParser):
    """Headings, tables, pictures and every address of a page."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.addresses, self.tags, self.ids = [], [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.addresses += [v for k, v in attrs if k in ("href", "src", "xlink:href", "action")]
        self.ids += [v for k, v in attrs if k == "id"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


def check_page(text):
    page = Outline(text)
    assert page.open == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings[:-1], page.headings[1:], strict=True))
    assert len(page.ids) == len(set(page.ids))
    assert page.count("table") == page.count("caption") > 0
    for tag, attrs in page.tags:
        assert tag not in ("script", "img", "iframe", "object")
        assert not any(name.startswith("on") for name in attrs)
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
        if tag == "svg" and attrs.get("role") == "img":
            assert all(name in page.ids for name in attrs["aria-labelledby"].split())
    for address in page.addresses:
        assert address == "data:," or address[1:] in page.ids, address
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    return page


def test_a_linear_page_is_sound_and_starts_with_the_verdict(linear, tmp_path):
    model, X, y, _ = linear
    path = write_report(model, X, y, tmp_path / "page.html", title="Pay & more")
    text = path.read_text(encoding="utf-8")
    page = check_page(text)
    assert "<title>Pay &amp; more</title>" in text
    assert text.index("Verdict: identified by an instrument") < text.index('id="changed"')
    for name in ("regions", "strips", "rho", "calibration"):
        assert f"{name}-title" in page.ids
    assert "profile-likelihood interval" in text
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]  # no scratch file stays


@pytest.mark.parametrize("method", ["two-step", "joint", "profile"])
def test_a_page_about_networks_is_sound(networks, method, tmp_path):
    model, X, y = networks[method]
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    page = check_page(text)
    assert "plain ensemble" in text
    assert "as an ensemble of 2" in text
    for name in ("regions", "strips", "rho", "calibration"):
        assert f"{name}-title" in page.ids
    assert ("posterior interval" in text) == (method == "profile")
    assert ("method=&#39;profile&#39; draws the curve" in text) == (method != "profile")
    splines = model.info_.get("outcome") == "spline"
    assert f"with {'splines' if splines else 'networks'} for the outcome" in text


def test_the_same_input_gives_the_same_bytes(linear, networks, tmp_path):
    model, X, y, _ = linear
    pages = [write_report(model, X, y, tmp_path / f"{k}.html").read_bytes() for k in "ab"]
    assert pages[0] == pages[1]
    model, X, y = networks["two-step"]
    pages = [write_report(model, X, y, tmp_path / f"{k}.html").read_bytes() for k in "cd"]
    assert pages[0] == pages[1]


def test_names_that_look_like_markup_are_harmless(tmp_path):
    X, y, _ = linear_draw()
    X = X.rename(columns={"x": NASTY, "z": '"><img src=x onerror=alert(1)>'})
    y = y.rename(f"{NASTY}</style></title>")
    model = hk.HeckmanRegressor([X.columns[1]]).fit(X, y)
    text = write_report(model, X, y, tmp_path / "page.html", title=NASTY).read_text()
    check_page(text)
    assert "&lt;script&gt;" in text


def test_least_squares_is_the_naive_fit_of_a_linear_model(linear):
    model, X, y, _ = linear
    table = read_report_data(model, X, y)
    found = compare(model, table, naive_fit(model, table))
    seen = y.notna()
    slope, constant = np.polyfit(X["x"][seen], y[seen], 1)
    np.testing.assert_allclose(found.naive.coefficients["x"], slope, rtol=1e-9)
    np.testing.assert_allclose(found.everyone.naive, (constant + slope * X["x"]).mean(), rtol=1e-9)
    np.testing.assert_allclose(found.everyone.corrected, model.predict(X).mean(), rtol=1e-12)


def test_groups_partition_the_cases_by_the_probit_of_selection(linear):
    from scipy.stats import norm

    model, X, y, _ = linear
    table = read_report_data(model, X, y)
    gamma = model.result_.params["select"]
    expected = norm.cdf(gamma["Intercept"] + gamma["x"] * X["x"] + gamma["z"] * X["z"])
    np.testing.assert_allclose(selection_probability(model, table.frame), expected, rtol=1e-10)
    found = compare(model, table, naive_fit(model, table))
    assert [g.cases for g in found.regions] == [
        (expected < 0.3).sum(),
        ((expected >= 0.3) & (expected < 0.7)).sum(),
        (expected >= 0.7).sum(),
    ]
    assert sum(g.cases for g in found.strips) == found.everyone.cases == len(X)
    assert sum(g.observed for g in found.strips) == y.notna().sum()
    against = expected < 0.3
    np.testing.assert_allclose(found.regions[0].corrected, model.predict(X)[against].mean())
    np.testing.assert_allclose(
        found.regions[0].interval, model.predict_interval(X)[against].mean(axis=0)
    )


def test_the_correction_moves_towards_the_truth_where_selection_was_rare():
    X, y, truth = linear_draw(6000)
    model = hk.HeckmanRegressor(["z"]).fit(X, y)
    table = read_report_data(model, X, y)
    found = compare(model, table, naive_fit(model, table))
    against = selection_probability(model, table.frame) < 0.3
    f0 = (1 + 2 * X["x"])[against].mean()
    # least squares is off by about .36 here; the standard error of the corrected mean is .04
    assert abs(found.regions[0].corrected - f0) < 0.5 * abs(found.regions[0].naive - f0)
    unseen = y.isna().to_numpy()
    # given x the draw's own error is .02, that of the fit .04; the population mean is off by .5
    assert abs(found.unselected - truth[unseen].mean()) < 0.15
    assert abs(found.unobserved.corrected - truth[unseen].mean()) > 0.3


def test_the_curve_over_rho_has_its_modes_and_falls_by_1_92_at_the_ends_of_its_interval(linear):
    model, *_ = linear
    curve = evidence_on_rho(model)
    best = curve.modes[0]
    assert best.rho == pytest.approx(model.rho_)
    assert curve.rho[int(np.argmax(curve.height))] == pytest.approx(best.rho, abs=0.01)
    # the cubic between grid points of the scan, drawn in steps of .01, errs by less than .1 here
    np.testing.assert_allclose(np.interp(curve.interval, curve.rho, curve.height), -1.92, atol=0.1)


def test_networks_show_the_curve_of_their_verdict_and_say_so(networks):
    model, X, _ = networks["two-step"]
    curve, profile = evidence_on_rho(model), model.identification_.profile
    assert curve.interval == profile.interval
    assert max(curve.height) == pytest.approx(0.0, abs=0.01)  # drawn in steps of .01
    for mode, (rho, _) in zip(curve.modes, profile.modes, strict=True):
        assert ("boundary" in mode.note) == (abs(rho) > 0.999998)
    assert f"fitted to {len(X)} rows" in curve.whose


def test_a_right_model_is_calibrated_and_a_shifted_one_is_not():
    u = (np.arange(2000) + 0.5) / 2000
    right = calibration(u, "by hand")
    np.testing.assert_allclose(right.share, LEVELS, atol=1e-3)  # 2000 points, steps of .0005
    assert right.covered == pytest.approx(0.9, abs=1e-3)
    shifted = calibration(u**2, "by hand")
    np.testing.assert_allclose(shifted.share, np.sqrt(LEVELS), atol=1e-3)
    assert any(s > h for s, h in zip(shifted.share, shifted.high, strict=True))


def test_folds_split_observed_and_unobserved_cases_evenly():
    s = np.random.default_rng(0).random(503) < 0.3
    fold = assign_folds(s, 5)
    for part in (s, ~s):
        counts = np.bincount(fold[part], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_held_out_cases_are_predicted_by_fits_that_did_not_see_them(linear, monkeypatch):
    model, X, y, _ = linear
    table = read_report_data(model, X, y)
    seen = []
    original = report_data.refit_alike

    def spy(model, X, y, **options):
        seen.append(set(X.index))
        return original(model, X, y, **options)

    monkeypatch.setattr(report_data, "refit_alike", spy)
    found = check_held_out(refit_on_folds(model, table), table)
    assert len(seen) == 10
    times = np.bincount([row for rows in seen for row in rows], minlength=len(X))
    np.testing.assert_array_equal(times, 9)  # every case is held out of one fit
    assert found.cases == y.notna().sum()
    # the model is right, so 9 of 10 outcomes lie inside up to four standard errors
    assert abs(found.covered - 0.9) < 4 * np.sqrt(0.09 / found.cases)


def test_the_report_states_if_a_refit_fails(linear, tmp_path):
    _, X, y, _ = linear
    place = np.full(len(X), "town")
    place[[np.flatnonzero(y.notna())[0], np.flatnonzero(y.isna())[0]]] = "island"
    X = X.assign(place=place)  # without one of the two, "island" predicts selection
    model = hk.HeckmanRegressor(["z"]).fit(X, y)
    found = refit_on_folds(model, read_report_data(model, X, y))
    assert isinstance(found, NotChecked)
    assert "predicts selection perfectly" in found.reason
    text = write_report(model, X, y, tmp_path / "page.html").read_text()
    check_page(text)
    assert "This was not checked: the model could not be refitted" in text


def test_networks_with_t_errors_say_what_they_cannot_do(networks, tmp_path):
    _, X, y = networks["joint"]
    model = hk.DeepHeckmanRegressor(
        ["z"], method="joint", errors="t", hidden=(8,), epochs=30, n_members=2, progress=False
    ).fit(X, y)
    text = write_report(model, X, y, tmp_path / "page.html").read_text()
    check_page(text)
    assert "t errors have no distribution given selection" in text
    assert "Given that they were not selected" not in text


def test_no_selection_makes_a_short_page(tmp_path):
    X, _, truth = linear_draw(100)
    with pytest.warns(hk.IdentificationWarning):
        model = hk.HeckmanRegressor(["z"]).fit(X, truth)
    text = write_report(model, X, truth, tmp_path / "page.html").read_text()
    page = check_page(text)
    assert "Verdict: no selection" in text
    assert "regions-title" not in page.ids
    assert "calibration-title" in page.ids


def test_without_an_instrument_the_page_shows_other_error_models(tmp_path):
    X, y, _ = linear_draw(400)
    model = hk.HeckmanRegressor().fit(X, y)
    text = write_report(model, X, y, tmp_path / "page.html").read_text()
    check_page(text)
    assert f"Verdict: {model.identification_.verdict}" in text
    assert "How much depends on the assumption of normal errors?" in text


def test_a_sigma_that_varies_has_its_coefficients_on_the_page(tmp_path):
    X, y, _ = linear_draw(400)
    model = hk.HeckmanRegressor([1], method="ml", errors="shape", scale=[0]).fit(X, y)
    text = write_report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    check_page(text)
    assert "with skewed or heavy-tailed errors, where σ varies with x" in text
    assert "log σ(x)" in text


def test_two_steps_and_arrays_and_transformed_outcomes_have_pages(tmp_path):
    X, y, _ = linear_draw()
    model = hk.HeckmanRegressor([1], method="two-step", target_transform="log")
    model.fit(X.to_numpy(), np.exp(y.to_numpy()))
    text = write_report(model, X.to_numpy(), np.exp(y.to_numpy()), tmp_path / "p.html").read_text()
    check_page(text)
    assert "method=&#39;ml&#39; draws the curve" in text


def test_every_verdict_has_a_tone_and_advice():
    from heckesel.diagnostics import verdict
    from heckesel.report.verdict_box import ADVICE, TONES

    known = {verdict.IDENTIFIED, verdict.WEAK, verdict.FUNCTIONAL_FORM}
    known |= {verdict.NOT_IDENTIFIED, verdict.NO_SELECTION, verdict.DO_NOT_USE}
    assert set(TONES) == set(ADVICE) == known


@pytest.mark.parametrize(("kind", "said"), [("spline", "splines"), ("network", "networks")])
def test_the_page_states_whether_a_profile_uses_splines_or_networks(networks, kind, said):
    from heckesel.report.contents import _method

    model = copy(networks["profile"][0])
    fitted = model.fitted_
    model.fitted_ = replace(fitted, info=replace(fitted.info, outcome=kind))
    expected = f"Heckman's model with {said} for the outcome, averaged over ρ"
    assert _method(model, linear=False) == expected


def test_options_are_shown_without_addresses():
    X, y, _ = linear_draw(200)
    model = hk.HeckmanRegressor(["z"], target_transform=(np.arcsinh, np.sinh)).fit(X, y)
    options = dict(report_contents(model, X, y).options)
    assert options["target_transform"] == "arcsinh, sinh"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (lambda m, X, y: (hk.DeepEnsembleRegressor(), X, y, "p.html"), "not DeepEnsembleRegressor"),
        (lambda m, X, y: (m, X[["x"]], y, "p.html"), "X has no column 'z'"),
        (lambda m, X, y: (m, X, y[:-1], "p.html"), "600 rows but y has 599"),
        (lambda m, X, y: (m, X.to_numpy()[:, :1], y, "p.html"), "the fit had 2 columns"),
        (lambda m, X, y: (m, X, y, "."), "is a folder"),
        (lambda m, X, y: (m, X, y, "no/p.html"), "the folder no of p.html does not exist"),
    ],
)
def test_wrong_input_is_a_sentence_before_any_prediction(
    linear, change, fragment, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hk.HeckmanRegressor, "predict_distribution", None)
    model, X, y, _ = linear
    with pytest.raises(DataError, match=re.escape(fragment)):
        write_report(*change(model, X, y))
    assert not list(tmp_path.iterdir())


def test_numbers_are_written_with_signs_separators_and_dashes():
    assert Digits(2)(-1234.567) == "−1,234.57"
    assert Digits(1)(-0.01) == "0.0"
    assert Digits(1).signed(0.25) == "+0.2"
    assert Digits(2)(float("nan")) == "–"
    assert digits_for(np.array([0.0, 1.0])) == Digits(3)
    assert digits_for(np.array([0.0, 90_000.0])) == Digits(0)
    assert significant(0.0012345) == "0.001234"
    assert significant(1e-9, 3) == "1.00e−09"


def test_the_page_on_reports_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "report.md"
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, "report.md", "exec"), {})
    assert "Wages of married women" in (tmp_path / "wages.html").read_text(encoding="utf-8")
