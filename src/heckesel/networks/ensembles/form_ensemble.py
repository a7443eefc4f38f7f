"""A fitted model whose error model is sinh-arcsinh, or has a sigma that depends on x."""

from dataclasses import dataclass

import numpy as np

from heckesel.errors import DataError
from heckesel.fit_info import RhoInfo, SelectionInfo
from heckesel.networks.rho.form_mixture import FormMixture
from heckesel.predictive.distribution import Predictive


@dataclass(frozen=True)
class FormEnsemble:
    """mixture : over rho for a profile, over members for a joint fit"""

    mixture: FormMixture
    info: RhoInfo | SelectionInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        return self.mixture.predict(x, w, target)

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
