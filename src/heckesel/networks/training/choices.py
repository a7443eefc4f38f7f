"""Choosing the weight decay and the error distribution by the loss on held-out rows.

Every candidate is fitted with the same members and folds, so their mean held-out losses are
comparable. The lowest is chosen for each dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from heckesel.networks.training.config import AUTO, ERRORS, NetworkConfig
from heckesel.networks.training.loop import Progress, shifted

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


def best_of(
    config: NetworkConfig,
    fit_many: Callable[[NetworkConfig, Progress | None], Sequence],
    progress: Progress | None,
) -> list:
    """For each dataset, the fit with the lowest held-out loss; its `info` lists all of them.

    fit_many : (config, progress) -> one fit for each dataset
    """
    tried = candidates(config)
    if len(tried) == 1:
        return list(fit_many(config, progress))
    fits = [fit_many(one, shifted(progress, at, len(tried))) for at, one in enumerate(tried)]
    return [_best(tried, each) for each in zip(*fits, strict=True)]


def _best(tried, fits):
    losses = [fit.info["held_out_loss"] for fit in fits]
    best = min(range(len(fits)), key=losses.__getitem__)
    report = {
        "weight_decay": tried[best].weight_decay,
        "errors": tried[best].errors,
        "choices": [
            {"weight_decay": one.weight_decay, "errors": one.errors, "held_out_loss": loss}
            for one, loss in zip(tried, losses, strict=True)
        ],
    }
    return replace(fits[best], info=fits[best].info | report)
