"""Datasets that ship with heckesel, and generators of data whose truth is known."""

from heckesel.datasets.california_housing import load_california_housing
from heckesel.datasets.college_gpa import load_college_gpa
from heckesel.datasets.controlled import Controlled, make_controlled
from heckesel.datasets.interactions import make_interactions
from heckesel.datasets.loans import Loans, make_loans
from heckesel.datasets.mroz import load_mroz
from heckesel.datasets.rand_hie import load_rand_hie
from heckesel.datasets.school_tests import load_school_tests
from heckesel.datasets.semireal import SemiReal, induce_selection
from heckesel.datasets.truth import Truth
from heckesel.datasets.wine_quality import load_wine_quality

__all__ = [
    "Controlled",
    "Loans",
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
