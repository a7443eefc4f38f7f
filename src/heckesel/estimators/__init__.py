"""Public classes and functions: they check their input, call a method and keep its result."""

_FLOAT32 = (
    "sums over repeated rows and sums over weighted rows differ in the last bit of float32, and "
    "training amplifies the difference; with dtype='float64' and without folds the check passes"
)
_TOO_WIDE = "the data of the check have more columns than rows, so the fit raises a DataError"
_FOLDED = (
    "; networks split rows into folds, and a row of weight two is in one fold, while two rows may "
    "be in two"
)
_REASONS = {
    "HeckmanRegressor": _TOO_WIDE,
    "HeckmanClassifier": _TOO_WIDE + _FOLDED,
    "DeepHeckmanRegressor": _FLOAT32 + _FOLDED,
    "DeepEnsembleRegressor": _FLOAT32 + _FOLDED,
}
# For `expected_failed_checks=` of scikit-learn's check_estimator, by class.
EXPECTED_FAILED_CHECKS = {
    name: {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    for name, why in _REASONS.items()
}
EXPECTED_FAILED_CHECKS["HeckmanImputer"] = {
    "check_estimators_pickle": "the data of the check have gaps in every column"
}
