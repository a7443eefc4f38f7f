"""The pictures: what is drawn are the numbers of the fit, on the axes that were given."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import norm

import heckesel as hk
from heckesel.errors import DataError

RHO = np.tanh(np.linspace(-1, 1, 5))


@pytest.fixture(scope="module")
def draw():
    frame = hk.datasets.make_controlled(400, rho=0.6, alpha=1.0, seed=2).frame
    frame["place"] = np.where(np.arange(400) % 3 == 0, "town", "village")
    return frame[["x", "z", "place"]], frame["y"]


@pytest.fixture(scope="module")
def model(draw):
    return hk.HeckmanRegressor(["z"], method="ml").fit(*draw)


@pytest.fixture(scope="module")
def classifier(draw):
    X, y = draw
    return hk.HeckmanClassifier(["z"], method="ml").fit(X, (y > 0).astype(float).where(y.notna()))


def every_picture(model, X, y):
    """A call of each function, with everything but `ax`."""
    curves = hk.sensitivity(model, rho=RHO)
    auto = hk.HeckmanRegressor(["z"], learner="linear").fit(X[["x", "z"]], y)
    hidden = hk.placebo(X, y, instruments=["z"], learner="linear", cv=3)
    return {
        "bounds": lambda ax=None: hk.plots.bounds(hk.bounds(y, -9.0, 9.0), ax=ax),
        "coefficients": lambda ax=None: hk.plots.coefficients(model, ax=ax),
        "effect": lambda ax=None: hk.plots.effect(model, X, "x", ax=ax),
        "by_selection": lambda ax=None: hk.plots.by_selection(model, X, ax=ax),
        "calibration": lambda ax=None: hk.plots.calibration(model, X, y, ax=ax),
        "rho_likelihood": lambda ax=None: hk.plots.rho_likelihood(model, ax=ax),
        "rho_posterior": lambda ax=None: hk.plots.rho_posterior(auto, ax=ax),
        "instrument_evidence": lambda ax=None: hk.plots.instrument_evidence(
            auto, X[["x", "z"]], y, ax=ax
        ),
        "placebo": lambda ax=None: hk.plots.placebo(hidden, ax=ax),
        "sensitivity": lambda ax=None: hk.plots.sensitivity(curves, "x", ax=ax),
        "instrument_strength": lambda ax=None: hk.plots.instrument_strength(model, ax=ax),
    }


def line(ax, label):
    """The data of a line by a part of its label."""
    (found,) = [each for each in ax.lines if label in str(each.get_label())]
    return found.get_xdata(), found.get_ydata()


def test_every_picture_uses_the_axes_it_is_given_or_makes_some(model, draw):
    calls = every_picture(model, *draw)
    assert set(calls) == set(hk.plots.__all__)
    known, settings = plt.get_fignums(), dict(plt.rcParams)
    for call in calls.values():
        given = Figure().subplots()
        assert call(given) is given
        made = call()
        assert isinstance(made, Axes)
        FigureCanvasAgg(made.figure).draw()  # nothing is left that cannot be drawn
    assert plt.get_fignums() == known
    assert dict(plt.rcParams) == settings


def test_every_picture_names_both_axes_and_keeps_its_words_inside_and_apart(model, draw):
    for name, call in every_picture(model, *draw).items():
        ax = call()
        assert ax.get_xlabel(), name
        assert ax.get_ylabel() or name in (
            "bounds",
            "coefficients",
            "placebo",
        )  # whose rows have names
        figure = ax.figure
        FigureCanvasAgg(figure).draw()
        page = figure.bbox.padded(1)
        words = [ax.xaxis.label, ax.yaxis.label, *ax.texts]
        words += ax.get_legend().get_texts() if ax.get_legend() else []
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            words += [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        boxes = [word.get_window_extent() for word in words if word.get_text()]
        assert all((page.min <= box.min).all() for box in boxes), name
        assert all((box.max <= page.max).all() for box in boxes), name
        for one in range(len(boxes)):
            for other in boxes[one + 1 :]:
                assert not boxes[one].padded(-0.5).overlaps(other), name


def test_coefficients_are_those_of_the_table(model):
    ax = hk.plots.coefficients(model, equation="select", level=0.9)
    table = model.result_.to_frame(0.9).loc["select"].drop("Intercept")
    drawn, rows = line(ax, "coefficient")
    np.testing.assert_allclose(drawn, table["coef"])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(table.index)
    ends = np.array([part[:, 0] for part in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ends, table[["low", "high"]])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first term is at the top
    assert list(rows) == list(range(len(table)))


def test_estimates_without_intervals_say_so():
    frame = hk.datasets.make_controlled(300, rho=0.5, alpha=1.0, seed=0).frame
    frame["y"] = frame["y"].where(frame["y"].isna(), 3.0 * frame["x"] + 2.0 * frame["z"])
    groups = np.arange(300) // 5
    fit = hk.heckman("y ~ x", "~ x + z", frame, covariance="cluster", groups=groups)
    assert fit.status == "boundary"
    ax = hk.plots.coefficients(fit)
    assert "so no intervals" in ax.get_legend().get_texts()[-1].get_text()


def test_the_effect_of_a_linear_model_is_its_line(model, draw):
    X, _ = draw
    values, mean = line(hk.plots.effect(model, X, "x"), "mean prediction")
    beta = model.result_.params["outcome"]
    assert np.ptp(np.diff(mean) / np.diff(values)) < 1e-9
    np.testing.assert_allclose(np.diff(mean) / np.diff(values), beta["x"], rtol=1e-9)
    assert values[0] == pytest.approx(np.quantile(X["x"], 0.01))


def test_the_effect_of_a_category_has_a_mark_for_each_level(model, draw):
    X, _ = draw
    ax = hk.plots.effect(model, X, "place", naive=model)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["town", "village"]
    heights = ax.containers[0].lines[0].get_ydata()
    (name,) = [n for n in model.coef_names_ if "village" in n]
    expected = model.result_.params["outcome", name]
    assert heights[1] - heights[0] == pytest.approx(expected, rel=1e-9)


def test_predictions_by_selection_are_means_over_strips(model, draw):
    X, _ = draw
    ax = hk.plots.by_selection(model, X)
    at, mean = line(ax, "mean prediction")
    gamma = model.result_.params["select"]
    index = gamma["Intercept"] + X["x"] * gamma["x"] + X["z"] * gamma["z"]
    (place,) = [name for name in gamma.index if "village" in name]
    index = index + (X["place"] == "village") * gamma[place]
    tenth = pd.Series(norm.cdf(index)).rank(method="first").sub(1) // 40
    expected = pd.DataFrame({"chance": norm.cdf(index), "mean": model.predict(X)}).groupby(tenth)
    np.testing.assert_allclose(at, expected.mean()["chance"], rtol=1e-9)
    np.testing.assert_allclose(mean, expected.mean()["mean"], rtol=1e-9)


def test_classifiers_are_drawn_as_probabilities(classifier, draw):
    X, _ = draw
    _, mean = line(hk.plots.by_selection(classifier, X), "mean prediction")
    assert np.mean(mean) == pytest.approx(classifier.predict_proba(X)[:, 1].mean(), rel=1e-9)
    ax = hk.plots.effect(classifier, X, "x")
    assert ax.get_ylabel() == "probability of y = 1, mean over rows"
    hk.plots.coefficients(classifier)
    hk.plots.rho_likelihood(classifier)
    hk.plots.instrument_strength(classifier)


def test_the_curve_over_rho_marks_the_estimate(model):
    ax = hk.plots.rho_likelihood(model, level=0.95)
    at, height = line(ax, "maximum")
    np.testing.assert_allclose([at[0], height[0]], [model.rho_, 0.0], atol=1e-9)
    band = ax.patches[0]
    low, high = model.result_.interval("rho", 0.95, method="profile")
    assert band.get_x() == pytest.approx(low, rel=1e-12)
    assert band.get_x() + band.get_width() == pytest.approx(high, rel=1e-12)


def test_the_posterior_is_that_of_the_interval_and_the_prior_that_of_the_option(draw):
    X, y = draw
    model = hk.HeckmanRegressor(["z"], learner="linear", rho_prior="uniform").fit(X[["x", "z"]], y)
    ax = hk.plots.rho_posterior(model)
    (rho, posterior), (_, prior) = line(ax, "posterior"), line(ax, "prior")
    np.testing.assert_allclose(prior, prior[0])
    share = np.cumsum(posterior) / posterior.sum()
    low, high = model.rho_interval_
    # read off a grid of steps of .005
    np.testing.assert_allclose(np.interp([0.05, 0.95], share, rho), [low, high], atol=0.006)


def test_the_statistic_of_the_instruments_is_that_of_two_probits(draw):
    import statsmodels.api as sm

    X, y = draw
    X = X[["x", "z"]]
    ax = hk.plots.instrument_strength(hk.HeckmanRegressor(["z"], method="ml").fit(X, y))
    s = y.notna().astype(float)
    long = sm.Probit(s, sm.add_constant(X)).fit(disp=0)
    short = sm.Probit(s, sm.add_constant(X[["x"]])).fit(disp=0)
    assert f"χ²(1) = {2 * (long.llf - short.llf):,.1f}" in ax.texts[0].get_text()
    points = np.concatenate([part.get_offsets() for part in ax.collections])
    expected = np.column_stack([short.predict(), long.predict()])
    order = np.argsort(points[:, 0])
    np.testing.assert_allclose(points[order], expected[np.argsort(expected[:, 0])], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m, X, y: hk.plots.coefficients(m, equation="x"), "no equation 'x'"),
        (lambda m, X, y: hk.plots.coefficients(3), "a int has no coefficients"),
        (lambda m, X, y: hk.plots.effect(m, X, "q"), "X has no column 'q'"),
        (lambda m, X, y: hk.plots.effect(m, X, "z"), "'z' is an instrument"),
        (lambda m, X, y: hk.plots.calibration(m, X, y[:9]), "X has 400 rows but y has 9"),
        (lambda m, X, y: hk.plots.calibration(m.result_, X, y), "needs a fitted estimator"),
        (lambda m, X, y: hk.plots.sensitivity(m), "draws the result of hk.sensitivity"),
        (lambda m, X, y: hk.plots.rho_posterior(m), "no posterior of rho"),
        (lambda m, X, y: hk.plots.rho_likelihood(m, ax=3), "must be matplotlib axes"),
    ],
)
def test_wrong_input_is_a_sentence(model, draw, call, sentence):
    with pytest.raises(DataError, match=sentence):
        call(model, *draw)


def test_importing_the_module_needs_no_matplotlib():
    code = "import sys; import heckesel as hk; hk.plots.effect; print('matplotlib' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert printed.decode().strip() == "False"


Y = np.array([1.0, 2.0, 3.0, np.nan, np.nan] * 4)


def test_lines_are_bounds_and_intervals():
    found = hk.bounds(Y, 0.0, 4.0, follow_up=np.isnan(Y) & (np.arange(20) < 10))
    ax = hk.plots.bounds(found)
    frame = found.to_frame()
    thin, thick = (
        np.array([path.vertices[:, 0] for path in part.get_paths()]) for part in ax.collections
    )
    np.testing.assert_allclose(thin, frame[["interval_low", "interval_high"]])
    np.testing.assert_allclose(thick, frame[["low", "high"]])
    (point,) = ax.lines
    np.testing.assert_allclose(point.get_xdata(), frame.loc["missing at random", "low"])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(frame.index)
    assert ax.get_xlabel() == "mean of y"


def test_what_the_instrument_says_are_held_out_residuals_and_both_readings(tmp_path):
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import StratifiedKFold

    frame = hk.datasets.make_controlled(2000, rho=0.9, alpha=1.0, seed=1).frame
    X, y, s = frame[["x", "z"]], frame["y"], frame["y"].notna()
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, s))
    model = hk.HeckmanRegressor(["z"], learner=LinearRegression(), cv=splits).fit(X, y)
    at, seen = line(hk.plots.instrument_evidence(model, X, y), "observed")
    residual = np.zeros(len(X))
    for kept, held in splits:
        kept, held = (rows[s.iloc[rows]] for rows in (kept, held))
        naive = LinearRegression().fit(X.iloc[kept][["x"]], y.iloc[kept])
        residual[held] = y.iloc[held] - naive.predict(X.iloc[held][["x"]])
    assert seen.mean() == pytest.approx(residual.mean(), rel=1e-6)  # ten groups of 200
    assert np.all(np.diff(at) > 0)

    model = hk.HeckmanRegressor(["z"], learner="splines").fit(X, y)
    model.save(tmp_path / "m")
    ax = hk.plots.instrument_evidence(hk.load(tmp_path / "m"), X, y)
    (_, seen), (_, normal) = line(ax, "observed"), line(ax, "normal errors")
    assert np.corrcoef(seen, normal)[0, 1] > 0.8
    with pytest.raises(DataError, match="must be the data of the fit"):
        hk.plots.instrument_evidence(model, X, 2 * y)
