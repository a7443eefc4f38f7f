"""Saved mixtures over splines: the same to the last bit, and refused where damaged."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.predictive.distribution import TARGETS
from heckesel.saving.model_file import read_model, write_model
from tests.saving.test_hostile_files import refused, set_at, with_nan
from tests.small_models import NUMBERS, averaged_with_splines, fitted, with_splines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.heckesel"


@pytest.mark.parametrize("interactions", [(), ((2, 0), (0, 1)), "all"], ids=str)
def test_a_loaded_mixture_over_splines_predicts_bit_identically(interactions, path):
    model = with_splines(interactions)
    model.save(path)
    loaded = hk.load(path)
    for table in (NUMBERS, 3 * NUMBERS):
        for target in TARGETS:
            before, after = (m.predict_distribution(table, target) for m in (model, loaded))
            np.testing.assert_array_equal(before.mean, after.mean)
            np.testing.assert_array_equal(before.epistemic, after.epistemic)
            np.testing.assert_array_equal(before.interval(0.8), after.interval(0.8))
    old, new = model.fitted_.basis, loaded.fitted_.basis
    assert [each[:2] for each in new.surfaces] == [each[:2] for each in old.surfaces]
    np.testing.assert_array_equal(new.membership, old.membership)
    assert loaded.info_ == model.info_


def test_splines_in_an_average_are_saved_with_it(path):
    model = averaged_with_splines()
    model.save(path)
    loaded = hk.load(path)
    for target in TARGETS:
        before, after = (m.predict_distribution(NUMBERS, target) for m in (model, loaded))
        np.testing.assert_array_equal(before.mean, after.mean)
        np.testing.assert_array_equal(before.std, after.std)
    assert loaded.info_ == model.info_


def test_a_table_without_any_curve_is_saved_too(path):
    model = with_splines((), ("flag",))
    assert model.fitted_.basis.curves == (None,)
    model.save(path)
    table = NUMBERS[["flag", "z"]]
    np.testing.assert_array_equal(hk.load(path).predict(table), model.predict(table))


def test_a_file_without_a_basis_is_read_as_networks(path):
    model, _ = fitted("profile")
    model.save(path)
    content = read_model(path)
    assert content["state"]["fitted"].pop("basis") == "LastLayer"
    write_model(path, content)
    assert len(hk.load(path).fitted_.basis.axes) == len(model.fitted_.basis.axes)


def moved(at, by):
    def change(array):
        array = array.copy()
        array[at] += by
        return array

    return change


FITTED = ("state", "fitted")
SPLINES = (*FITTED, "splines")
CURVE = (*SPLINES, "curves", 0)
CHANGES = {
    "basis of another kind": set_at(*FITTED, "basis", value="LastLayer"),
    "basis of no kind": set_at(*FITTED, "basis", value="Unpickler"),
    "basis no text": set_at(*FITTED, "basis", value=5),
    "no splines": set_at(*FITTED, "splines", value=None),
    "no curves": set_at(*SPLINES, "curves", value=None),
    "a curve too few": set_at(*SPLINES, "curves", value=lambda curves: curves[1:]),
    "a small one too many": set_at(*SPLINES, "small", value=lambda small: [*small, None]),
    "a curve that is a number": set_at(*CURVE, value=5),
    "a curve that is gone": set_at(*CURVE, value=None),
    "a small one that is gone": set_at(*SPLINES, "small", 0, value=None),
    "knots not finite": set_at(*CURVE, "knots", value=with_nan),
    "knots descending": set_at(*CURVE, "knots", value=lambda knots: knots[::-1].copy()),
    "knots out of order": set_at(*CURVE, "knots", value=moved(9, -1.0)),
    "first knot alone": set_at(*CURVE, "knots", value=moved(0, -1.0)),
    "last knot alone": set_at(*CURVE, "knots", value=moved(-1, 1.0)),
    "knots all one": set_at(*CURVE, "knots", value=lambda knots: 0 * knots),
    "a knot too few": set_at(*CURVE, "knots", value=lambda knots: np.delete(knots, 8)),
    "three knots": set_at(*CURVE, "knots", value=lambda knots: knots[:3]),
    "no turn": set_at(*CURVE, "turn", value=None),
    "turn not finite": set_at(*CURVE, "turn", value=with_nan),
    "turn too narrow": set_at(*CURVE, "turn", value=lambda turn: turn[:, 1:].copy()),
    "turn and line too narrow": lambda content: [
        set_at(*CURVE, name, value=lambda array: array[:, 1:].copy())(content)
        for name in ("turn", "line")
    ],
    "line of one row": set_at(*CURVE, "line", value=lambda line: line[:1]),
    "line in float32": set_at(*CURVE, "line", value=lambda line: line.astype(np.float32)),
    "pairs of three": set_at(*SPLINES, "pairs", value=lambda pairs: pairs.reshape(-1, 3)),
    "pairs that are no numbers": set_at(*SPLINES, "pairs", value=[["x", "y"]]),
    "pairs beyond": set_at(*SPLINES, "pairs", value=lambda pairs: pairs + 1),
    "pairs below": set_at(*SPLINES, "pairs", value=lambda pairs: pairs - 1),
    "a column with itself": set_at(*SPLINES, "pairs", value=moved((0, 1), -1)),
    "a pair too few": set_at(*SPLINES, "pairs", value=lambda pairs: pairs[1:].copy()),
    "membership too short": set_at(*SPLINES, "membership", value=lambda ridges: ridges[1:].copy()),
    "half a ridge": set_at(*SPLINES, "membership", value=lambda ridges: ridges / 2),
    "a ridge too few": set_at(*SPLINES, "membership", value=lambda ridges: ridges[:, 1:].copy()),
    "a second column set": set_at(*FITTED, "parts", "model", value=lambda model: model + 1),
    "coefficients too few": set_at(*FITTED, "parts", "delta", value=lambda d: d[:, 1:].copy()),
    "ridges of the curve": set_at(*FITTED, "curve", "ridge", value=lambda r: r[..., 1:].copy()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_splines_made_to_deceive_are_refused_though_their_hash_is_right(change, path):
    with_splines().save(path)
    content = read_model(path)
    change(content)
    write_model(path, content)
    refused(path)


def test_a_custom_basis_is_not_saved(path):
    model = copy(with_splines())
    model.fitted_ = replace(model.fitted_, basis=object())
    with pytest.raises(hk.DataError, match="a mixture over object cannot be saved"):
        model.save(path)


def test_points_beyond_the_networks_of_a_mixture_are_refused(path):
    model, _ = fitted("profile shape and scale")
    model.save(path)
    content = read_model(path)
    points = content["state"]["fitted"]["mixture"]["points"]
    for number in (-1, 99):
        points["model"] = np.full_like(points["model"], number)
        write_model(path, content)
        refused(path, "refers to models beyond")
