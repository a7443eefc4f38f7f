"""Standardised rows of both equations, in memory or streamed from files."""
