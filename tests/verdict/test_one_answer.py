"""One question, one answer: every place that shows the verdict shows the same, on 200 tables."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.verdict.identify import (
    CONTRADICTED,
    MOSTLY_PRIOR,
    NOTHING_TO_CORRECT,
    SUPPORTED,
    VERDICTS,
)
from tests.cli.command_line import run

STRONG, REJECTED = 0.25, 1e-3  # the documented thresholds


def drawn(seed: int):
    """A small table of any kind: X, y, and the options of a fast fit."""
    rng = np.random.default_rng([13, seed])
    n, strength = int(rng.integers(60, 300)), rng.choice([0.0, 0.3, 1.0, 2.0])
    x, z, z2, u, v = rng.normal(size=(5, n))
    if seed % 5 == 0:
        z = np.round(z)
    e = rng.choice([-1, 1]) * 0.6 * u + 0.8 * v
    e = [e, np.exp(e), e * np.exp(0.5 * x), 3 * u][rng.integers(4)]
    y = 1 + x + e + rng.choice([0.0, 0.0, 0.8]) * z2 + rng.choice([0.0, 0.5]) * x**2
    s = 0.3 + 0.5 * x + strength * (z + z2) + u > 0
    X = pd.DataFrame({"x": x, "z": z, "z2": z2})
    if seed % 16 == 1:  # a column that is known only with the outcome
        X["later"] = np.where(s, 2 * y, 0.0)
    if seed % 20 == 2:
        s[:] = True
    method = {3: "ml", 4: "two-step", 9: "two-step"}.get(seed % 10, "auto")
    instruments = [None, ["z"], ["z", "z2"]][rng.integers(3)]
    if instruments is None or len(instruments) == 1:
        X = X.drop(columns="z2")
    options = {"instruments": instruments, "method": method}
    if method == "auto":
        options |= {"learner": "linear", "cv": 2}
    return X, pd.Series(np.where(s, y, np.nan), name="y"), options


def quietly(call, *args, **options):
    """What a call returns, and what it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(*args, **options)
    return found, [
        str(each.message) for each in caught if each.category is hk.IdentificationWarning
    ]


def check_places(X, y, options, tmp_path, again: bool):
    """The verdict of a fit, after every place that shows it was compared."""
    model, warned = quietly(hk.HeckmanRegressor(**options).fit, X, y)
    found = model.identification_
    doubtful = found.verdict in (MOSTLY_PRIOR, CONTRADICTED)
    assert any(str(found) in each for each in warned) == (found.verdict != SUPPORTED)
    summary = " ".join(str(model.summary()).split())
    for words in (found.verdict, found.sentence, found.action):
        assert words in summary
        assert words in str(found)
    assert not [other for other in VERDICTS if other != found.verdict and other in summary]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    model.save(tmp_path / "m.heckesel")
    loaded = hk.load(tmp_path / "m.heckesel")
    assert loaded.identification_ == found
    for each in (model, loaded):
        _, first = quietly(each.predict, X)
        _, second = quietly(each.predict_interval, X)
        expected = [
            f"the verdict on this HeckmanRegressor is {found.verdict!r}; see identification_"
        ]
        assert (first, second) == (expected * doubtful, [])
    if hasattr(model, "result_"):
        assert model.result_.identification == found
    if again:
        assert quietly(hk.identify, X, y, **options)[0].to_dict() == found.to_dict()
    return found


def check_words(found, instruments, method):
    """Verdict, sentence, action and numbers do not contradict each other."""
    e = found.evidence
    assert found.sentence.endswith(".")
    assert found.action.endswith(".")
    if found.verdict == NOTHING_TO_CORRECT:
        return
    strong = bool(instruments) and e.get("rho_error", np.inf) <= STRONG
    flat = e.get("rho_low", 0) < -0.5 and e.get("rho_high", 0) > 0.5
    at_end = abs(e.get("rho", 0)) > 0.99999
    bad = (
        "leak" in e
        or min(e.get("overidentification_p", 1), e.get("bend_p", 1)) < REJECTED
        or abs(e.get("contrast", 0)) > 3
        or (e.get("better_errors_p", 1) < REJECTED and abs(e["most_moved"]) > 1)
        or (at_end and (strong or ("rho_low" in e and not flat)))
    )
    assert (found.verdict == CONTRADICTED) == bad
    if found.verdict == SUPPORTED:
        assert strong
        assert not any([flat, at_end, "repeated_rows" in e])
        tests = ("linearity_p", "residual_normality_p", "constant_sigma_p")
        assert min(e.get(name, 1) for name in tests) >= REJECTED
    assert ("prior" in e) == (method == "auto")
    if found.verdict == MOSTLY_PRIOR and not strong:
        why = {True: "prior", False: "form of the errors|nonlinear outcome"}[method == "auto"]
        assert re.search(why, found.sentence)
    for number in re.findall(r"with an error of (\d\.\d+)", found.sentence):
        assert (float(number) <= STRONG) == strong
        assert float(number) == pytest.approx(e["rho_error"], abs=0.005)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]
)
def test_no_two_places_disagree(part, tmp_path):
    seen = set()
    for seed in range(50 * part, 50 * part + 50):
        X, y, options = drawn(seed)
        try:
            found = check_places(X, y, options, tmp_path, again=seed % 3 == 0)
        except hk.DataError:  # a linear fit to too few rows, or to columns that separate
            if options["method"] == "auto":
                raise
            continue
        check_words(found, options["instruments"], options["method"])
        seen.add(found.verdict)
    assert seen == set(VERDICTS)


@pytest.mark.parametrize("seed", [0, 1, 3, 9])
def test_the_shell_says_what_python_says(seed, tmp_path, capsys):
    X, y, options = drawn(seed)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    table = [tmp_path / "t.csv", "--outcome", "y"]
    if options["instruments"]:
        table += ["--instruments", ",".join(options["instruments"])]
    given = ["--method", options["method"], "--out", tmp_path / "m.heckesel", "--json"]
    shown = json.loads(run(capsys, "fit", *table, *given).out)
    assert shown["identification"] == hk.load(tmp_path / "m.heckesel").identification_.to_dict()
    if options["method"] == "auto":
        told = json.loads(run(capsys, "diagnose", *table, "--json").out)
        assert told["identification"] == shown["identification"]
