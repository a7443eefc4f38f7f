"""Fitted models with drawn parameters, so that imputations vary with parameter uncertainty.

A linear model is fitted again to the same rows with exponential weights (the Bayesian bootstrap),
which needs neither a covariance nor an interior optimum. Networks and splines are too slow for
that: one of their members or components is drawn (`draw` of the fitted ensembles).
"""

import warnings
from dataclasses import replace

import numpy as np

from heckesel.classical.heckman import fit_in_memory
from heckesel.classical.probit_results import HeckmanProbitFit, LinearProbit, fit_binary
from heckesel.classical.results import HeckmanFit
from heckesel.errors import DataError
from heckesel.methods.linear_heckman import LinearModel
from heckesel.predictive import RHO_LIMIT


def draw_model(model, rng):
    """A predictor for an estimator of heckesel, with drawn parameters that are treated as known."""
    result = getattr(model, "result_", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `fit` has already warned
        if isinstance(result, HeckmanFit):
            return LinearModel(_known(_refit_linear(result, rng)))
        if isinstance(result, HeckmanProbitFit):
            return LinearProbit(_refit_probit(result, rng, model.method == "auto"))
    if not hasattr(model.fitted_, "draw"):
        raise DataError(f"a fit of kind {type(model.fitted_).__name__} has no parameters to draw")
    return model.fitted_.draw(rng)


def _refit_linear(fit: HeckmanFit, rng) -> HeckmanFit:
    """The same estimator and error model; the choice of method="auto" is treated as known."""
    options = {"weight_kind": "probability", "clusters": None}
    data = _reweighted(fit, rng)
    return fit_in_memory(data, fit.design, "robust", options, fit.method, fit.errors)


def _refit_probit(fit: HeckmanProbitFit, rng, prefer_interior: bool) -> HeckmanProbitFit:
    data, options = _reweighted(fit, rng), {"weight_kind": "probability"}
    return fit_binary(data, fit.classes, prefer_interior=prefer_interior, **options)


def _reweighted(fit, rng):
    """Rows of one group have one weight in common."""
    data, codes = fit.data, fit.clusters
    code = np.arange(data.n) if codes is None else np.unique(codes, return_inverse=True)[1]
    weight = data.weight * rng.standard_exponential(code.max() + 1)[code]
    return replace(data, weight=weight / weight.mean())


def _known(fit: HeckmanFit) -> HeckmanFit:
    """Without parameter uncertainty, and with a correlation that a distribution can have."""
    rho = np.clip(fit.rho, -RHO_LIMIT, RHO_LIMIT)
    return replace(fit, cov=0.0 * fit.cov.fillna(0.0), cov_given_rho=None, rho=rho)
