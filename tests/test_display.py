"""Every result is shown whole in a notebook, and no name that a user chooses is markup."""

import copy
import pickle
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

import heckesel as hk

ODD = [
    "<script>alert(1)</script>",
    "C(region, Treatment('north'))[T.south]",
    "*bold* _under_ `code` ~x~ | $5 \\n",
    "x" * 200,
]


class Reader(HTMLParser):
    """The tags and the strings of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.strings = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.strings.append(data)


@pytest.mark.parametrize("name", ODD)
def test_names_are_text_in_html_and_markdown(name):
    frame = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
    X = frame[["x", "z"]].rename(columns={"x": name})
    model = hk.HeckmanRegressor(["z"], method="two-step").fit(X, frame["y"])
    compared = hk.compare_fits([model], names=[name])
    read = Reader(compared.to_html())
    assert read.strings.count(name) == 3  # of the fit, and in both equations
    assert set(read.tags) <= TAGS
    table = compared.to_markdown().split("\n\n")[0]
    rows = [token for token in MarkdownIt().enable("table").parse(table) if token.type == "inline"]
    said = ["".join(child.content for child in row.children) for row in rows]
    assert said.count(name) == 3


def test_a_summary_is_a_string_that_a_notebook_shows_as_html(shown):
    made = shown["summary"]
    assert isinstance(made, str)
    assert repr(made) == made
    for same in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same == made
        assert same._repr_html_() == made._repr_html_()


NAME = "<script>alert('x')</script> & <b>"
LABEL = "<i>unit</i>"
TAGS = {"div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "br", "p", "h4"}
TAGS |= {"span", "b", "strong", "ul", "li"}


@pytest.fixture(scope="module")
def shown():
    """Name of a result -> the result."""
    frame = hk.datasets.make_controlled(400, rho=0.5, alpha=1.0, seed=0).frame
    frame = frame.rename(columns={"x": NAME, "y": f"y {NAME}"}).rename(index=lambda k: LABEL)
    X, y = frame[[NAME, "z"]], frame[f"y {NAME}"]
    model = hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    classes = hk.HeckmanClassifier(["z"], method="ml").fit(
        X, (y > 0).astype(float).where(y.notna())
    )
    named = frame.assign(s=y.notna() * 1.0)
    return {
        "fit": model.result_,
        "summary": model.result_.summary(),
        "classes": classes.result_,
        "probit": hk.probit(f"s ~ `{NAME}`", named),
        "verdict": hk.identify(X.rename(columns={NAME: "x", "z": NAME}), y, instruments=[NAME]),
        "comparison": hk.compare_fits([model], names=[NAME]),
        "predictions": model.predict_distribution(X),
        "sensitivity": hk.sensitivity(model, rho=[-0.5, 0.0, 0.5]),
        "columns": hk.column_report(X.assign(year=2020), y, instruments=["z"]),
        "error models": model.result_.functional_form(),
        "instruments": hk.test_instruments(
            X.rename(columns={NAME: "x", "z": NAME}), y, instruments=[NAME]
        ),
    }


@pytest.mark.parametrize(
    "name",
    [
        "fit",
        "summary",
        "classes",
        "probit",
        "verdict",
        "comparison",
        "predictions",
        "sensitivity",
        "columns",
        "error models",
        "instruments",
    ],
)
def test_names_of_the_user_are_text(name, shown):
    read = Reader(shown[name]._repr_html_())
    assert set(read.tags) <= TAGS
    assert any((LABEL if name == "predictions" else NAME) in text for text in read.strings)


def test_a_fit_shows_the_numbers_of_its_summary(shown):
    fit = shown["fit"]
    strings = Reader(fit._repr_html_()).strings
    for value in fit.params:
        assert f"{value:.4f}".replace("-", "−") in strings
    assert fit.identification.verdict in strings
    assert fit.identification.sentence in " ".join(strings)
