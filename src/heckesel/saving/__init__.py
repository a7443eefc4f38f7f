"""Fitted models as files that are safe to open."""
