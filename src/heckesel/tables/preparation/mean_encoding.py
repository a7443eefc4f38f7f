"""Categories with many levels as numbers: the mean of a target at each level, cross-fitted."""

import numpy as np
import pandas as pd

FOLDS = 5
SEED = 20_790  # fixed, so that the same table always gets the same numbers


def cross_fitted_means(
    labels: pd.Series, target: np.ndarray, known: np.ndarray, groups: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, float], float]:
    """(n,) means for the fit, the mean of each level for predictions, and the overall mean.

    labels : (n,) strings; None is also a level
    target : (n,); known : (n,) where it is known
    groups : (n,) integer codes of rows that stay in one fold

    scikit-learn's `TargetEncoder` shrinks the mean of a level towards the overall mean. In the fit,
    each row gets the mean over other folds: otherwise its own outcome would be part of its column.
    Rows without a target get it in the same way, so that both kinds have the same distribution.
    """
    values = labels.fillna("").to_numpy(dtype=object)[:, None]
    own = np.arange(len(values)) if groups is None else groups
    folds = (np.random.default_rng(SEED).permutation(own.max() + 1) % FOLDS)[own]
    fitted = np.empty(len(values))
    for fold in range(FOLDS):
        inside = folds == fold
        rest = known & ~inside
        fitted[inside] = _encoder(values[rest], target[rest]).transform(values[inside])[:, 0]
    encoder = _encoder(values[known], target[known])
    means = dict(zip(encoder.categories_[0], map(float, encoder.encodings_[0]), strict=True))
    return fitted, means, float(encoder.target_mean_)


def _encoder(values: np.ndarray, target: np.ndarray):
    from sklearn.preprocessing import TargetEncoder

    return TargetEncoder(target_type="continuous").fit(values, target)
