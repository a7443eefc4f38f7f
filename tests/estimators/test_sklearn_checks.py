"""scikit-learn's own checks, for every estimator."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import heckesel as hk
from heckesel.estimators import EXPECTED_FAILED_CHECKS

# Small networks, trained until R2 on 200 rows passes the .5 that one check asks for.
SMALL = {
    "n_members": 1,
    "hidden": (16,),
    "epochs": 120,
    "learning_rate": 0.05,
    "device": "cpu",
    "dtype": "float64",
}
MODELS = [
    hk.HeckmanRegressor(method="ml"),
    hk.HeckmanRegressor(method="two-step"),
    hk.HeckmanClassifier(method="ml"),
    hk.DeepHeckmanRegressor(networks=hk.Networks(**SMALL)),
    hk.DeepEnsembleRegressor(networks=hk.Networks(**SMALL)),
    hk.Networks(**SMALL, folds=None),
    hk.HeckmanImputer(),
]


def expected_failures(model):
    networks = getattr(model, "networks", model)
    in_float64 = getattr(networks, "dtype", None) == "float64"
    folds = getattr(networks, "n_members", 1) > 1
    return {} if in_float64 and not folds else EXPECTED_FAILED_CHECKS[type(model).__name__]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_only_the_check_of_weight_equivalence_may_fail():
    assert list(EXPECTED_FAILED_CHECKS["HeckmanImputer"]) == ["check_estimators_pickle"]
    for name in set(EXPECTED_FAILED_CHECKS) - {"HeckmanImputer"}:
        assert list(EXPECTED_FAILED_CHECKS[name]) == [
            f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")
        ]


@pytest.mark.filterwarnings("ignore")
def test_the_classifier_fails_only_checks_with_more_columns_than_rows():
    results = check_estimator(hk.HeckmanClassifier(method="ml"), on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert set(failed) == set(EXPECTED_FAILED_CHECKS["HeckmanClassifier"])
    assert all("is a linear combination of" in reason for reason in failed.values())


def mixed_table(n=400):
    frame = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]
    return frame.assign(town=np.array(list("abcd"))[np.arange(n) % 4])


def test_the_classifier_is_cross_validated_with_missing_classes():
    frame = mixed_table()
    X, y = frame[["x", "z"]], frame["y"]
    classes = (y > 0).astype(float).where(y.notna())
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    nan = cross_val_score(hk.HeckmanClassifier(["z"], method="ml"), X, classes, cv=folds)
    coded = hk.HeckmanClassifier(["z"], unobserved=-1, method="ml")
    np.testing.assert_array_equal(cross_val_score(coded, X, classes.fillna(-1), cv=folds), nan)
    # whole numbers of folds stratify by the label of a missing class, too
    scores = cross_val_score(coded, X, classes.fillna(-1), cv=3)
    assert np.isfinite(scores).all()
    search = GridSearchCV(
        coded, {"method": ["ml", "auto"]}, cv=3, scoring=hk.joint_log_likelihood_scorer
    )
    assert np.isfinite(search.fit(X, classes.fillna(-1)).best_score_)


def test_a_wide_sparse_table_is_refused_before_it_fills_the_memory():
    X = sparse.csr_matrix((200_000, 30_000))
    y = np.where(np.arange(200_000) % 2, 1.0, np.nan)
    for call in (hk.HeckmanRegressor(method="ml").fit, hk.DeepHeckmanRegressor().fit, hk.identify):
        with pytest.raises(
            hk.DataError,
            match=r"sparse with 200,000 rows and 30,000 columns.* or pass X\.toarray\(\)",
        ):
            call(X, y)
