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


LEVELS = GOOD.assign(g=np.where(GOOD.y.notna(), "a", np.where(GOOD.index % 2, "a", "b")))
ONE_SIDED = GOOD.assign(d=(GOOD.y.notna() & (GOOD.index % 3 == 0)).astype(float))
THRESHOLD = GOOD.assign(t=np.where(GOOD.y.notna(), 1 + GOOD.x**2, -1 - GOOD.x**2))
TOGETHER = GOOD.assign(a=GOOD.x + 3 * GOOD.y.notna(), b=GOOD.x)

CASES = {
    "no selected unit": (fit(data=NOBODY), "'y' is missing in all 200 rows"),
    "no selected unit by indicator": (
        fit(select="s ~ x + z", data=GOOD.assign(s=0)),
        "no row is selected",
    ),
    "y infinite": (fit(data=changed("y", CHOSEN[2], np.inf)), f"'y' is inf in row {CHOSEN[2]}"),
    "log of zero": (
        fit("np.log(y) ~ x", data=GOOD.assign(y=GOOD.y.abs().where(GOOD.index != CHOSEN[0], 0.0))),
        f"is -inf in row {CHOSEN[0]}",
    ),
    "constant column": (
        fit("y ~ x + c", data=GOOD.assign(c=3.0)),
        "'c' is constant (3) among the",
    ),
    "constant selection column": (
        fit(select="~ x + z + c", data=GOOD.assign(c=3.0)),
        "'c' is constant (3) over all 200 rows",
    ),
    "two equal columns": (
        fit("y ~ x + copy", data=GOOD.assign(copy=GOOD.x)),
        "columns 'x' and 'copy' are equal",
    ),
    "linear combination": (
        fit(select="~ x + z + both", data=GOOD.assign(both=GOOD.x + GOOD.z)),
        "'both' is a linear combination of 'x', 'z'",
    ),
    "category empty among the selected": (
        fit("y ~ x + g", data=LEVELS),
        "'g[T.b]' is constant (0) among the",
    ),
    "perfect prediction by a dummy": (
        fit(select="~ x + d", data=ONE_SIDED),
        "'d' predicts selection perfectly (every row with d = ",
    ),
    "perfect prediction beyond a threshold": (
        fit(select="~ x + t", data=THRESHOLD),
        "'t' predicts selection perfectly (every row on one side of t",
    ),
    "perfect prediction by two columns": (
        fit("y ~ z", select="~ a + b", data=TOGETHER),
        "'a', 'b' together predict selection perfectly",
    ),
    "a single row": (fit(data=GOOD.iloc[[int(CHOSEN[0])]]), "the data has 1 rows"),
    "no rows": (fit(data=GOOD.iloc[:0]), "data has no rows"),
    "strings in a number column": (
        fit(data=changed("x", 4, "seven")),
        "'x' should hold numbers but has values such as 'seven'",
    ),
    "strings in the outcome": (
        fit(data=changed("y", 4, "seven")),
        "'y' must hold numbers but row 4 holds 'seven'",
    ),
    "duplicate names": (
        fit(data=pd.concat([GOOD, GOOD[["x"]]], axis=1)),
        "'x' appears twice in data",
    ),
    "duplicate names in w": (
        fit_arrays(w=pd.concat([GOOD[["x"]], GOOD[["x"]]], axis=1)),
        "'x' appears twice",
    ),
    "instrument in the outcome": (
        fit("y ~ x + z", instruments=["z"]),
        "'z' is also in the outcome equation",
    ),
    "instrument not in the selection": (
        fit(select="~ x", instruments="z"),
        "'z' is not in the selection equation",
    ),
    "negative weight": (
        fit(weights=np.where(GOOD.index == 5, -1.0, 1.0)),
        "not negative, but row 5 has -1",
    ),
    "all weights zero": (fit(weights=np.zeros(200)), "all weights are zero"),
    "no weight on the selected": (
        fit(weights=GOOD.y.isna().astype(float).to_numpy()),
        "all selected rows have weight zero",
    ),
    "no weight on the unselected": (
        fit(weights=GOOD.y.notna().astype(float).to_numpy()),
        "all unselected rows have weight zero",
    ),
    "fractional frequency": (fit(weights=np.full(200, 0.5)), "use weight_kind='probability'"),
    "too few weights": (fit(weights=np.ones(7)), "weights have shape (7,)"),
    "formula that does not parse": (
        fit("y ~ x +* z"),
        "the outcome formula 'x +* z' cannot be read",
    ),
    "formula without tilde": (fit("y x"), "needs a right-hand side"),
    "formula without outcome": (fit("~ x"), "needs a left-hand side"),
    "formula that is no text": (fit(7), "must be a formula"),
    "column that is not there": (fit("y ~ ex"), "there is no column 'ex' in the data"),
    "column misspelt": (
        fit("y ~ wage_houry", data=GOOD.assign(wage_hourly=GOOD.x)),
        "did you mean 'wage_hourly'?",
    ),
    "outcome explains itself": (fit("y ~ x + y"), "'y' is also on the right-hand side"),
    "outcome not there": (fit("wage ~ x"), "there is no column 'wage'"),
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
    "infinite regressor": (fit(data=changed("z", 3, np.inf)), "row 3) have no usable value in 'z'"),
    "regressor beyond floating point": (
        fit(data=GOOD.assign(x=1e200 * GOOD.x)),
        "beyond 1e100",
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
    "constant outcome": (
        fit(data=GOOD.assign(y=GOOD.y.where(GOOD.y.isna(), 3.0))),
        "'y' is an exact linear function of its columns",
    ),
    "Mills ratio that does not vary": (
        fit(select="~ 1", method="two-step"),
        "the inverse Mills ratio is a linear combination of 'Intercept'",
    ),
    "formula with two parts": (fit("y ~ x | z"), "more than one part"),
    "no replicates": (
        lambda: fit(method="two-step")().bootstrap(0),
        "replicates must be positive",
    ),
    "instruments that are no names": (fit(instruments=5), "must be a name or a list of names"),
    "selected of another length": (fit(selected=[1, 0]), "selected has shape (2,)"),
    "selected not known": (
        fit(selected=pd.Series([pd.NA, *[True] * 199], dtype="boolean")),
        "selected must be 0 or 1 but row 0 holds nan",
    ),
    "cluster not known": (
        fit(groups=np.array([pd.NA, *"ab" * 100][:200], dtype=object)),
        "groups have missing values",
    ),
    "three dimensions": (fit_arrays(x=np.zeros((200, 1, 1))), "got shape (200, 1, 1)"),
    "outcome beyond floating point": (fit(data=GOOD.assign(y=1e160 * GOOD.y)), "rescale it"),
    "prediction from a single number": (
        lambda: fit()().predict({"x": 1.0, "z": 2.0}),
        "pass each column as a list",
    ),
    "prediction from text": (
        lambda: fit()().predict(GOOD.assign(x="a")),
        "'x' was a number in the fit and is a category now",
    ),
    "prediction at infinity": (
        lambda: fit()().predict(GOOD.assign(z=np.inf), target="selected"),
        "have no usable value in 'z'",
    ),
    "rows that do not match": (fit_arrays(x=GOOD[["x"]].iloc[:50]), "x has 50 rows but w has 200"),
    "y of another length": (fit_arrays(y=GOOD.y.iloc[:50]), "x has 200 rows but y has 50"),
    "y with two columns": (fit_arrays(y=GOOD[["y", "z"]]), "'y' must be one column"),
    "unknown method": (fit(method="mle"), "method must be 'ml' or 'two-step', got 'mle'"),
    "unknown covariance": (fit(covariance="hc3"), "covariance must be one of"),
    "information under probability weights": (
        fit(weights=np.full(200, 0.5), weight_kind="probability", covariance="information"),
        "is not valid with probability weights",
    ),
    "cluster without clusters": (fit(covariance="cluster"), "go together"),
    "one cluster": (fit(groups=np.zeros(200)), "all rows are in one group"),
    "clusters of another length": (fit(groups=np.zeros(3)), "groups have shape (3,)"),
    "missing cluster": (
        fit(groups=np.where(GOOD.index == 1, np.nan, GOOD.index % 5)),
        "groups have missing values",
    ),
    "no data": (fit(data=None), "formulas need data="),
    "data of an unknown kind": (fit(data=[1, 2, 3]), "must be a pandas or polars frame"),
    "half a call": (lambda: hk.heckman(y=GOOD.y, x=GOOD[["x"]]), "pass two formulas and a frame"),
    "no selection formula": (
        lambda: hk.heckman("y ~ x", data=GOOD),
        "the selection formula is missing",
    ),
    "unknown target": (lambda: fit()().predict(target="all"), "target must be one of"),
    "impossible level": (
        lambda: fit()().interval("rho", level=95),
        "level must lie between 0 and 1",
    ),
    "unknown quantile": (lambda: fit()().predict().quantile(1.0), "must lie between 0 and 1"),
    "probit of three values": (
        lambda: hk.probit("k ~ x", GOOD.assign(k=GOOD.index % 3)),
        "'k' must be 0 or 1 but row 2 holds 2",
    ),
    "probit of one value": (
        lambda: hk.probit("k ~ x", GOOD.assign(k=1)),
        "'k' is 1 in every row",
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
