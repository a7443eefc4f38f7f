"""Bad input gets one sentence that names the column, row or value and the way out."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from reproduction.e0_gate import draw_linear

GOOD = draw_linear(200, rho=0.5, seed=31)
NOBODY = GOOD.assign(y=np.nan)
CHOSEN = GOOD.index[GOOD.y.notna()]


def changed(column, row, value):
    frame = GOOD.copy()
    frame[column] = frame[column].astype(object) if isinstance(value, str) else frame[column]
    frame.loc[row, column] = value
    return frame


def fit(outcome="y ~ x", select="~ x + z", data=GOOD, **options):
    return lambda: hk.heckman(outcome, select, data, **options)


def fit_arrays(**changes):
    given = {"y": GOOD.y, "x": GOOD[["x"]], "w": GOOD[["x", "z"]]} | changes
    return lambda: hk.heckman(**given)


THRESHOLD = GOOD.assign(t=np.where(GOOD.y.notna(), 1 + GOOD.x**2, -1 - GOOD.x**2))
TOGETHER = GOOD.assign(a=GOOD.x + 3 * GOOD.y.notna(), b=GOOD.x)

CASES = {
    "no selected unit": (fit(data=NOBODY), "'y' is missing in all 200 rows"),
    "y infinite": (fit(data=changed("y", CHOSEN[2], np.inf)), f"'y' is inf in row {CHOSEN[2]}"),
    "log of zero": (
        fit("np.log(y) ~ x", data=GOOD.assign(y=GOOD.y.abs().where(GOOD.index != CHOSEN[0], 0.0))),
        f"is -inf in row {CHOSEN[0]}",
    ),
    "constant column": (
        fit("y ~ x + c", data=GOOD.assign(c=3.0)),
        "'c' is constant (3) among the",
    ),
    "linear combination": (
        fit(select="~ x + z + both", data=GOOD.assign(both=GOOD.x + GOOD.z)),
        "'both' is a linear combination of 'x', 'z'",
    ),
    "perfect prediction beyond a threshold": (
        fit(select="~ x + t", data=THRESHOLD),
        "'t' predicts selection perfectly (every row on one side of t",
    ),
    "perfect prediction by two columns": (
        fit("y ~ z", select="~ a + b", data=TOGETHER),
        "'a', 'b' together predict selection perfectly",
    ),
    "no rows": (fit(data=GOOD.iloc[:0]), "data has no rows"),
    "strings in a number column": (
        fit(data=changed("x", 4, "seven")),
        "'x' should hold numbers but has values such as 'seven'",
    ),
    "duplicate names": (
        fit(data=pd.concat([GOOD, GOOD[["x"]]], axis=1)),
        "'x' appears twice in data",
    ),
    "instrument in the outcome": (
        fit("y ~ x + z", instruments=["z"]),
        "'z' is also in the outcome equation",
    ),
    "negative weight": (
        fit(weights=np.where(GOOD.index == 5, -1.0, 1.0)),
        "not negative, but row 5 has -1",
    ),
    "all weights zero": (fit(weights=np.zeros(200)), "all weights are zero"),
    "fractional frequency": (fit(weights=np.full(200, 0.5)), "use weight_kind='probability'"),
    "too few weights": (fit(weights=np.ones(7)), "weights have shape (7,)"),
    "formula that does not parse": (
        fit("y ~ x +* z"),
        "the outcome formula 'x +* z' cannot be read",
    ),
    "formula without tilde": (fit("y x"), "needs a right-hand side"),
    "column that is not there": (fit("y ~ ex"), "there is no column 'ex' in the data"),
    "indicator neither 0 nor 1": (
        fit(select="s ~ x + z", data=GOOD.assign(s=np.where(GOOD.y.notna(), 2, 0))),
        "selected must be 0 or 1",
    ),
    "selected without an outcome": (
        fit(select="s ~ x + z", data=GOOD.assign(s=1)),
        "selected rows have no outcome 'y'",
    ),
    "more columns than selected rows": (
        fit_arrays(
            y=GOOD.y.iloc[:9],
            x=np.random.default_rng(0).normal(size=(9, 8)),
            w=GOOD[["x", "z"]].iloc[:9],
        ),
        "selected rows cannot determine 9 outcome coefficients",
    ),
    "regressor beyond floating point": (
        fit(data=GOOD.assign(x=1e200 * GOOD.x)),
        "beyond 1e100",
    ),
    "regressor below floating point": (
        fit(data=GOOD.assign(x=1e-200 * GOOD.x)),
        "in size",
    ),
    "dates": (
        fit("y ~ x + d", data=GOOD.assign(d=pd.date_range("2020", periods=200))),
        "'d' holds dates",
    ),
    "formula that raises": (
        fit("y ~ x + np.linalg.inv(x)"),
        "cannot be evaluated",
    ),
    "outcome explained exactly": (
        fit(data=GOOD.assign(y=2 * GOOD.x.where(GOOD.y.notna()))),
        "'y' is an exact linear function of its columns",
    ),
    "Mills ratio that does not vary": (
        fit(select="~ 1", method="two-step"),
        "the inverse Mills ratio is a linear combination of 'Intercept'",
    ),
    "no replicates": (
        lambda: fit(method="two-step")().bootstrap(0),
        "replicates must be positive",
    ),
    "selected not known": (
        fit(selected=pd.Series([pd.NA, *[True] * 199], dtype="boolean")),
        "selected must be 0 or 1 but row 0 holds nan",
    ),
    "outcome beyond floating point": (fit(data=GOOD.assign(y=1e160 * GOOD.y)), "rescale it"),
    "prediction from text": (
        lambda: fit()().predict(GOOD.assign(x="a")),
        "'x' was a number in the fit and is a category now",
    ),
    "rows that do not match": (fit_arrays(x=GOOD[["x"]].iloc[:50]), "x has 50 rows but w has 200"),
    "unknown method": (fit(method="mle"), "method must be 'ml' or 'two-step', got 'mle'"),
    "information under probability weights": (
        fit(weights=np.full(200, 0.5), weight_kind="probability", covariance="information"),
        "is not valid with probability weights",
    ),
    "cluster without clusters": (fit(covariance="cluster"), "go together"),
    "one cluster": (fit(groups=np.zeros(200)), "all rows are in one group"),
    "data of an unknown kind": (fit(data=[1, 2, 3]), "must be a pandas or polars frame"),
    "half a call": (lambda: hk.heckman(y=GOOD.y, x=GOOD[["x"]]), "pass two formulas and a frame"),
    "unknown target": (lambda: fit()().predict(target="all"), "target must be one of"),
    "impossible level": (
        lambda: fit()().interval("rho", level=95),
        "level must lie between 0 and 1",
    ),
    "probit of three values": (
        lambda: hk.probit("k ~ x", GOOD.assign(k=GOOD.index % 3)),
        "'k' must be 0 or 1 but row 2 holds 2",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named_in_one_sentence(name):
    call, fragment = CASES[name]
    with pytest.raises(hk.HeckeselError) as caught:
        call()
    message = str(caught.value)
    assert fragment in message
    assert "\n" not in message
    assert isinstance(caught.value, ValueError)
