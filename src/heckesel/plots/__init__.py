"""Plots of fits: every function draws on matplotlib axes and returns them.

Without ``ax=`` a new figure is made, which is not registered with pyplot; save it with
``ax.figure.savefig("picture.png")``. In a notebook, or to open a window, pass axes of pyplot, as in
``fig, ax = plt.subplots(layout="constrained")``.
"""

from heckesel.plots.bounds_plot import bounds
from heckesel.plots.calibration_curve import calibration
from heckesel.plots.chance_of_selection import by_selection
from heckesel.plots.column_effect import effect
from heckesel.plots.estimates_with_intervals import coefficients
from heckesel.plots.pictures_over_rho import rho_likelihood, sensitivity
from heckesel.plots.strength_of_instruments import instrument_strength

__all__ = [
    "bounds",
    "by_selection",
    "calibration",
    "coefficients",
    "effect",
    "instrument_strength",
    "rho_likelihood",
    "sensitivity",
]
