"""Pictures of results: every function draws on matplotlib axes and returns them."""

from heckesel.plots.bounds_plot import bounds

__all__ = ["bounds"]
