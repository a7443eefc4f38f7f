"""Summaries of fits: frozen dataclasses, and the dictionary that users see."""

from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Info = TypeVar("Info")


@dataclass(frozen=True)
class Choice:
    """Options that held-out rows compared with others; held_out_loss : the mean over those rows"""

    weight_decay: float
    errors: str
    held_out_loss: float


@dataclass(frozen=True)
class LinearInfo:
    """A linear fit.

    sigma, rho : one number each, in a list as for members of an ensemble
    training_loss : minus the mean log-likelihood of a unit
    status : "converged", "boundary" (no interior optimum) or "max_iterations"
    """

    sigma: list[float]
    rho: list[float] | None = None
    training_loss: list[float] | None = None
    status: str | None = None


@dataclass(frozen=True)
class EnsembleInfo:
    """Networks without a correction for selection; lists have one number for each member.

    training_loss : of the last epoch, for y as it was given
    held_out_loss : mean over held-out rows, at the calibrated level of the noise
    sigma_level : the factor on sigma(x) that held-out rows prefer
    best_epoch : the epoch with the lowest held-out loss
    tail_df : degrees of freedom, if held-out rows prefer the tails of a t
    weight_decay, errors, choices : choices made by held-out rows, and the alternatives
    """

    training_loss: list[float]
    held_out_loss: float | None = None
    sigma_level: float | None = None
    best_epoch: list[int] | None = None
    tail_df: float | None = None
    weight_decay: float | None = None
    errors: str | None = None
    choices: list[Choice] | None = None


@dataclass(frozen=True)
class ErrorModelInfo:
    """skewness, log_tail : of sinh-arcsinh errors, 0 for normal ones
    scale : slopes of log sigma in the chosen columns of x, in units of these columns
    """

    skewness: float
    log_tail: float
    scale: list[float]


@dataclass(frozen=True)
class SelectionInfo:
    """Networks with a correction for selection; fields that `EnsembleInfo` has mean the same.

    rho, sigma : correlation of the two errors and standard deviation of y given x, by member
    df : degrees of freedom of t errors, by member
    noise : "constant" or "varying"; held_out_losses : of each kind that was tried
    selection : "linear" or "network"; selection_losses : minus the mean log-likelihood of the
        selection of held-out units, under each
    validation_loss : lowest joint loss of each member on its held-out fold
    outcome_seen : how much selection depends on the outcome (1) or on its error alone (0)
    averaged : the models in an average; joint_losses : of a held-out unit, under networks and
        splines; joint_loss_error : standard error of that of the networks
    explanation : why this model was fitted
    error_model : of errors="shape" or scale=, averaged over members
    """

    rho: list[float]
    sigma: list[float]
    training_loss: list[float]
    df: list[float] | None = None
    tail_df: float | None = None
    held_out_loss: float | None = None
    best_epoch: list[int] | None = None
    noise: str | None = None
    held_out_losses: dict[str, float] | None = None
    selection: str | None = None
    selection_losses: dict[str, float] | None = None
    validation_loss: list[float] | None = None
    outcome_seen: float | None = None
    averaged: list[str] | None = None
    joint_losses: dict[str, float] | None = None
    joint_loss_error: float | None = None
    explanation: str | None = None
    weight_decay: float | None = None
    errors: str | None = None
    choices: list[Choice] | None = None
    error_model: ErrorModelInfo | None = None


@dataclass(frozen=True)
class RhoMode:
    """A local maximum of the posterior density of rho.

    weight : posterior mass between the minima around it; log_density : 0 for the highest mode
    boundary : the density still increases at the last grid value that the prior allows
    """

    rho: float
    sigma: float
    weight: float
    log_density: float
    boundary: bool


@dataclass(frozen=True)
class RhoInfo:
    """A mixture over rho.

    modes : highest first; rho_interval : equal-tailed, with 90 % of the posterior mass
    curve : "rho" and "log_evidence", the grid and the evidence, whose maximum is 0
    outcome : "network" or "spline", whichever makes held-out units likelier
    held_out_evidence : log-likelihood of held-out units: one number for the scaled y or, where
        networks and splines were compared, one for each and for y as it was given
    member_rho : where the correlation of each network ended
    error_model : of errors="shape" or scale=, averaged over rho
    """

    modes: list[RhoMode]
    rho_interval: list[float]
    curve: dict[str, list[float]]
    outcome: str | None = None
    held_out_evidence: float | dict[str, float] | None = None
    member_rho: list[float] | None = None
    error_model: ErrorModelInfo | None = None

    @property
    def rho(self) -> list[float]:
        """Of the modes."""
        return [mode.rho for mode in self.modes]

    @property
    def sigma(self) -> list[float]:
        """Of the modes."""
        return [mode.sigma for mode in self.modes]


@dataclass(frozen=True)
class Candidate:
    """A model that method "auto" weighs.

    outcome : "splines" or "networks"; estimator : "likelihood" or "two-step"
    errors : "normal", "shape" (skewed or heavy-tailed), "scale" (sigma depends on x), "shape and
        scale", "t" (one factor in both errors), or "any" for the two-step
    rho : mean of its posterior or over its networks; weight : its share in predictions
    held_out : log-likelihood of held-out units; behind, behind_error : its difference from the best
        candidate, and the standard error of that difference
    """

    outcome: str
    estimator: str
    errors: str
    rho: float
    weight: float
    held_out: float
    behind: float
    behind_error: float


@dataclass(frozen=True)
class AutoInfo:
    """Candidates of method "auto"; rho, sigma, weight : of the points of their mixture.

    rho_interval, member_rho : 5 % and 95 % quantiles of rho
    variance_factor : by which held-out units widen the variance of the mean that splines state
    surfaces : pairs of columns with an interaction; explanation : what was fitted, and why
    """

    rho: list[float]
    sigma: list[float]
    weight: list[float]
    candidates: list[Candidate]
    rho_interval: list[float]
    member_rho: list[float]
    variance_factor: float
    surfaces: list[list[int]]
    explanation: str


@dataclass(frozen=True)
class BinaryInfo:
    """Networks for two classes; rho, weight : the values of rho in the mixture and their weights.

    curve : "rho" and "held_out", the grid and the log-likelihood of held-out units less its
        maximum, which is `held_out_loglik`
    best_epoch : of each member, by rho; unfinished : members that were best at their last epoch
    """

    best_epoch: list[int] | list[list[int]]
    unfinished: int
    rho: list[float] | None = None
    weight: list[float] | None = None
    curve: dict[str, list[float]] | None = None
    held_out_loglik: float | None = None


def as_dictionary(info) -> dict[str, Any]:
    """The `info_` of an estimator and of a saved model: all fields but those that are None."""
    return {name: value for name, value in asdict(info).items() if value is not None}


def from_dictionary(kind: type[Info], values: dict[str, Any]) -> Info:
    """The opposite of `as_dictionary`. Names that `kind` does not have, as in files of other
    versions, are ignored; a `ValueError` names a field that is missing or of another type."""
    hints = get_type_hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]  # kind is a dataclass
        if field.default is MISSING and field.name not in values:
            raise ValueError(f"no {field.name!r}")
    return kind(
        **{name: _as(values[name], hint, name) for name, hint in hints.items() if name in values}
    )


def _as(value, hint, name: str):
    """`value`, made of plain lists and dictionaries, as an object of type `hint`."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        for part in parts:
            try:
                return _as(value, part, name)
            except ValueError:
                continue
    elif isinstance(value, dict) and isinstance(hint, type) and is_dataclass(hint):
        return from_dictionary(hint, value)
    elif kind is list and isinstance(value, list):
        return [_as(each, parts[0], name) for each in value]
    elif kind is dict and isinstance(value, dict):
        return {key: _as(each, parts[1], name) for key, each in value.items()}
    elif type(value) is hint or (hint is float and type(value) is int):
        return value
    raise ValueError(f"{value!r:.40} for {name!r}")
