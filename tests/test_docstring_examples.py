"""The examples in the docstrings of public modules run and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    *(
        f"heckesel.datasets.{name}"
        for name in (
            "california_housing",
            "college_gpa",
            "controlled",
            "interactions",
            "loans",
            "mroz",
            "rand_hie",
            "school_tests",
            "semireal",
            "truth",
            "wine_quality",
        )
    ),
    "heckesel.diagnostics.bounds.bounds_table",
    "heckesel.diagnostics.column_report",
    "heckesel.diagnostics.validity.instrument_tests",
    "heckesel.diagnostics.profile_curve",
    "heckesel.diagnostics.sensitivity_curves",
    "heckesel.diagnostics.verdict",
    "heckesel.estimators.heckman",
    "heckesel.estimators.heckman_regressor",
    "heckesel.estimators.identify",
    "heckesel.saving",
    "heckesel.estimators.probit",
    "heckesel.estimators.sensitivity",
    "heckesel.estimators.without_model.bounds",
    "heckesel.linear.results.heckman_fit",
    "heckesel.linear.results.heckman_probit_fit",
    "heckesel.linear.results.selection_probit_fit",
    "heckesel.linear.result_tables.compare_fits",
    *(
        f"heckesel.estimators.{name}"
        for name in (
            "compare_models",
            "deep_ensemble_regressor",
            "deep_heckman_regressor",
            "heckman_classifier",
            "imputation.heckman_imputer",
            "imputation.rubin",
            "scoring",
            "weighted_ensemble_regressor",
        )
    ),
    "heckesel.metrics",
    "heckesel.metrics.bias",
    "heckesel.metrics.binary_scores",
    "heckesel.metrics.calibration",
    "heckesel.metrics.coverage",
    "heckesel.metrics.regions",
    "heckesel.metrics.scores",
    "heckesel.plots",
    "heckesel.predictive",
    "heckesel.report.page",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
