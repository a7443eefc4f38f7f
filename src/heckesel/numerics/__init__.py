"""Formulas that survive the tails."""
