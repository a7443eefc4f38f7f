"""Models that correct for selection in different ways, and the prediction between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.deep.ensemble import SelectionEnsemble, with_tails
from heckesel.deep.outcome_ensemble import OutcomeEnsemble
from heckesel.deep.rho_mixture import RhoMixture
from heckesel.predictive import Predictive


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
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one: the
        normal, or the t of the two-step, with the moments of all parts."""
        parts = [part.predict(x, w, target) for part in self.parts]
        means = np.stack([part.mean for part in parts])
        return with_tails(
            means.mean(axis=0),
            np.mean([part.epistemic for part in parts], axis=0) + means.var(axis=0),
            np.mean([part.aleatoric for part in parts], axis=0),
            self.two_step.tail_df,
        )

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), of the two-step."""
        return self.two_step.index(w)
