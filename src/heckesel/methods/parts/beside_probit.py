"""Networks that assume that outcomes are missing at random, with a separate probit of selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.classical.probit import fit_probit
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.fit_info import EnsembleInfo
from heckesel.margins import ComponentMean
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble
from heckesel.on_disk import on_disk
from heckesel.predictive import Predictive
from heckesel.tables.formula import with_intercept


@dataclass(frozen=True)
class BesideProbit:
    """An outcome model that assumes that outcomes are missing at random, and a probit of selection.

    gamma : (q + 1,) the constant first; None if no probit could be fitted
    """

    outcome: GaussianEnsemble
    gamma: np.ndarray | None = field(metadata=on_disk("q+1"))

    @property
    def info(self) -> EnsembleInfo:
        return self.outcome.info

    @property
    def main(self) -> GaussianEnsemble:
        return self.outcome

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """The same for all three targets."""
        return self.outcome.predict(x, w, target)

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """As those of the outcome model."""
        return self.outcome.component_means(x, w, target, **options)

    def draw(self, rng) -> BesideProbit:
        """One of the members."""
        return replace(self, outcome=self.outcome.draw(rng))

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph."""
        return self.outcome.graph(graph, x)

    def index(self, w) -> np.ndarray:
        if self.gamma is None:
            raise DataError(
                "the probit of selection could not be fitted, so there is no joint likelihood; see "
                "identification_ for the reason"
            )
        return with_intercept(w) @ self.gamma


def beside_probit(outcome, data: SelectionData, *, possible: bool) -> BesideProbit:
    gamma = None
    if possible and not data.s.all():
        gamma = fit_probit(with_intercept(data.w), data.s, data.weight).gamma
    return BesideProbit(outcome, gamma)
