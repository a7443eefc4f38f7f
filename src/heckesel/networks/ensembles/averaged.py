"""Models that correct for selection in different ways, and the mixture of their predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from heckesel.fit_info import SelectionInfo
from heckesel.margins import ComponentMean
from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.rho_mixture import RhoMixture
from heckesel.predictive import Predictive, mix_predictives


@dataclass(frozen=True)
class AveragedEnsemble:
    """All models have the same weight; the variance between them is epistemic."""

    two_step: SelectionEnsemble
    likelihood: OutcomeEnsemble
    spline: RhoMixture | None
    info: SelectionInfo

    @property
    def parts(self) -> tuple[SelectionEnsemble | OutcomeEnsemble | RhoMixture, ...]:
        both = (self.two_step, self.likelihood)
        return both if self.spline is None else (*both, self.spline)

    @property
    def main(self) -> SelectionEnsemble:
        """The model with the weakest assumptions about the errors."""
        return self.two_step

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        return mix_predictives([part.predict(x, w, target) for part in self.parts])

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The components of all parts, the parts with equal weights."""
        yield from self.two_step.component_means(x, w, target, **options)
        yield from self.likelihood.component_means(x, w, target, **options)
        if self.spline is None:
            return
        of_splines = self.spline.component_means(x, w, target, **options)
        if target == "population":
            yield from of_splines
            return
        # log P(selected) or log P(unselected) under the splines, whose share is the same everywhere
        log_p = log_ndtr((1.0 if target == "selected" else -1.0) * self.spline.index(w))
        for each in of_splines:
            yield replace(each, log_weight=each.prediction[1] - log_p)

    def index(self, w) -> np.ndarray:
        """(m,) selection index at w (m, q), of the two-step."""
        return self.two_step.index(w)

    def draw(self, rng):
        """One of the models, with parameters drawn from it."""
        return self.parts[rng.integers(len(self.parts))].draw(rng)

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph: the parts of all side by side."""
        parts = [graph.several(part.graph(graph, x)) for part in self.parts]
        df = self.two_step.tail_df
        return graph.part(
            graph.call("Concat", *(part.mean for part in parts), axis=0),
            graph.call("Concat", *(part.variance for part in parts), axis=0),
            "mixture of normals" if df is None else "mixture of normals and a t",
            df=df,
            weight=np.concatenate([part.weight for part in parts]) / len(parts),
        )
