"""Scaling of x, w and y to mean 0 and sd 1 before training, and back after prediction."""

from dataclasses import dataclass, field

import numpy as np

from heckesel.data import SelectionData
from heckesel.numerics.moments import Moments
from heckesel.on_disk import on_disk


@dataclass(frozen=True)
class DataScale:
    """Centre and scale of x (p,), w (q,) and y (one number each).

    Inputs of a user's module are not scaled: x_centre and x_scale are None.
    """

    x_centre: np.ndarray | None
    x_scale: np.ndarray | None
    w_centre: np.ndarray = field(metadata=on_disk("q"))
    w_scale: np.ndarray = field(metadata=on_disk("q", positive=True))
    y_centre: float
    y_scale: float = field(metadata=on_disk(positive=True))

    def x(self, x: np.ndarray) -> np.ndarray:
        if self.x_centre is None:
            return x
        return (np.asarray(x, dtype=float) - self.x_centre) / self.x_scale

    def w(self, w: np.ndarray) -> np.ndarray:
        return (w - self.w_centre) / self.w_scale

    def y(self, y: np.ndarray) -> np.ndarray:
        return (y - self.y_centre) / self.y_scale

    def unscale_gamma(self, gamma: np.ndarray) -> np.ndarray:
        """Coefficients (k, q + 1), constant last, for w in the user's units."""
        slopes = gamma[:, :-1] / self.w_scale
        constant = gamma[:, -1:] - slopes @ self.w_centre[:, None]
        return np.hstack([slopes, constant])


def data_scale_of(data: SelectionData, standardise: bool) -> DataScale:
    """Moments of x and w over all units, of y over the selected ones; 0 and 1 if not `standardise`.

    x may be missing for unselected units, so its moments ignore NaN. A constant column has scale 1.
    A weight of two counts as two rows.
    """
    p, q = data.x.shape[1], data.w.shape[1]
    if not standardise:
        return DataScale(np.zeros(p), np.ones(p), np.zeros(q), np.ones(q), 0.0, 1.0)
    s, weight = data.s, data.weight
    return _data_scale(
        _moments(data.x, weight), _moments(data.w, weight), _moments(data.y[s, None], weight[s])
    )


def data_scale_from_moments(x: Moments, w: Moments, y: Moments) -> DataScale:
    """As `data_scale_of`, from moments of x and w over all units and of y over selected ones."""
    return _data_scale(*((each.mean, np.sqrt(each.squares / each.weight)) for each in (x, w, y)))


def _moments(values, weight):
    if (weight == weight[0]).all():
        return np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    share = np.where(np.isnan(values), 0.0, weight[:, None])
    share /= share.sum(axis=0)
    centre = np.nansum(share * values, axis=0)
    return centre, np.sqrt(np.nansum(share * (values - centre) ** 2, axis=0))


def _data_scale(*moments) -> DataScale:
    """From mean and sd of x, w and y. The computed sd of a constant column is rounding error, about
    1e-16 of its mean."""
    x, w, y = (
        (centre, np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)) for centre, scale in moments
    )
    return DataScale(*x, *w, float(y[0][0]), float(y[1][0]))
