"""Files that are no saved model, or one that was damaged, altered or made to deceive."""

import json
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import heckesel as hk
from heckesel import saving
from heckesel.saving import read_content, write_content
from tests.small_models import X, fitted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.heckesel"


def refused(path, fragment=None):
    with pytest.raises(hk.DataError, match=fragment) as caught:
        hk.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_truncated_file_is_refused_at_any_length(path):
    fitted("two-step on folds")[0].save(path)
    whole = path.read_bytes()
    lengths = {0, 1, 7, 8, 9, 100, len(whole) - 1, *np.linspace(0, len(whole) - 1, 40).astype(int)}
    for length in sorted(lengths):
        path.write_bytes(whole[:length])
        refused(path)
    path.write_bytes(whole + b"\0")
    refused(path)


@pytest.mark.parametrize("name", ["linear", "two-step"])
def test_any_altered_byte_is_noticed(name, path):
    fitted(name)[0].save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 150, replace=False):
        altered = bytearray(whole)
        altered[place] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(altered))
        refused(path)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code from the file was run')",)


def header(content, *, length=None, rest=b""):
    text = json.dumps(content).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + rest


OURS = {"heckesel": json.dumps({"format": 1, "version": "0.1.0", "model": {}}), "sha256": "0"}
TENSOR = {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a model at all",
        pickle.dumps(Bomb()),
        b"PK\x03\x04" + b"\0" * 100,
        (2**63).to_bytes(8, "little") + b"{}",
        header({}),
        header("text"),
        header({"__metadata__": {"heckesel": 5}}),
        header({"__metadata__": {"heckesel": "NaN"}}),
        header({"__metadata__": {"heckesel": '{"format": "one"}'}}),
        header({"__metadata__": OURS}),
        header({"__metadata__": OURS, "t": TENSOR}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": TENSOR | {"shape": [-1]}}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": TENSOR | {"dtype": "Q9"}}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": {"data_offsets": [0, -8]}}),
        header({"__metadata__": {"heckesel": "[" * 100_000}}),
        b"\x40\x0d\x03\0\0\0\0\0" + b"[" * 200_000,
        header({"__metadata__": {"heckesel": '{"format": 1' + "0" * 5000 + "}"}}),
    ],
    ids=range(18),
)
def test_a_file_that_is_not_a_model_is_refused_in_one_sentence(content, path):
    path.write_bytes(content)
    refused(path)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    refused(tmp_path / "none.heckesel", "does not exist")
    refused(tmp_path, "is a folder")


def test_a_newer_format_says_to_upgrade(path, monkeypatch):
    monkeypatch.setattr(saving, "FORMAT", 7)
    monkeypatch.setattr(saving, "__version__", "9.0.0")
    fitted("linear")[0].save(path)
    monkeypatch.undo()
    refused(path, r"was saved by heckesel 9\.0\.0 in format 7, .* upgrade")


def refused_if(path, change):
    """Change the content of a saved file, with a hash that fits, as an attacker would."""
    content, tensors = read_content(path)
    change(content, tensors)
    write_content(path, content, tensors)
    return refused(path)


def set_at(*keys, value):
    """Set a field; a tensor is changed by a function."""

    def change(content, tensors):
        for key in keys[:-1]:
            content = content[key]
            if keys[-1] != "$object":
                content = content.get("fields", content)
        old = content[keys[-1]]
        if callable(value) and isinstance(old, dict) and "$tensor" in old:
            tensors[old["$tensor"]] = value(tensors[old["$tensor"]])
        else:
            content[keys[-1]] = value(old) if callable(value) else value

    return change


def with_nan(array):
    array = array.copy()
    array.flat[0] = np.nan
    return array


FITTED, COLUMNS = ("fitted", "fitted_"), ("fitted", "columns_")
VERDICT, RESULT = ("fitted", "identification_"), ("fitted", "result_")
TWICE = {"$tuple": ["x", "x"]}
CHANGES = {
    "two-step": [
        set_at("$object", value="builtins:Unpickler"),
        set_at("$object", value="heckesel.io:Path"),
        set_at("$object", value=5),
        set_at("parameters", value={"evil": 1}),
        set_at("parameters", "networks", "parameters", "hidden", value={"$code": "1"}),
        set_at("fitted", value=5),
        set_at("fitted", value={"predict": 5}),
        set_at(*COLUMNS, "given_names", value={"$tuple": []}),
        set_at(*COLUMNS, "given_names", value=TWICE),
        set_at(*COLUMNS, "instruments", value={"$tuple": ["nothing"]}),
        set_at(*COLUMNS, "steps", value={"$tuple": [5]}),
        set_at(*COLUMNS, "entries", value={"$tuple": ["x"]}),
        set_at(*VERDICT, value=None),
        set_at(*VERDICT, "evidence", value={"rho_low": "low"}),
        set_at(*FITTED, "$object", value="heckesel.data:RowSummary"),
        set_at(*FITTED, "members", "parameters", value=with_nan),
        set_at(*FITTED, "members", "parameters", value=lambda t: t[:, :10].copy()),
        set_at(*FITTED, "members", "parameters", value={"$tensor": "nothing"}),
        set_at(*FITTED, "members", "sizes", value={"$tuple": [5, 10**12, 1]}),
        set_at(*FITTED, "members", "sizes", value={"$tuple": ["x"]}),
        set_at(*FITTED, "gamma", value=lambda gamma: gamma[:, 1:].copy()),
        set_at(*FITTED, "scaling", "y_scale", value="wide"),
        set_at(*FITTED, "scaling", "y_centre", value={"$float": "nan"}),
    ],
    "linear": [
        set_at(*RESULT, "params", value=5),
        set_at(*RESULT, "params", "$series", "index", "$index", value=["x"]),
        set_at(*RESULT, "sigma", value="one"),
        set_at(*RESULT, "modes", value=[5]),
        set_at(*RESULT, "selected", value=1.5),
        set_at("fitted", "fitted_", "result", value=None),
    ],
}


@pytest.mark.parametrize(
    ("name", "position"),
    [(name, position) for name, changes in CHANGES.items() for position in range(len(changes))],
)
def test_a_file_made_to_deceive_is_refused_though_its_hash_is_right(name, position, path):
    fitted(name)[0].save(path)
    refused_if(path, CHANGES[name][position])


def refused_or_harmless(path):
    """A level with another name is found only when rows have it."""
    said = ""
    try:
        assert np.isfinite(hk.load(path).predict(X)).all()
    except hk.HeckeselError as error:
        said = str(error)
    assert "\n" not in said


JUNK = (None, "text", -1, 0.5, [], {}, {"$float": "nan"}, {"$tuple": []}, {"$object": "os:system"})


def places(content, at=()):
    """Where anything is in a content."""
    yield at
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, inside in pairs:
        if isinstance(inside, dict | list):
            yield from places(inside, (*at, key))
        else:
            yield (*at, key)


@pytest.mark.parametrize("name", ["linear", "two-step on folds", "linear log", "ensemble"])
@pytest.mark.filterwarnings("ignore")
def test_junk_anywhere_is_refused_in_one_sentence_or_harmless(name, path):
    fitted(name)[0].save(path)
    content, tensors = read_content(path)
    rng, text = np.random.default_rng(0), json.dumps(content)
    everywhere = [at for at in places(content) if at]
    for at in rng.permutation(len(everywhere))[:60]:
        altered, place, junk = json.loads(text), None, JUNK[rng.integers(len(JUNK))]
        place = altered
        for key in everywhere[at][:-1]:
            place = place[key]
        place[everywhere[at][-1]] = junk
        write_content(path, altered, tensors)
        refused_or_harmless(path)


@pytest.mark.parametrize("name", ["linear", "two-step on folds"])
@pytest.mark.filterwarnings("ignore")
def test_arrays_of_another_shape_or_type_are_refused_or_harmless(name, path):
    fitted(name)[0].save(path)
    content, tensors = read_content(path)
    for change in (lambda a: a[:-1].copy(), lambda a: a[None], lambda a: a.astype(np.int8)):
        for each in tensors:
            if tensors[each].ndim:
                write_content(path, content, tensors | {each: change(tensors[each])})
                refused_or_harmless(path)


def test_a_tensor_that_no_field_uses_is_refused(path):
    fitted("linear")[0].save(path)
    content, tensors = read_content(path)
    write_content(path, content, tensors | {"more": np.zeros(3)})
    refused(path, "that no field uses")


def test_a_class_from_elsewhere_is_loaded_only_if_it_was_registered(path, monkeypatch):
    @saving.register
    @dataclass(frozen=True)
    class Fit:
        slope: np.ndarray
        name: str = "a line"

    saving.save(Fit(np.arange(3.0)), path)
    np.testing.assert_array_equal(hk.load(path).slope, np.arange(3.0))
    monkeypatch.setattr(saving, "REGISTERED", {})
    refused(path, "a class that this version of heckesel does not have")
    with pytest.raises(hk.DataError, match="a Fit cannot be saved"):
        saving.save(Fit(np.arange(3.0)), path)
