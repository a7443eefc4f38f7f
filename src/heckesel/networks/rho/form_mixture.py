r"""A fitted model that averages over rho and over error models.

The predictive is the mixture over the points of a `Posterior`. At each of them
:math:`y = f(x) + \sigma(x) e` with :math:`f = b'\delta/\theta`, :math:`\sigma(x) =
e^{c'u}/\theta` and e a sinh-arcsinh variable, whose mean need not be zero, or a t variable; the
uncertainty of the mean is computed by the delta method over all coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import torch
from scipy.special import log_ndtr, ndtri

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.fit_info import ErrorModelInfo
from heckesel.margins import ComponentMean
from heckesel.math import student
from heckesel.math.sinh_arcsinh import Moments, moments_given_selection, population_moments
from heckesel.math.special import averaged_index, inverse_mills
from heckesel.math.truncated import mean_of_selection
from heckesel.networks.rho.fitted_points import FORMS, Design
from heckesel.networks.rho.form_likelihood import Units
from heckesel.networks.rho.form_optima import cholesky_factor
from heckesel.networks.rho.form_posterior import Posterior
from heckesel.networks.rho.form_student import DF
from heckesel.networks.rho.rho_mixture import Basis
from heckesel.networks.rho.shaped_mixture import ShapedMixture, mixed_shapes
from heckesel.networks.training.batches import DataScale
from heckesel.on_disk import on_disk
from heckesel.predictive import (
    Predictive,
    check_target,
    mix_predictives,
    predict_shape,
    predict_student_given_selection,
)
from heckesel.scales import TargetTransform

STUDENT = list(FORMS).index("t")
STUDENT_MOMENTS = Moments(0.0, DF / (DF - 2), 0.0, 0.0, 0.0, 0.0)
TURNED_AT_ONCE = 32  # columns of a triangular root: few, so that most of its zeros are left out


@dataclass(frozen=True)
class FormPoints:
    """j points of a posterior, in standardised units.

    model : (j,) which column set of the basis
    weight, rho, theta, skewness, log_tail : (j,); gamma : (j, q); delta : (j, h); scale : (j, r)
    root : (j, P', P'), upper triangular, with root root' the covariance of (delta, theta, scale,
        skewness, log_tail)
    """

    model: np.ndarray
    weight: np.ndarray = field(metadata=on_disk("j", positive=True))
    form: np.ndarray = field(metadata=on_disk("j", dtype="int64"))
    rho: np.ndarray = field(metadata=on_disk("j"))
    gamma: np.ndarray = field(metadata=on_disk("j", "index"))
    delta: np.ndarray = field(metadata=on_disk("j", "h"))
    theta: np.ndarray = field(metadata=on_disk("j", positive=True))
    scale: np.ndarray = field(metadata=on_disk("j", "p"))
    skewness: np.ndarray = field(metadata=on_disk("j"))
    log_tail: np.ndarray = field(metadata=on_disk("j"))
    root: np.ndarray = field(metadata=on_disk("j", "size", "size"))

    @property
    def shape(self) -> np.ndarray:
        """(j, 2) skewness and log tail."""
        return np.column_stack([self.skewness, self.log_tail])


@dataclass(frozen=True)
class FormMixture:
    """basis, index_basis : columns of f at x and of the selection index at w, both scaled"""

    basis: Basis
    index_basis: Basis
    scaling: DataScale
    points: FormPoints

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        u, points = self.scaling.x(x), self.points
        columns = self.basis.columns(u)
        if target == "population":
            return self._of_population(columns, u)
        sign = 1.0 if target == "selected" else -1.0
        index = sign * self._indices(w)
        log_weight = np.log(points.weight)[:, None] + log_ndtr(self._probit_indices(index))
        components = [
            self._component(j, columns[points.model[j]], u, index[j], sign * a)
            for j, a in enumerate(np.arctanh(points.rho))
        ]
        return mix_predictives(components, log_weight)

    def _of_population(self, columns, u) -> Predictive:
        """The uncertainty of the mean widens each component around its mean."""
        points, unit, m = self.points, self.scaling.y_scale, len(u)
        order = np.argsort(points.form == STUDENT, kind="stable")  # t components last
        students = int((points.form == STUDENT).sum())
        moments = [
            population_moments(*shape) if form != STUDENT else STUDENT_MOMENTS
            for shape, form in zip(points.shape, points.form, strict=True)
        ]
        f, sigma, epistemic = np.empty((3, len(order), m))
        for place, j in enumerate(order):
            own = columns[points.model[j]]
            f[place], sigma[place], slopes = self._mean(j, own, u, moments[j])
            epistemic[place] = self._variance_of_mean(j, own, slopes)
        mean_e, variance_e = (
            np.array([getattr(moments[j], name) for j in order])[:, None]
            for name in ("mean", "variance")
        )
        mean, aleatoric = f + sigma * mean_e, sigma**2 * variance_e
        wider = np.sqrt(1 + epistemic / aleatoric)
        shaped = order[: len(order) - students]
        return mixed_shapes(
            ShapedMixture(
                weight=points.weight[order],
                location=self.scaling.y_centre + unit * (mean + wider * (f - mean)),
                scale=unit * wider * sigma,
                skewness=points.skewness[shaped],
                log_tail=points.log_tail[shaped],
                students=students,
                df=DF,
            ),
            self.scaling.y_centre + unit * mean,
            unit**2 * epistemic,
            unit**2 * aleatoric,
        )

    def _component(self, j, columns, u, index, atanh_rho) -> Predictive:
        points, unit = self.points, self.scaling.y_scale
        shape = points.skewness[j], points.log_tail[j]
        f, sigma, slopes = self._mean(j, columns, u, population_moments(*shape))
        epistemic = unit**2 * self._variance_of_mean(j, columns, slopes)
        location, sigma = self.scaling.y_centre + unit * f, unit * sigma
        if points.form[j] != STUDENT:
            return predict_shape(
                location, epistemic, sigma, *shape, index=index, atanh_rho=atanh_rho
            )
        covariance = np.tanh(atanh_rho) * sigma
        return predict_student_given_selection(location, epistemic, sigma, covariance, index, DF)

    def _mean(self, j, columns, u, moments: Moments):
        """f and sigma (m,) at point j, and the gradient of f + sigma E[e] in theta, scale, skewness
        and log tail, with these moments of e; that in delta is columns / theta."""
        points = self.points
        f = columns @ points.delta[j] / points.theta[j]
        sigma = np.exp(u @ points.scale[j]) / points.theta[j]
        offset = sigma * moments.mean
        by_theta, by_scale = -(f + offset) / points.theta[j], offset[:, None] * u
        by_shape = sigma * moments.d_skewness, sigma * moments.d_log_tail
        return f, sigma, np.column_stack([by_theta, by_scale, *by_shape])

    def _variance_of_mean(self, j, columns, slopes) -> np.ndarray:
        """(m,) of f + sigma E[e] at point j; slopes : as of `_mean`"""
        root = self.points.root[j].copy()
        root[: columns.shape[1]] /= self.points.theta[j]
        return squared_lengths(columns, slopes, root)

    def component_means(
        self, x, w, target: str, *, folds: int | None, transform: TargetTransform | None
    ) -> Iterator[ComponentMean]:
        """The mean at x and w under each point, with its gradient in the parameters of root."""
        if transform is not None:
            raise DataError(
                "averages and marginal effects on the scale of y need normal errors with one "
                "sigma; fit without errors='shape' and scale="
            )
        u, points, unit = self.scaling.x(x), self.points, self.scaling.y_scale
        columns = self.basis.columns(u)
        sign = -1.0 if target == "unselected" else 1.0
        indices = None if target == "population" else sign * self._indices(w)
        log_p = None if indices is None else log_ndtr(self._probit_indices(indices))
        for j, weight in enumerate(points.weight):
            moments = self._moments(j, None if indices is None else indices[j], sign)
            f, sigma, slopes = self._mean(j, columns[points.model[j]], u, moments)
            mean = self.scaling.y_centre + unit * (f + sigma * moments.mean)
            log_weight = np.log(weight) + (0.0 if log_p is None else log_p[j]) + np.zeros(len(u))
            slopes = np.column_stack([columns[points.model[j]] / points.theta[j], slopes])
            root = points.root[j]
            yield ComponentMean(float(weight), mean, unit * slopes, root, log_weight=log_weight)

    def _moments(self, j, index, sign: float) -> Moments:
        """Of e at point j, in the population or at this index (m,)."""
        points = self.points
        shape = points.skewness[j], points.log_tail[j]
        if index is None:
            return population_moments(*shape)
        rho = sign * points.rho[j]
        if points.form[j] != STUDENT and any(shape):
            return moments_given_selection(index, np.arctanh(rho), *shape)
        # normal or t errors, whose shape is known
        is_t = points.form[j] == STUDENT
        mean = rho * (mean_of_selection(index, DF)[0] if is_t else inverse_mills(index))
        return Moments(mean, np.nan, np.nan, np.nan, np.zeros_like(mean), np.zeros_like(mean))

    def of_points(self, chosen: np.ndarray) -> FormMixture:
        """The mixture of some of its points, whose weights add up to one."""
        found = {each.name: getattr(self.points, each.name)[chosen] for each in fields(FormPoints)}
        found["weight"] = found["weight"] / found["weight"].sum()
        return replace(self, points=FormPoints(**found))

    def draw(self, rng) -> FormMixture:
        """One of the points, with coefficients drawn from their covariance."""
        j = [rng.choice(len(self.points.weight), p=self.points.weight)]
        one = {each.name: getattr(self.points, each.name)[j] for each in fields(self.points)}
        moved = one["root"][0] @ rng.standard_normal(one["root"].shape[2])
        h, r = one["delta"].shape[1], one["scale"].shape[1]
        delta, theta, scale, skewness, log_tail = np.split(moved, np.cumsum([h, 1, r, 1]))
        moves = {"delta": delta, "theta": theta, "scale": scale}
        moves |= {"skewness": skewness, "log_tail": log_tail}
        one |= {name: one[name] + move for name, move in moves.items()}
        one |= {"weight": np.ones(1), "root": np.zeros_like(one["root"])}
        return replace(self, points=FormPoints(**one))

    def error_model(self, scale: Sequence[int]) -> ErrorModelInfo:
        """Averages over the points; scale : columns of x on which log sigma depends"""
        points, unit = self.points, self.scaling.x_scale
        slopes = (points.weight @ points.scale) / (1.0 if unit is None else unit)
        return ErrorModelInfo(
            skewness=float(points.weight @ points.skewness),
            log_tail=float(points.weight @ points.log_tail),
            scale=slopes[list(scale)].tolist(),
        )

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over points."""
        indices = self._probit_indices(self._indices(w))
        return averaged_index(indices, np.log(self.points.weight)[:, None])

    def _probit_indices(self, indices: np.ndarray) -> np.ndarray:
        """(j, m) probit indices with the same probabilities, which differ where errors are t."""
        is_t = (self.points.form == STUDENT)[:, None]
        return np.where(is_t, ndtri(student.cdf(indices, DF)), indices)

    def _indices(self, w) -> np.ndarray:
        """(j, m)"""
        scaled = self.scaling.w(np.asarray(w, dtype=float))
        return self.points.gamma @ self.index_basis.columns(scaled)[0].T


def squared_lengths(left: np.ndarray, right: np.ndarray, root: np.ndarray) -> np.ndarray:
    """(m,) of the rows of [left, right] root, for an upper triangular root.

    NumPy's matrix products let other threads run; SciPy's triangular products do not.
    """
    h, total = left.shape[1], np.zeros(len(left))
    for first in range(0, h, TURNED_AT_ONCE):
        last = min(first + TURNED_AT_ONCE, h)
        turned = left[:, :last] @ root[:last, first:last]
        total += np.einsum("ij,ij->i", turned, turned)
    turned = left @ root[:h, h:] + right @ root[h:, h:]
    return total + np.einsum("ij,ij->i", turned, turned)


def design_of(data: SelectionData, scaling: DataScale, basis, index_basis, device) -> Design:
    """The standardised columns of `data` on the device, a model for each column set of `basis`, and
    which coefficients share a ridge."""
    s = data.s

    def tensor(values):
        return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float64, device=device)

    u, w = scaling.x(data.x[s]), index_basis.columns(scaling.w(data.w))[0]
    columns, y = basis.columns(u), scaling.y(data.y[s])
    residual = [tensor(np.column_stack([-each, y])) for each in columns]
    shared = {
        "w": w[s],
        "u": u,
        "weight": data.weight[s],
        "w_unselected": w[~s],
        "weight_unselected": data.weight[~s],
    }
    sets = {name: tensor(v)[None].expand(len(columns), *v.shape) for name, v in shared.items()}
    units = Units(residual=torch.stack(residual), **sets)
    inner, outer = index_basis.membership, basis.membership
    q, h = len(inner), len(outer)
    membership = np.zeros((q + h + 1 + u.shape[1] + 2, inner.shape[1] + outer.shape[1]))
    membership[:q, : inner.shape[1]] = inner
    membership[q : q + h, inner.shape[1] :] = outer
    return Design(units, tensor(membership))


def form_points(posterior: Posterior, design: Design) -> FormPoints:
    """A few points that represent all, and the covariance of the parameters of the mean."""
    q, found = design.units.sizes[0], posterior.points
    kept, weight = posterior.thinned()
    place = torch.as_tensor(kept, device=design.membership.device)
    root = covariance_root(found.information[place], design.free(found.form[kept]), q)
    factor = np.sqrt(posterior.factor[kept])[:, None, None]
    return points_of(
        np.zeros(len(kept), dtype=int),
        weight,
        found.form[kept],
        found.rho[kept],
        found.v.cpu().numpy()[kept],
        root.cpu().numpy() * factor,
        design.units.sizes,
    )


def standard_deviation(theta, scale, shape, u, weight) -> np.ndarray:
    """(...) root mean square of the sd of y over units u (n, p), for theta (...), scale (..., p)
    and shape (..., 2)"""
    mean_square = np.exp(2 * (scale @ u.T)) @ (weight / weight.sum())
    variance = [float(population_moments(*each).variance) for each in shape.reshape(-1, 2)]
    return np.sqrt(mean_square * np.reshape(variance, theta.shape)) / theta


def covariance_root(information: torch.Tensor, free: torch.Tensor, q: int) -> torch.Tensor:
    """(k, P - q, P - q) root of the covariance of all coefficients but the first q, those of the
    index; information : (k, P, P), free : (k, P)"""
    lower, _ = cholesky_factor(information, torch.zeros_like(information[:, 0, 0]))
    unit = torch.eye(lower.shape[1], dtype=lower.dtype, device=lower.device).expand_as(lower)
    # The inverse is root root' with a triangular root, so that its last rows and columns are a root
    # of the covariance of the last coefficients.
    root = torch.linalg.solve_triangular(lower, unit, upper=False).mT[:, q:, q:]
    return root * free[:, q:, None]


def points_of(model, weight, form, rho, v, root, sizes: tuple[int, int, int]) -> FormPoints:
    """From coefficients v (j, P) in the order of `form_likelihood.split`."""
    q, width, r = sizes
    gamma, rest, scale, skewness, log_tail = np.split(v, np.cumsum([q, width, r, 1]), axis=1)
    return FormPoints(
        model=model,
        weight=weight / weight.sum(),
        form=form,
        rho=rho,
        gamma=gamma,
        delta=rest[:, :-1],
        theta=rest[:, -1],
        scale=scale,
        skewness=skewness[:, 0],
        log_tail=log_tail[:, 0],
        root=root,
    )
