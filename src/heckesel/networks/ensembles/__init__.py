"""Trained networks that predict: one kind of fit per file, and the calibration of its noise.

A kind is a frozen dataclass with `predict`, `info` and, as far as it has them, `index`, `draw`,
`component_means` and `graph`, as `heckesel.methods` describes.
"""
