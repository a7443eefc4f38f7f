"""Claims: a rule says `holds` where the rows are made to, and not where they are made not to."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heckesel.metrics import evaluate
from heckesel.predictive import Predictive
from reproduction.pages.claims import (
    CHAPTERS,
    claims_md,
    controlled,
    decide_on_paper_rows,
    linear_fits,
    real_tables,
)
from reproduction.pages.claims.claim import FAILS, HOLDS, PARTLY, UNTESTED
from reproduction.pages.claims.controlled import kill_condition
from reproduction.pages.rows import Results, read_paper, read_results

ROOT = Path(__file__).parents[3]
ALL = [claim for chapter in CHAPTERS.values() for claim in chapter]


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


def changed(rows, change, **cell):
    """The rows, with `change(row)` merged into those that agree with `cell`."""
    return [row | change(row) if cell.items() <= row.items() else row for row in rows]


def test_the_kill_condition_does_not_fire_on_the_papers_rows_and_says_with_which_p():
    fires, sentence = kill_condition(read_paper())
    assert not fires
    assert sentence.startswith("The kill condition does not fire")
    assert "43.1 % (bias 0.678)" in sentence
    assert "Wilcoxon p = .008 over 8 seeds" in sentence


@pytest.mark.parametrize(
    ("coverage", "bias", "fires"),
    [
        # the joint fit of the paper: 89.1 %, bias .002, so the limits are 1.9 points and .012
        (0.9 - 0.0185, 0.0115, True),
        (0.9 + 0.0185, -0.0115, True),
        (0.9 - 0.0185, 0.0125, False),
        (0.9 - 0.0205, 0.0115, False),
    ],
)
def test_the_kill_condition_fires_if_weighting_is_within_a_point_of_the_joint_fit(
    coverage, bias, fires
):
    rows = changed(
        read_paper().e1,
        lambda row: {"coverage90_against": coverage, "bias_f0_against": bias},
        method="weighted_ensemble",
    )
    found, sentence = kill_condition(Results(e1=rows))
    assert found is fires
    assert ("does not fire" in sentence) is not fires


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.says[:50])
def test_every_claim_has_a_verdict_and_says_on_what(claim, results):
    verdict, numbers = claim.decide(results)
    assert verdict in (HOLDS, PARTLY, FAILS, UNTESTED)
    assert numbers
    assert claim.where
    assert "nan" not in numbers.lower().split()


def test_the_page_counts_its_verdicts_and_lists_each_claim_once(results):
    text = claims_md(results)
    verdicts = [claim.decide(results)[0] for claim in ALL]
    assert f"**{len(ALL)} claims: {verdicts.count(HOLDS)} hold, " in text
    for claim in ALL:
        assert text.count(f". {claim.says}** ({claim.where})") == 1
    assert text.count("- Verdict: ") == len(ALL)


def test_the_papers_rows_are_used_only_where_they_have_what_the_rule_needs():
    assert decide_on_paper_rows(real_tables.weighting_is_worst)[0] == HOLDS
    assert decide_on_paper_rows(controlled.warm_up_needed) is None  # no such rows
    assert decide_on_paper_rows(controlled.rho_collapses) is None  # no members in them
    assert decide_on_paper_rows(linear_fits.most_on_boundary) is None  # untested is no verdict


def test_a_lowest_ece_on_both_datasets_holds_on_one_partly_on_none_not(results):
    def verdict(**lowest):
        e2 = results.e2
        for dataset, ece in lowest.items():
            change = {"ece_against": ece}
            cell = {"method": "heckman_two_step", "dataset": dataset}
            e2 = changed(e2, lambda row, change=change: change, **cell)
        return real_tables.best_calibrated(replace(results, e2=e2))[0]

    assert verdict(california=0.0, wine=0.0) == HOLDS
    assert verdict(california=0.0, wine=0.5) == PARTLY
    assert verdict(california=0.5, wine=0.5) == FAILS


def test_panels_are_decided_by_how_many_fits_are_on_the_boundary(results):
    def rows(boundary, instrument=""):
        cell = {"source": "by_paper_2022", "task": "t", "target": "", "instrument": instrument}
        return [
            cell | {"rho": 1.0 if at else -0.4, "boundary": float(at), "boundary_without": 1.0}
            for at in boundary
        ]

    decide = linear_fits.most_on_boundary
    assert decide(replace(results, e4=rows([True, True, False])))[0] == HOLDS
    assert decide(replace(results, e4=rows([True, False, False])))[0] == PARTLY
    assert decide(replace(results, e4=rows([False, False])))[0] == FAILS
    assert decide(replace(results, e4=()))[0] == UNTESTED
    decide = linear_fits.signs_unstable
    assert decide(replace(results, e4=rows([False, False])))[0] == FAILS
    assert decide(replace(results, e4=rows([True, False])))[0] == PARTLY
    decide = linear_fits.dates_as_instrument
    assert decide(replace(results, e4=rows([True, False, False], "age")))[0] == HOLDS
    assert decide(replace(results, e4=rows([True, True, True], "age")))[0] == FAILS


def test_the_ece_of_a_shifted_and_widened_normal_is_that_of_the_metric():
    """Outcomes on the quantiles of N(0, 1) leave an error of 1 / (2 n) in each share."""
    from scipy.stats import norm

    n = 2000
    y = norm.ppf((np.arange(n) + 0.5) / n)
    for bias, scale in ((0.0, 2.0), (0.97, 1.0), (0.97, 2.44)):
        predicted = Predictive.normal(
            mean=np.full(n, bias), epistemic=np.zeros(n), aleatoric=np.full(n, scale**2)
        )
        ece = evaluate(y, predicted, propensity_x=np.full(n, 0.5))["ece"]
        assert real_tables._normal_ece(bias, scale) == pytest.approx(ece, abs=1 / n)
