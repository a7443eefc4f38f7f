"""Splines with several error models, and two-step networks, weighted by held-out likelihood."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from heckesel.errors import DataError
from heckesel.fit_info import AutoInfo
from heckesel.margins import ComponentMean
from heckesel.math.special import averaged_index
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.rho.form_mixture import FormMixture
from heckesel.predictive import Predictive, mix_predictives


@dataclass(frozen=True)
class AutoMixture:
    """share : the weight of the networks; 0 if there are only splines, 1 if only networks"""

    splines: FormMixture | None
    networks: SelectionEnsemble | None
    share: float
    info: AutoInfo

    @property
    def _parts(self) -> tuple[list, np.ndarray]:
        """The splines and the networks that were fitted, and their log weights."""
        both = [(self.splines, 1 - self.share), (self.networks, self.share)]
        parts, weights = zip(*(each for each in both if each[0] is not None), strict=True)
        with np.errstate(divide="ignore"):  # a weight may round to zero
            return list(parts), np.log(weights)

    @property
    def main(self) -> SelectionEnsemble | None:
        """The networks of the two-step; None if they have no weight."""
        return self.networks

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        parts, log_weight = self._parts
        predictions = [part.predict(x, w, target) for part in parts]
        if len(parts) == 1:
            return predictions[0]
        weight = log_weight[:, None] + np.zeros(len(x))
        if target != "population":  # a model under which this was unlikely has less weight
            sign = 1.0 if target == "selected" else -1.0
            weight = weight + log_ndtr([sign * part.index(w) for part in parts])
        return mix_predictives(predictions, weight)

    def component_means(self, x, w, target: str, **options) -> Iterator[ComponentMean]:
        """The components of both models, with their weights."""
        for part, share in ((self.splines, 1 - self.share), (self.networks, self.share)):
            if part is None:
                continue
            for each in part.component_means(x, w, target, **options):
                with np.errstate(divide="ignore"):  # a weight may round to zero
                    log_weight = each.prediction[1] + np.log(share)
                if part is self.networks and target != "population":
                    sign = 1.0 if target == "selected" else -1.0
                    log_weight = log_weight + log_ndtr(sign * part.index(w))
                yield replace(each, weight=each.weight * share, log_weight=log_weight)

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over models."""
        parts, log_weight = self._parts
        return averaged_index(np.stack([part.index(w) for part in parts]), log_weight[:, None])

    def draw(self, rng):
        """One of the two models, with parameters drawn from it."""
        networks = rng.random() < self.share
        return (self.networks if networks else self.splines).draw(rng)

    def graph(self, graph, x: str):
        """The population prediction at x (m, p) in an ONNX graph, for networks only."""
        if self.splines is not None:
            raise DataError(
                "splines with errors of several forms cannot be exported to ONNX; export a model "
                'fitted with method="two-step" or "profile"'
            )
        assert self.networks is not None
        return self.networks.graph(graph, x)
