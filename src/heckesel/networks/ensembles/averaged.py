"""Models that correct for selection in different ways, and the mixture of their predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.rho_mixture import RhoMixture
from heckesel.predictive.distribution import Predictive
from heckesel.predictive.mixture import mix_predictives


@dataclass(frozen=True)
class AveragedEnsemble:
    """The same weight for each; what they differ by is doubt."""

    two_step: SelectionEnsemble
    likelihood: OutcomeEnsemble
    spline: RhoMixture | None
    info: dict

    @property
    def parts(self) -> tuple[SelectionEnsemble | OutcomeEnsemble | RhoMixture, ...]:
        both = (self.two_step, self.likelihood)
        return both if self.spline is None else (*both, self.spline)

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        return mix_predictives([part.predict(x, w, target) for part in self.parts])

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), of the two-step."""
        return self.two_step.index(w)
