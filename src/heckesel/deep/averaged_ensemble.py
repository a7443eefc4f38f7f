"""Two ensembles that correct for selection in different ways, and the prediction between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.deep.ensemble import SelectionEnsemble, with_tails
from heckesel.deep.outcome_ensemble import OutcomeEnsemble
from heckesel.predictive import Predictive


@dataclass(frozen=True)
class AveragedEnsemble:
    """Half of the weight for each; what they differ by is doubt."""

    two_step: SelectionEnsemble
    likelihood: OutcomeEnsemble
    info: dict

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one: the
        normal, or the t of the two-step, with the moments of both."""
        one, other = (part.predict(x, w, target) for part in (self.two_step, self.likelihood))
        apart = (one.mean - other.mean) / 2
        return with_tails(
            (one.mean + other.mean) / 2,
            (one.epistemic + other.epistemic) / 2 + apart**2,
            (one.aleatoric + other.aleatoric) / 2,
            self.two_step.tail_df,
        )

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), of the two-step."""
        return self.two_step.index(w)
