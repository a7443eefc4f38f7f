"""The doors: they check, call a plain function, and keep what it returned."""

_FLOAT32 = (
    "sums over repeated rows and over weighted ones differ in the last bit of float32, and "
    "training grows the difference; with dtype='float64' the check passes"
)
_TOO_WIDE = "its data has more columns than rows, which determine no coefficients: a DataError"
_FOLDED = (
    "; networks are dealt folds row by row, and a row of weight two is in one fold where two rows "
    "may be in two"
)
# What scikit-learn's check_estimator may be told to expect (`expected_failed_checks=`), by class.
EXPECTED_FAILED_CHECKS = {
    "HeckmanRegressor": {
        "check_sample_weight_equivalence_on_dense_data": _TOO_WIDE,
    },
    "HeckmanClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _TOO_WIDE + _FOLDED,
    },
    "DeepHeckmanRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
    "DeepEnsembleRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
    "WeightedEnsembleRegressor": {"check_sample_weight_equivalence_on_dense_data": _FLOAT32},
}
