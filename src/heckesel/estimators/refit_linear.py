"""Refits of a linear model to other rows, with its error model and without a verdict."""

from dataclasses import replace

from sklearn.base import clone

from heckesel.data import kind_of_weights, scaled_weight
from heckesel.diagnostics.column_problems import check_fit
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.linear.estimable import check_estimable
from heckesel.linear.results.assemble import fit_in_memory
from heckesel.linear.rho_scan import Scan
from heckesel.methods import fit_one, linear_heckman
from heckesel.methods.linear_heckman import LinearModel
from heckesel.tables.both_equations import with_constants
from heckesel.tables.fit_input import read_table


def refit_alike(model: HeckmanRegressor, X, y, *, sample_weight=None) -> HeckmanRegressor:
    """A copy of `model` that predicts from these rows. Most of the time of a fit is spent on the
    choice of the error model and on the verdict; both are those of `model`."""
    twin, was = clone(model), model.result_
    data = read_table(
        twin, X, y, selected=None, sample_weight=sample_weight, check=check_fit, linear=True
    )
    weight_kind = kind_of_weights(model.weight_kind, data.weight)
    checked, design = with_constants(data, was.data.scale_names)
    check_estimable(checked)
    counted = replace(checked, weight=scaled_weight(checked.weight, weight_kind))
    options = {"weight_kind": weight_kind, "clusters": None}
    twin.result_ = fit_in_memory(counted, design, was.covariance, options, was.method, was.errors)
    twin.fitted_ = LinearModel(twin.result_)
    if isinstance(twin.result_.scan, Scan) and twin.result_.status == "boundary":
        alone = replace(data, weight=scaled_weight(data.weight, weight_kind))
        twin.fitted_ = LinearModel(twin.result_, fit_one(linear_heckman, alone))
    twin.identification_ = model.identification_
    return twin
