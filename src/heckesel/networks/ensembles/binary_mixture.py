r"""Networks for the probability of a class at several values of rho, which have weights.

Part (g, j) is member j at :math:`\rho_g`: :math:`f_{gj}(x)`, :math:`\eta_{gj}(w)`. With
:math:`\omega_g` the weight of :math:`\rho_g` and t = +1 for selected units, -1 for unselected ones,

.. math:: P(y=1) = \sum\tfrac{\omega_g}{k}\Phi(f_{gj}), \qquad
          P(y=1 | t) = \frac{\sum\omega_g\Phi_2(t\eta_{gj}, f_{gj}; t\rho_g)}
                            {\sum\omega_g\Phi(t\eta_{gj})} .
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, stdtrit

from heckesel.errors import DataError
from heckesel.fit_info import BinaryInfo
from heckesel.margins import ComponentMean
from heckesel.math.bivariate import log_conditional_cdf
from heckesel.math.special import averaged_index, probit_of
from heckesel.networks.ensembles.fold_means import over_folds
from heckesel.networks.member_graphs import member_outputs, one_output, scaled
from heckesel.networks.training.batches import DataScale
from heckesel.networks.training.ensemble_training import Members
from heckesel.on_disk import on_disk
from heckesel.predictive import Mixture, Normal, check_target

LEAST_VARIANCE = 1e-16  # of z if all members agree, so that the mixture has quantiles


@dataclass(frozen=True)
class BinaryMixture:
    """members : g * k networks, ordered by rho, whose heads are gamma and atanh rho; without heads
    if every unit was selected
    weight, rho : (g,), the weights add up to one; rho is NaN if every unit was selected
    """

    members: Members = field(metadata=on_disk(inputs="p"))
    scaling: DataScale
    weight: np.ndarray = field(metadata=on_disk("values", positive=True))
    rho: np.ndarray = field(metadata=on_disk("values", finite=False))
    info: BinaryInfo

    @property
    def k(self) -> int:
        """Members at each rho."""
        return len(self.members.parameters) // len(self.weight)

    @property
    def has_selection(self) -> bool:
        return not np.isnan(self.rho).any()

    def probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        """(m, 2) of the first and the second class at x (m, p) and, unless the target is the
        population, w (m, q)."""
        return np.exp(self.log_probabilities(x, w, target))

    def log_probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        log_p, log_weight = self._parts(x, w, target)
        both = np.stack([logsumexp(log_weight + part, axis=0) for part in log_p], axis=1)
        return both - logsumexp(both, axis=1, keepdims=True)

    def interval(self, x, w, target: str, level: float) -> np.ndarray:
        r"""(m, 2) for the probability of the second class, from the variation over members and rho.

        On the probit scale z, each rho contributes a normal around the mean of its members with the
        jackknife variance :math:`\frac{k-1}{k}\sum_j (z_{gj} - \bar z_g)^2`, since each member
        holds out another fold; the interval is that of the mixture over rho. Because a variance
        estimated from k values is uncertain, standard deviations are multiplied by the ratio of the
        t quantile with k - 1 degrees of freedom to the normal quantile.
        """
        if self.k < 2:
            raise DataError("an interval needs at least two members; refit with a larger n_members")
        log_p, log_weight = self._parts(x, w, target)
        z = probit_of(log_p[1], log_p[0])
        z = z.reshape(len(self.weight), self.k, -1)
        log_weight = np.broadcast_to(log_weight, log_p[1].shape).reshape(z.shape)
        weight = np.exp(logsumexp(log_weight, axis=1) - logsumexp(log_weight, axis=(0, 1)))
        variance = np.maximum((self.k - 1) * z.var(axis=1), LEAST_VARIANCE)
        low, high = (1 - level) / 2, (1 + level) / 2
        longer = stdtrit(self.k - 1, high) / ndtri(high)
        doubt = Mixture(weight, Normal(z.mean(axis=1), longer * np.sqrt(variance)))
        ends = (doubt.quantile(p) for p in (low, high))
        return ndtr(np.column_stack(list(ends)))

    def component_means(
        self, x, w, target: str, *, folds: int, transform: None = None
    ) -> Iterator[ComponentMean]:
        """The probability of the second class at each rho, by members that held out each fold."""
        log_p, log_weight = self._parts(x, w, target)
        log_p, log_weight = (
            np.broadcast_to(each, log_p[1].shape).reshape(len(self.weight), self.k, -1)
            for each in (log_p[1], log_weight)
        )
        for weight, own, log_own in zip(self.weight, log_p, log_weight, strict=True):
            total = logsumexp(log_own, axis=0)
            found = over_folds(lambda chosen, p=np.exp(own): p[chosen].mean(axis=0), self.k, folds)
            predicted = np.exp(logsumexp(log_own + own, axis=0) - total)
            yield replace(found, weight=float(weight), predicted=predicted, log_weight=total)

    def draw(self, rng) -> BinaryMixture:
        """One of the members at one of the rho."""
        g = rng.choice(len(self.weight), p=self.weight / self.weight.sum())
        members = self.members.take([g * self.k + rng.integers(self.k)])
        return replace(self, members=members, weight=np.ones(1), rho=self.rho[[g]])

    def probability_graph(self, graph, x: str) -> tuple[str, str]:
        """(1, m) population probabilities of the first and the second class in an ONNX graph."""
        outputs = member_outputs(graph, self.members, scaled(graph, self.scaling, x))
        f = one_output(graph, outputs, 0)  # (g k, m)
        weight = np.repeat(self.weight, self.k)[None] / self.k
        first, second = (
            graph.call("MatMul", weight, graph.normal_cdf(each))
            for each in (graph.call("Neg", f), f)
        )
        return first, second

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over parts."""
        return averaged_index(self._indices(w), self._log_weight())

    def _parts(self, x, w, target: str):
        """Log-probabilities of both classes, (g k, m) each, and the log weight of each part."""
        check_target(target, needs_w=w is None)
        f = self.members.outputs(self.scaling.x(x))[..., 0]  # (g k, m)
        if target == "population":
            return (log_ndtr(-f), log_ndtr(f)), self._log_weight()
        way = 1.0 if target == "selected" else -1.0
        eta, a = way * self._indices(w), way * np.arctanh(np.repeat(self.rho, self.k))[:, None]
        log_p = log_conditional_cdf(-f, eta, -a), log_conditional_cdf(f, eta, a)
        return log_p, self._log_weight() + log_ndtr(eta)

    def _log_weight(self) -> np.ndarray:
        """(g k, 1)"""
        return np.log(np.repeat(self.weight, self.k) / self.k)[:, None]

    def _indices(self, w) -> np.ndarray:
        """(g k, m)"""
        if not self.has_selection:
            raise DataError("the fit saw no unselected unit, so there is no index of selection")
        gamma = self.members.head[:, :-1].astype(float)
        scaled = self.scaling.w(np.asarray(w, dtype=float))
        return gamma[:, :-1] @ scaled.T + gamma[:, -1:]
