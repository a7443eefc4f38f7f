"""Whatever a name holds, it is shown whole, and is never markup."""

import copy
import pickle
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from heckesel.display import html_table, latex_text, markdown_text
from heckesel.display.number_text import number_text, p_text
from heckesel.display.summary_text import Summary

ODD = [
    "<script>alert(1)</script>",
    "a & b",
    "\"quoted\" and 'single'",
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
def test_names_are_text_in_html(name):
    read = Reader(html_table.html_table((name, "n"), [name, (name, name)], caption=name))
    assert read.strings.count(name) == 5
    assert set(read.tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    read = Reader(html_table.box("good", name, name, [name]) + html_table.heading(name))
    assert read.strings.count(name) == 4
    assert set(read.tags) == {"div", "p", "strong", "ul", "li", "h4"}


@pytest.mark.parametrize("name", ODD)
def test_names_are_text_in_markdown(name):
    table = markdown_text.markdown_table(("", "b"), [(markdown_text.escaped(name), "1")])
    tokens = MarkdownIt().enable("table").parse(table)
    first = [token for token in tokens if token.type == "inline"][2]
    assert "".join(child.content for child in first.children) == name
    assert {child.type for child in first.children} <= {"text", "text_special"}


def test_names_are_text_in_latex():
    assert latex_text.escaped("a_b & 5% <x>") == r"a\_b \& 5\% \textless{}x\textgreater{}"
    assert latex_text.escaped("[a]") == "{}[a]"  # else an option of the row before


def test_numbers_have_minus_signs_in_html_and_names_keep_their_hyphens():
    read = Reader(html_table.html_table(("", "v"), [("age-group[-1]", "-1.2e-05")]))
    assert {"age-group[-1]", "−1.2e−05"} <= set(read.strings)


def test_numbers_are_written_as_people_write_them():
    assert number_text(-0.12345) == "-0.1235"
    assert number_text(1.2e-5) == "1.20e-05"
    assert latex_text.latex_number(-1.2e-5, 3) == r"$-1.2 \times 10^{-5}$"
    assert latex_text.latex_number(float("-inf")) == r"$-\infty$"
    assert [p_text(p) for p in (4e-7, 0.00099, 0.001, 0.25)] == [
        "< 0.001",
        "< 0.001",
        "0.001",
        "0.250",
    ]
    assert latex_text.latex_p(4e-7) == "$< 0.001$"


def test_a_summary_is_a_string_that_a_notebook_shows_as_html():
    made = Summary("a\nb", "<p>a b</p>")
    assert isinstance(made, str)
    assert repr(made) == made == "a\nb"
    for same in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same._repr_html_() == "<p>a b</p>"
    assert "a &lt; b" in Summary("a < b")._repr_html_()
