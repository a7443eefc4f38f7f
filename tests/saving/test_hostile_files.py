"""Files that are no saved model, or one that was damaged, altered or made to deceive."""

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import heckesel as hk
from heckesel.saving import model_file
from heckesel.saving.model_file import read_model, write_model
from tests.small_models import fitted


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
    fitted("profile")[0].save(path)
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
        bytes(range(256)) * 20,
        b"PK\x03\x04" + b"\0" * 100,
        (2**63).to_bytes(8, "little") + b"{}",
        (2**26 + 1).to_bytes(8, "little") + b"{}" * 10,
        header({}),
        header([]),
        header("text"),
        header({"__metadata__": {"format": "pt"}}),
        header({"__metadata__": {"heckesel": 5}}),
        header({"__metadata__": {"heckesel": "{"}}),
        header({"__metadata__": {"heckesel": "[]"}}),
        header({"__metadata__": {"heckesel": "NaN"}}),
        header({"__metadata__": {"heckesel": "{}"}}),
        header({"__metadata__": {"heckesel": '{"format": "one"}'}}),
        header({"__metadata__": OURS}),
        header({"__metadata__": OURS, "t": TENSOR}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": TENSOR | {"shape": [-1]}}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": TENSOR | {"dtype": "Q9"}}, rest=b"\0" * 8),
        header({"__metadata__": OURS, "t": 5}),
        header({"__metadata__": OURS, "t": {"data_offsets": [0, -8]}}),
        header({"__metadata__": {"heckesel": "[" * 100_000}}),
        header({"__metadata__": {"heckesel": '{"a":' * 100_000}}),
        b"\x40\x0d\x03\0\0\0\0\0" + b"[" * 200_000,
        header({"__metadata__": {"heckesel": '{"format": 1' + "0" * 5000 + "}"}}),
    ],
    ids=range(27),
)
def test_a_file_that_is_not_a_model_is_refused_in_one_sentence(content, path):
    path.write_bytes(content)
    refused(path)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    refused(tmp_path / "none.heckesel", "does not exist")
    refused(tmp_path, "is a folder")


def test_a_newer_format_says_to_upgrade(path, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT", 7)
    monkeypatch.setattr(model_file, "__version__", "9.0.0")
    fitted("linear")[0].save(path)
    monkeypatch.undo()
    refused(path, r"was saved by heckesel 9\.0\.0 in format 7, .* upgrade")


def set_at(*keys, value):
    """A change to a file's content; the hash is made anew, as an attacker would."""

    def change(content):
        place = content
        for key in keys[:-1]:
            place = place[key]
        old = place[keys[-1]]
        place[keys[-1]] = value(old) if callable(value) else value

    return change


def with_nan(array):
    array = array.copy()
    array.flat[0] = np.nan
    return array


NETWORK = ("state", "fitted")
CHANGES = {
    "two-step": [
        set_at("class", value="Unpickler"),
        set_at("class", value=5),
        set_at("parameters", value={"evil": 1}),
        set_at("parameters", value={"hidden": {"tuple": 5}}),
        set_at("parameters", value=[]),
        set_at("columns", value=None),
        set_at("columns", "names", value=[]),
        set_at("columns", "names", value=["x", "x", "x", "x", "x"]),
        set_at("columns", "names", value=[["x"]]),
        set_at("columns", "names", value=lambda names: names[:-1]),
        set_at("columns", "instruments", value=["nothing"]),
        set_at("columns", "instruments", value=["x", "z", "größe", "flag", "gaps"]),
        set_at("columns", "levels", value=[["größe", [["a"]]]]),
        set_at("columns", "levels", value=[["größe", []]]),
        set_at("columns", "levels", value=[["größe", ["a", "a"]]]),
        set_at("columns", "levels", value=[["größe"]]),
        set_at("columns", "levels", value=lambda levels: [*levels, ["gaps", ["q"]]]),
        set_at("columns", "fill", value=[["gaps", "0"]]),
        set_at("columns", "fill", value=[["gaps", float("inf")]]),
        set_at("columns", "indicators", value=[["x"]]),
        set_at("columns", "from_frame", value="yes"),
        set_at("transform", value="exec"),
        set_at("identification", "verdict", value="perfect"),
        set_at("identification", "evidence", value=None),
        set_at("identification", "evidence", value={"rho_low": "low"}),
        set_at("identification", "evidence", value={"rho_low": 0.0, "modes": 5}),
        set_at("identification", "evidence", "modes", value=np.full((2, 2), np.nan)),
        set_at("identification", "profile", "rho", value=with_nan),
        set_at("identification", "profile", "loglik", value=lambda values: values[1:]),
        set_at("identification", "profile", "modes", value=[]),
        set_at("identification", "profile", "modes", value=[["a", 1.0]]),
        set_at("identification", "profile", "interval", value=[0.0]),
        set_at("identification", "profile", "level", value="all"),
        set_at("state", value="state"),
        set_at("state", "rho_", value=[1]),
        set_at(*NETWORK, "kind", value="ModuleMembers"),
        set_at(*NETWORK, "members", "theta", value=with_nan),
        set_at(*NETWORK, "members", "theta", value=lambda t: t[:, :10]),
        set_at(*NETWORK, "members", "theta", value=lambda t: t.astype(np.float32)),
        set_at(*NETWORK, "members", "theta", value=lambda t: t[:0]),
        set_at(*NETWORK, "members", "sizes", value=lambda sizes: [sizes[0], 10**12, 1]),
        set_at(*NETWORK, "members", "sizes", value=[1, 1]),
        set_at(*NETWORK, "members", "sizes", value=lambda sizes: [*sizes[:-1], 9]),
        set_at(*NETWORK, "members", "sizes", value=["x"]),
        set_at(*NETWORK, "sigma", value=lambda sigma: -sigma),
        set_at(*NETWORK, "sigma", value=lambda sigma: sigma[:1]),
        set_at(*NETWORK, "gamma", value=lambda gamma: gamma[:, 1:]),
        set_at(*NETWORK, "gamma", value=lambda gamma: np.tile(gamma, (7, 1))),
        set_at(*NETWORK, "covariance", value=None),
        set_at(*NETWORK, "df", value=lambda _: np.array([1.0, 1.0])),
        set_at(*NETWORK, "scaling", "x_scale", value=lambda scale: 0 * scale),
        set_at(*NETWORK, "scaling", "y_scale", value=0.0),
        set_at(*NETWORK, "scaling", "y_scale", value=True),
        set_at(*NETWORK, "scaling", "y_centre", value=float("nan")),
    ],
    "profile": [
        set_at(*NETWORK, "parts", "model", value=lambda model: model + 100),
        set_at(*NETWORK, "parts", "weight", value=lambda weight: -weight),
        set_at(*NETWORK, "parts", "rho", value=lambda rho: rho + 2),
        set_at(*NETWORK, "parts", "spread", value=lambda spread: spread[:, 1:]),
        set_at(*NETWORK, "curve", "v", value=lambda v: v[..., 1:]),
        set_at(*NETWORK, "curve", "prior", value=[1.0, -1.0]),
        set_at(*NETWORK, "curve", "prior", value=["exec", 1.0]),
    ],
    "ensemble": [
        set_at(*NETWORK, "outcome", "kind", value="RhoMixture"),
        set_at(*NETWORK, "outcome", "level", value=-1.0),
        set_at(*NETWORK, "gamma", value=lambda gamma: gamma[1:]),
    ],
    "linear": [
        set_at("state", "method", value="magic"),
        set_at("state", "method", value="two-step"),
        set_at("state", "params", value=with_nan),
        set_at("state", "cov", value=lambda cov: cov[:-1]),
        set_at("state", "sigma", value=0.0),
        set_at("state", "rho", value=float("nan")),
        set_at("state", "modes", value=[5]),
        set_at("state", "at_boundary", value={"beta": 1}),
        set_at("state", "n", value=1.5),
        set_at("state", "table", value=None),
    ],
}


@pytest.mark.parametrize(
    ("name", "position"),
    [(name, position) for name, changes in CHANGES.items() for position in range(len(changes))],
)
def test_a_file_made_to_deceive_is_refused_though_its_hash_is_right(name, position, path):
    fitted(name)[0].save(path)
    content = read_model(path)
    CHANGES[name][position](content)
    write_model(path, content)
    refused(path)


def test_a_tensor_that_no_field_uses_is_refused(path):
    fitted("linear")[0].save(path)
    write_model(path, read_model(path) | {"more": np.zeros(3)})
    hk.load(path)  # an unknown field is ignored, as a later version may add one
    text = model_file.json.dumps({"format": 1, "version": "0", "model": {}})
    tensors = {"t": np.zeros(3)}
    digest = model_file._digest(text, tensors)
    save_file(tensors, path, {"heckesel": text, "sha256": digest})
    refused(path, "that no field uses")
