r"""P(s = 1 | x, z), and its averages over the instruments.

With the probit index :math:`q(x, z)`, p = Phi(q), and the mean of the selection error u among the
selected, :math:`h_1 = \phi(q)/p`, averages over z given x are

.. math:: \bar p(x) = E[\Phi(q) \mid x], \qquad m(x) = E[h_1 \mid x, s = 1]
          = E[\phi(q) \mid x] / \bar p(x).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr, ndtr, ndtri

from heckesel.learners.splines import BLOCK, SAMPLE, Basis, learn_basis

MOST_ARMS = 24  # distinct values of the instruments that are treated as categories
DRAWS = 32  # values of continuous instruments that averages run over
STEPS, DECREMENT = 50, 1e-8
PENALTIES = 10.0 ** np.array([-3.5, -2.5, -1.5, 0.0])  # per row, of curved columns and products
MAIN = 1e-6  # penalty per row of the main effects
PRIOR_SD = (
    4.0  # of main effects: where an arm or level has only one outcome, its index stays finite
)
FEWEST = 8  # selected units in an arm that can be compared with other arms
FEW = 20_000  # rows on which the penalty is chosen
LARGE = 100_000  # rows from which the index is not cross-fitted: its error is negligible there
INDEPENDENT = 0.01  # p-value below which the distribution of z is taken to depend on x


def mills(t):
    from scipy.special import erfcx

    return np.sqrt(2 / np.pi) / erfcx(-np.asarray(t) / np.sqrt(2))


def density(t):
    return np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Design:
    """Columns of the selection index: the basis of x, of z, and products of x and z.

    arms : (a, d) distinct values of the instruments, if they are few, else None
    """

    x_basis: Basis
    z_basis: Basis | None
    arms: np.ndarray | None

    def z_part(self, z):
        """(m, r) columns of z without the constant."""
        if self.arms is not None:
            code = arm_codes(z, self.arms)
            return (code[:, None] == np.arange(1, len(self.arms))).astype(float)
        return np.zeros((len(z), 0)) if self.z_basis is None else self.z_basis(z)[:, 1:]

    def columns(self, x, z):
        columns = np.empty((len(x), len(self.bent(x.shape[1], z.shape[1]))))
        for start in range(0, len(x), BLOCK):
            rows = slice(start, start + BLOCK)
            z_columns = self.z_part(z[rows])
            lines = z_columns if self.arms is not None else z_columns[:, : z.shape[1]]
            unit = self.x_basis.unit(x[rows])
            products = (unit[:, :, None] * lines[:, None, :]).reshape(len(unit), -1)
            parts = [self.x_basis(x[rows]), z_columns, products]
            np.concatenate(parts, axis=1, out=columns[rows])
        return columns

    def bent(self, p: int, d: int) -> np.ndarray:
        if self.arms is not None:
            z_bent = np.zeros(len(self.arms) - 1, bool)
        else:
            z_bent = np.zeros(0, bool) if self.z_basis is None else self.z_basis.bent[1:]
        lines = len(z_bent) if self.arms is not None else d
        return np.concatenate([self.x_basis.bent, z_bent, np.ones(p * lines, bool)])


def arm_codes(z, arms):
    """(m,) the row of `arms` nearest to each z."""
    unit = np.where(np.ptp(arms, axis=0) > 0, np.ptp(arms, axis=0), 1.0)
    return np.argmin(np.sum(((z[:, None, :] - arms) / unit) ** 2, axis=2), axis=1)


@dataclass(frozen=True)
class InstrumentLaw:
    """The distribution of z given x, as values and weights.

    values : (a, d) arms, or deviations from the mean of z given x
    shares : (a,) weights, if they do not depend on x; coef : (a, 1 + p) of a multinomial logit
    mean : (1 + p, d) of z given x, for continuous instruments
    """

    values: np.ndarray
    shares: np.ndarray
    coef: np.ndarray | None
    mean: np.ndarray | None

    def without_empty(self, z, s, design):
        """The law given that z is an arm in which units were selected; others say nothing."""
        if design.arms is None or not z.shape[1]:
            return self
        selected = np.bincount(arm_codes(z, design.arms)[s], minlength=len(design.arms))
        used = selected >= FEWEST
        if used.all() or not used.any():
            return self
        coef = None if self.coef is None else self.coef[used]
        return replace(
            self,
            values=self.values[used],
            shares=self.shares[used] / self.shares[used].sum(),
            coef=coef,
        )

    def weights(self, unit):
        """(m, a) or (a,)"""
        if self.coef is None:
            return self.shares
        score = self.coef[:, 0] + unit @ self.coef[:, 1:].T
        score = np.exp(score - score.max(axis=1, keepdims=True))
        return score / score.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Selection:
    """The fitted probability of selection.

    coef : (q,); covariance : (q, q) of coef, robust to clusters
    """

    design: Design
    coef: np.ndarray
    covariance: np.ndarray
    law: InstrumentLaw
    distinct: int = 0  # values of z in which units were selected; 99 if they are too many to count

    def index(self, x, z):
        """(m,) q(x, z)"""
        return np.concatenate(
            [np.zeros(0)]
            + [
                self.design.columns(x[i : i + BLOCK], z[i : i + BLOCK]) @ self.coef
                for i in range(0, len(x), BLOCK)
            ]
        )

    def averages(self, x):
        """E[p | x], E[phi(q) | x], E[p^2 | x] and E[q phi(q) | x], (4, m)"""
        parts = [self._averages(x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)]
        return np.concatenate([np.zeros((4, 0)), *parts], axis=1)

    def _averages(self, x):
        design, law = self.design, self.law
        unit = design.x_basis.unit(x)
        x_width = design.x_basis.width
        base = design.x_basis(x) @ self.coef[:x_width]
        if not law.values.shape[1]:
            p = ndtr(base)
            return np.stack([p, density(base), p**2, base * density(base)])
        r = design.z_part(law.values[:1]).shape[1]
        z_coef, products = (
            self.coef[x_width : x_width + r],
            self.coef[x_width + r :].reshape(x.shape[1], -1),
        )
        weights = np.broadcast_to(law.weights(unit), (len(x), len(law.values)))
        center = 0.0 if law.mean is None else np.column_stack([np.ones(len(x)), unit]) @ law.mean
        found = np.zeros((4, len(x)))
        slopes = unit @ products  # (m, lines)
        for k, value in enumerate(law.values):
            z = np.broadcast_to(value, (1 if law.mean is None else len(x), len(value))) + center
            z_columns = design.z_part(np.atleast_2d(z))
            lines = z_columns[:, : slopes.shape[1]]
            q = (
                base
                + z_columns @ z_coef
                + np.einsum("ml,ml->m", slopes, np.broadcast_to(lines, slopes.shape))
            )
            p, phi, share = ndtr(q), density(q), weights[:, k]
            for total, value in zip(found, (p, phi, p**2, q * phi), strict=True):
                total += share * value
        return found


def fit_selection(x, z, s, weight, folds, clusters):
    """The fitted selection, its index out of fold (n,), averages over z (4, n), and the columns of
    the selected."""
    design = _design(x, z, weight)
    law = _instrument_law(x, z, design, weight)
    columns = design.columns(x, z)
    bent = design.bent(x.shape[1], z.shape[1])
    some: Any = slice(None)
    if len(x) > FEW:
        some = np.random.default_rng(0).permutation(len(x))[:FEW]
    part = columns[some], s[some], weight[some]
    sign, best = np.where(part[1], 1.0, -1.0), (np.inf, None, None)
    for penalty in PENALTIES if bent.any() else PENALTIES[:1]:
        ridge = np.where(bent, penalty * part[2].sum(), 1 / PRIOR_SD**2)
        ridge[0] = 0.0
        start = fit_probit(*part, ridge)
        loss = 0.0
        for k in range(folds.max() + 1):
            out = folds[some] == k
            coef = fit_probit(*part[:2], part[2] * ~out, ridge, start, steps=3)
            loss -= part[2][out] @ log_ndtr(sign[out] * (part[0] @ coef)[out])
        if loss < best[0]:
            best = loss, penalty, start
    ridge = np.where(bent, best[1] * weight.sum(), 1 / PRIOR_SD**2)
    ridge[0] = 0.0
    coef = fit_probit(columns, s, weight, ridge, best[2])
    covariance = _sandwich(columns, s, weight, ridge, coef, clusters)
    seen = law.without_empty(z, s, design)
    distinct = 0 if not z.shape[1] else len(seen.values) if design.arms is not None else 99
    fitted = Selection(design, coef, covariance, law, distinct)
    informative = replace(fitted, law=seen)
    held_out = columns @ coef
    averages = informative.averages(x) if len(x) > LARGE else np.empty((4, len(x)))
    if len(x) <= LARGE:
        for k in range(folds.max() + 1):
            out = folds == k
            part = fit_probit(columns, s, weight * ~out, ridge, coef, steps=3)
            held_out[out] = (columns @ part)[out]
            averages[:, out] = replace(informative, coef=part).averages(x[out])
    return fitted, held_out, averages, columns[s]


def fit_probit(columns, s, weight, ridge, start=None, steps=STEPS):
    """Penalised maximum likelihood by Fisher scoring with step halving."""
    coef = np.zeros(columns.shape[1]) if start is None else start.copy()
    sign = np.where(s, 1.0, -1.0)
    if start is None:
        share = np.clip(weight @ s / weight.sum(), 1e-6, 1 - 1e-6)
        coef[0] = ndtri(share)

    def value(coef, index):
        return weight @ log_ndtr(sign * index) - 0.5 * ridge @ coef**2

    index = columns @ coef
    now, factor = value(coef, index), None
    for _ in range(steps):
        score, information = _score_and_information(index, s)
        gradient = columns.T @ (weight * score) - ridge * coef
        # the last information matrix is good enough to say that no further step is needed
        if factor is None or gradient @ cho_solve(factor, gradient) >= DECREMENT:
            factor = cho_factor(_curvature(columns, weight * information, ridge))
        step = cho_solve(factor, gradient)
        if gradient @ step < DECREMENT:
            break
        for _ in range(30):
            moved = coef + step
            moved_index = columns @ moved
            then = value(moved, moved_index)
            if then >= now:
                break
            step = step / 2
        coef, index, now = moved, moved_index, then
    return coef


def _score_and_information(index, s):
    above, below = mills(index), mills(-index)
    return np.where(s, above, -below), above * below


def _curvature(columns, weight, ridge):
    """The negative second derivative, a little more than that where it is singular."""
    total = scaled_gram(columns, np.sqrt(weight))
    total[np.diag_indices_from(total)] += ridge + 1e-10 * np.diag(total) + 1e-12
    return total


def scaled_gram(columns, scale, others=None, other_scale=None):
    """(q, q) of the scaled columns, or (q, r) with others, without a second copy of them."""
    width = columns.shape[1]
    total = np.zeros((width, width if others is None else others.shape[1]))
    scaled = np.empty((min(BLOCK, len(columns)), width))
    for start in range(0, len(columns), BLOCK):
        rows = slice(start, start + BLOCK)
        part = np.multiply(columns[rows], scale[rows, None], out=scaled[: len(scale[rows])])
        other = part if others is None else others[rows] * other_scale[rows, None]
        total += part.T @ other
    return total


def _sandwich(columns, s, weight, ridge, coef, clusters):
    score, information = _score_and_information(columns @ coef, s)
    factor = cho_factor(_curvature(columns, weight * information, ridge))
    if clusters is None:
        middle = scaled_gram(columns, weight * score)
    else:
        scores = cluster_sums(columns * (weight * score)[:, None], clusters)
        middle = scores.T @ scores
    half = cho_solve(factor, middle)
    return cho_solve(factor, half.T)


def cluster_sums(values, clusters):
    """Sums (c, ...) over clusters, or the values themselves."""
    if clusters is None:
        return values
    total = np.zeros((clusters.max() + 1, *values.shape[1:]))
    np.add.at(total, clusters, values)
    return total


def _design(x, z, weight):
    arms = None
    if z.shape[1]:
        found = np.unique(z[:: max(1, len(z) // SAMPLE)], axis=0)
        if len(found) <= MOST_ARMS:
            found = np.unique(z, axis=0)
        arms = found if len(found) <= MOST_ARMS else None
    z_basis = learn_basis(z, weight) if z.shape[1] and arms is None else None
    return Design(learn_basis(x, weight), z_basis, arms)


def _instrument_law(x, z, design, weight):
    """Whether z depends on x is tested; a randomised z does not, and its distribution is common."""
    if not z.shape[1]:
        return InstrumentLaw(np.zeros((1, 0)), np.ones(1), None, None)
    unit = design.x_basis.unit(x)
    target = design.z_part(z) if design.arms is not None else z
    line = np.column_stack([np.ones(len(x)), unit])
    root = np.sqrt(weight)[:, None]
    mean = np.linalg.lstsq(line * root, target * root, rcond=None)[0]
    rest = target - line @ mean
    dependent = _depends(target, rest, x.shape[1], weight)
    if design.arms is None:
        rows = np.random.default_rng(0).choice(len(z), DRAWS, replace=len(z) < DRAWS)
        if z.shape[1] == 1:  # evenly spaced quantiles
            source = rest if dependent else z
            values = np.quantile(source[:, 0], (np.arange(DRAWS) + 0.5) / DRAWS)[:, None]
        else:
            values = (rest if dependent else z)[rows]
        return InstrumentLaw(values, np.full(DRAWS, 1 / DRAWS), None, mean if dependent else None)
    code = arm_codes(z, design.arms)
    shares = np.bincount(code, weights=weight, minlength=len(design.arms)) / weight.sum()
    coef = None
    if dependent:
        from sklearn.linear_model import LogisticRegression

        rows = (
            slice(None)
            if len(x) <= 50_000
            else np.random.default_rng(0).permutation(len(x))[:50_000]
        )
        logit = LogisticRegression(C=10.0, max_iter=200).fit(unit[rows], code[rows], weight[rows])
        both = np.column_stack([logit.intercept_, logit.coef_])
        if len(logit.classes_) == 2:
            both = np.concatenate([np.zeros_like(both), both])
        coef = np.full((len(design.arms), both.shape[1]), -np.inf)
        coef[:, 1:] = 0.0
        coef[logit.classes_] = both
    return InstrumentLaw(design.arms, shares, coef, None)


def _depends(target, rest, p, weight):
    from scipy.stats import chi2

    n, centered = len(target), target - np.average(target, axis=0, weights=weight)
    total, left = centered.T @ centered, rest.T @ rest
    moved = np.linalg.lstsq(left + 1e-12 * np.eye(len(left)), total - left, rcond=None)[0]
    return chi2.sf(n * np.trace(moved), p * target.shape[1]) < INDEPENDENT
