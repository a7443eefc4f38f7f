"""A `HeckmanRegressor` as plain fields and arrays, and back."""

from __future__ import annotations

from heckesel.linear.estimates import Estimates
from heckesel.methods.linear_heckman import LinearModel
from heckesel.saving.codec import Layout, Reader, Sizes, array, number, plain, text
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_estimates import FIT, STATUSES, keep_coefficients, read_fit, write_fit
from heckesel.saving.saved_fields import Fields
from heckesel.tables.columns import Columns


def state_of(model) -> dict:
    """What the fit left on `model`, beyond what all models have."""
    boundary = model.fitted_.at_boundary
    at_boundary = None if boundary is None else BOUNDARY.write(boundary)
    return write_fit(model.result_, FIT) | {"at_boundary": at_boundary}


def restore(model, state: Fields, columns: Columns) -> None:
    """Put on `model` what `state_of` took from it."""
    result, boundary = read_fit(state, columns, model.identification_), None
    if state.has("at_boundary"):
        sizes = {"p": len(columns.x_names), "q": len(columns.w_names)}
        boundary = BOUNDARY.read(state.inside("at_boundary"), sizes)
    keep_coefficients(model, result, columns)
    model.fitted_, model.sigma_ = LinearModel(result, boundary), result.sigma


def _log_sigma(state: Fields, name: str, sizes: Sizes) -> float:
    value = state.number(name)
    if abs(value) > 300:  # exp of it, squared, is no number any more
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
    "heckesel.methods.linear_heckman",
    "LinearHeckmanFit",
    ESTIMATES | {"beta_covariance": array("p+1", "p+1", finite=False), "info": plain},
    split=lambda fit: (
        {name: getattr(fit.estimates, name) for name in ESTIMATES}
        | {"beta_covariance": fit.covariance, "info": fit.info}
    ),
    join=lambda found: {
        "estimates": Estimates(**{name: found[name] for name in ESTIMATES}),
        "covariance": found["beta_covariance"],
        "info": found["info"],
    },
)
