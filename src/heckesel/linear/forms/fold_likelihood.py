"""The likelihood of held-out units under several error models, on the same folds."""

import numpy as np

from heckesel.linear.forms.error_models import Form
from heckesel.linear.forms.form_search import climb, unit_logliks
from heckesel.linear.sample.sample import Sample

FOLDS = 5
FOLD_SEED = 1979  # fixed, so that the same data always gives the same choice


def split_rows(sample: Sample) -> list[np.ndarray]:
    """Fold of each selected and of each unselected row. Folds have nearly equal numbers of both;
    rows of one group are in one fold."""
    rng = np.random.default_rng(FOLD_SEED)
    if sample.groups is not None:
        of_group = rng.permutation(1 + max(each.max(initial=0) for each in sample.groups)) % FOLDS
        return [of_group[each] for each in sample.groups]
    return [rng.permutation(len(w)) % FOLDS for w in (sample.w_selected, sample.w_unselected)]


def held_out_logliks(form: Form, sample: Sample, folds, start: np.ndarray) -> np.ndarray:
    """(n,) log-likelihood of each unit under a fit to the other folds, selected units first.

    folds : as `split_rows` returns them
    start : the estimates on all rows, which are close to those without a fold
    """
    n1 = len(sample.w_selected)
    found = np.empty(sample.n)
    for fold in range(FOLDS):
        inside, outside = (each == fold for each in folds)
        point = climb(form, sample.take(~inside, ~outside), start, rough=True)
        units = unit_logliks(form, sample.take(inside, outside), point.coordinates)
        found[:n1][inside] = units[: inside.sum()]
        found[n1:][outside] = units[inside.sum() :]
    return found


def lead(units: np.ndarray, others: np.ndarray, weight, mass, groups=None) -> tuple[float, float]:
    """Weighted sum of `units` - `others` with its standard error; mass : the weights of a
    frequency-weighted sample, else their squares; groups : (n,) codes of dependent rows, over which
    differences are added up."""
    difference = units - others
    apart = difference - weight @ difference / weight.sum()
    if groups is None:
        variance = mass @ apart**2
    else:
        variance = np.sum(np.bincount(groups, weight * apart) ** 2)
    return float(weight @ difference), float(np.sqrt(variance))
