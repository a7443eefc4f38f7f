import gzip
import hashlib
import importlib.util
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from heckesel import datasets
from heckesel.datasets import shipped
from heckesel.errors import DataError

TESTS = Path(__file__).parents[1]
REFERENCE = json.loads((TESTS / "reference" / "datasets.json").read_text())
FOLDER = Path(datasets.__file__).parent
LOADED = {
    "rand_hie.csv.gz": datasets.load_rand_hie,
    "mroz.csv.gz": datasets.load_mroz,
    "california_housing.csv.gz": datasets.load_california_housing,
    "wine_quality_red.csv.gz": datasets.load_wine_quality,
    "wine_quality_white.csv.gz": lambda: datasets.load_wine_quality("white"),
    "college_gpa.csv.gz": datasets.load_college_gpa,
    "school_tests.csv.gz": datasets.load_school_tests,
}


def load_build_script():
    path = TESTS.parent / "scripts" / "build_datasets.py"
    spec = importlib.util.spec_from_file_location("build_datasets", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def rounding(printed, column):
    """How far a printed statistic may lie from the one of the column.

    Half a unit of its last digit; and the cells hold seven digits, so each is off by up to
    5e-7 of itself, and a mean or sd by up to 5e-7 of the root mean square.
    """
    half_a_last_place = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return half_a_last_place + 5e-7 * np.sqrt((column**2).mean())


def test_every_shipped_file_has_the_hash_its_module_and_its_docstring_state():
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (FOLDER / "files").iterdir()
    }
    assert found == shipped.FILES
    assert all(name in shipped.__doc__ and sha in shipped.__doc__ for name, sha in found.items())


def test_a_file_with_another_hash_is_refused(monkeypatch):
    monkeypatch.setitem(shipped.FILES, "mroz.csv.gz", "0" * 64)
    with pytest.raises(DataError, match=r"mroz\.csv\.gz has SHA-256 8ac5.* instead of 0000"):
        shipped.read_shipped("mroz.csv.gz")


@pytest.mark.parametrize("name", LOADED)
def test_loaders_keep_every_cell_of_the_file_in_order(name):
    text = gzip.decompress((FOLDER / "files" / name).read_bytes()).decode()
    header, *rows = [line.split(",") for line in text.splitlines()]
    cells = np.array([[float(cell or "nan") for cell in row] for row in rows])
    frame = LOADED[name]()
    assert list(frame.columns) == header
    # One unit in the last place, which the CSV parser of an older pandas may lose.
    np.testing.assert_allclose(frame.to_numpy(dtype=float), cells, rtol=2.3e-16, atol=0)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("rand_hie.csv.gz", (20190, 45)),
        ("mroz.csv.gz", (753, 22)),
        ("california_housing.csv.gz", (20640, 9)),
        ("wine_quality_red.csv.gz", (1599, 12)),
        ("wine_quality_white.csv.gz", (4898, 12)),
        ("college_gpa.csv.gz", (4137, 12)),
        ("school_tests.csv.gz", (1823, 11)),
    ],
)
def test_loaders_return_plain_frames_of_the_published_size(name, shape):
    frame = LOADED[name]()
    assert type(frame) is pd.DataFrame
    assert frame.shape == shape
    assert frame.index.equals(pd.RangeIndex(len(frame)))


def test_the_cameron_trivedi_sample_has_the_summary_statistics_of_their_stata_log():
    frame = datasets.load_rand_hie("cameron_trivedi")
    assert frame.index.equals(pd.RangeIndex(5574))
    for name, printed in REFERENCE["rand_hie"]["statistics"].items():
        column = frame[name]
        found = {"mean": column.mean(), "sd": column.std(), "min": column.min()}
        found["max"] = column.max()
        assert column.count() == printed["n"], name
        for statistic, value in found.items():
            text = printed[statistic]
            assert abs(value - float(text)) <= rounding(text, column), (name, statistic)


def test_a_probit_on_mroz_equals_the_one_r_computes():
    frame = datasets.load_mroz()
    columns = ["nwifeinc", "educ", "exper", "expersq", "age", "kidslt6", "kidsge6"]
    fit = sm.Probit(frame["inlf"], sm.add_constant(frame[columns])).fit(disp=False)
    published = REFERENCE["mroz"]
    # R stops 1e-8 short of the optimum, and nwifeinc in single precision moves it as much. A
    # copy whose nwifeinc differs in the second decimal moves coefficients by 1e-5 to 1e-3.
    expected = list(published["probit"].values())
    np.testing.assert_allclose(fit.params, expected, rtol=5e-8)
    assert fit.llf == pytest.approx(published["loglik"], abs=1e-6)


def test_california_averages_are_quotients_of_whole_counts_to_the_last_digits():
    # StatLib publishes counts. Households come back as population over occupancy, and every
    # average is then a count over households.
    frame = datasets.load_california_housing()
    households = (frame["Population"] / frame["AveOccup"]).round()
    for name in ("AveRooms", "AveBedrms", "AveOccup"):
        counts = (frame[name] * households).round()
        np.testing.assert_allclose(frame[name], counts / households, rtol=0, atol=3e-14)


@pytest.mark.parametrize("colour", ["red", "white"])
def test_wine_scores_and_first_rows_are_those_of_uci(colour):
    frame = datasets.load_wine_quality(colour)
    counts = frame["quality"].value_counts().sort_index()
    published = REFERENCE["wine_quality"]
    assert {str(score): count for score, count in counts.items()} == published[colour]
    rows = np.array(published[f"{colour}_rows"])
    np.testing.assert_array_equal(frame.to_numpy()[: len(rows), : rows.shape[1]], rows)


def test_an_unknown_sample_or_colour_is_a_data_error_that_names_the_choices():
    with pytest.raises(DataError, match="sample is 'year2' but must be one of all, cameron_tr"):
        datasets.load_rand_hie("year2")
    with pytest.raises(DataError, match="colour is 'rose' but must be one of red, white"):
        datasets.load_wine_quality("rose")
    with pytest.raises(DataError, match="sample is <NA> but must be one of"):
        datasets.load_rand_hie(pd.NA)  # has no truth value
    with pytest.raises(DataError, match=r"colour is .* but must be one of"):
        datasets.load_wine_quality(pd.DataFrame({"colour": ["red"]}))


def test_a_rebuild_leaves_a_file_that_holds_the_same_table_untouched(tmp_path):
    script, path = load_build_script(), tmp_path / "t.csv.gz"
    packed_otherwise = gzip.compress(b"a\n1\n", compresslevel=1, mtime=5)
    path.write_bytes(packed_otherwise)
    script.write_table(path, b"a\n1\n")
    assert path.read_bytes() == packed_otherwise
    script.write_table(path, b"a\n2\n")
    assert path.read_bytes() == script.pack(b"a\n2\n")


def test_a_source_file_with_another_hash_stops_the_build(tmp_path):
    script, wheel = load_build_script(), tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("p/t.csv", "a\n1\n")
    sha256 = hashlib.sha256(b"a\n1\n").hexdigest()
    source = script.Source("p==1", "p/t.csv", sha256, lambda content: {"t.csv.gz": content})
    assert script.read_member(wheel, source) == b"a\n1\n"
    with pytest.raises(SystemExit, match=r"p/t\.csv of p==1 has SHA-256"):
        script.read_member(wheel, replace(source, sha256="0" * 64))
