"""From checked data to a `HeckmanProbitFit`: what cannot be estimated is named, the rest fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, scaled_weight
from heckesel.errors import DataError, warn_user
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimable import (
    SELECTION,
    Event,
    check_columns,
    says_next_to_nothing,
    separating_column,
    separating_combination,
)
from heckesel.linear.heckman_probit import (
    BinaryEstimates,
    binary_covariance,
    binary_estimates,
    binary_sample,
    covariance_given_rho,
    scan_binary,
)
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.results.assemble import equation_labels
from heckesel.linear.results.heckman_probit_fit import SEPARATED, BinaryMode, HeckmanProbitFit
from heckesel.linear.results.inference import in_given_weights, labelled
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.linear.separated import RIDGE, fit_separated, separates_all_rows
from heckesel.tables.fit_options import covariance_kind


def fit_binary(
    data: SelectionData, classes, *, covariance=None, weight_kind: str = "frequency"
) -> HeckmanProbitFit:
    """Maximum likelihood; data.y is 1 for the second class, 0 for the first, NaN where missing,
    and x and w have their constants.

    An outcome that its columns separate gives a fit with status `separated` and a warning.
    """
    kind, _ = covariance_kind(covariance, None, data.weight, weight_kind, has_likelihood=True)
    if not data.s.all() and data.weight[~data.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    separation = _check_estimable(data, classes)
    if separation is not None:
        warn_user(f"{separation} ({SEPARATED})")
    if weight_kind == "frequency":
        return _fitted(data, classes, kind, weight_kind, separation)
    counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
    return in_given_weights(_fitted(counted, classes, kind, weight_kind, separation), data)


def _fitted(data: SelectionData, classes, kind, weight_kind, separation) -> HeckmanProbitFit:
    with threadpool_limits(1, user_api="blas"):
        if data.s.all():
            return _without_selection(data, classes, kind, weight_kind, separation)
        if separation is not None and _all_apart(data):
            return _without_doubt(data, classes, kind, weight_kind, separation)
        return _ml(data, classes, kind, weight_kind, separation)


def _check_estimable(data: SelectionData, classes) -> str | None:
    """Refuse what no fit can use; what separates the outcome comes back as a sentence."""
    used = data.weight > 0
    rows = used & data.s
    x, happened = data.x[rows], data.y[rows] == 1.0
    if happened.all() or not happened.any():
        raise DataError(
            f"only one class of {data.y_name!r} has rows of positive weight, so there is nothing "
            "to distinguish; two classes are needed"
        )
    if len(x) <= x.shape[1]:
        raise DataError(
            f"{len(x)} selected rows cannot determine {x.shape[1]} outcome coefficients; use fewer "
            "columns or more rows"
        )
    if not data.s.all():
        where = f"over all {int(used.sum())} rows"
        found = _separation(data.w[used], data.s[used], data.w_names, where, SELECTION)
        if found is not None:
            raise DataError(found)
    yes, no = (f"{data.y_name} = {label}" for label in (classes[1], classes[0]))
    where = f"among the {len(x)} selected rows"
    event = Event(f"the outcome {data.y_name!r}", yes, no)
    return _separation(x, happened, data.x_names, where, event)


def _separation(columns, happened, names, where: str, event: Event) -> str | None:
    """Constant and collinear columns are refused, separating ones named; combinations that
    separate are looked for where the data says next to nothing about a standardised
    coefficient."""
    check_columns(columns, names, where)
    found = separating_column(columns, happened, names, event)
    if found is not None:
        return found
    if says_next_to_nothing(columns, fit_probit(columns, happened).hessian):
        return separating_combination(columns, happened, names, event)
    return None


def _all_apart(data: SelectionData) -> bool:
    used = data.s & (data.weight > 0)
    x, happened = data.x[used], data.y[used] == 1.0
    return separates_all_rows(x, happened, fit_separated(x, happened, data.weight[used]).gamma)


def _without_doubt(data: SelectionData, classes, kind, weight_kind, separation) -> HeckmanProbitFit:
    r"""Every observed class is separated, so that :math:`\Phi_2(\eta, \pm f; \pm\rho)` goes to
    :math:`\Phi(\eta)` whatever rho is: selection is a separate probit, and there is no rho."""
    s, weight = data.s, data.weight
    outcome = fit_separated(data.x[s], data.y[s] == 1.0, weight[s])
    select = fit_probit(data.w, s, weight)
    labels = [*equation_labels(data), ATANH_RHO]
    values = np.concatenate([outcome.gamma, select.gamma, [np.nan]])
    params, cov = labelled(labels, values, np.full((len(labels),) * 2, np.nan))
    loglik = outcome.loglik + select.loglik
    mode = BinaryMode(float("nan"), loglik, "separated", params, False)
    rest = {"classes": classes, "weight_kind": weight_kind, "separation": separation}
    return _result("ml", mode, cov, kind, data, **rest)


def _result(method: str, mode: BinaryMode, cov, kind, data, **rest) -> HeckmanProbitFit:
    """The fit whose estimates are those of `mode`."""
    return HeckmanProbitFit(
        method=method,
        covariance=kind,
        params=mode.params,
        cov=cov,
        rho=mode.rho,
        loglik=mode.loglik,
        status=mode.status,
        near_boundary=mode.near_boundary,
        data=data,
        **rest,
    )


def _ml(data: SelectionData, classes, kind, weight_kind, separation) -> HeckmanProbitFit:
    ridge = 0.0 if separation is None else RIDGE
    sample, scalings = binary_sample(data, ridge=ridge)
    found = scan_binary(sample)
    best = found.modes[0]
    labels = [*equation_labels(data), ATANH_RHO]
    modes = tuple(
        _mode(binary_estimates(point, scalings, ridge=ridge), labels) for point in found.modes
    )
    params, cov = labelled(
        labels,
        modes[0].params.to_numpy(),
        binary_covariance(data, best, sample, scalings, kind, weight_kind=weight_kind),
    )
    given_rho = None
    if best.status == "boundary" and separation is None:
        _, given_rho = labelled(labels, params, covariance_given_rho(best, sample, scalings))
    return _result(
        "ml",
        modes[0],
        cov,
        kind,
        data,
        modes=modes,
        scan=found,
        cov_given_rho=given_rho,
        classes=classes,
        weight_kind=weight_kind,
        separation=separation,
    )


def _mode(item: BinaryEstimates, labels) -> BinaryMode:
    params, _ = labelled(labels, item.vector, np.zeros((len(labels),) * 2))
    return BinaryMode(item.rho, item.loglik, item.status, params, item.near_boundary)


def _without_selection(
    data: SelectionData, classes, kind, weight_kind, separation
) -> HeckmanProbitFit:
    happened = data.y == 1.0
    fit = (fit_probit if separation is None else fit_separated)(data.x, happened, data.weight)
    covariance = np.full_like(fit.hessian, np.nan)
    if separation is None:
        scores = probit_scores(data.x, happened, fit.gamma)
        covariance = covariance_of(kind, fit.hessian, scores, data.weight, weight_kind=weight_kind)
    params, cov = labelled([("outcome", name) for name in data.x_names], fit.gamma, covariance)
    mode = BinaryMode(float("nan"), fit.loglik, fit.status, params, False)
    rest = {"classes": classes, "weight_kind": weight_kind, "separation": separation}
    return _result("probit", mode, cov, kind, data, **rest)
