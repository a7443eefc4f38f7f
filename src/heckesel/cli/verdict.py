"""The verdict on a table, for `heckesel diagnose`."""

from __future__ import annotations

from heckesel.cli.training_data import TrainingData


def verdict_of(data: TrainingData):
    """The `Identification` of the data alone, before any outcome model."""
    from heckesel.estimators.linear import HeckmanRegressor
    from heckesel.estimators.regression import identify, read_table

    reader = HeckmanRegressor(data.instruments or None, missing=data.missing)
    checked = read_table(reader, data.X, data.y, **data.options)
    return identify(checked, without="a plain ensemble")


def as_plain(identification) -> dict:
    """For --json."""
    return {
        "verdict": identification.verdict,
        "sentence": identification.sentence,
        "evidence": identification.evidence,
    }
