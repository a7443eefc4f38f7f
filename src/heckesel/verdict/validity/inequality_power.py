"""The direct effects of an instrument that the test of inequalities can detect.

Datasets are drawn from a normal selection model fitted to the data, with the observed x and
instruments. A direct effect of the instrument is added to y. The standard errors and critical
values of the test come from the other draws with this effect, so that no draw needs a bootstrap.
"""

import numpy as np

from heckesel.classical.ml import Estimates, estimates_at, scan
from heckesel.classical.rows import standardised_sample
from heckesel.data import SelectionData
from heckesel.verdict.validity.detectable import smallest_effects
from heckesel.verdict.validity.exclusion_inequalities import Pair, p_values, violations
from heckesel.verdict.validity.validity_sample import ValiditySample, sd, spanning

MOST_DRAWS, FEWEST_DRAWS = 200, 100
DRAWN_ROWS = 1_000_000  # over all draws, as long as there are enough draws: a few seconds


def detectable_effects(
    sample: ValiditySample, pairs: list[Pair], level: float, seed: int
) -> tuple[float, float]:
    """The smallest negative and positive effect caught with 80 % probability.

    In sd of y per sd of the instruments' joint effect on selection; infinite beyond 1.
    """
    draws = _Draws(sample, pairs, seed)
    # the same draws at all effects make the power increase smoothly
    return smallest_effects(lambda effect: draws.power(effect, level))


class _Draws:
    """Simulated datasets: residuals of the errors, of the instrument, and selection, (m, n)."""

    def __init__(self, sample: ValiditySample, pairs: list[Pair], seed: int):
        rng = np.random.default_rng([seed, 1])  # not the stream of the bootstrap
        fit = _normal_fit(sample)
        draws = min(MOST_DRAWS, max(FEWEST_DRAWS, DRAWN_ROWS // sample.n))
        u, v = rng.standard_normal((2, draws, sample.n))
        self.s = sample.w @ fit.gamma + u > 0
        errors = fit.sigma * (fit.rho * u + np.sqrt(1 - fit.rho**2) * v)
        value = sample.z @ sample.effects
        unit = sample.y_sd / sd(value, sample.weight)
        self.errors = _residuals(sample, self.s, errors)
        self.instrument = _residuals(sample, self.s, np.broadcast_to(value * unit, u.shape))
        self.pairs, self.weight = pairs, sample.weight[None]

    def power(self, effect: float, level: float) -> float:
        r = self.errors + effect * self.instrument
        found = violations(r, self.s, self.weight, self.pairs)
        t = found / found.std(axis=0)
        return float(np.mean(p_values(t, t - t.mean(axis=0), r.shape[1]) <= level))


def _normal_fit(sample: ValiditySample) -> Estimates:
    """Maximum likelihood with smooth functions of the covariates in the outcome equation."""
    columns = spanning(sample.covariates[sample.s])
    x = np.full((sample.n, columns.shape[1]), np.nan)
    x[sample.s] = columns
    x_names, w_names = (
        tuple(f"{letter}{j}" for j in range(values.shape[1]))
        for letter, values in (("x", x), ("w", sample.w))
    )
    names = (x_names, w_names, "y")
    data = SelectionData(x, sample.w, sample.s, sample.y, sample.weight, *names)
    rows, scalings = standardised_sample(data)
    return estimates_at(scan(rows, far_ends=False).modes[0], rows, scalings)


def _residuals(sample: ValiditySample, s, values) -> np.ndarray:
    """(m, n) values minus their regression on the covariates among the selected of each draw."""
    columns, weight = sample.covariates, sample.weight
    left = np.empty(values.shape)
    for row, chosen, target in zip(left, s, values, strict=True):
        mass = weight * chosen
        gram = columns.T @ (columns * mass[:, None])
        row[:] = (
            target - columns @ np.linalg.lstsq(gram, columns.T @ (mass * target), rcond=None)[0]
        )
    return left
