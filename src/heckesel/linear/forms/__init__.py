"""Error models other than the normal: t, shape and copulas, and the search for their maxima.

A new one is a likelihood in `heckesel.likelihoods` and a `Form` in `error_models`.
"""
