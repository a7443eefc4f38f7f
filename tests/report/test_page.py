"""The report without a browser: what it says, how it is built, and that nothing in it can run."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import heckesel as hk
from heckesel.errors import DataError
from heckesel.report import write_report

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
    return hk.HeckmanRegressor(["z"], method="ml").fit(X, y), X, y, truth


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


def written(path, model, X, y, **options):
    """The page, its outline, and its tables: caption -> rows of strings."""
    text = write_report(model, X, y, path / "page.html", **options).read_text(encoding="utf-8")
    tables = {}
    for part in re.findall("<table>.*?</table>", text, re.DOTALL):
        caption = html.unescape(re.search("<span>(.*?)</span>", part, re.DOTALL)[1])
        rows = re.findall("<tr>(.*?)</tr>", part, re.DOTALL)
        tables[caption] = [
            [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.split("</t[hd]>", row)][:-1]
            for row in rows
        ]
    return text, check_page(text), tables


def numbers(text):
    """The numbers of an entry such as "1.2 (−0.3 to 2.4)"."""
    found = re.findall(r"[−+]?\d[\d.,]*", text.replace("90\xa0%", ""))
    return [float(each.replace("−", "-").replace(",", "")) for each in found]


MEANS = "Means with 90\xa0% intervals"


def test_a_page_starts_with_the_verdict_the_means_and_their_picture(linear, tmp_path):
    model, X, y, _ = linear
    text, page, _ = written(tmp_path, model, X, y, title="Pay & more")
    assert "<title>Pay &amp; more</title>" in text
    verdict = model.identification_.verdict.capitalize()
    order = [f"<span>{verdict}</span>", MEANS, 'id="means-title"', 'id="strength"', 'id="changed"']
    order += ['id="strips-title"', 'id="sensitivity"', 'id="columns"', 'id="details"']
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert {"means-title", "strength-title", "rho-title", "sensitivity-title"} <= set(page.ids)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]  # no scratch file stays


def test_the_three_means_are_those_of_the_model_and_of_least_squares(linear, tmp_path):
    model, X, y, _ = linear
    _, _, tables = written(tmp_path, model, X, y)
    seen = y.notna()
    naive = LinearRegression().fit(X.loc[seen, ["x"]], y[seen])
    for row, rows, target in zip(
        tables[MEANS][1:],
        (seen, ~seen, seen | True),
        ("selected", "unselected", "population"),
        strict=True,
    ):
        found = model.average(X[rows], target).iloc[0]
        np.testing.assert_allclose(numbers(row[3]), found[["mean", "low", "high"]], atol=0.005)
        expected = naive.predict(X.loc[rows, ["x"]]).mean()
        np.testing.assert_allclose(numbers(row[2])[0], expected, atol=0.005)
        assert int(row[1]) == rows.sum()


def test_the_answer_at_known_rho_and_the_bounds_are_those_of_the_library(linear, tmp_path):
    model, X, y, _ = linear
    _, _, tables = written(tmp_path, model, X, y)
    rows = {row[0]: row for row in tables["Mean of all cases if ρ were known"][1:]}
    curves = hk.sensitivity(model, rho=[-0.3, 0.0, 0.6])
    for rho, mean in zip(("−0.3", "0", "0.6"), curves.values["mean"], strict=True):
        np.testing.assert_allclose(numbers(rows[rho][1]), mean, atol=0.02)  # read off a curve
    worst = tables["Bounds on the mean of pay, if every outcome lies in the observed range"][1]
    found = hk.bounds(y, y.min(), y.max())
    np.testing.assert_allclose(numbers(worst[1]), tuple(found), atol=0.005)


def test_the_default_shows_several_priors_and_a_naive_model_without_another_fit(tmp_path):
    X, y, _ = linear_draw(800)
    model = hk.HeckmanRegressor(["z"], learner="linear").fit(X, y)
    text, page, tables = written(tmp_path, model, X, y)
    assert "posterior-title" in page.ids
    rows = {row[0]: row for row in tables["The answer for several priors, with 90\xa0% intervals"]}
    everyone = model.average(X).iloc[0][["mean", "low", "high"]]
    np.testing.assert_allclose(numbers(rows["of this fit"][3]), everyone, atol=0.006)
    uniform = hk.HeckmanRegressor(["z"], learner="linear", rho_prior="uniform").fit(X, y)
    assert numbers(rows["uniform"][1])[0] == pytest.approx(uniform.rho_, abs=0.006)
    found = uniform.average(X).iloc[0][["mean", "low", "high"]]
    np.testing.assert_allclose(numbers(rows["uniform"][3]), found, atol=0.006)
    learner = LinearRegression().fit(X.loc[y.notna(), ["x"]], y[y.notna()])
    naive = numbers(tables[MEANS][3][2])[0]
    assert naive == pytest.approx(learner.predict(X[["x"]]).mean(), abs=0.02)  # mean of folds
    assert "interval of the mean of all excludes the naive mean" in text
    assert "evidence-title" in page.ids


def test_the_placebo_is_that_of_the_library_on_the_columns_like_the_outcome(tmp_path):
    X, y, _ = linear_draw(800)
    X = X.assign(more=X["x"] + np.random.default_rng(0).standard_normal(800), kind="a")
    X.loc[::2, "kind"] = "b"
    model = hk.HeckmanRegressor(["z"], learner="linear").fit(X, y)
    text, _, tables = written(tmp_path, model, X, y)
    rows = tables["Errors in standard deviations of the column"][1:]
    assert [row[0] for row in rows] == ["x", "more"]
    coded = X.assign(kind=(X["kind"] == "b") * 1.0)
    options = {"instruments": ["z"], "learner": "linear", "cv": 3, "columns": ["x", "more"]}
    found = hk.placebo(coded, y, **options).table
    np.testing.assert_allclose([numbers(row[1])[0] for row in rows], found["naive"], atol=0.006)
    np.testing.assert_allclose([numbers(row[2])[0] for row in rows], found["corrected"], atol=0.02)
    assert "2 of 2 complete numeric columns" in text


def test_the_same_input_gives_the_same_bytes(linear, tmp_path):
    model, X, y, _ = linear
    pages = [write_report(model, X, y, tmp_path / f"{k}.html").read_bytes() for k in "ab"]
    assert pages[0] == pages[1]


def test_names_that_look_like_markup_are_harmless(tmp_path):
    X, y, _ = linear_draw()
    X = X.rename(columns={"x": NASTY, "z": '"><img src=x onerror=alert(1)>'})
    y = y.rename(f"{NASTY}</style></title>")
    model = hk.HeckmanRegressor([X.columns[1]], method="ml").fit(X, y)
    text, _, _ = written(tmp_path, model, X, y, title=NASTY)
    assert "&lt;script&gt;" in text


def test_networks_have_a_page(tmp_path):
    frame = hk.datasets.make_controlled(300, rho=0.9, alpha=1.0, seed=1).frame
    X, y = frame[["x", "z"]], frame["y"]
    small = hk.Networks(hidden=(8,), epochs=20, n_members=2)
    model = hk.DeepHeckmanRegressor(["z"], networks=small).fit(X, y)
    _, page, tables = written(tmp_path, model, X, y)
    assert "strips-title" in page.ids
    assert len(tables[MEANS]) == 4
    with pytest.raises(DataError, match="100 rows but the model was fitted to 300"):
        write_report(model, X[:100], y[:100], tmp_path / "p.html")


def test_two_classes_have_probabilities(tmp_path):
    import statsmodels.api as sm

    draw = hk.datasets.make_loans(1500, seed=0)
    X, y = draw.frame.drop(columns="default"), draw.frame["default"]
    words = y.map({0.0: "repaid", 1.0: "late"}).rename("outcome").mask(y.isna(), "unknown")
    model = hk.HeckmanClassifier(["leniency"], method="ml", unobserved="unknown").fit(X, words)
    text, page, tables = written(tmp_path, model, X, words)
    assert "probability of outcome = repaid" in text
    assert {"strips-title", "rho-title", "strength-title"} <= set(page.ids)
    x, seen = sm.add_constant(X.drop(columns="leniency")), y.notna()
    probit = sm.Probit((y == 0.0).astype(float)[seen], x[seen]).fit(disp=0)
    naive, corrected = numbers(tables[MEANS][3][2]), numbers(tables[MEANS][3][3])
    assert naive[0] == pytest.approx(probit.predict(x).mean(), abs=0.0005)
    rate = 1 - draw.truth.y.mean()
    assert abs(corrected[0] - rate) < 0.5 * abs(naive[0] - rate)


def test_no_selection_makes_a_short_page(tmp_path):
    X, _, truth = linear_draw(100)
    with pytest.warns(hk.IdentificationWarning):
        model = hk.HeckmanRegressor(["z"], method="ml").fit(X, truth)
    text, page, tables = written(tmp_path, model, X, truth)
    assert 'class="verdict plain"' in text
    assert not any(name.endswith("-title") for name in page.ids)
    assert MEANS not in tables
    assert tables["Columns of the table"][2][:2] != ["z", "instrument"]


def test_a_correction_that_the_data_contradict_is_not_shown_as_a_result(tmp_path):
    df = hk.datasets.load_mroz()
    instruments = ["age", "kidslt6", "kidsge6", "nwifeinc"]
    X, y = df[["educ", "exper", "expersq", *instruments]], np.exp(1.5 * df["lwage"])
    model = hk.HeckmanRegressor(instruments, method="ml").fit(X, y)
    assert model.result_.status == "boundary"
    text, _, tables = written(tmp_path, model, X, y)
    assert 'class="verdict bad"' in text
    assert "corrected (do not use)" in tables[MEANS][0]
    assert "Do not use the corrected means" in text
    assert "corrected is higher" not in text


@pytest.mark.parametrize(
    "options",
    [
        {"method": "ml", "errors": "shape", "scale": [0]},
        {"method": "two-step", "target_transform": "log"},
        {"method": "ml", "target_transform": (np.arcsinh, np.sinh)},
    ],
)
def test_arrays_and_every_kind_of_linear_fit_have_a_page(options, tmp_path):
    X, y, _ = linear_draw(400)
    X, y = X.to_numpy(), np.exp(y.to_numpy())
    model = hk.HeckmanRegressor([1], **options).fit(X, y)
    text, _, tables = written(tmp_path, model, X, y)
    shown = dict(tables["Options of the model; all others have their defaults"][1:])
    assert shown["method"] == options["method"]
    assert ("log σ(x)" in tables) == ("scale" in options)
    if callable(options.get("target_transform", [None])[0]):
        assert shown["target_transform"] == "arcsinh, sinh"  # no address
    assert ("fitted on the scale" in text) == ("target_transform" in options)


def test_groups_of_the_fit_must_be_given(tmp_path):
    X, y, _ = linear_draw(300)
    groups = np.arange(300) // 5
    model = hk.HeckmanRegressor(["z"], method="ml").fit(X, y, groups=groups)
    with pytest.raises(DataError, match="with groups, so give the report these groups"):
        write_report(model, X, y, tmp_path / "p.html")
    written(tmp_path, model, X, y, groups=groups)


def test_other_rows_than_those_of_the_fit_are_refused(linear, tmp_path):
    model, X, y, _ = linear
    model.save(tmp_path / "model")
    for each in (model, hk.load(tmp_path / "model")):
        with pytest.raises(DataError, match="100 rows but the model was fitted to 600"):
            write_report(each, X[:100], y[:100], tmp_path / "page.html")
    weight = np.tile([1.0, 3.0, 0.0], 200)
    weighted = hk.HeckmanRegressor(["z"], method="ml").fit(X, y, sample_weight=weight)
    written(tmp_path, weighted, X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (lambda m, X, y: (LinearRegression(), X, y, "p.html"), "not LinearRegression"),
        (lambda m, X, y: (m, X[["x"]], y, "p.html"), "X has no column 'z'"),
        (lambda m, X, y: (m, X, y[:-1], "p.html"), "600 rows but y has 599"),
        (lambda m, X, y: (m, X.to_numpy()[:, :1], y, "p.html"), "X must have 2 columns"),
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


def test_the_page_on_reports_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "report.md"
    block = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[1]
    exec(compile(block, "report.md", "exec"), {})
    assert "Wages of married women" in (tmp_path / "wages.html").read_text(encoding="utf-8")
