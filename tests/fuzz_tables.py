"""Messy tables for the fuzzer: frames, arrays and CSV files."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
TEXT = st.text(max_size=4)
MIXED = st.one_of(st.none(), NUMBERS, TEXT, st.booleans(), st.integers(), st.binary(max_size=3))
# What a column of n values may be: strategies for its values and what is done to them.
COLUMNS = {
    "numbers": (NUMBERS, pd.Series),
    "gaps": (st.one_of(st.none(), NUMBERS), pd.Series),
    "any float": (ANY_FLOAT, pd.Series),
    "float32": (NUMBERS, lambda v: pd.Series(v, dtype="float32")),
    "Int64": (
        st.one_of(st.none(), st.integers(-5, 5)),
        lambda v: pd.Series(v, dtype="Int64"),
    ),
    "uint64": (st.integers(0, 2**64 - 1), lambda v: pd.Series(v, dtype="uint64")),
    "whole": (st.integers(-3, 3), pd.Series),
    "long integers": (st.integers(), lambda v: pd.Series(v, dtype=object)),
    "boolean": (
        st.one_of(st.none(), st.booleans()),
        lambda v: pd.Series(v, dtype="boolean"),
    ),
    "strings": (TEXT, pd.Series),
    "strings with gaps": (st.one_of(st.none(), TEXT), lambda v: pd.Series(v, dtype=object)),
    "few levels": (st.sampled_from(["a", "b", "ü"]), pd.Series),
    "category": (
        st.one_of(st.none(), st.sampled_from(["low", "high"])),
        lambda v: pd.Series(pd.Categorical(v, ["low", "high", "never"])),
    ),
    "coded": (st.integers(0, 2), lambda v: pd.Series(pd.Categorical(v))),
    "dates": (
        st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2030, 1, 1)),
        pd.Series,
    ),
    "durations": (st.timedeltas(datetime.timedelta(0), datetime.timedelta(99)), pd.Series),
    "decimals": (
        st.decimals(-9, 9, places=2).map(decimal.Decimal),
        lambda v: pd.Series(v, dtype=object),
    ),
    "mixed": (MIXED, lambda v: pd.Series(v, dtype=object)),
    "lists": (st.lists(NUMBERS, max_size=2), lambda v: pd.Series(v, dtype=object)),
    "constant": (st.just(1.5), pd.Series),
    "tiny": (st.floats(-1e-200, 1e-200), pd.Series),
    "huge": (st.floats(-1e90, 1e90, allow_subnormal=False), pd.Series),
    "numbers as strings": (NUMBERS.map(str), pd.Series),
}
NAMES = st.one_of(
    st.sampled_from(["a", "a b", "ü", "y", "x", "1", "a:b", "a[b]", "`", "C(a)", "class"]),
    st.sampled_from([1, "a", "b", "c", "d", "e"]),
    TEXT,
)


@st.composite
def tables(draw):
    """X, y and the names of the instruments; half of the tables are good but for some columns."""
    n = draw(st.sampled_from([0, 1, 2, 5, 12, 40, 40, 40, 60, 60, 80, 80]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    noise, z, u = rng.normal(size=(3, n))
    columns = [("noise", pd.Series(noise)), ("z", pd.Series(z))]
    for kind in draw(st.lists(st.sampled_from(sorted(COLUMNS)), max_size=2)):
        values, made = COLUMNS[kind]
        # few draws, repeated: a long column would use up the budget of an example
        drawn = draw(st.lists(values, min_size=min(n, 6), max_size=min(n, 6)))
        column = [drawn[j] for j in rng.integers(0, len(drawn), n)] if n else []
        columns.insert(draw(st.integers(0, 2)), (draw(NAMES), made(column)))
    X = pd.concat([column for _, column in columns], axis=1)
    X.columns = pd.Index([name for name, _ in columns], dtype=object)
    seen = draw(st.sampled_from([noise + z + u > 0, noise + z + u > 0, z > 0, u < 9, u > 9]))
    scale = draw(st.sampled_from([1.0, 1.0, 1e-8, 1e8]))
    y = np.where(seen, scale * (noise + u + rng.normal(size=n)), np.nan)
    instruments = draw(st.sampled_from([["z"]] * 6 + [[], None, ["z", "noise"], ["none"]]))
    return X, pd.Series(y, name="y"), instruments


TOKENS = st.sampled_from(
    [
        *("", "NA", "nan", "inf", "-inf", "1e400", "1e-400", "1,5", "1.5", "0", "1", " 2 ", "ü"),
        *("=1+1", "0x10", "1_000", "true", "None", "-", "1e5", "'", "2020-01-01", "9" * 20, "a b"),
        *("\ttab", "𝟙", "٣", "1.5.2", "+3", "--1", ".5", "5.", "e5", "1e", "∞", "−1"),
    ]
)
BYTES = st.sampled_from(
    [b"\0", b"\xff", b'"', b'"""', b"\n\n", b",", b";", b"\xef\xbb\xbf", b"\x1a", b"\xe2\x80\xa8"]
)


DEFECTS = ["tokens", "ragged", "header", "delimiter", "ending", "encoding", "bytes", "cut", "few"]


@st.composite
def csv_files(draw):
    """The bytes of a table of y, x, g and z with up to two kinds of defects."""
    defects = draw(st.lists(st.sampled_from(DEFECTS), max_size=2))
    n = draw(st.sampled_from([0, 1, 3])) if "few" in defects else 40
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    x, z, u = rng.normal(size=(3, n))
    y = ["" if x[j] + z[j] + u[j] < 0 else f"{x[j] + u[j] + rng.normal():.4f}" for j in range(n)]
    rows = [[y[j], f"{x[j]:.4f}", "ab"[j % 2], f"{z[j]:.4f}"] for j in range(n)]
    header, delimiter, ending, encoding = ["y", "x", "g", "z"], ",", "\n", "utf-8"
    if "tokens" in defects and n:
        for _ in range(draw(st.integers(1, 3))):
            rows[draw(st.integers(0, n - 1))][draw(st.integers(0, 3))] = draw(TOKENS)
    if "ragged" in defects and n:
        row = rows[draw(st.integers(0, n - 1))]
        row.pop() if draw(st.booleans()) else row.append("9")
    if "header" in defects:
        header[draw(st.integers(0, 3))] = draw(st.sampled_from(["", "x", "y", " z", "ü", "a b"]))
    if "delimiter" in defects:
        delimiter = draw(st.sampled_from([";", "\t", "|", " "]))
    if "ending" in defects:
        ending = "\r\n"
    if "encoding" in defects:
        encoding = draw(st.sampled_from(["utf-8-sig", "utf-16", "utf-16-le", "utf-32"]))
    content = (ending.join(delimiter.join(row) for row in [header, *rows]) + ending).encode(
        encoding
    )
    place = int(draw(st.floats(0, 1)) * len(content))
    if "bytes" in defects:
        content = content[:place] + draw(BYTES) + content[place:]
    return content[:place] if "cut" in defects else content
