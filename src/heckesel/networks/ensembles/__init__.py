"""Trained networks that predict: one kind of fit per file, and the calibration of its noise.

A fit is a frozen dataclass with `predict`, `info` and, where it supports them, `index`, `draw`,
`component_means` and `graph`, as described in `heckesel.methods`.
"""
