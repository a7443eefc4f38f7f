"""`model.save(path)` and `hk.load(path)`, and the table of classes that have both."""

from heckesel.saving.saved_model import load_model, save_model

_NETWORKS = "heckesel.saving.network_layouts"
# Class -> its module, and the module that makes plain fields of its fit.
CLASSES = {
    "HeckmanRegressor": ("heckesel.estimators.heckman_regressor", "heckesel.saving.saved_linear"),
    "HeckmanClassifier": (
        "heckesel.estimators.heckman_classifier",
        "heckesel.saving.saved_classifier",
    ),
    "DeepHeckmanRegressor": ("heckesel.estimators.deep_heckman_regressor", _NETWORKS),
    "DeepEnsembleRegressor": ("heckesel.estimators.deep_ensemble_regressor", _NETWORKS),
    "WeightedEnsembleRegressor": ("heckesel.estimators.weighted_ensemble_regressor", _NETWORKS),
}


def save(model, path) -> None:
    """Write `model`, fitted, to the file `path`, which is replaced in one step."""
    save_model(model, path, CLASSES)


def load(path):
    """Load a model that `save` wrote.

    No code from the file is executed. Predictions are bit-identical to those of the saved model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    DataError
        If the file is damaged, altered, of a newer version or not a model.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> model.save("model.heckesel")
    >>> bool((hk.load("model.heckesel").predict(frame[["x"]]) == model.predict(frame[["x"]])).all())
    True
    """
    return load_model(path, CLASSES)
