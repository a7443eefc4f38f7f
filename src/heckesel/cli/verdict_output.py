"""The verdict on a table, for diagnose and compare, and how it is printed."""

from __future__ import annotations

import math

from heckesel.cli.training_data import TrainingData


def verdict_of(data: TrainingData):
    """The `Identification` of the data alone, before any outcome model; of two classes that of a
    linear probit with selection."""
    if data.classes is not None:
        from heckesel.estimators.heckman_classifier import HeckmanClassifier

        model = HeckmanClassifier(data.instruments or None, missing=data.missing)
        return model.fit(data.X, data.y, **data.options).identification_
    from heckesel.estimators.identify import identify

    return identify(
        data.X,
        data.y,
        instruments=data.instruments or None,
        missing=data.missing,
        **data.options,
    )


def as_plain(identification) -> dict:
    """For --json: what is no number there is null."""
    return {
        "verdict": identification.verdict,
        "sentence": identification.sentence,
        "evidence": _plain(identification.evidence),
    }


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
