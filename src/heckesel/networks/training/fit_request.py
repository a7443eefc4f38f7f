"""`FitRequest`: datasets that a network method fits together, and how they are trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from heckesel.data import SelectionData
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, joint_rows, train_datasets
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import DataScale, data_scale_of


@dataclass(frozen=True)
class FitRequest:
    """The arguments of a method's `fit_many`; datasets have the same columns and one seed each."""

    datas: Sequence[SelectionData]
    seeds: Sequence[int]
    config: NetworkConfig
    device: str | None = None
    progress: Progress | None = None

    @cached_property
    def scalings(self) -> list[DataScale]:
        return [data_scale_of(data, self.config.standardise) for data in self.datas]

    def batches(self, rows_of: Callable[..., Batch] = joint_rows, *more: Sequence) -> list[Batch]:
        """`rows_of(data, scaling, ...)` of each dataset, with folds if the members hold them out;
        more : further arguments, one list each"""
        folds, given = self.config.folds, zip(self.datas, self.scalings, *more, strict=True)
        return [
            with_folds(rows_of(*each), each[0], folds, seed)
            for each, seed in zip(given, self.seeds, strict=True)
        ]

    def train(self, batches: Sequence[Batch], **options) -> list[Members]:
        """The members of each dataset; options : as of `train_datasets`."""
        units = max(data.n for data in self.datas)
        given = {"config": self.config, "device": self.device, "progress": self.progress}
        return train_datasets(batches, seeds=self.seeds, units=units, **given | options)
