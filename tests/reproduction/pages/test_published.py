"""Published numbers: the paper's own rows give the paper's own figures, and nothing is typed."""

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from heckesel.errors import DataError
from reproduction.pages import paper_figures, published
from reproduction.pages.figure_data import FROM_RESULTS
from reproduction.pages.macros import MACROS, printed_like
from reproduction.pages.paired_tests import signed_rank, standard_error
from reproduction.pages.rows import (
    flat,
    read_paper,
    read_paper_numbers,
    read_results,
)
from reproduction.pages.scoreboard import (
    EXPLANATIONS,
    scoreboard_md,
    scores,
)

ROOT = Path(__file__).parents[3]
PAPER = read_paper_numbers()
# These need rows that the paper's files on A-E1 and A-E2 do not hold.
OTHER_ROWS = ("EZero", "Mroz", "Vig", "EOneSelFrac")


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


@pytest.fixture(scope="module")
def as_published(results):
    """Our classic rows, and the paper's own rows in place of ours where networks are trained."""
    paper = read_paper()
    e1 = [row | {"selected_share": 0.5} for row in paper.e1]
    return replace(results, e1=e1, e2=paper.e2)


def test_every_macro_of_the_paper_is_defined_and_no_other():
    assert set(MACROS) == set(PAPER)
    assert len(MACROS) == 193


@pytest.mark.parametrize("name", [name for name in PAPER if not name.startswith(OTHER_ROWS)])
def test_the_papers_rows_give_the_papers_figure(name):
    assert MACROS[name].printed(read_paper()) == PAPER[name]["printed"]


@pytest.mark.parametrize(
    ("sample", "value", "printed"),
    [
        (r"9.9\%", 0.6444, r"64.4\%"),
        (r"9\%", 0.503, r"50\%"),
        ("99", 4281.0, "4281"),
        ("9.999", -0.00004, "0.000"),
        ("9.999", -0.13196, "-0.132"),
        (r"$9.9\times10^{9}$", 5.002e-7, r"$5.0\times10^{-7}$"),
    ],
)
def test_numbers_are_printed_as_in_the_paper(sample, value, printed):
    assert printed_like(sample, value) == printed


def test_a_failed_row_is_not_published():
    with pytest.raises(DataError, match="no luck"):
        flat([{"cell": {"seed": 0}, "error": "RuntimeError: no luck"}])


@pytest.mark.parametrize("ties", [False, True])
def test_signed_rank_is_the_share_of_sign_patterns_at_least_as_extreme(ties):
    size = np.array([1.0, 2.0, 3.5, 4.0, 5.0, 7.0, 8.0, 9.5])
    if ties:
        size[1] = size[0]
    ranks = np.array([np.mean(np.flatnonzero(np.sort(size) == s)) + 1 for s in size])
    signs = np.array([1, -1, 1, 1, 1, 1, 1, 1])
    sums = np.array([ranks[np.array(s) > 0].sum() for s in product((1, -1), repeat=8)])
    expected = np.mean(sums >= ranks[signs > 0].sum())
    # at a tie scipy counts with whole ranks, which moves p by less than one pattern
    p = signed_rank(signs * size, np.zeros(8), "greater")
    assert p == pytest.approx(expected, abs=1 / 2**8 if ties else 1e-12)
    assert signed_rank(size, size) == 1.0


def test_the_papers_rows_agree_with_the_paper_in_every_compared_number(as_published):
    for score in scores(as_published):
        if not score.macro.startswith("EZero"):
            assert score.verdict in ("agrees", "listed"), score


def test_a_common_shift_differs_and_the_same_shift_with_noise_does_not(as_published):
    """A shift d of n seeds, give or take s in turn, has standard error s / sqrt(n - 1)."""

    def verdict(shift, noise):
        e1 = [
            row | {"coverage90_against": row["coverage90_against"] + shift + noise * sign}
            for row in as_published.e1
            for sign in [1 if row["seed"] % 2 else -1]
        ]
        found = {score.macro: score for score in scores(replace(as_published, e1=e1))}
        return found["CovAgEnsHi"]

    assert verdict(0.004, 0.0).verdict == "differs"
    assert verdict(0.004, 0.01).verdict == "agrees"
    assert standard_error(verdict(0.004, 0.01).pairs) == pytest.approx(0.01 / np.sqrt(7))


def test_every_difference_is_explained_and_nothing_else(results):
    differing = {score.macro for score in scores(results) if score.verdict == "differs"}
    assert set(EXPLANATIONS) == differing


def test_at_least_95_percent_of_the_trained_numbers_agree(results):
    trained = [score.verdict for score in scores(results) if score.rule == "seeds"]
    assert trained.count("agrees") >= 0.95 * len(trained)


def test_the_summary_of_the_scoreboard_counts_its_rows(results):
    text = scoreboard_md(results)
    rows = [line for line in text.splitlines() if line.split(" | ")[0][2:] in MACROS]
    assert len(rows) == 193
    agree, differ, listed = (
        sum(line.endswith(f"| {verdict} |") for line in rows)
        for verdict in ("agrees", "differs", "listed")
    )
    assert f"**{agree} agree, {differ} differ, {listed} are listed" in text
    assert "64 of 64 draws of A-E1 and 28 of 28 draws of A-E2" in text


def test_figures_and_macros_show_the_same_numbers(results):
    coverage = FROM_RESULTS["fig1b"](results)["methods"]["deep_ensemble"]
    assert printed_like(r"9.9\%", coverage["mean"][-1]) == MACROS["CovAgEnsHi"].printed(results)
    assert printed_like(r"9.9\%", coverage["sd"][-1]) == MACROS["CovAgEnsHiSD"].printed(results)
    bias = FROM_RESULTS["fig2"](results)["bias_without"]["heckman_two_step"]["mean"][2]
    assert printed_like("9.999", bias) == MACROS["BiasAgHeckTSMidNoInstr"].printed(results)
    well = FROM_RESULTS["fig3"](results)["coverage90_well"]["wine"]["gp"]["mean"]
    assert printed_like(r"9.9\%", well) == MACROS["RealCovWellWineGP"].printed(results)


@pytest.mark.slow
def test_writing_twice_changes_nothing_and_a_touched_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "train_example", lambda: {"x": [0.0]})
    source = tmp_path / "results"
    shutil.copytree(ROOT / "results", source, ignore=shutil.ignore_patterns("quick"))
    paper = tmp_path / "paper"
    first = published.regenerate(source, paper)
    assert paper / "figures" / "fig1a.json" in first
    assert published.regenerate(source, paper) == []
    assert published.stale(source, paper) == []
    (paper / "numbers.tex").write_text("typed by hand\n")
    (paper / "claims.md").unlink()
    (paper / "figures" / "fig1a.json").unlink()
    touched, gone, untrained = published.stale(source, paper)
    assert "numbers.tex" in touched
    assert touched.endswith("from line 1")
    assert gone.endswith("claims.md is missing")
    assert untrained.endswith("fig1a.json is missing")


def test_the_committed_paper_is_what_the_results_give():
    assert published.stale(ROOT / "results", ROOT / "paper") == []


@pytest.mark.slow
def test_figures_are_small_readable_and_the_same_every_time(tmp_path, monkeypatch):
    """At most 7 inches wide, no letter below 8 points, no title cut off."""
    seen = []

    def keep(figure, stem):
        seen.append(figure)
        return save(figure, stem)

    save = paper_figures._save
    monkeypatch.setattr(paper_figures, "_save", keep)
    for path in (ROOT / "paper" / "figures").glob("*.json"):
        shutil.copy(path, tmp_path)
    drawn = paper_figures.draw_figures(tmp_path)
    before = [path.read_bytes() for path in drawn]
    assert {path.suffix for path in drawn} == {".pdf", ".png"}
    assert len(drawn) >= 6
    for figure in seen:
        assert figure.get_figwidth() <= 7.0
        figure.draw_without_rendering()
        labels = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        assert min(text.get_fontsize() for text in labels) >= 8
        titles = {axis.get_title("left") for axis in figure.axes}
        for text in labels:
            if text.get_text() in titles:
                assert text.get_window_extent().x1 <= figure.bbox.x1
    assert [path.read_bytes() for path in paper_figures.draw_figures(tmp_path)] == before
