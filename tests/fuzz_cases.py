"""What the fuzzer does with its inputs: one strategy of (description, act) per area.

`act` returns where the input was handled well, and raises otherwise: `Wrong` for a result that
cannot be right, and whatever heckesel raised for the rest.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

import heckesel as hk
from heckesel.cli import main
from heckesel.saving import read_content, write_content
from heckesel.verdict.identify import VERDICTS
from tests import small_models
from tests.fuzz import Wrong
from tests.fuzz_arguments import ARGUMENTS
from tests.fuzz_tables import csv_files, tables
from tests.saving import small_classifiers


def right(holds, what: str) -> None:
    if not np.all(holds):
        raise Wrong(what)


def check_predictions(model, X) -> None:
    mean, std = model.predict(X, return_std=True)
    right(np.isfinite(mean), "a prediction is not finite")
    right(np.asarray(std) >= 0, "a standard deviation is negative or NaN")
    ends = np.asarray(model.predict_interval(X, level=0.8))
    right(ends[:, 0] <= ends[:, 1], "an interval ends before it begins")


def close(a: float, b: float) -> bool:
    """Log-likelihoods of the same optimum: where it is flat they agree though parameters differ.

    The climb stops at a gradient of 1e-8 or so; 1e-4 is a hundredth of what a test would notice.
    """
    return abs(a - b) <= 1e-4 + 1e-6 * abs(a)


def same_answer(model, X, y, change: str, rng) -> None:
    """What must not change the likelihood of the fit does not."""
    before, (n, selected) = model.result_.loglik, (len(y), y.notna().sum())
    kept, factor = model.get_params(), 1.0
    again = type(model)(**kept)
    if change == "permute":
        order = rng.permutation(n)
        again.fit(X.iloc[order].reset_index(drop=True), y.iloc[order].reset_index(drop=True))
    elif change == "duplicate":
        again.fit(pd.concat([X, X], ignore_index=True), pd.concat([y, y], ignore_index=True))
        weighted = type(model)(**kept).fit(X, y, sample_weight=np.full(n, 2.0))
        right(close(again.result_.loglik, weighted.result_.loglik), "weight 2 is not two rows")
        twice = again.result_.loglik / 2
        right(close(before, twice), f"{before} became {twice} where each row was there twice")
        return
    elif change == "shift":
        again.fit(X, y + 3 * float(y.std()))
    elif change == "scale":
        factor = 4.0
        again.fit(X, factor * y)
    else:
        names = {name: f"c{j}" for j, name in enumerate(X.columns)}
        kept["instruments"] = [names[each] for each in model.instruments or []]
        again = type(model)(**kept).fit(X.rename(columns=names), y)
    expected = before - selected * np.log(factor)
    found = again.result_.loglik
    right(close(expected, found), f"{change}: log-likelihood {expected} became {found}")


def regress(X, y, instruments, method, missing, change, seed) -> None:
    how = {"on_problem": "fix"} if missing == "fix" else {"missing": missing}
    model = hk.HeckmanRegressor(instruments, method=method, **how).fit(X, y)
    check_predictions(model, X)
    if missing == "fix":  # the number of rows decides what is rare
        return
    # two steps have no likelihood that is maximised, and an unfinished climb no optimum
    if method == "ml" and model.result_.status == "converged":
        same_answer(model, X, y, change, np.random.default_rng(seed))


def classify(X, y, instruments, missing, labels) -> None:
    how = {"on_problem": "fix"} if missing == "fix" else {"missing": missing}
    middle = y.median()
    classes = [None if np.isnan(each) else labels[int(each > middle)] for each in y]
    model = hk.HeckmanClassifier(instruments, **how)
    model.fit(X, pd.Series(classes, dtype=object))
    probability = model.predict_proba(X)
    right(np.isfinite(probability), "a probability is not finite")
    right(np.abs(probability.sum(axis=1) - 1) < 1e-9, "probabilities do not sum to one")
    right(np.isin(model.predict(X), labels), "a predicted class is none of those given")


def identify(X, y, instruments, missing) -> None:
    how = {"on_problem": "fix"} if missing == "fix" else {"missing": missing}
    found = hk.identify(X, y, instruments=instruments, **how)
    json.dumps(found.evidence, allow_nan=False)
    right(found.verdict in VERDICTS and found.sentence, "there is no such verdict")


def formulas(X, y, name, method) -> None:
    frame = X.assign(y=y) if "y" not in X.columns else X
    quoted = f"`{name}`"
    fit = hk.heckman(f"y ~ {quoted}", f"~ {quoted} + z", frame, method=method)
    fit.summary()
    json.dumps(fit.to_dict())
    right(np.isfinite(fit.predict(frame).mean), "a prediction is not finite")


# The table as something else that users have.
OTHERS = {
    "numpy": lambda X: X.to_numpy(),
    "list": lambda X: X.to_numpy().tolist(),
    "dict": lambda X: X.to_dict("list"),
    "series": lambda X: X.iloc[:, 0],
    "transposed": lambda X: X.T,
    "index": lambda X: X.set_index(pd.Index(["same"] * len(X))),
    "two indices": lambda X: X.set_index([X.columns[0], X.columns[-1]], drop=False),
    "deep names": lambda X: X.set_axis(
        pd.MultiIndex.from_tuples([("a", name) for name in X.columns]), axis=1
    ),
    "three axes": lambda X: X.to_numpy()[:, :, None],
    "sparse": lambda X: X.iloc[:, -1:].astype(pd.SparseDtype("float64", 0.0)),
    "polars": lambda X: pl.DataFrame({str(k): list(X[k]) for k in X.columns}, strict=False),
}


def other_table(X, y, kind) -> None:
    try:
        given = OTHERS[kind](X)
    except Exception:  # pandas or polars cannot hold it
        return
    model = hk.HeckmanRegressor(method="ml").fit(given, y)
    right(np.isfinite(np.asarray(model.predict(given), dtype=float)), "not finite")


@st.composite
def table_cases(draw):
    X, y, instruments = draw(tables())
    missing = draw(st.sampled_from(["error", "indicator", "fix"]))
    method = draw(st.sampled_from(["ml", "ml", "two-step"]))
    change = draw(st.sampled_from(["permute", "duplicate", "shift", "scale", "rename"]))
    labels = draw(st.sampled_from([(0, 1), ("no", "ü"), (False, True), (1.5, 2.5)]))
    act = draw(
        st.sampled_from(
            [
                partial(regress, X, y, instruments, method, missing, change, 0),
                partial(regress, X, y, instruments, "ml", missing, change, 1),
                partial(classify, X, y, instruments, missing, labels),
                partial(identify, X, y, instruments, missing),
                partial(formulas, X, y, draw(st.sampled_from(list(X.columns))), method),
                partial(other_table, X, y, draw(st.sampled_from(sorted(OTHERS)))),
            ]
        )
    )
    words = [act.func.__name__, *map(repr, act.args[2:]), repr(list(X.dtypes.items())), repr(X)]
    return "\n".join(words), act


def shell(*arguments) -> tuple[int, str]:
    """Exit code and standard output; an error is one line that begins with the program's name,
    after notes on how the table was read."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([str(each) for each in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    right(code in (0, 1, 2), f"exit code {code}")
    said = [line for line in err.getvalue().splitlines() if not line.startswith("note: ")]
    bad = code and not (len(said) == 1 and said[0].startswith("heckesel: "))
    right(not bad, f"exit code {code} with {err.getvalue()!r}")
    return code, out.getvalue()


class Refused(hk.DataError):
    """An exit code of 1 or 2 with its sentence, counted as a clean error."""


def in_shell(content, command, options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, model, out = (Path(folder, name) for name in ("t.csv", "m.heckesel", "p.csv"))
        data.write_bytes(content)
        if command == "diagnose":
            code, printed = shell("diagnose", data, "--outcome", "y", *options, "--json")
            if not code:
                json.loads(printed)
        else:
            linear = ("--method", "ml", "--out", model)
            code, _ = shell("fit", data, "--outcome", "y", *options, *linear)
            right(model.exists() == (not code), "a refused fit wrote a file, or a good one none")
            if not code:
                code, _ = shell("predict", model, data, "--out", out)
                # with exit code 1, the file says which rows could not be predicted
                right(code == 1 or out.exists() == (not code), "a refusal wrote a file")
                if not code:
                    predicted = pd.read_csv(out, sep=None, engine="python")
                    right(np.isfinite(predicted["mean"]), "a prediction is not finite")
    if code:
        raise Refused("refused with one sentence")


OPTIONS = st.sampled_from(
    [
        *[("--instruments", "z")] * 6,
        *[("--instruments", "z", "--missing", "indicator")] * 6,
        ("--instruments", "z", "--decimal", ","),
        ("--instruments", "z", "--delimiter", ";"),
        ("--instruments", "nothing"),
        ("--exclude", "g"),
        ("--selected", "g"),
        ("--weights", "x"),
        ("--kind", "classification"),
    ]
)


@st.composite
def csv_cases(draw):
    content, options = draw(csv_files()), draw(OPTIONS)
    command = draw(st.sampled_from(["fit", "fit", "diagnose"]))
    return f"{command} {options} of {content!r}", partial(in_shell, content, command, options)


@cache
def saved(name) -> bytes:
    kind, _, model = name.partition(" ")
    fitted = {"classifier": small_classifiers.fitted, "regressor": small_models.fitted}[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        fitted(model)[0].save(path)
        return path.read_bytes()


def load(content: bytes, edit) -> None:
    """Load it, and predict where that was allowed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        path.write_bytes(content)
        if edit is not None:
            whole, tensors = read_content(path)
            edit(whole)
            write_content(path, whole, tensors)
        model = hk.load(path)
    X = small_models.X
    predicted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    right(np.isfinite(np.asarray(predicted, dtype=float)), "a prediction is not finite")
    repr(model), str(model.identification_)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just({"$float": "nan"}),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[1.0]]),
    st.just({"$tensor": "0"}),
    st.just({"$tuple": [1.0]}),
    st.just({"$object": "heckesel.data:RowSummary", "fields": {}}),
)


def edited(steps, value, delete):
    """An edit of a file's content: walk down by `steps`, then set or delete what is there."""

    def edit(content):
        place, key = None, None
        for step in steps:
            target = content if place is None else place[key]
            keys = list(target) if isinstance(target, dict) else range(_length(target))
            if not len(keys):
                break
            place, key = target, keys[step % len(keys)]
        if delete and isinstance(place, dict | list):
            del place[key]
        else:
            place[key] = value

    return edit


def _length(target) -> int:
    return len(target) if isinstance(target, list) else 0


@st.composite
def file_cases(draw):
    names = ["regressor linear", "regressor two-step", "regressor joint", "classifier linear"]
    name = draw(st.sampled_from(names))
    content = saved(name)
    if draw(st.booleans()):
        steps, value = draw(st.lists(st.integers(0, 99), min_size=1, max_size=12)), draw(JUNK)
        delete = draw(st.integers(0, 3)) == 0
        what = f"{name}: at {steps} {'delete' if delete else repr(value)}"
        return what, partial(load, content, edited(steps, value, delete))
    damaged = bytearray(content)
    for share, new in draw(st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=9)), min_size=1)):
        place = int(share**3 * len(damaged))  # most of the rest are the numbers of tensors
        damaged[place : place + draw(st.integers(0, 9))] = new
    return f"{name}: bytes {bytes(damaged[:200])!r}", partial(load, bytes(damaged), None)


AREAS = {
    "tables": table_cases(),
    "csv": csv_cases(),
    "arguments": ARGUMENTS,
    "files": file_cases(),
}
