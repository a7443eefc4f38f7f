"""Datasets that ship with heckesel, and generators of data whose truth is known."""

from heckesel.datasets.shipped import (
    load_california_housing,
    load_college_gpa,
    load_mroz,
    load_rand_hie,
    load_school_tests,
    load_wine_quality,
)
from heckesel.datasets.simulated import (
    Controlled,
    SemiReal,
    Truth,
    induce_selection,
    make_controlled,
    make_interactions,
    make_loans,
)

__all__ = [
    "Controlled",
    "SemiReal",
    "Truth",
    "induce_selection",
    "load_california_housing",
    "load_college_gpa",
    "load_mroz",
    "load_rand_hie",
    "load_school_tests",
    "load_wine_quality",
    "make_controlled",
    "make_interactions",
    "make_loans",
]
