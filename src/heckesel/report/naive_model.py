"""The fit that ignores selection, with which the corrected one is compared, and its refits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator, clone

from heckesel.data import SelectionData
from heckesel.diagnostics.column_problems import check_fit
from heckesel.estimators.classifier_networks import fit_binary_networks
from heckesel.estimators.deep_ensemble_regressor import DeepEnsembleRegressor
from heckesel.estimators.network_options import AUTO, network_config
from heckesel.linear.probit import fit_probit
from heckesel.methods import fit_one, least_squares
from heckesel.predictive.transformed import transformed
from heckesel.report.report_data import ReportData
from heckesel.tables.fit_input import read_columns, read_table

LEAST_SQUARES = "least squares on the observed outcomes"
PLAIN_PROBIT = "a probit on the observed outcomes"
PLAIN_ENSEMBLE = "a plain ensemble of networks on the observed outcomes"
TRAINED_ALIKE = f"{PLAIN_ENSEMBLE}, with the same options"
GIVEN = "the baseline model you gave"


@dataclass(frozen=True)
class Naive:
    """what, short : its name in a sentence and over a column
    mean : (n,) predictions for all rows; coefficients : by outcome term, if it is linear
    refit : rows of a fit and (m,) other rows -> (m,) predictions for the latter; None for a fit to
        all rows, which then counts as known
    """

    what: str
    short: str
    mean: np.ndarray
    coefficients: dict[str, float]
    refit: Callable[[np.ndarray, np.ndarray], np.ndarray] | None


def naive_fit(model, data: ReportData, baseline=None, *, members: int | None = None) -> Naive:
    """Least squares or a probit for a linear model, otherwise networks with its options.

    members : of the refits of networks
    """
    if baseline is not None:
        return _given(baseline, data, members)
    everyone = np.arange(data.n)
    if hasattr(model, "result_"):
        twin = clone(model)
        sample = _sample(twin, data, linear=True)  # once: refits take some of its rows
        x = twin.columns_.x(data.frame)
        mean, coefficients = _linear(twin, sample, x, data, everyone)
        what = LEAST_SQUARES if data.classes is None else PLAIN_PROBIT
        short = "least squares" if data.classes is None else "probit"
        again = partial(_linear_again, twin, sample, x, data)
        return Naive(what, short, mean, coefficients, again)
    if data.classes is not None:
        mean = _plain_networks(model, data, everyone, everyone)
        return Naive(TRAINED_ALIKE, "naive", mean, {}, partial(_plain_networks, model, data))
    plain = plain_ensemble(model, int(data.s.sum()))
    mean = data.mean_of(data.fitted(clone(plain)))
    return Naive(TRAINED_ALIKE, "naive", mean, {}, _refit(plain, data, members))


def _given(baseline, data: ReportData, members: int | None) -> Naive:
    what = PLAIN_ENSEMBLE if isinstance(baseline, DeepEnsembleRegressor) else GIVEN
    refit = _refit(baseline, data, members) if isinstance(baseline, BaseEstimator) else None
    return Naive(what, "naive", data.mean_of(baseline), {}, refit)


def _refit(model, data: ReportData, members: int | None) -> Callable:
    def refit(kept, at):
        twin = clone(model)
        if members is not None and "n_members" in twin.get_params():
            twin.set_params(n_members=members, progress=False)
        return data.mean_of(data.fitted(twin, kept), at)

    return refit


def plain_ensemble(model, selected: int) -> DeepEnsembleRegressor:
    """An unfitted ensemble with the options that `model` used on so many selected rows.

    Options that were not given take the defaults of the model's method. Otherwise the two would
    differ in how they were trained.
    """
    network = network_config(model, selected)
    used = model.get_params() | vars(network)
    if network.weight_decay == AUTO:  # chosen on held-out rows
        used["weight_decay"] = model.fitted_.info.weight_decay
    plain = DeepEnsembleRegressor()
    return plain.set_params(**{name: used[name] for name in plain.get_params()})


def _linear(
    twin, sample: SelectionData, x: np.ndarray, data: ReportData, rows: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Predictions at x, and coefficients, of a fit to the observed outcomes in `rows`.

    twin : knows the scale of `sample`, all rows of the fit
    """
    used = np.isin(np.arange(data.n), rows)
    if sample.n < data.n:  # rows of weight zero are not in the sample
        used = used[np.asarray(data.weight) > 0]
    sample = sample.take(used)
    names = (*sample.x_names, "Intercept")
    if data.classes is None:
        fitted = fit_one(least_squares, sample)
        mean, beta = transformed(fitted.predict(x), twin.transform_).mean, fitted.beta
    else:
        columns, s = np.column_stack([sample.x, np.ones(sample.n)])[sample.s], sample.s
        beta = fit_probit(columns, sample.y[s] == 1.0, sample.weight[s]).gamma
        mean = ndtr(np.column_stack([x, np.ones(len(x))]) @ beta)
    return mean, dict(zip(names, beta.tolist(), strict=True))


def _linear_again(twin, sample: SelectionData, x, data: ReportData, kept, at) -> np.ndarray:
    """Predictions at some rows by a fit to those kept."""
    return _linear(twin, sample, x[at], data, kept)[0]


def _plain_networks(model, data: ReportData, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """P(second class) at some rows by networks trained on the observed classes in `rows`."""
    twin = clone(model).set_params(progress=False)
    sample = _sample(twin, data, linear=False)
    used = np.isin(np.arange(data.n), rows) & data.s
    fitted = fit_binary_networks(twin, sample.take(used))
    return fitted.probabilities(twin.columns_.x(data.frame.iloc[at]))[:, 1]


def _sample(twin, data: ReportData, *, linear: bool) -> SelectionData:
    """The data of the fit; leaves what reads them on `twin`."""
    if data.classes is None:
        return read_table(
            twin,
            data.frame,
            data.y,
            selected=data.s,
            sample_weight=data.weight,
            groups=data.groups,
            check=check_fit,
            linear=linear,
        )
    y = np.where(data.s, data.y, np.nan)
    given = lambda: y, "y", data.s, data.weight, data.groups
    return read_columns(twin, data.frame, *given, check=check_fit, linear=linear)
