"""Every distribution a predictive can have goes through `evaluate` with its regions."""

import inspect

import numpy as np
import pytest

from heckesel import predictive
from heckesel.metrics import evaluate
from heckesel.predictive import (
    Predictive,
    predict_given_selection,
    predict_shape,
    predict_student,
    predict_student_given_selection,
)
from heckesel.scales import target_transform

M = 60
RNG = np.random.default_rng(4)
MEAN, TAU2, INDEX = RNG.normal(size=M), 0.05 + 0.1 * RNG.random(M), RNG.normal(size=M)
SIGMA, COVARIANCE, DF = np.full(M, 0.6), np.full(M, 0.4), 5.0
PROPENSITY = np.linspace(0, 1, M)
PARTS = np.array([[0.3], [0.7]])


def _mixed(rows):
    mean, index = MEAN[rows] + PARTS, INDEX[rows] - PARTS
    shared = mean, TAU2[rows] + 0 * PARTS, SIGMA[rows] + 0 * PARTS
    log_weight = np.log(PARTS) + 0 * mean
    return predictive.mixed_given_selection(
        log_weight, *shared, COVARIANCE[rows] + 0 * PARTS, index
    )


def _cubed(rows):
    inner = predict_student(MEAN[rows], TAU2[rows], SIGMA[rows], DF)
    change = target_transform((np.cbrt, lambda z: z**3))
    outer = predictive.transformed_distribution(inner, change)
    return Predictive(inner.mean, inner.epistemic, inner.aleatoric, outer)


def _given(rows, function, *options):
    shared = MEAN[rows], TAU2[rows], SIGMA[rows], COVARIANCE[rows], INDEX[rows]
    return function(*shared, *options)


def _equal_weights(rows):
    return predictive.mix_predictives(
        [_mixed(rows), predict_student(MEAN[rows], TAU2[rows], SIGMA[rows], DF)]
    )


MAKERS = {
    predictive.Normal: lambda rows: Predictive.normal(MEAN[rows], TAU2[rows], SIGMA[rows] ** 2),
    predictive.Student: lambda rows: predict_student(MEAN[rows], TAU2[rows], SIGMA[rows], DF),
    predictive.GivenSelection: lambda rows: _given(rows, predict_given_selection),
    predictive.StudentGivenSelection: lambda rows: _given(
        rows, predict_student_given_selection, DF
    ),
    predictive.Mixture: _equal_weights,
    predictive.Transformed: _cubed,
    predictive.Shaped: lambda rows: predict_shape(MEAN[rows], TAU2[rows], SIGMA[rows], 0.3, -0.2),
}


def test_no_distribution_is_forgotten_here():
    found = {
        value
        for _, value in inspect.getmembers(predictive, inspect.isclass)
        if hasattr(value, "log_density") and value not in (Predictive, predictive.Scaled)
    }
    assert found == set(MAKERS)


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_metrics_of_a_region_are_those_of_a_predictive_made_for_its_points_alone(kind):
    everywhere = MAKERS[kind](np.arange(M))
    assert isinstance(everywhere.distribution, kind)
    y = everywhere.sample(1, seed=1)[0]
    row = evaluate(y, everywhere, f0=MEAN, propensity_x=PROPENSITY)
    rows = np.flatnonzero(PROPENSITY < 0.3)
    alone = evaluate(y[rows], MAKERS[kind](rows), f0=MEAN[rows])
    assert row["n_against"] == len(rows)
    for name, value in alone.items():
        # The same formulas on the same points; sums may be taken in another order.
        assert row[f"{name}_against"] == pytest.approx(value, rel=1e-10), name
