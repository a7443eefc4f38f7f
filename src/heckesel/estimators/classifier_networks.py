"""The networks of a classifier, and the verdict on its data."""

from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.estimators.network_options import predicting_in_float64, seed_of, training_options
from heckesel.estimators.selection_regressor import warn_no_selection
from heckesel.io import progress_bar
from heckesel.verdict.fitted import checked_selection, identify_data
from heckesel.verdict.identify import NOTHING_TO_CORRECT, Identification, conclude
from heckesel.verdict.profile_curve import held_out_profile

OUTCOMES, METHODS = ("linear", "network"), ("auto", "ml")


def check_options(model) -> None:
    """Refuse options of a classifier that its outcome does not have."""
    for name, known in (("outcome", OUTCOMES), ("method", METHODS)):
        given = getattr(model, name)
        if not is_one_of(given, known):
            raise DataError(f"{name} must be one of {', '.join(known)}, got {given!r}")
    if model.outcome == "linear":
        if model.rho_prior is not None:
            raise DataError("rho_prior is for outcome='network', but outcome is 'linear'")
        return
    if model.method != "auto":
        raise DataError(f"method={model.method!r} needs outcome='linear'; omit it for networks")
    for name in ("covariance", "weight_kind"):
        if getattr(model, name) is not None:
            raise DataError(
                f"{name} needs outcome='linear', because networks have no standard errors"
            )


def fit_binary_networks(model, data: SelectionData):
    """Train the `BinaryMixture`; y is 1 for the second class and 0 for the first."""
    from heckesel.methods import binary_networks

    if model.folds is None:
        raise DataError("outcome='network' estimates rho on held-out folds; set folds=5")
    if data.s.all():
        warn_no_selection(data)
    else:
        checked_selection(data)  # refuses data before any network is trained
    network = replace(
        binary_networks.NETWORK,
        **training_options(model),
        n_members=model.n_members,
        weight_decay=model.weight_decay,
        folds=model.folds,
    )
    config = binary_networks.BinaryConfig(network, model.rho_prior)
    with progress_bar("training", enabled=model.progress) as progress:
        fitted = binary_networks.fit(data, seed=seed_of(model), config=config, progress=progress)
    unfinished = fitted.info.unfinished
    if unfinished:
        warn_user(
            f"{unfinished} of {model.n_members} members were still improving after "
            f"{model.epochs} epochs, so intervals may be too narrow; raise epochs",
            ConvergenceWarning,
        )
    return predicting_in_float64(fitted)


def verdict_on_networks(data: SelectionData, curve: dict) -> Identification:
    """The Wald test of the instruments, with the held-out log-likelihood over rho."""
    found = identify_data(data)
    if found.verdict == NOTHING_TO_CORRECT:
        return found
    if data.w.shape[1]:
        profile = held_out_profile(curve["rho"], curve["held_out"], data.n)
        found = conclude(found.evidence | profile.as_evidence())
    if not data.instruments:
        warn_user(str(found))
    return found
