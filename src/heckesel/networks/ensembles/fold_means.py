"""The mean outcome by the members that held out each fold, whose variation is a jackknife."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from heckesel.margins import ComponentMean, without_uncertainty
from heckesel.predictive import transformed
from heckesel.scales import TargetTransform


def fold_means(
    fitted: Any, x, w, target: str, *, folds: int | None, transform: TargetTransform | None
) -> ComponentMean:
    """folds : the number of folds that members held out in turn. If all members were trained on the
    same rows, their variation does not measure the uncertainty of the estimate."""

    def mean_of(part) -> np.ndarray:
        return transformed(part.predict(x, w, target), transform).mean

    predicted = mean_of(fitted)
    if folds is None or fitted.info.best_epoch is None:
        return without_uncertainty(predicted)
    members = len(fitted.info.training_loss)
    found = over_folds(lambda chosen: mean_of(fitted.of_members(chosen)), members, folds)
    return replace(found, predicted=predicted)


def over_folds(mean_of: Callable, members: int, folds: int) -> ComponentMean:
    """mean_of : maps (k,), True for some of the members, to their mean (m,)"""
    own = np.arange(members) % folds
    means = [mean_of(own == fold) for fold in range(min(members, folds))]
    return ComponentMean(1.0, np.stack(means), folds=folds)
