"""on_problem="fix": what columns are, what is done with them, and that it changes nothing else."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.values import RawKind, raw_kind
from tests.tables.messy_tables import clinical

N = 600


def drawn(n=N):
    draw = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=3).frame
    return draw[["x", "z"]], draw["y"]


def fixed(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hk.HeckmanRegressor(["z"], method="ml", on_problem="fix", **options).fit(X, y)


def strict(X, y):
    return hk.HeckmanRegressor(["z"], method="ml").fit(X, y)


def action(model, column):
    return next(entry.action for entry in model.columns_.entries if entry.name == column)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2.0, np.nan], RawKind("number")),
        (["1.5", " 2 ", None], RawKind("number")),
        (["$1,200.00", "$85.00", "$3"], RawKind("number")),
        (["95%", "100 %", "7%"], RawKind("number")),
        (["12"] * 20 + ["?", "unknown"], RawKind("number", gaps=("?", "unknown"))),
        (["12"] * 5 + ["about"], RawKind("category", code="about")),  # a sixth of the values
        (["12", "7", "-", "-", "-"], RawKind("number", gaps=("-",))),
        (["0.5", "#DIV/0!"], RawKind("number", gaps=("#DIV/0!",))),
        (["-", "?"], RawKind("category")),
        (["-$5", "($1,300)", "12.50 €"], RawKind("number")),
        (["1 200", "1'200", "7"], RawKind("number")),
        (["0,123", "1,456"], RawKind("category", code="0,123")),  # no thousands
        (["2013-01", "2014-12"], RawKind("date")),
        ([20130131, 20140201], RawKind("date")),
        (["20130131", "20140201"], RawKind("date")),
        ([20130131, 20130132], RawKind("number")),
        (["250", "414", "V57"] * 9, RawKind("category", code="V57")),
        (["007", "010", "123"], RawKind("category", code="007")),
        (["a", "b"], RawKind("category")),
        ([True, False], RawKind("category")),
        ([True, None], RawKind("category")),
        (pd.Categorical(["low", "high"], ["low", "high"], ordered=True), RawKind("ordered")),
        (["2013-01-31", "2013-02-01T05:00:00Z"], RawKind("date")),
        (["1/2/2013", "31/1/2013"], RawKind("date", day_first=True)),
        (["1/2/2013", "1/31/2013"], RawKind("date")),
        (["3 Jan 2013", "14 March 2013"], RawKind("date")),
        (pd.date_range("2020", periods=2), RawKind("date")),
        ([None, np.nan], RawKind("empty")),
        (["", " "], RawKind("empty")),
        ([[1], [2]], RawKind("unreadable")),
        ([1 + 2j, 1j], RawKind("unreadable")),
    ],
)
def test_the_kind_of_a_column(values, kind):
    assert raw_kind(pd.Series(values)) == kind


def test_a_table_without_problems_is_fitted_as_before():
    X, y = drawn()
    X = X.assign(kind=np.resize(["a", "b", "c"], N))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", hk.IdentificationWarning)  # the outcome is curved in x
        model = hk.HeckmanRegressor(["z"], method="ml", on_problem="fix").fit(X, y)
    assert model.columns_.actions == ()
    expected = strict(X, y)
    pd.testing.assert_series_equal(model.result_.params, expected.result_.params)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    array = X[["x", "z"]].to_numpy()
    by_position = hk.HeckmanRegressor([1], method="ml", on_problem="fix").fit(array, y)
    np.testing.assert_array_equal(by_position.predict(array), strict(X[["x", "z"]], y).predict(X))


def test_columns_that_add_nothing_are_omitted_and_the_fit_is_that_of_the_others():
    X, y = drawn()
    messy = X.assign(
        year=2020,
        again=X["x"],
        scaled=3 * X["x"] - 1,
        row=np.arange(N),
        student=100 + 2 * np.arange(N)[::-1],
        double=np.where(y.isna(), 0.0, 2 * y),
        inverse=np.where(y.isna(), 0.0, np.exp(-y)),
        name=[f"unit {j}" for j in range(N)],
        empty=np.nan,
        status=np.where(y.isna(), "refused", "granted"),
        result=y.where(y.isna(), 1.0 + X["z"]),
    )
    model = fixed(messy, y)
    pd.testing.assert_series_equal(model.result_.params, strict(X, y).result_.params)
    assert list(model.columns_.names) == ["x", "z"]
    assert list(model.feature_names_in_) == list(messy.columns)
    for column, said in {
        "year": "it is constant (2020)",
        "again": "it equals x",
        "scaled": "it is a linear combination of x",
        "row": "its values are row numbers or unit names",
        "student": "its values are row numbers or unit names",
        "double": "it is the outcome or determines it in the selected rows",
        "inverse": "it is the outcome or determines it in the selected rows",
        "name": "it has 600 different strings in 600 rows",
        "empty": "it has no value",
        "status": f"it is constant among the {y.notna().sum()} selected rows",
        "result": "it is missing in no selected row and in 100 % of the unselected rows, so it is "
        "a consequence of selection",
    }.items():
        assert action(model, column) == f"omitted, since {said}"


def test_rare_and_separating_levels_are_pooled_and_unseen_ones_join_them():
    X, y = drawn()
    kind = np.resize(["a", "b"], N).astype(object)
    kind[:4] = "rare"
    kind[np.flatnonzero(y.isna())[-40:]] = "refused"  # no selected row
    kind[np.flatnonzero(y.notna())[-40:]] = "granted"
    X = X.assign(kind=kind)
    model = fixed(X, y)
    (step,) = (each for each in model.columns_.steps if each.name == "kind")
    assert step.levels == ("a", "b", "other")
    assert set(step.pooled) == {"rare", "granted", "refused"}
    rows = X.head(3).assign(kind=["refused", "new", "rare"], x=0.0)
    with pytest.warns(UserWarning, match="kind: 1 row has a level that did not occur in the fit"):
        mean = model.predict(rows)
    assert len(np.unique(mean)) == 1
    assert action(model, "kind") == (
        "3 rare levels (granted, rare, refused; 84 rows) treated as other"
    )


def test_gaps_are_imputed_by_the_mean_with_or_without_gaps_in_the_fit():
    X, y = drawn()
    holes = X.assign(x=X["x"].where(np.arange(N) % 5 > 0))
    model = fixed(holes, y)
    assert action(model, "x") == "120 missing values imputed by the mean, with a missing indicator"
    expected = hk.HeckmanRegressor(["z"], method="ml", missing="indicator").fit(holes, y)
    assert model.result_.loglik == pytest.approx(expected.result_.loglik, abs=1e-9)
    np.testing.assert_allclose(model.predict(holes), expected.predict(holes), rtol=1e-9)
    whole = fixed(X, y)
    gap = X.head(1).assign(x=np.nan)
    with pytest.warns(UserWarning, match="1 row has no value in the columns of the prediction"):
        mean = whole.predict(gap)[0]
    assert mean == pytest.approx(whole.predict(gap.assign(x=X["x"].mean()))[0])


def test_a_date_is_a_trend_a_month_and_a_weekday():
    X, y = drawn()
    days = pd.date_range("2018-01-01", periods=N, freq="D")
    model = fixed(X.assign(day=days.strftime("%d.%m.%Y")), y)
    by_hand = X.assign(trend=np.arange(N) / 365.25, month=days.month, weekday=days.day_of_week)
    by_hand = by_hand.astype({"month": "category", "weekday": "category"})
    expected = strict(by_hand, y)
    assert model.result_.loglik == pytest.approx(expected.result_.loglik, abs=1e-6)
    found = fixed(X.assign(day=days), y)  # as dates of pandas
    assert found.result_.loglik == pytest.approx(model.result_.loglik, abs=1e-9)


def test_many_levels_are_the_forty_most_frequent_and_other():
    rng = np.random.default_rng(1)
    n, agents = 8000, rng.normal(size=200)
    agent = np.minimum(rng.geometric(0.02, n) - 1, 199)
    x, z, u = rng.normal(size=(3, n))
    s = x + z + u > 0
    y = np.where(s, 1 + x + agents[agent] + 0.5 * u, np.nan)
    X = pd.DataFrame({"x": x, "z": z, "agent": [f"a{j:03}" for j in agent]})
    model = fixed(X, y)
    (step,) = (each for each in model.columns_.steps if each.name == "agent")
    common = X["agent"].value_counts().index[:40]
    assert step.levels == (*sorted(common), "other")
    assert action(model, "agent").startswith(f"{X['agent'].nunique() - 40} rare levels (")
    assert model.coef_[0] == pytest.approx(1.0, abs=0.1)
    by_hand = X.assign(agent=X["agent"].where(X["agent"].isin(common), "other"))
    expected = strict(by_hand, y)
    assert model.result_.loglik == pytest.approx(expected.result_.loglik, abs=1e-8)
    unseen = X.head(1).assign(agent="b")
    with pytest.warns(UserWarning, match="agent: 1 row has a level"):
        mean = model.predict(unseen)
    np.testing.assert_allclose(mean, expected.predict(unseen.assign(agent="other")), rtol=1e-9)


def test_functions_of_other_columns_are_found_in_the_rows_that_have_them():
    """Imputed values would hide them."""
    X, y = drawn()
    rng = np.random.default_rng(5)
    holes = [rng.random(N) < share for share in (0.05, 0.15, 0.1, 0.1)]
    a, b = rng.normal(size=(2, N))
    town = np.resize(["k1", "k2", "m1", "m2", "m3"], N).astype(object)
    messy = X.assign(
        a=a,
        b=np.where(holes[0], np.nan, b),
        total=np.where(holes[1], np.nan, 2 * a - b + 3),
        inches=np.where(holes[2], np.nan, a / 2.54),
        town=np.where(holes[3], None, town),
        region=[each[0] if not hole else None for each, hole in zip(town, holes[1], strict=True)],
    )
    report = hk.column_report(messy, y, instruments=["z"])
    actions = dict(action.split(": ", 1) for action in report.actions)
    assert actions["inches"] == (
        "omitted, since it is a linear combination of a in the rows that have both"
    )
    assert actions["total"].startswith("omitted, since it is a linear combination of a, b in")
    assert actions["region"].startswith("omitted, since it is determined by town in")
    assert not {"a", "x", "z"} & set(actions)
    assert "omitted" not in actions["b"] + actions["town"]


@pytest.mark.parametrize(
    ("inside", "outside", "flagged"),
    [
        (0.02, 0.97, True),
        (0.0, 0.6, True),
        (0.95, 0.03, True),
        (0.02, 0.6, False),
        (0.5, 0.9, False),
    ],
)
def test_columns_whose_gaps_repeat_selection_are_consequences_of_it(inside, outside, flagged):
    X, y = drawn(4000)
    rng = np.random.default_rng(7)
    hole = rng.random(4000) < np.where(y.notna(), inside, outside)
    messy = X.assign(rate=np.where(hole, np.nan, rng.normal(size=4000)))
    report = hk.column_report(messy, y, instruments=["z"])
    (said,) = (each for each in report.actions if each.startswith("rate: "))
    assert ("so it is a consequence of selection" in said) == flagged
    assert said.startswith("rate: omitted") == flagged


@pytest.mark.slow
def test_eight_hundred_columns_are_judged_within_seconds():
    """788 columns of a clinical table: 5 s of computing here, 20 s at most."""
    frame = clinical(5000, groups=98)
    X, y = frame.drop(columns="stay"), frame["stay"]
    started = time.process_time()
    report = hk.column_report(X, y, instruments=["distance"])
    assert time.process_time() - started < 20
    said = dict(each.split(": ", 1) for each in report.actions)
    assert sum("linear combination" in each for each in said.values()) == 2 * 98
    assert sum("999 (" in each for each in said.values()) == 98
    assert said["lab97_total"].startswith("omitted, since it is a linear combination of lab97_")


def test_levels_with_commas_are_quoted_and_a_determined_instrument_has_a_way_out():
    X, y = drawn()
    kind = pd.Series(np.where(np.arange(N) < 4, "loss, theft", "other kinds"))
    kind[10:300] = "theft"
    report = hk.column_report(X.assign(kind=kind), y, instruments=["z"])
    assert any("rare level ('loss, theft'; 4 rows)" in each for each in report.actions)
    with pytest.raises(hk.DataError, match=r"equals z.*; exclude the columns that determine it"):
        hk.HeckmanRegressor(["copy"], on_problem="fix").fit(X.assign(copy=X["z"]), y)


def test_the_only_instrument_is_never_omitted_and_another_not_in_silence():
    X, y = drawn()
    X = X.assign(code=[f"unit {j}" for j in range(N)])
    with pytest.raises(hk.DataError, match=r"no instrument can be used \(code: omitted, since it"):
        hk.HeckmanRegressor(["code"], on_problem="fix", method="ml").fit(X, y)
    two = hk.HeckmanRegressor(["z", "code"], method="ml", on_problem="fix")
    with pytest.warns(UserWarning, match="code: omitted, since it has 600 different strings"):
        two.fit(X, y)
    report = hk.column_report(X, y, instruments=["code"])
    assert report.error.startswith("no instrument can be used")
    with pytest.raises(hk.DataError, match="no column is left to predict the outcome from"):
        hk.HeckmanRegressor(["z"], on_problem="fix", method="ml").fit(X[["code", "z"]], y)


def test_an_error_lists_all_problems_at_once():
    X, y = drawn()
    messy = X.assign(year=2020, again=X["x"], gap=X["x"].where(X.index > 9) ** 2)
    for call in (
        lambda: hk.HeckmanRegressor(["z"], method="ml").fit(messy, y),
        lambda: hk.identify(messy, y, instruments=["z"]),
    ):
        with pytest.raises(hk.DataError, match=r"column 'gap' is missing") as caught:
            call()
        assert "would act on 3 columns" in str(caught.value)
        for said in ("year: omitted", "again: omitted", "gap: 10 missing values"):
            assert said in str(caught.value)
    with pytest.raises(hk.DataError, match=r"drop it$"):  # a single one is as before
        hk.HeckmanRegressor(["z"], method="ml").fit(X.assign(year=2020), y)


@pytest.mark.parametrize("value", ["drop", None, pd.NA, pd.DataFrame()], ids=repr)
def test_another_value_of_on_problem_is_refused(value):
    X, y = drawn()
    with pytest.raises(hk.DataError, match="on_problem must be 'error' or 'fix'"):
        hk.HeckmanRegressor(["z"], on_problem=value, method="ml").fit(X, y)


def reported(X, y, **columns):
    report = hk.column_report(X.assign(**columns), y, instruments=["z"])
    return dict(each.split(": ", 1) for each in report.actions)


def test_columns_that_determine_the_outcome_are_omitted():
    X, y = drawn()
    rng = np.random.default_rng(11)
    base, noise = rng.uniform(1, 9, N), rng.normal(size=N)
    grade = y.clip(-1, 1).round()
    letter = grade.fillna(pd.Series(rng.integers(-1, 2, N))).map(
        {-1: "low", 0: "middle", 1: "high"}
    )
    said = reported(
        X,
        grade,
        base=base,
        share=(grade + 9).fillna(9.0) / base,
        near=y.fillna(0.0) + noise,
        letter=letter,
    )
    assert said == {
        "share": "omitted, since the outcome can be computed from its product with base",
        "letter": "omitted, since it is the outcome or determines it in the selected rows",
    }


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (lambda rng: rng.integers(300, 850, N), -1),
        (lambda rng: rng.integers(0, 21, N), 99),
        (lambda rng: rng.uniform(0, 120, N), 999),
        (lambda rng: rng.integers(1950, 2015, N), 0),
    ],
)
def test_codes_of_missing_numbers_are_found(values, code):
    X, y = drawn()
    rng = np.random.default_rng(12)
    known, gaps = values(rng), rng.random(N) < 0.1
    coded = X.assign(score=np.where(gaps, code, known))
    said = reported(coded, y)["score"]
    assert said.startswith(f"{code} ({gaps.sum()} rows) taken for a missing value; {gaps.sum()} ")
    assert said.endswith("imputed by the mean, with a missing indicator")
    expected = fixed(X.assign(score=np.where(gaps, np.nan, known)), y)
    model = fixed(coded, y)
    np.testing.assert_array_equal(model.predict(coded), expected.predict(coded.mask(coded == code)))


@pytest.mark.parametrize(
    "values",
    [
        lambda rng: rng.integers(-3, 30, N),  # degrees
        lambda rng: rng.integers(18, 100, N),  # an age of 99
        lambda rng: rng.poisson(0.5, N),
        lambda rng: np.where(rng.random(N) < 0.4, 0, rng.integers(200, 4000, N)),  # earnings
        lambda rng: rng.integers(-1, 2, N),
        lambda rng: rng.normal(size=N).round(1),
    ],
)
def test_numbers_that_belong_to_their_range_are_kept(values):
    X, y = drawn()
    assert reported(X, y, number=values(np.random.default_rng(13))) == {}


@pytest.mark.parametrize(
    ("name", "is_code"),
    [
        *((name, True) for name in ("zip", "post_code", "villnum", "schoolid1", "region", "dcode")),
        *((name, True) for name in ("STATE_CD", "race", "county.fips", "branch_no")),
        *(
            (name, False)
            for name in ("rooms", "price", "stateless", "number", "decoder", "raceway")
        ),
    ],
)
def test_codes_of_places_and_kinds_are_categories(name, is_code):
    X, y = drawn()
    said = reported(X, y, **{name: np.random.default_rng(14).integers(1, 6, N)})
    assert list(said) == [name] * is_code
    assert all(each.startswith("codes such as") for each in said.values())


def test_missing_values_that_reveal_selection_are_questioned():
    X, y = drawn(4000)
    rng = np.random.default_rng(15)
    hole = rng.random(4000) < np.where(y.notna(), 0.2, 0.7)
    rate = pd.Series(rng.normal(size=4000)).mask(hole)
    shares = "it is missing in 20 % of the selected rows and in 70 % of the unselected rows: "
    said = reported(X, y, rate=rate)["rate"]
    assert said.endswith(f"{shares}drop it if it is recorded only after selection")
    report = hk.column_report(X.assign(rate=rate), y, instruments=["z", "rate"])
    assert report.actions[0].endswith(f"{shares}as an instrument it is doubtful")


def test_a_table_with_more_columns_than_rows_cannot_be_used():
    rng = np.random.default_rng(17)
    X = pd.DataFrame(rng.normal(size=(40, 60))).add_prefix("c")
    y = np.where(X["c0"] + X["c1"] > 0, X["c2"], np.nan)
    report = hk.column_report(X, y + rng.normal(size=40), instruments=["c1"])
    assert "selected rows cannot determine" in report.error
