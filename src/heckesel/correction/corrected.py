r"""Predictions for the population, the selected and the unselected, from one object.

With u the selection error, the mean of u given x (and z) and the target is

========== =============================== ==========================
target     mean of u                       share of its variance removed
========== =============================== ==========================
population 0                               0
selected   :math:`m(x)`, :math:`h_1`       :math:`c_1(x)`, :math:`\delta(q)`
unselected :math:`m_0(x)`, :math:`h_0`     :math:`c_0(x)`, :math:`\delta(-q)`
========== =============================== ==========================

and the prediction is :math:`g(x) + \theta\,(\text{mean of } u - m(x))` with the variance
:math:`\sigma^2(1 - \rho^2 c)`, in the normal reading. In the flat one it is g(x) + beta for the
unselected, :math:`g + \beta(1 - \bar p)` for the population and
:math:`g + \beta(1 - \bar p/\max(p, \bar p/4))` for the selected. Both theta and beta are
multiplied by what a unit of u moves at x, `Law.local_sd`; two classes move along the probit of their probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri

from heckesel.correction.law import Law
from heckesel.correction.rho import Posterior
from heckesel.correction.selection import Selection, mills
from heckesel.learners.crossfit import OutcomeFit
from heckesel.margins import ComponentMean
from heckesel.predictive import Predictive, transformed

LEAST_SELECTED = 0.25  # of E[p | x]: few selected units have a smaller p and support a line in 1/p
SLOPE_STEP = 0.1  # standard deviations of y over which a slope is taken


@dataclass(frozen=True)
class Corrected:
    """What `HeckmanRegressor` has learned.

    places : (d,) columns of w that are instruments
    selection, rho : None if every unit was selected
    """

    outcome: OutcomeFit
    law: Law
    selection: Selection | None
    rho: Posterior | None
    places: np.ndarray

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        members = self.outcome.predict_members(x)  # (k, m)
        selected_mean = members.mean(axis=0)
        epistemic = (len(members) - 1) * members.var(axis=0)
        noise = self.law.noise(x)
        mean = self.law.inside(selected_mean)
        if self.selection is not None:
            assert self.rho is not None
            normal, flat, removed, removed_1 = self.shift(x, w, target, selected_mean)
            move, doubt = self.rho.moments(normal, flat)
            mean, slope = self.law.moved(selected_mean, move)
            epistemic = slope**2 * (epistemic + doubt)
            squared = self.rho.rho_squared
            noise = noise * (1 - squared * removed) / (1 - squared * removed_1)
        std = np.sqrt(epistemic + noise)
        distribution = self.law.distribution(selected_mean, mean, np.maximum(std, 1e-12))
        return Predictive(mean, epistemic, noise, distribution)

    def index(self, w):
        """(m,) the probit index of selection."""
        x, z = self._split(w)
        return self.selection.index(x, z)

    def _split(self, w):
        inside = np.zeros(w.shape[1], dtype=bool)
        inside[self.places] = True
        return w[:, ~inside], w[:, inside]

    def shift(self, x, w, target: str, selected_mean):
        """Coefficients (m,) of theta and of beta, and the variance of u that the target and
        selection remove, per rho^2.

        selected_mean : (m,) g(x)
        """
        normal, flat, removed, removed_1 = self._errors(x, w, target)
        here = self.law.local_sd(selected_mean)
        return here * normal, here * flat, removed, removed_1

    def _errors(self, x, w, target: str):
        """The same of the errors in units of their standard deviation."""
        assert self.selection is not None
        mean_p, mean_phi, _, mean_q_phi = self.selection.averages(x)
        mean_p = np.maximum(mean_p, 1e-300)
        m = mean_phi / mean_p
        removed_1 = m**2 + mean_q_phi / mean_p
        if target == "population":
            return -m, 1 - mean_p, np.zeros(len(x)), removed_1
        if w is None:
            if target == "selected":
                return np.zeros(len(x)), np.zeros(len(x)), removed_1, removed_1
            rest = np.maximum(1 - mean_p, 1e-12)
            m0 = -mean_phi / rest
            return m0 - m, np.ones(len(x)), m0**2 - mean_q_phi / rest, removed_1
        q = self.index(w)
        if target == "selected":
            h = mills(q)
            p = np.maximum(np.exp(log_ndtr(q)), LEAST_SELECTED * mean_p)
            return h - m, 1 - mean_p / p, h * (h + q), removed_1
        h = mills(-q)
        return -h - m, np.ones(len(x)), h * (h - q), removed_1

    def component_means(self, x, w, target: str, *, transform):
        """The mean of each row under a few theta and beta, for `average` and `margins`."""
        members = self.outcome.predict_members(x)
        g, found = members.mean(axis=0), self.predict(x, w, target)
        parts, normal, flat = [(1.0, 0.0, 0.0)], 0.0, 0.0
        if self.selection is not None:
            assert self.rho is not None
            normal, flat, _, _ = self.shift(x, w, target, g)
            parts = self.rho.components()

        def of_outcome(mean):
            """(m,) the mean of y, where that of the transformed outcome is `mean`"""
            law = self.law.distribution(g, mean, np.sqrt(np.maximum(found.aleatoric, 1e-24)))
            nothing = np.zeros(len(mean))
            return transformed(Predictive(mean, nothing, found.aleatoric, law), transform).mean

        slope = np.ones(len(x))
        if transform is not None:  # of the mean of y in that of the transformed outcome
            step = SLOPE_STEP * np.sqrt(np.maximum(found.aleatoric, 1e-24))
            slope = (of_outcome(found.mean + step) - of_outcome(found.mean)) / step
        predicted = transformed(found, transform).mean
        for weight, theta, beta in parts:
            move = normal * theta + flat * beta
            if transform is None:
                mean, _ = self.law.moved(members, move)
            else:
                mean = of_outcome(self.law.moved(g, move)[0]) + slope * (members - g)
            yield ComponentMean(
                weight, mean, folds=len(members), predicted=predicted, calibrated=True
            )


@dataclass(frozen=True)
class CorrectedClasses:
    """The same for an outcome of 0 and 1: probabilities of the two classes."""

    corrected: Corrected

    def probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        """(m, 2)"""
        second = self.corrected.predict(x, w, target).mean
        return np.column_stack([1 - second, second])

    def log_probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        return np.log(self.probabilities(x, w, target))

    def interval(self, x, w, target: str, level: float) -> np.ndarray:
        """(m, 2) of the second class, between 0 and 1"""
        found = self.corrected.predict(x, w, target)
        half = ndtri((1 + level) / 2) * np.sqrt(found.epistemic)
        return np.clip(found.mean[:, None] + half[:, None] * np.array([-1.0, 1.0]), 0.0, 1.0)

    def index(self, w):
        return self.corrected.index(w)

    def component_means(self, x, w, target: str, *, transform):
        return self.corrected.component_means(x, w, target, transform=transform)
