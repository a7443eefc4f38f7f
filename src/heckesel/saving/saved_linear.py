"""A `HeckmanRegressor` as plain fields and arrays, and back."""

import pandas as pd

from heckesel.fit_info import LinearInfo, as_dictionary
from heckesel.linear.estimates import Estimates
from heckesel.linear.results.inference import keep_result
from heckesel.methods.linear_heckman import LinearHeckmanFit, LinearModel
from heckesel.saving.codec import Layout, Reader, Sizes, Special, array, info, number, text
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_estimates import (
    FIT,
    STATUSES,
    read_fit,
    write_fit,
)
from heckesel.saving.saved_fields import Fields
from heckesel.tables.columns import Columns


def state_of(model) -> dict:
    """The attributes that the fit set on `model`, other than those of all models."""
    boundary = model.fitted_.at_boundary
    at_boundary = None if boundary is None else BOUNDARY.write(boundary)
    fit = model.result_
    state = write_fit(fit, FIT) | {"errors": fit.errors, "scale": list(fit.data.scale_names)}
    return state | {"at_boundary": at_boundary, "choice": choice_of(model)}


def restore(model, state: Fields, columns: Columns) -> None:
    """Set the attributes of `model` that `state_of` returned."""
    result, boundary = read_fit(state, columns, model.identification_), None
    if state.has("at_boundary"):
        sizes = {"p": len(columns.x_names), "q": len(columns.w_names)}
        boundary = BOUNDARY.read(state.inside("at_boundary"), sizes)
    keep_result(model, result)
    model.fitted_ = LinearModel(result, boundary)
    if state.has("choice"):
        restore_choice(model, state.inside("choice"))


def choice_of(model) -> dict | None:
    """The explanation and the candidates of `method="auto"`."""
    if model.method != "auto" or not hasattr(model, "explanation_"):
        return None
    columns = {name: values.tolist() for name, values in model.candidates_.items()}
    return {"explanation": model.explanation_, "candidates": columns}


def restore_choice(model, state: Fields) -> None:
    """Set the attributes of `model` that `choice_of` returned."""
    model.explanation_ = state.text("explanation")
    try:
        model.candidates_ = pd.DataFrame(state.plain("candidates"))
    except (TypeError, ValueError):
        raise Damage("holds candidates that do not form a table") from None


def _log_sigma(state: Fields, name: str, sizes: Sizes) -> float:
    value = state.number(name)
    if abs(value) > 300:  # the square of its exponential would overflow
        raise Damage(f"holds {value:g} for {name!r} of {state.name}")
    return value


ESTIMATES: dict[str, Reader] = {
    "beta": array("p+1"),
    "gamma": array("q+1"),
    "log_sigma": _log_sigma,
    "atanh_rho": number(finite=False),
    "loglik": number(),
    "status": text(*STATUSES),
}
BOUNDARY = Layout(
    LinearHeckmanFit,
    ESTIMATES | {"beta_covariance": array("p+1", "p+1", finite=False), "info": info(LinearInfo)},
    Special(
        split=lambda fit: (
            {name: getattr(fit.estimates, name) for name in ESTIMATES}
            | {"beta_covariance": fit.covariance, "info": as_dictionary(fit.info)}
        ),
        join=lambda found: {
            "estimates": Estimates(**{name: found[name] for name in ESTIMATES}),
            "covariance": found["beta_covariance"],
            "info": found["info"],
        },
    ),
)
