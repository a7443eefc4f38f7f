"""Choosing the weight decay and the error distribution by the loss on held-out rows.

Every candidate is fitted with the same members and folds, so their mean held-out losses are
comparable. The lowest is chosen for each dataset.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from heckesel.fit_info import Choice
from heckesel.networks.training.config import AUTO, ERRORS, NetworkConfig
from heckesel.networks.training.fit_request import FitRequest
from heckesel.networks.training.loop import shifted

# From almost none to as much as networks of a few dozen units tolerate; a decade or more apart,
# because the loss is flat in between.
WEIGHT_DECAYS = (1e-5, 1e-3, 1e-2)


def candidates(config: NetworkConfig) -> list[NetworkConfig]:
    """The configurations to compare; with t errors `tails` is "normal"."""
    decays = WEIGHT_DECAYS if config.weight_decay == AUTO else (config.weight_decay,)
    errors = ERRORS if config.errors == AUTO else (config.errors,)
    return [
        replace(
            config,
            weight_decay=decay,
            errors=one,
            tails=config.tails if one == "normal" or config.errors != AUTO else "normal",
        )
        for decay, one in product(decays, errors)
    ]


def best_of(request: FitRequest, fit: Callable[[FitRequest], list]) -> list:
    """For each dataset, the fit with the lowest held-out loss; its `info` lists all of them.

    fit : request -> one fit for each dataset
    """
    tried = candidates(request.config)
    if len(tried) == 1:
        return fit(request)
    fits = [
        fit(replace(request, config=one, progress=shifted(request.progress, at, len(tried))))
        for at, one in enumerate(tried)
    ]
    return [_best(tried, each) for each in zip(*fits, strict=True)]


def _best(tried, fits):
    choices = [
        Choice(one.decay, one.errors, fit.info.held_out_loss)
        for one, fit in zip(tried, fits, strict=True)
    ]
    best = min(range(len(fits)), key=lambda at: choices[at].held_out_loss)
    chosen = {"weight_decay": choices[best].weight_decay, "errors": choices[best].errors}
    return replace(fits[best], info=replace(fits[best].info, choices=choices, **chosen))
