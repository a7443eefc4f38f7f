"""What regressors made of networks share: training, prediction in float64, a probit beside."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.linear.probit import fit_probit
from heckesel.predictive.distribution import Predictive
from heckesel.progress import progress_bar
from heckesel.tables.array_design import with_intercept

AUTO = "auto"
# Each fold is left out by two of ten members; more than ten change nothing (X4).
FOLDS, MEMBERS = 5, 10
PROFILE_MEMBERS = 20  # four without each fold share what they say of rho (`heckman_profile`)
PAPERS_MEMBERS = 5  # all on all rows
ON_FOLDS = ("averaged", "profile")  # methods that have nothing else to be judged by
CROSS_FITTED = ("two-step", "averaged")  # methods that take an index of networks
LEAST_SELECTED = 100  # a fold of twenty to end by


@dataclass(frozen=True)
class BesideProbit:
    """An outcome model that takes selection for chance, and beside it a probit of selection.

    gamma : (q + 1,) the constant first; None where no probit could be fitted
    """

    outcome: object
    gamma: np.ndarray | None
    info: dict

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """The same for all three targets."""
        return self.outcome.predict(x, w, target)  # type: ignore[attr-defined]

    def index(self, w) -> np.ndarray:
        if self.gamma is None:
            raise DataError(
                "no probit of selection could be fitted, so there is no likelihood of it; "
                "identification_ says why"
            )
        return with_intercept(w) @ self.gamma


def beside_probit(outcome, data: SelectionData, *, possible: bool) -> BesideProbit:
    gamma = None
    if possible and not data.s.all():
        gamma = fit_probit(with_intercept(data.w), data.s, data.weight).gamma
    return BesideProbit(outcome, gamma, outcome.info)


@dataclass(frozen=True)
class Judging:
    """folds or None, members, and what is left to the rows left out."""

    folds: int | None
    n_members: int
    noise: str
    tails: str
    selection: str
    errors: str = "normal"


def judging(model, selected: int, *, needs_folds: bool = False) -> Judging:
    """The options of `model` that say how it is judged, for so many selected units.

    "auto" is what X4 was run with, wherever there is something to judge by: FOLDS folds from
    LEAST_SELECTED selected units on, or always (`needs_folds`), and noise, tails and the selection
    index as rows left out prefer. One sigma and normal tails where there are no folds, where the
    method ("profile") or `errors` have no other, and normal tails and errors where predictions
    are mapped back: the mean of exp(t) is infinite. A probit where there are no folds, and where
    the method has no other index.
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
            "with errors='t' and target_transform='log' the outcome has no finite mean; take "
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
    return Judging(folds, members, noise, tails, selection, errors)


def training_options(model) -> dict:
    """The options of `model` that `NetworkConfig` takes as they are."""
    from heckesel.networks.training.config import layer_widths

    names = ("epochs", "learning_rate", "dtype", "device", "batch_size")
    return {name: getattr(model, name) for name in names} | {"hidden": layer_widths(model.hidden)}


def network_config(model, selected: int):
    """The options of `model` as a `NetworkConfig`, for so many selected units."""
    from heckesel.networks.training.config import NetworkConfig

    judged = judging(model, selected)
    return NetworkConfig(
        **training_options(model),
        n_members=judged.n_members,
        weight_decay=model.weight_decay,
        folds=judged.folds,
        tails=judged.tails,
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
    """The fitted `method`, with the seed and the progress bar `model` asks for."""
    from heckesel.estimators.convergence import check_outcome, check_training
    from heckesel.methods import load_method

    check_outcome(data)
    fit, seed = load_method(method).fit, seed_of(model)
    with progress_bar("training", enabled=model.progress) as progress:
        fitted = fit(data, seed=seed, config=config, progress=progress)
    fitted = predicting_in_float64(fitted)
    check_training(fitted, getattr(config, "network", config), data)
    return fitted


def predicting_in_float64(fitted):
    """`fitted` with its trained weights in float64: in float32 the prediction at a row depends,
    in its last digits, on how many rows are predicted with it."""
    from heckesel.networks.ensembles.selection_ensemble import with_networks

    return with_networks(fitted, lambda own: replace(own, theta=own.theta.astype(np.float64)))
