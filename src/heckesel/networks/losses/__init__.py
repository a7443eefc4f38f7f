"""Losses of networks with their slopes, one error model per file."""
