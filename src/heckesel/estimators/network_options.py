"""What all network estimators share: resolving their options, training, and a selection probit."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from heckesel.data import SelectionData
from heckesel.device import ALL_GPUS
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.io import progress_bar
from heckesel.methods import load_method, method_of
from heckesel.scales import SHIFTS, YEO_JOHNSON, on_other_scale

AUTO = "auto"
FOLDS = 5
PAPERS_MEMBERS = 5  # all trained on all rows
LEAST_SELECTED = 100  # so that a fold has twenty rows for early stopping


@dataclass(eq=False, repr=False)
class NetworkRegressor(SelectionRegressor):
    """The options that all regressors with networks share."""

    instruments: Any = None
    _: KW_ONLY
    n_members: int | None = None
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 1500
    learning_rate: float | None = None
    weight_decay: float | str | None = 1e-5
    batch_size: int | None = None
    device: str = "auto"
    dtype: str = "float32"
    random_state: Any = 0
    progress: bool = True
    missing: str = "error"
    on_problem: str = "error"
    target_transform: Any = None
    unobserved: Any = None
    folds: int | str | None = "auto"
    tails: str = "auto"


def network_config(model, selected: int, scale: tuple[int, ...] = (), **options):
    """The options of `model` as a `NetworkConfig` with every "auto" resolved, for `selected`
    selected units; scale : the columns of x on which sigma depends.

    "auto" folds are FOLDS if at least LEAST_SELECTED units are selected, or if the method needs
    them. On folds, held-out rows choose "auto" noise, tails and selection. Noise is "constant" and
    tails are "normal" without folds, with t or shape errors, with `scale`, and if the method has no
    other. Tails and errors are normal with a `target_transform`, since exp(t) has no finite mean.
    Selection is a probit without folds, and for methods that support nothing else.
    """
    method, members, folds = method_of(model), model.n_members, model.folds
    errors = getattr(model, "errors", "normal")
    if not (folds is None or is_one_of(folds, (AUTO,)) or is_whole(folds)):
        raise DataError(f"folds must be a whole number, 'auto' or None, got {folds!r}")
    for name in ("errors", "noise", "tails", "selection"):
        if not isinstance(getattr(model, name, AUTO), str):
            raise DataError(f"{name} must be a string, got {getattr(model, name)!r}")
    if errors == "t" and is_one_of(model.target_transform, (*SHIFTS, YEO_JOHNSON, AUTO)):
        raise DataError(
            f"with errors='t' and target_transform={model.target_transform!r} the outcome has no "
            "finite mean; set errors='normal'"
        )
    rescaled = on_other_scale(model)
    if errors == AUTO and rescaled:
        errors = "normal"
    from heckesel.networks.training.config import NetworkConfig, check_whole

    if members is not None:
        check_whole("n_members", members, 1)
    if folds == AUTO:
        enough = method.needs_folds or selected >= LEAST_SELECTED
        folds = folds_for(members) if enough and (members != 1 or method.needs_folds) else None
    if members is None:
        members = PAPERS_MEMBERS if folds is None else method.members
    noise, tails = getattr(model, "noise", "constant"), model.tails
    nothing = folds is None or method.one_sigma or errors != "normal" or bool(scale)
    if noise == AUTO and nothing:
        noise = "constant"
    if tails == AUTO and (nothing or rescaled):
        tails = "normal"
    selection = getattr(model, "selection", "linear")
    if selection == AUTO and (folds is None or not method.network_selection):
        selection = "linear"
    decay = method.weight_decay if model.weight_decay is None else model.weight_decay
    given = {name: value for name, value in options.items() if value is not None}
    return NetworkConfig(
        folds=folds,
        n_members=members,
        noise=noise,
        tails=tails,
        selection=selection,
        errors=errors,
        weight_decay=decay,
        scale=scale,
        **training_options(model) | given,
    )


def folds_for(n_members: int | None) -> int:
    """The number of folds that "auto" is for that many members; None is the default."""
    return max(FOLDS if n_members is None else min(FOLDS, n_members), 2)


def training_options(model) -> dict:
    """The options of `model` that have the same name in `NetworkConfig`, and the GPUs of
    device="cuda:*" as workers."""
    from heckesel.networks.training.config import layer_widths, torch_device
    from heckesel.networks.training.local_workers import all_gpus

    names = ("epochs", "learning_rate", "dtype", "device", "batch_size")
    found = {name: getattr(model, name) for name in names} | {"hidden": layer_widths(model.hidden)}
    if is_one_of(model.device, (ALL_GPUS,)):
        torch_device(model.device)  # refuses a machine without a GPU
        found |= {"device": "cuda", "map_over_workers": all_gpus()}
    return found


def seed_of(model) -> int:
    """The seed of a fit, from `random_state`: a number, a generator or None."""
    try:
        return int(check_random_state(model.random_state).randint(2**31))
    except ValueError:
        raise DataError(
            "random_state must be a whole number from 0 to 4294967295, a RandomState or None, got "
            f"{model.random_state!r}"
        ) from None


def train(model, name: str, data: SelectionData, network, config=None):
    """The fitted method, trained with the seed and the progress bar of `model`.

    network : how networks are trained; config : the options of the method, which by default builds
    them from those of the networks and of `model`
    """
    from heckesel.networks.ensembles.convergence import check_outcome, check_training

    check_outcome(data)
    method = load_method(name)
    if config is None:
        config = method.options(network, model) if hasattr(method, "options") else network
    with progress_bar("training", enabled=model.progress) as progress:
        (fitted,) = method.fit_many(
            [data], seeds=[seed_of(model)], config=config, progress=progress
        )
    fitted = predicting_in_float64(fitted)
    check_training(fitted, network, data)
    return fitted


def predicting_in_float64(fitted):
    """`fitted` with its weights in float64.

    In float32 the last digits of a prediction depend on how many rows are predicted together.
    """
    from heckesel.networks.ensembles.selection_ensemble import with_networks

    return with_networks(fitted, lambda m: replace(m, parameters=m.parameters.astype(np.float64)))
