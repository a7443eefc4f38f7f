"""From checked data to a `HeckmanProbitFit`: what cannot be estimated is named, the rest fitted."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.diagnostics.profile_curve import profile_curve
from heckesel.diagnostics.verdict import (
    NOT_IDENTIFIED,
    Identification,
    nothing_selected,
    with_profile,
)
from heckesel.errors import DataError, IdentificationWarning
from heckesel.linear.covariance import covariance_of, inverse
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
from heckesel.linear.results.assemble import equation_labels, verdict_by_wald
from heckesel.linear.results.heckman_probit_fit import SEPARATED, BinaryMode, HeckmanProbitFit
from heckesel.linear.results.inference import in_given_weights, labelled
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.linear.separated import RIDGE, fit_separated, tells_all_apart
from heckesel.tables.fit_options import covariance_kind
from heckesel.tables.weights import scaled_weight


def fit_binary(
    data: SelectionData, classes, *, covariance=None, weight_kind: str = "frequency"
) -> HeckmanProbitFit:
    """Maximum likelihood; data.y is 1 for the second class, 0 for the first, NaN where missing,
    and x and w have their constants.

    An outcome that its columns tell apart gives a fit too, with status `separated` and a warning.
    """
    kind, _ = covariance_kind(covariance, None, data.weight, weight_kind, has_likelihood=True)
    if not data.s.all() and data.weight[~data.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    separation = _check_estimable(data, classes)
    if separation is not None:
        warnings.warn(f"{separation} ({SEPARATED})", IdentificationWarning, stacklevel=3)
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
            "to tell apart; two classes are needed"
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
    return tells_all_apart(x, happened, fit_separated(x, happened, data.weight[used]).gamma)


def _without_doubt(data: SelectionData, classes, kind, weight_kind, separation) -> HeckmanProbitFit:
    r"""Every observed class is told apart, so that :math:`\Phi_2(\eta, \pm f; \pm\rho)` goes to
    :math:`\Phi(\eta)` whatever rho is: selection is a probit of its own, and there is no rho."""
    s, weight = data.s, data.weight
    outcome = fit_separated(data.x[s], data.y[s] == 1.0, weight[s])
    select = fit_probit(data.w, s, weight)
    labels = [*equation_labels(data), ATANH_RHO]
    values = np.concatenate([outcome.gamma, select.gamma, [np.nan]])
    params, cov = labelled(labels, values, np.full((len(labels),) * 2, np.nan))
    return HeckmanProbitFit(
        method="ml",
        covariance=kind,
        params=params,
        cov=cov,
        rho=float("nan"),
        loglik=outcome.loglik + select.loglik,
        status="separated",
        near_boundary=False,
        modes=(),
        identification=Identification(
            NOT_IDENTIFIED,
            f"the columns tell the classes of all {int(s.sum())} observed rows apart, so that "
            "every rho fits them equally well; more rows, or fewer columns, are needed.",
            {"instruments": list(data.instruments)},
        ),
        data=data,
        classes=classes,
        weight_kind=weight_kind,
        separation=separation,
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
    fit = HeckmanProbitFit(
        method="ml",
        covariance=kind,
        params=params,
        cov=cov,
        rho=modes[0].rho,
        loglik=modes[0].loglik,
        status=modes[0].status,
        near_boundary=modes[0].near_boundary,
        modes=modes,
        identification=with_profile(_verdict(data, params, cov), profile_curve(found)),
        data=data,
        classes=classes,
        cov_given_rho=given_rho,
        scan=found,
        weight_kind=weight_kind,
        separation=separation,
    )
    if not data.instruments or fit.status == "boundary":
        warnings.warn(str(fit.identification), IdentificationWarning, stacklevel=5)
    return fit


def _verdict(data: SelectionData, params, cov) -> Identification:
    """From the excluded columns' Wald test; a fit without a covariance asks the probit alone."""
    gamma, covariance = params["select"].to_numpy(), cov["select"].loc["select"].to_numpy()
    if not np.isfinite(covariance).all():
        probit = fit_probit(data.w, data.s, data.weight)
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
    return verdict_by_wald(data, gamma, covariance)


def _mode(item: BinaryEstimates, labels) -> BinaryMode:
    params, _ = labelled(labels, item.vector, np.zeros((len(labels),) * 2))
    return BinaryMode(item.rho, item.loglik, item.status, params, item.near_boundary)


def _without_selection(
    data: SelectionData, classes, kind, weight_kind, separation
) -> HeckmanProbitFit:
    warnings.warn(
        f"all {data.n} rows have an outcome, so every unit was selected and there is nothing to "
        "correct: this is a plain probit",
        IdentificationWarning,
        stacklevel=5,
    )
    happened = data.y == 1.0
    fit = (fit_probit if separation is None else fit_separated)(data.x, happened, data.weight)
    covariance = np.full_like(fit.hessian, np.nan)
    if separation is None:
        scores = probit_scores(data.x, happened, fit.gamma)
        covariance = covariance_of(kind, fit.hessian, scores, data.weight, weight_kind=weight_kind)
    params, cov = labelled([("outcome", name) for name in data.x_names], fit.gamma, covariance)
    return HeckmanProbitFit(
        method="probit",
        covariance=kind,
        params=params,
        cov=cov,
        rho=float("nan"),
        loglik=fit.loglik,
        status=fit.status,
        near_boundary=False,
        modes=(),
        identification=nothing_selected(),
        data=data,
        classes=classes,
        weight_kind=weight_kind,
        separation=separation,
    )
