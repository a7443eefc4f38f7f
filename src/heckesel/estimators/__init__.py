"""The doors: they check, call a plain function, and keep what it returned."""

_FLOAT32 = (
    "sums over repeated rows and over weighted ones differ in the last bit of float32, and "
    "training grows the difference; with dtype='float64' the check passes"
)
_TOO_WIDE = "its data has more columns than rows, which determine no coefficients: a DataError"
_SEPARATED = (
    "a column of its data predicts the class perfectly, so the probit has no finite estimate: a "
    "DataError names the column; with two overlapping classes the check passes"
)
# What scikit-learn's check_estimator may be told to expect (`expected_failed_checks=`), by class.
EXPECTED_FAILED_CHECKS = {
    "HeckmanRegressor": {
        "check_sample_weight_equivalence_on_dense_data": _TOO_WIDE,
    },
    "HeckmanClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _TOO_WIDE,
    }
    | dict.fromkeys(
        (
            "check_estimators_overwrite_params",
            "check_dont_overwrite_parameters",
            "check_estimators_fit_returns_self",
            "check_readonly_memmap_input",
            "check_positive_only_tag_during_fit",
            "check_sample_weights_shape",
            "check_sample_weights_not_overwritten",
            "check_pipeline_consistency",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_classifiers_classes",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_fit2d_1feature",
            "check_dict_unchanged",
            "check_fit2d_predict1d",
        ),
        _SEPARATED,
    ),
    "DeepHeckmanRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
    "DeepEnsembleRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
    "WeightedEnsembleRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
}
