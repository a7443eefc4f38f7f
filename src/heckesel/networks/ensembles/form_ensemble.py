"""A fitted model whose error model is sinh-arcsinh, or has a sigma that depends on x."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from heckesel.errors import DataError
from heckesel.fit_info import RhoInfo, SelectionInfo
from heckesel.margins import ComponentMean
from heckesel.networks.ensembles.fold_means import fold_means
from heckesel.networks.rho.form_mixture import FormMixture
from heckesel.predictive import Predictive


@dataclass(frozen=True)
class FormEnsemble:
    """mixture : over rho for a profile, over members for a joint fit"""

    mixture: FormMixture
    info: RhoInfo | SelectionInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        return self.mixture.predict(x, w, target)

    def of_members(self, chosen: np.ndarray) -> FormEnsemble:
        """The ensemble of some of the members of a joint fit; chosen : (k,) True for these."""
        return replace(self, mixture=self.mixture.of_points(chosen))

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The components of the mixture over rho or, of a joint fit, the mean by members that held
        out each fold."""
        if isinstance(self.info, RhoInfo):
            yield from self.mixture.component_means(x, w, target, **options)
        else:
            yield fold_means(self, x, w, target, **options)

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over the mixture."""
        return self.mixture.index(w)

    def draw(self, rng) -> FormMixture:
        """A component with drawn parameters."""
        return self.mixture.draw(rng)

    def graph(self, graph, x: str):
        raise DataError(
            "models with errors='shape' or scale= cannot be exported to ONNX; fit without them"
        )
