"""What every entry of METHODS promises, whatever it computes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.fit_info import as_dictionary, from_dictionary
from heckesel.methods import METHODS, fit_one, load_method, spline_joint
from heckesel.methods.gp import GPConfig
from heckesel.methods.heckman_auto import AutoConfig
from heckesel.methods.heckman_profile import ProfileConfig
from heckesel.methods.oracle import OracleConfig
from heckesel.methods.skyline import SkylineConfig
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.networks.training.config import NetworkConfig

NETWORK = NetworkConfig(
    hidden=(8, 8), n_members=2, epochs=50, warm_up=10, dtype="float64", device="cpu"
)
WITH_MODULE = [name for name, method in METHODS.items() if method.module is not None]
ENSEMBLES = [
    "heckman_joint",
    "heckman_two_step",
    "heckman_outcome",
    "heckman_averaged",
    "heckman_profile",
    "blind_two_head",
    "deep_ensemble",
    "weighted_ensemble",
    "skyline",
]
ON_FOLDS = ("heckman_outcome", "heckman_averaged", "heckman_profile", "heckman_auto")
IN_ONE_BATCH = [*ENSEMBLES, "mc_dropout", "gp", "spline_joint"]
X_NEW = np.random.default_rng(9).uniform(-2, 2, (7, 2))


@pytest.fixture(autouse=True)
def _networks_alone(monkeypatch):
    """Networks are never replaced by splines, which are tested as a separate method."""
    monkeypatch.setattr(spline_joint, "affordable", lambda x: None)


def _f0(x):
    return np.sin(x[:, 0]) + 0.5 * x[:, 1]


def _draw(n=120, seed=0):
    """Data and the outcomes of all units."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, (n, 2)), rng.normal(size=n)
    u = rng.normal(size=n)
    y = _f0(x) + 0.4 * (0.6 * u + 0.8 * rng.normal(size=n))
    seen = np.where(0.3 - 0.5 * x[:, 0] + z + u > 0, y, np.nan)
    return selection_data(x, np.column_stack([x, z]), seen), y


def _config(name, y, *, unit=1.0, network=NETWORK):
    """The options of a method, for outcomes y in multiples of `unit`."""
    special = {
        "weighted_ensemble": WeightedConfig(network=network),
        "skyline": SkylineConfig(y, network=network),
        "oracle": OracleConfig(lambda x: unit * _f0(x), 0.4 * unit),
        "gp": GPConfig(restarts=0, device="cpu"),
        "heckman_outcome": replace(network, folds=2),
        "heckman_averaged": replace(network, folds=2),
        "heckman_profile": ProfileConfig(replace(network, folds=2)),
        "heckman_auto": AutoConfig(network=replace(network, folds=2)),
        "spline_joint": None,
        "least_squares": None,
        "linear_heckman": None,
    }
    return special.get(name, network)


def _predict(name, data, y, *, seed=3, **options):
    fitted = fit_one(name, data, seed=seed, config=_config(name, y, **options))
    return fitted.predict(X_NEW)


def _assert_close(one, other, tolerance):
    for part in ("mean", "epistemic", "aleatoric"):
        expected = getattr(other, part)
        np.testing.assert_allclose(
            getattr(one, part), expected, rtol=tolerance, atol=tolerance, err_msg=part
        )


@pytest.mark.parametrize("name", WITH_MODULE)
def test_predictions_have_the_shape_of_the_points_and_positive_variance(name):
    predictive = _predict(name, *_draw())
    for part in (predictive.mean, predictive.epistemic, predictive.aleatoric, predictive.std):
        assert part.shape == (7,)
        assert np.isfinite(part).all()
    assert (predictive.epistemic >= 0).all()
    assert (predictive.aleatoric > 0).all()
    lower, upper = predictive.interval(0.9).T
    assert (lower < predictive.mean).all()
    assert (predictive.mean < upper).all()


@pytest.mark.parametrize("name", WITH_MODULE)
def test_a_fit_reports_typed_fields_that_its_dictionary_restores(name):
    data, y = _draw()
    fitted = fit_one(name, data, seed=3, config=_config(name, y))
    said = as_dictionary(fitted.info)
    assert said
    assert None not in said.values()
    assert from_dictionary(type(fitted.info), json.loads(json.dumps(said))) == fitted.info
    for key in {"rho", "sigma", "training_loss"} & set(said):
        assert all(isinstance(value, float) for value in said[key])


@pytest.mark.parametrize("name", WITH_MODULE)
def test_the_same_seed_gives_the_same_answer(name):
    data, y = _draw()
    _assert_close(_predict(name, data, y), _predict(name, data, y), 0.0)


@pytest.mark.parametrize("name", [*ENSEMBLES, "mc_dropout"])
def test_another_seed_gives_another_network(name):
    data, y = _draw()
    assert (_predict(name, data, y).mean != _predict(name, data, y, seed=4).mean).all()


@pytest.mark.parametrize("name", WITH_MODULE)
def test_rescaling_y_rescales_the_answer(name):
    data, y = _draw()
    unit = 1000.0
    small = _predict(name, data, y)
    large = _predict(name, replace(data, y=unit * data.y), unit * y, unit=unit)
    # Standardised outcomes agree to rounding, which fifty steps magnify. "auto" ends its steps a
    # hundredth of a log-unit below each maximum, and rounding decides whether one more is taken.
    rtol = 0.05 if name == "heckman_auto" else 1e-6
    np.testing.assert_allclose(large.mean / unit, small.mean, rtol=rtol)
    np.testing.assert_allclose(large.epistemic / unit**2, small.epistemic, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(large.aleatoric / unit**2, small.aleatoric, rtol=rtol)


def test_doubling_y_doubles_the_answer_of_auto_exactly():
    data, y = _draw()
    small = _predict("heckman_auto", data, y)
    large = _predict("heckman_auto", replace(data, y=2 * data.y), 2 * y, unit=2.0)
    np.testing.assert_array_equal(large.mean, 2 * small.mean)
    np.testing.assert_array_equal(large.epistemic, 4 * small.epistemic)


# Dropout draws its masks, and these methods deal out their folds, by the place of a row.
@pytest.mark.parametrize("name", sorted(set(WITH_MODULE) - {"mc_dropout", *ON_FOLDS}))
def test_the_order_of_rows_does_not_matter(name):
    data, y = _draw()
    order = np.random.default_rng(1).permutation(data.n)
    moved = replace(data, **{part: getattr(data, part)[order] for part in "xwsy"})
    _assert_close(_predict(name, moved, y[order]), _predict(name, data, y), 1e-6)


# These two are several models even then.
@pytest.mark.parametrize("name", sorted(set(ENSEMBLES) - {"heckman_profile", "heckman_averaged"}))
def test_one_member_has_no_epistemic_variance(name):
    predictive = _predict(name, *_draw(), network=replace(NETWORK, n_members=1))
    np.testing.assert_array_equal(predictive.epistemic, 0.0)


@pytest.mark.parametrize("name", IN_ONE_BATCH)
def test_cells_fitted_together_equal_cells_fitted_alone(name):
    draws = [_draw(120, seed=0), _draw(90, seed=1)]
    configs = [_config(name, y) for _, y in draws]
    one_config = name not in ("skyline", "weighted_ensemble")
    together = load_method(name).fit_many(
        [data for data, _ in draws],
        seeds=[5, 6],
        config=configs[0] if one_config else configs,
    )
    for fitted, (data, _), seed, config in zip(together, draws, [5, 6], configs, strict=True):
        alone = fit_one(name, data, seed=seed, config=config)
        # Padding to the longer cell changes the order of sums; fifty steps magnify rounding.
        _assert_close(fitted.predict(X_NEW), alone.predict(X_NEW), 1e-8)


@pytest.mark.parametrize("name", [*ENSEMBLES, "mc_dropout", "least_squares", "linear_heckman"])
def test_an_unknown_target_is_refused(name):
    data, y = _draw()
    fitted = fit_one(name, data, seed=3, config=_config(name, y))
    with pytest.raises(DataError, match="population, selected, unselected"):
        fitted.predict(X_NEW, target="everyone")


@pytest.mark.parametrize("name", ["heckman_joint", "heckman_two_step", "linear_heckman"])
def test_the_population_mean_is_made_of_the_selected_and_the_unselected(name):
    data, y = _draw()
    fitted = fit_one(name, data, seed=3, config=_config(name, y))
    w = np.column_stack([X_NEW, np.linspace(-2, 2, 7)])
    everyone = fitted.predict(X_NEW)
    selected, unselected = (fitted.predict(X_NEW, w, part) for part in ("selected", "unselected"))
    # Share of the selected from the means, then the same share must explain the distributions.
    share = (everyone.mean - unselected.mean) / (selected.mean - unselected.mean)
    assert ((share > 0) & (share < 1)).all()
    mixed = share * selected.cdf(everyone.mean) + (1 - share) * unselected.cdf(everyone.mean)
    np.testing.assert_allclose(mixed, 0.5, atol=1e-7)
    with pytest.raises(DataError, match="needs w"):
        fitted.predict(X_NEW, target="selected")


def test_an_unknown_method_is_refused_by_name():
    with pytest.raises(DataError, match="no method 'heckmann'; there are heckman_two_step"):
        load_method("heckmann")


@pytest.mark.parametrize("name", ["heckman_two_step", "weighted_ensemble", "spline_joint"])
@pytest.mark.parametrize("scale", [-2.0, 1000.0])
def test_columns_of_w_may_depend_on_one_another(name, scale):
    data, y = _draw()
    twice = selection_data(data.x, np.column_stack([data.w, 1 + scale * data.w[:, 2]]), data.y)
    one, other = (_predict(name, each, y) for each in (data, twice))
    _assert_close(one, other, 1e-3)


def test_a_profile_does_not_end_where_columns_of_w_depend_on_one_another():
    data, y = _draw()
    twice = selection_data(data.x, np.column_stack([data.w, 1 - 2 * data.w[:, 2]]), data.y)
    config = _config("heckman_profile", y)
    one, other = (fit_one("heckman_profile", each, seed=3, config=config) for each in (data, twice))
    np.testing.assert_allclose(one.index(data.w), other.index(twice.w), atol=0.2)
