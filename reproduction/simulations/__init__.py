"""Simulations of tests, intervals and verdicts, each with its committed results."""
