"""From checked data to a `HeckmanProbitFit`; errors name what cannot be estimated."""

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, scaled_weight
from heckesel.errors import DataError, warn_user
from heckesel.linear.covariance import covariance_of
from heckesel.linear.estimable import Event, refuse, separation
from heckesel.linear.estimates import NEAR_BOUNDARY
from heckesel.linear.heckman_probit import (
    binary_covariance,
    binary_sample,
    covariance_given_rho,
    separated_covariance,
)
from heckesel.linear.joint import Point
from heckesel.linear.probit import fit_probit, probit_scores
from heckesel.linear.results.assemble import equation_labels
from heckesel.linear.results.heckman_probit_fit import SEPARATED, BinaryMode, HeckmanProbitFit
from heckesel.linear.results.inference import in_given_weights, labelled
from heckesel.linear.results.probit_prediction import ATANH_RHO
from heckesel.linear.rho_scan import scan, selected_mode
from heckesel.linear.sample.sample import SampleScale
from heckesel.linear.separated import (
    RIDGE,
    Overlap,
    fit_separated,
    overlap_of,
    separates_all_rows,
)
from heckesel.tables.fit_options import covariance_kind


def fit_binary(
    data: SelectionData,
    classes,
    *,
    covariance=None,
    weight_kind: str = "frequency",
    prefer_interior: bool = False,
) -> HeckmanProbitFit:
    """Maximum likelihood; data.y is 1 for the second class, 0 for the first, NaN where missing,
    and x and w have their constants.

    prefer_interior : whether a maximum at rho = +-1 must be clearly higher than an interior one to
        be used, see `selected_mode`

    An outcome that its columns separate gives a fit with status `separated` and a warning.
    """
    kind, codes = covariance_kind(
        covariance, data.groups, data.weight, weight_kind, has_likelihood=True
    )
    if not data.s.all() and data.weight[~data.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    sentence = _check_estimable(data, classes)
    if sentence is not None:
        warn_user(f"{sentence} ({SEPARATED})")
    rest = {"classes": classes, "separation": sentence}
    rest |= {"weight_kind": weight_kind, "clusters": codes}
    counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
    with threadpool_limits(1, user_api="blas"):
        if data.s.all():
            fit = _without_selection(counted, kind, rest)
        elif sentence is not None and _all_apart(counted):
            fit = _without_doubt(counted, kind, rest)
        else:
            fit = _ml(counted, kind, rest, prefer_interior)
    return fit if weight_kind == "frequency" else in_given_weights(fit, data)


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
        refuse(separation(data.w[used], data.s[used], data.w_names, where)[1])
    yes, no = (f"{data.y_name} = {label}" for label in (classes[1], classes[0]))
    where = f"among the {len(x)} selected rows"
    event = Event(f"the outcome {data.y_name!r}", yes, no)
    error = separation(x, happened, data.x_names, where, event)[1]
    return None if error is None else str(error)


def _how(rest: dict) -> dict:
    """The options of a covariance."""
    return {name: rest[name] for name in ("weight_kind", "clusters")}


def _all_apart(data: SelectionData) -> bool:
    used = data.s & (data.weight > 0)
    x, happened = data.x[used], data.y[used] == 1.0
    return separates_all_rows(x, happened, fit_separated(x, happened, data.weight[used]).gamma)


def _without_doubt(data: SelectionData, kind, rest) -> HeckmanProbitFit:
    r"""A fit in which every observed class is separated, so that :math:`\Phi_2(\eta, \pm f;
    \pm\rho)` goes to :math:`\Phi(\eta)` whatever rho is: selection is a separate probit, and there
    is no rho."""
    s, weight = data.s, data.weight
    outcome = fit_separated(data.x[s], data.y[s] == 1.0, weight[s])
    select = fit_probit(data.w, s, weight)
    labels = [*equation_labels(data), ATANH_RHO]
    values = np.concatenate([outcome.gamma, select.gamma, [np.nan]])
    params, cov = labelled(labels, values, np.full((len(labels),) * 2, np.nan))
    mode = BinaryMode(np.nan, outcome.loglik + select.loglik, "separated", params, False)
    return HeckmanProbitFit(**vars(mode), method="ml", covariance=kind, cov=cov, data=data, **rest)


def _ml(data: SelectionData, kind, rest, prefer_interior: bool) -> HeckmanProbitFit:
    ridge = 0.0 if rest["separation"] is None else RIDGE
    sample, scalings = binary_sample(data, ridge=ridge)
    found = scan(sample)
    selected = selected_mode(found.modes) if prefer_interior else 0
    best = found.modes[selected]
    labels = [*equation_labels(data), ATANH_RHO]
    modes = tuple(_mode(point, scalings, labels, ridge) for point in found.modes)
    if not ridge:
        covariance = binary_covariance(data, best, sample, scalings, kind, **_how(rest))
    else:
        covariance = _of_overlap(data, best, modes[selected].params, kind, _how(rest))
    _, cov = labelled(labels, modes[selected].params.to_numpy(), covariance)
    given_rho = None
    if best.status == "boundary" and not ridge:
        known = covariance_given_rho(best, sample, scalings)
        _, given_rho = labelled(labels, modes[selected].params, known)
    more: dict = {"modes": modes, "selected": selected, "scan": found, "cov_given_rho": given_rho}
    return HeckmanProbitFit(
        **vars(modes[selected]), method="ml", covariance=kind, cov=cov, data=data, **more, **rest
    )


def _of_overlap(data: SelectionData, best: Point, params, kind: str, options: dict):
    """Standard errors of the coefficients that the non-separated rows determine."""
    overlap, values = _overlap(data), params.to_numpy()
    if overlap is None or best.status != "converged":
        return np.full((len(values),) * 2, np.nan)
    return separated_covariance(data, values, overlap, kind, **options)


def _overlap(data: SelectionData) -> Overlap | None:
    """Rows of weight zero count as separated, because they have no effect."""
    used = data.weight[data.s] > 0
    x, happened = data.x[data.s], data.y[data.s] == 1.0
    found = overlap_of(x[used], happened[used])
    if found is None:
        return None
    rows = np.zeros(len(x), dtype=bool)
    rows[used] = found.rows
    return replace(found, rows=rows)


def _mode(point: Point, scalings: SampleScale, labels, ridge: float) -> BinaryMode:
    """A mode in the user's units; with a ridge, which its value has paid for, it is separated."""
    q = len(scalings.w.scale)
    paid = 0.5 * ridge * float(point.v[q:] @ point.v[q:])
    values = [scalings.x.back @ point.v[q:], scalings.w.back @ point.v[:q], [point.a]]
    params, _ = labelled(labels, np.concatenate(values), np.zeros((len(labels),) * 2))
    rho, status = float(np.tanh(point.a)), "separated" if ridge else point.status
    return BinaryMode(rho, point.value + paid, status, params, abs(rho) > NEAR_BOUNDARY)


def _without_selection(data: SelectionData, kind, rest) -> HeckmanProbitFit:
    happened, separated = data.y == 1.0, rest["separation"] is not None
    fit = (fit_separated if separated else fit_probit)(data.x, happened, data.weight)
    covariance = np.full_like(fit.hessian, np.nan)
    overlap = _overlap(data) if separated else None
    if not separated:
        covariance = _probit_covariance(data.x, happened, data.weight, fit, kind, _how(rest))
    elif overlap is not None:
        rows, columns, sure = overlap.rows, overlap.columns, overlap.determined
        x, event, weight = data.x[rows][:, columns], happened[rows], data.weight[rows]
        how, codes = _how(rest), rest["clusters"]
        how["clusters"] = None if codes is None else codes[rows]
        part = _probit_covariance(x, event, weight, fit_probit(x, event, weight), kind, how)
        covariance[np.ix_(columns, columns)] = part
        covariance[~sure] = covariance[:, ~sure] = np.nan
    params, cov = labelled([("outcome", name) for name in data.x_names], fit.gamma, covariance)
    mode = BinaryMode(np.nan, fit.loglik, fit.status, params, False)
    return HeckmanProbitFit(
        **vars(mode), method="probit", covariance=kind, cov=cov, data=data, **rest
    )


def _probit_covariance(x, happened, weight, fit, kind: str, options: dict) -> np.ndarray:
    scores = probit_scores(x, happened, fit.gamma)
    return covariance_of(kind, fit.hessian, scores, weight, **options)
