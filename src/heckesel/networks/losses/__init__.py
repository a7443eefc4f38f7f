"""Losses of networks with their slopes, one error model per file.

A new one is a `Loss`, and a line of LOSSES in `tests/networks/test_losses.py`, which checks slopes.
"""
