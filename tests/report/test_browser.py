"""The report in a real browser: quiet, whole, readable by everyone, and alone with itself.

Skipped where there is no Chromium; HECKESEL_CHROMIUM names one that is not on the path, and
HECKESEL_SCREENSHOTS a folder to keep the pictures in.
"""

import os
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import heckesel as hk
from heckesel.report import write_report
from tests.report.chromium import browser, find_chromium

pytest.importorskip("websocket", reason="websocket-client drives the browser")
pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium here; install it, or set HECKESEL_CHROMIUM"
)

# Every width and every scheme once: the layout does not depend on the scheme.
VIEWS = [(400, 800, False), (1280, 900, True)]
COMPLAINTS = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One of each kind: with a curve and coefficients; networks; no selection."""
    folder = tmp_path_factory.mktemp("pages")
    mroz = hk.datasets.load_mroz()
    X, y = mroz[["educ", "exper", "expersq", "age"]], mroz["lwage"]
    found = {}

    def write(name, model, X, y):
        found[name] = write_report(model.fit(X, y), X, y, folder / f"{name}.html")

    write("linear", hk.HeckmanRegressor(["age"], method="ml"), X, y)
    write("form", hk.HeckmanRegressor(method="ml"), X[["educ", "exper"]], y)
    write("two-step", hk.HeckmanRegressor(["age"], method="two-step"), X, y)
    seen = y.notna()
    write("none", hk.HeckmanRegressor(["age"], method="ml"), X[seen], y[seen])
    hopeless = hk.HeckmanRegressor(["age"], method="ml")  # ends at rho = 1
    write("unusable", hopeless, X, np.exp(1.5 * y))
    loans = hk.datasets.make_loans(600, seed=0).frame
    features = loans.drop(columns="default")
    write("classes", hk.HeckmanClassifier(["leniency"]), features, loans["default"])
    draw = hk.datasets.make_controlled(300, rho=0.9, alpha=1.0, seed=1).frame
    small = hk.Networks(hidden=(8,), epochs=40, n_members=2)
    networks = hk.DeepHeckmanRegressor(["z"], networks=small)
    write("networks", networks, draw[["x", "z"]], draw["y"])
    return found


@pytest.fixture(scope="module")
def tab():
    with browser() as tab:
        yield tab


NAMES = ["linear", "form", "two-step", "none", "unusable", "classes", "networks"]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_quiet_whole_and_accessible(name, pages, tab):
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    for width, height, dark in VIEWS:
        tab.show(pages[name], width=width, height=height, dark=dark)
        _check_quiet(tab)
        assert tab.ask("document.documentElement.scrollWidth") <= width
        _check_figures(tab)
        smallest = _smallest_text(tab)  # None on a page without pictures
        assert smallest is None or smallest >= 10
        _keep(tab, f"{name}-{width}-{'dark' if dark else 'light'}.png")
        tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        tab.ask(axe + "; 0")
        broken = tab.ask(
            "axe.run().then(r => r.violations.filter(v => ['serious', 'critical']"
            ".includes(v.impact)).map(v => v.id + ': ' + v.nodes[0].html))"
        )
        assert broken == []


def _check_quiet(tab):
    assert [event for event in tab.events if event["method"] in COMPLAINTS] == []
    asked = [
        event["params"]["request"]["url"]
        for event in tab.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url.split(":")[0] for url in asked if not url.startswith("data:")] == ["file"]


@pytest.mark.parametrize("name", NAMES)
def test_no_table_scrolls_sideways_on_a_phone(name, pages, tab):
    tab.show(pages[name], width=390, height=844, dark=False)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    _keep(tab, f"{name}-phone.png")
    tables = "[...document.querySelectorAll('.wide')]"
    wide = tab.ask(f"{tables}.filter(d => d.scrollWidth > d.clientWidth).map(d => d.ariaLabel)")
    assert wide == []
    entries = "document.querySelectorAll('tbody td')"
    nameless = tab.ask(f"[...{entries}].filter(d => !d.dataset.head).map(d => d.outerHTML)")
    assert nameless == []


def _check_figures(tab):
    """Every picture has a size, and every text in it lies inside."""
    outside = tab.ask(
        "[...document.querySelectorAll('figure > svg')].flatMap(svg => {"
        "  const box = svg.getBoundingClientRect();"
        "  if (box.width < 250 || box.height < 50) return ['empty ' + svg.textContent];"
        "  return [...svg.querySelectorAll('text')].filter(t => {"
        "    const b = t.getBoundingClientRect();"
        "    return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1"
        "      || b.bottom > box.bottom + 1; }).map(t => t.textContent) })"
    )
    assert outside == []


def _smallest_text(tab) -> float | None:
    """The height in pixels of the smallest text of any picture."""
    return tab.ask(
        "Math.min(...[...document.querySelectorAll('figure > svg')].flatMap(svg => {"
        "  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;"
        "  return [...svg.querySelectorAll('text')].map("
        "    t => scale * parseFloat(getComputedStyle(t).fontSize)) }))"
    )


def _keep(tab, name):
    folder = os.environ.get("HECKESEL_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.photograph(Path(folder) / name)


def test_colours_follow_the_scheme(pages, tab):
    shades = []
    for dark in (False, True):
        tab.show(pages["linear"], width=1280, height=900, dark=dark)
        colour = tab.ask("getComputedStyle(document.body).backgroundColor")
        shades.append(np.mean([int(part) for part in colour[4:-1].split(",")]))
    assert shades[0] > 200 > 60 > shades[1]


def test_it_can_be_walked_by_keyboard(pages, tab):
    tab.show(pages["linear"], width=1280, height=900)
    seen = []
    for _ in range(4):
        for kind in ("keyDown", "keyUp"):
            tab.call(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        seen.append(tab.ask("document.activeElement.textContent.trim()"))
    assert seen[:3] == ["Skip to the verdict", "Verdict", "Instrument"]


def test_it_prints(pages, tab, tmp_path):
    tab.show(pages["form"], width=1280, height=900)
    tab.print_pdf(tmp_path / "page.pdf")
    text = (tmp_path / "page.pdf").read_bytes()
    assert text.startswith(b"%PDF")
    assert 2 <= text.count(b"/Type /Page\n") + text.count(b"/Type /Page/") <= 9
