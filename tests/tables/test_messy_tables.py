"""Messy tables: one command with the outcome and the instruments ends in a model, a report and
predictions."""

import json

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.cli.command_line import run
from tests.tables.messy_tables import DRAWN, OF_PACKAGES, PUBLIC, SELECTED, messy_table

ACTIONS = {
    "flights": {
        "year": "constant",
        "dest": "treated as other",
        "time_hour": "trend",
        "air_time": "cons",
    },
    "nhefs": {"seqn": "row numbers or unit", "wt82": "consequence", "censored": "constant among"},
    "cps91": {"hours": "predicts selection perfectly", "husexp": "linear combination"},
    "weather": {"time_hour": "turned into trend", "year": "constant (2013"},
    "covid_testing": {
        "subject_id": "row numbers or unit names",
        "fake_first_name": "342 different strings",
        "fake_last_name": "treated as other",
        "test_id": "constant (covid)",
        "patient_class": "3 levels with few unselected rows (emergency, not applicable, observa",
    },
    "bird_strikes": {
        "operator": "equals opid",
        "remarks": "different strings in",
        "atype": "treated as other",
        "date": "turned into trend",
        "birds_struck": "codes such as 2-10",
        "effect": "missing values used as a level",
    },
    "opt": {
        "PID": "row numbers or unit names",
        "N.extractions": "with a missing indicator",
        "N.perm.restorations": "with the indicator N.extractions[missing]",
        "Any.stillbirth": "linear combination of Prev.preg[Yes]",
    },
    "acs12": {
        "employment": "consequence of selection",
        "race": "level with few unselected rows (asian",
    },
    "charity": {},
    "credit_cards": {"share": "the outcome can be computed from its product with income"},
    "hiv": {
        "villnum": "codes such as",
        "any": "consequence of selection",
        "tinc": "consequence of selection",
    },
    "bank": {
        "application": "600 different strings",
        "received": "turned into trend",
        "postcode": "codes such as",
        "bureau_score": "-1 (",
        "months_at_bank": "999 (",
        "purpose": "1 rare level (boat",
        "rate": "consequence of selection",
        "loss_rate": "the outcome can be computed from its product with amount",
        "decision": "constant among the",
    },
    "clinical": {
        "lab3_total": "linear combination of lab3_a, lab3_b",
        "lab3_c": "999 (",
        "lab3_d_si": "linear combination of lab3_d in the rows that have both",
        "lab3_note": "constant (normal)",
    },
}


REPORTED = ("bank",)  # reports take several times as long as the fits


@pytest.mark.parametrize("name", [*PUBLIC, *OF_PACKAGES, *DRAWN])
def test_one_command_makes_a_model_a_report_and_predictions(name, tmp_path, capsys):
    path, outcome, instruments = messy_table(name, tmp_path)
    model, page, out = tmp_path / "m", tmp_path / "r.html", tmp_path / "p.csv"
    options = ["--method", "ml", "--out", model, "--json"]
    options += ["--report", page] if name in REPORTED else []
    asked = ["--outcome", outcome, "--instruments", instruments]
    asked += ["--selected", SELECTED[name]] if name in SELECTED else []
    shown = run(capsys, "fit", path, *asked, *options)
    assert shown.code == 0, shown.err
    assert "NaN" not in shown.out
    actions = dict(each.split(": ", 1) for each in json.loads(shown.out)["actions"])
    for column, said in ACTIONS[name].items():
        assert said in actions[column]
    if name in REPORTED:
        text = page.read_text(encoding="utf-8")
        assert all(f"<li>{column}: " in text for column in actions)
    assert hk.load(model).columns_.actions == tuple(f"{k}: {v}" for k, v in actions.items())
    target = "unselected"
    if name == "charity":  # no gift is missing: those who gave nothing have 0
        assert "--unobserved 0" in shown.err
        target = "population"
    asked = ["--target", target, "--force", "--out", out]
    shown = run(capsys, "predict", model, path, *asked)
    assert shown.code == 0, shown.err
    predicted = pd.read_csv(out)
    assert len(predicted) == len(pd.read_csv(path))
    made = ["probability"] if "probability" in predicted else ["mean", "std", "low", "high"]
    assert np.isfinite(predicted[made]).all(axis=None)


@pytest.mark.parametrize("groups", [False, True])
def test_a_long_table_is_diagnosed_on_a_part_of_its_rows(groups, tmp_path, capsys):
    frame = hk.datasets.make_controlled(12_000, rho=0.5, alpha=1.0, seed=3).frame
    frame = frame.assign(unit=np.arange(12_000) // 4) if groups else frame
    frame.to_csv(tmp_path / "t.csv", index=False)
    asked = ["--outcome", "y", "--instruments", "z"]
    asked += ["--groups", "unit"] if groups else []
    shown = run(capsys, "diagnose", tmp_path / "t.csv", *asked, "--json")
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    assert told["rows"] == {"used": 10_000, "given": 12_000}
    assert told["identification"]["verdict"] == "supported by the instrument"
