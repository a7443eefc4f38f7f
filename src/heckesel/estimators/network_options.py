"""What all network estimators share: resolving their options, training, and a selection probit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.progress import progress_bar

AUTO = "auto"
# Two of ten members hold out the same fold; more than ten members change nothing (X4).
FOLDS, MEMBERS = 5, 10
PROFILE_MEMBERS = 20  # four per fold, which share their evidence on rho (`heckman_profile`)
PAPERS_MEMBERS = 5  # all trained on all rows
ON_FOLDS = ("auto", "averaged", "profile")  # methods that need held-out rows
CROSS_FITTED = ("auto", "two-step", "averaged")  # methods that support a network for selection
LEAST_SELECTED = 100  # so that a fold has twenty rows for early stopping


@dataclass(frozen=True)
class TrainingPlan:
    """Number of folds (or None) and members, and which choices the held-out rows make."""

    folds: int | None
    n_members: int
    noise: str
    tails: str
    selection: str
    errors: str = "normal"


def training_plan(model, selected: int, *, needs_folds: bool = False) -> TrainingPlan:
    """The options of `model` with every "auto" resolved, for `selected` selected units.

    "auto" folds are FOLDS if at least LEAST_SELECTED units are selected, or if the method needs
    them (`needs_folds`). On folds, held-out rows choose "auto" noise, tails and selection. There
    is one sigma and there are normal tails without folds, with method "profile" and with t errors.
    Tails and errors are normal with a `target_transform`, since exp(t) has no finite mean.
    Selection is a probit without folds, and for methods that support nothing else.
    """
    members, folds = model.n_members, model.folds
    errors = getattr(model, "errors", "normal")
    if not (folds is None or is_one_of(folds, (AUTO,)) or is_whole(folds)):
        raise DataError(f"folds must be a whole number, 'auto' or None, got {folds!r}")
    for name in ("errors", "noise", "tails", "selection"):
        if not isinstance(getattr(model, name, AUTO), str):
            raise DataError(f"{name} must be a string, got {getattr(model, name)!r}")
    if model.target_transform == "log" and errors == "t":
        raise DataError(
            "with errors='t' and target_transform='log' the outcome has no finite mean; set "
            "errors='normal'"
        )
    if errors == AUTO and model.target_transform is not None:
        errors = "normal"
    profile = getattr(model, "method", None) == "profile"
    from heckesel.networks.training.config import check_whole

    if members is not None:
        check_whole("n_members", members, 1)
    if folds == AUTO:
        most = FOLDS if members is None else min(FOLDS, members)
        enough = needs_folds or selected >= LEAST_SELECTED
        folds = max(most, 2) if enough and (most > 1 or needs_folds) else None
    if members is None:
        on_folds = PROFILE_MEMBERS if profile else MEMBERS
        members = PAPERS_MEMBERS if folds is None else on_folds
    noise, tails = getattr(model, "noise", "constant"), model.tails
    nothing = folds is None or profile or errors != "normal"
    if noise == AUTO and nothing:
        noise = "constant"
    if tails == AUTO and (nothing or model.target_transform is not None):
        tails = "normal"
    selection = getattr(model, "selection", "linear")
    if selection == AUTO and (folds is None or model.method not in CROSS_FITTED):
        selection = "linear"
    return TrainingPlan(folds, members, noise, tails, selection, errors)


def training_options(model) -> dict:
    """The options of `model` that have the same name in `NetworkConfig`."""
    from heckesel.networks.training.config import layer_widths

    names = ("epochs", "learning_rate", "dtype", "device", "batch_size")
    return {name: getattr(model, name) for name in names} | {"hidden": layer_widths(model.hidden)}


def network_config(model, selected: int):
    """The options of `model` as a `NetworkConfig`, for `selected` selected units."""
    from heckesel.networks.training.config import NetworkConfig

    plan = training_plan(model, selected)
    return NetworkConfig(
        **training_options(model),
        n_members=plan.n_members,
        weight_decay=model.weight_decay,
        folds=plan.folds,
        tails=plan.tails,
    )


def seed_of(model) -> int:
    """The seed of a fit, from `random_state`: a number, a generator or None."""
    try:
        return int(check_random_state(model.random_state).randint(2**31))
    except ValueError:
        raise DataError(
            "random_state must be a whole number from 0 to 4294967295, a RandomState or None, got "
            f"{model.random_state!r}"
        ) from None


def train(model, method: str, data: SelectionData, config):
    """The fitted `method`, trained with the seed and the progress bar of `model`."""
    from heckesel.methods import fit_one
    from heckesel.networks.ensembles.convergence import check_outcome, check_training

    check_outcome(data)
    with progress_bar("training", enabled=model.progress) as progress:
        fitted = fit_one(method, data, seed=seed_of(model), config=config, progress=progress)
    fitted = predicting_in_float64(fitted)
    check_training(fitted, getattr(config, "network", config), data)
    return fitted


def predicting_in_float64(fitted):
    """`fitted` with its weights in float64.

    In float32 the last digits of a prediction depend on how many rows are predicted together.
    """
    from heckesel.networks.ensembles.selection_ensemble import with_networks

    return with_networks(fitted, lambda m: replace(m, parameters=m.parameters.astype(np.float64)))
