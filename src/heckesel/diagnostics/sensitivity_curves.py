"""How much the conclusions of a model depend on rho, which is fixed at each of several values."""

from dataclasses import dataclass

import numpy as np

from heckesel.classical.ml import estimates_over_rho
from heckesel.data import SelectionData, numeric
from heckesel.display import block, html_table, number, number_text, paragraphs
from heckesel.errors import DataError
from heckesel.verdict.profile_curve import new_axes

# Evenly spaced in atanh rho: |rho| up to .96, denser where estimates change faster.
RHO = np.tanh(np.linspace(-2.0, 2.0, 21))
STEP = 1e-2  # of a column's sd, either side, for an average effect
PLAUSIBLE = 2.0  # log-likelihood units below the best within which a curve is highlighted
CAPTION = "Estimates with rho held fixed; log-likelihood minus its maximum"


@dataclass(frozen=True)
class Sensitivity:
    """Conclusions of a model as functions of rho, which is held fixed at each value.

    Attributes
    ----------
    rho : ndarray of shape (j,)
        Increasing values of rho.
    loglik : ndarray of shape (j,)
        Log-likelihood at each rho minus its maximum.
    values : dict of str to ndarray of shape (j,)
        The conclusions: coefficients of the outcome equation and the mean prediction.
    predictions : ndarray of shape (j, m)
        Population means of the m prediction points at each rho.

    Examples
    --------
    >>> import numpy as np
    >>> from heckesel.diagnostics.sensitivity_curves import Sensitivity
    >>> rho = np.array([-0.5, 0.0, 0.5])
    >>> slope = np.array([-1.0, 0.5, 1.0])
    >>> curves = Sensitivity(rho, np.zeros(3), {"slope": slope}, np.empty((3, 0)))
    >>> round(curves.breakdown("slope"), 3)
    -0.167
    """

    rho: np.ndarray
    loglik: np.ndarray
    values: dict[str, np.ndarray]
    predictions: np.ndarray

    def crossings(self, name: str, threshold: float = 0.0) -> list[float]:
        """Find every rho at which a conclusion crosses a threshold.

        Parameters
        ----------
        name : str
            A key of `values`.
        threshold : float, default 0

        Returns
        -------
        list of float
            In increasing order, by linear interpolation between grid values.

        Raises
        ------
        DataError
            If `values` has no key `name`.
        """
        if name not in self.values:
            raise DataError(
                f"there is no value named {name!r}; use one of {', '.join(self.values)}"
            )
        rho, gap = self.rho, self.values[name] - threshold
        here = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        share = gap[here] / (gap[here] - gap[here + 1])
        between = rho[here] + share * (rho[here + 1] - rho[here])
        return np.sort(np.concatenate([rho[gap == 0.0], between])).tolist()

    def breakdown(self, name: str, threshold: float = 0.0) -> float | None:
        """Find the rho closest to 0 at which the conclusion of a naive fit flips.

        Parameters
        ----------
        name : str
            A key of `values`.
        threshold : float, default 0

        Returns
        -------
        float or None
            None if the conclusion does not cross the threshold anywhere on the grid.
        """
        return min(self.crossings(name, threshold), key=abs, default=None)

    def to_frame(self):
        """Return the curves as a pandas DataFrame indexed by rho.

        Returns
        -------
        pandas.DataFrame
            The columns are ``loglik`` and the keys of `values`.
        """
        import pandas as pd

        index = pd.Index(self.rho, name="rho")
        return pd.DataFrame({"loglik": self.loglik, **self.values}, index=index)

    def __str__(self) -> str:
        fixed = {"rho": "{:.3f}".format, "loglik": "{:.2f}".format}
        rows = self.to_frame().reset_index()
        text = rows.to_string(
            index=False, formatters=dict.fromkeys(self.values, number_text) | fixed
        )
        return "\n".join([CAPTION, text, self._flips()])

    def _flips(self) -> str:
        flips = {name: self.breakdown(name) for name in self.values}
        listed = "; ".join(f"{name} at {rho:.3f}" for name, rho in flips.items() if rho is not None)
        return f"Sign changes closest to rho = 0: {listed or 'none on this grid'}."

    def _repr_html_(self) -> str:
        names = ("rho", "log-likelihood", *self.values)
        columns = (self.loglik, *self.values.values())
        rows = [
            (number(f"{rho:.3f}"), f"{loglik:.2f}", *map(number_text, values))
            for rho, loglik, *values in zip(self.rho, *columns, strict=True)
        ]
        return block(html_table(names, rows, caption=CAPTION), paragraphs([self._flips()]))

    def plot(self, name: str = "mean", axes=None):
        """Plot one conclusion over rho, grey where the likelihood is far below its best.

        Parameters
        ----------
        name : str, default "mean"
            A key of `values`.
        axes : matplotlib.axes.Axes, optional
            Axes to draw on. By default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes
        """
        axes = axes or new_axes()
        axes.plot(self.rho, self.values[name], color="0.75")
        plausible = np.where(self.loglik > -PLAUSIBLE, self.values[name], np.nan)
        label = f"within {PLAUSIBLE:g} log-likelihood units of the best"
        axes.plot(self.rho, plausible, "o-", color="#0072B2", label=label)
        axes.axvline(0.0, color="0.5", lw=0.8)
        axes.set(xlabel="rho, held fixed", ylabel=name, xlim=(-1, 1))
        axes.legend(frameon=False)
        return axes


def linear_sensitivity(data: SelectionData, points, weight, rho: np.ndarray) -> Sensitivity:
    """Sensitivity of a linear model, refitted at each rho (j,); the mean is over points (m, p),
    constants included, with weight (m,)."""
    found = estimates_over_rho(data, rho)
    beta = np.array([each.beta for each in found])
    loglik = np.array([each.loglik for each in found])
    predictions = beta @ points.T  # (j, m)
    values = {"mean": predictions @ weight / weight.sum()}
    values |= {name: beta[:, j] for j, name in enumerate(data.x_names)}
    return Sensitivity(rho, loglik - loglik.max(), values, predictions)


def network_sensitivity(
    data: SelectionData, fitted, points, weight, effects: dict[str, int], rho: np.ndarray
) -> Sensitivity:
    """Sensitivity of networks, whose last layers are refitted at each rho (j,), or of splines.

    points, weight : (m, p) and (m,) of the mean; effects : columns of x with an average effect
    """
    from heckesel.networks.rho.fixed_rho import means_over_rho
    from heckesel.networks.rho.last_layer import last_layers
    from heckesel.networks.training.batches import joint_rows

    if hasattr(fitted, "basis"):
        basis = fitted.basis
    else:
        rows, members = joint_rows(data, fitted.scaling), fitted.members
        (basis,) = last_layers([members], [rows], [data.weight.sum()], len(members.parameters))
    weight = weight / weight.sum()
    blocks, widths = [points], []
    for column in effects.values():
        step = np.zeros(points.shape[1])
        step[column] = STEP * np.nanstd(data.x[:, column])
        blocks += [points + step, points - step]
        widths.append(2 * step.sum())
    means, loglik = means_over_rho(data, fitted.scaling, basis, rho, np.concatenate(blocks))
    here, *sides = np.split(means, len(blocks), axis=1)
    values = {"mean": here @ weight}
    for name, width, up, down in zip(effects, widths, sides[::2], sides[1::2], strict=True):
        values[name] = (up - down) @ weight / width
    return Sensitivity(rho, loglik - loglik.max(), values, here)


def check_rho(rho) -> np.ndarray:
    """(j,) increasing values inside (-1, 1); None gives the default grid."""
    if rho is None:
        return RHO
    values = np.sort(np.atleast_1d(numeric(rho, "rho")))
    if values.ndim != 1 or not len(values) or not (np.abs(values) < 1).all():
        raise DataError(f"rho must be numbers between -1 and 1, got {rho!r}")
    return values
